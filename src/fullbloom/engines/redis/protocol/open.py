"""Opens filters: from the caller's parameters to the manifest, which is created if it does not exist."""

from __future__ import annotations

import operator
import secrets
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from fullbloom import _core
from fullbloom.engines.redis.protocol import Acks, Steps, call, create, plan, read_text
from fullbloom.engines.redis.protocol.generations import (
    count_spare_generations,
    list_upcoming_keys,
    with_record,
)
from fullbloom.engines.redis.protocol.manifest import (
    MAX_GENERATIONS,
    MAX_TTL,
    MAX_WINDOW,
    MIN_GENERATIONS,
    MIN_TTL,
    MIN_WINDOW,
    MODULE,
    READY,
    STRINGS,
    WINDOW_VERSION,
    Manifest,
    Names,
    find_name_error,
    make_cells,
    make_counters,
)
from fullbloom.errors import (
    EngineError,
    EngineRefused,
    FilterLost,
    IncompatibleFilters,
    ParameterError,
    ParameterTypeError,
)

if TYPE_CHECKING:
    from fullbloom._core import BloomFilter
    from fullbloom.engines.redis.protocol.plan import Plan

#: The fpr of a new filter without one.
DEFAULT_FPR = 0.01


@dataclass(frozen=True)
class FilterOptions:
    """The parameters of any filter; None for any value, or the default of a new filter."""

    name: str
    capacity: int | None = None
    fpr: float | None = None
    shards: int | None = None
    seed: int | None = None
    secret: bytes | None = None
    allow_eviction: bool = False

    def __post_init__(self) -> None:
        """Check the name; convert integers of other libraries, which JSON does not know."""
        if error := find_name_error(self.name):
            raise ParameterError(error)
        for field, value in vars(self).items():
            if not isinstance(value, (int, str, bytes, tuple)):
                with suppress(TypeError):
                    object.__setattr__(self, field, operator.index(value))

    def require_capacity(self) -> int:
        """Return the capacity of a new filter; FilterLost without one."""
        if self.capacity is None:
            raise FilterLost(f"the server has no filter {self.name!r}; give a capacity to create it")
        return self.capacity

    @property
    def target_fpr(self) -> float:
        """The rate of a new filter."""
        return DEFAULT_FPR if self.fpr is None else self.fpr

    def _make_manifest(self, **parameters: Any) -> Manifest:
        """Return a new manifest with these parameters, and those that all filters have."""
        parameters |= {"capacity": self.capacity, "fpr": float(self.target_fpr), "seed": self.seed or 0}
        return Manifest(id=secrets.token_hex(16), **parameters)


@dataclass(frozen=True)
class OpenOptions(FilterOptions):
    """The parameters of a Bloom filter."""

    layout: str | None = None
    scheme: str | None = None
    hash: str | None = None
    #: "strings", "module" (BF.* of the server), or "auto": the module if the server has it.
    backend: str | None = None
    #: Seconds until a new filter expires.
    ttl: float | None = None
    #: Default number of shards, limited by the number of lines.
    spread: int = 1
    #: Bits and probes of a filter in memory, if they are not those for capacity and fpr.
    shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.backend not in (None, "auto", STRINGS, MODULE):
            raise ParameterError(f"backend must be 'strings', 'module' or 'auto', got {self.backend!r}")
        if self.ttl is not None:
            ttl = _parse_seconds("ttl", self.ttl, MIN_TTL, MAX_TTL, ", or None for no expiry")
            object.__setattr__(self, "ttl", ttl)

    @classmethod
    def from_filter(
        cls,
        name: str,
        filter_: BloomFilter,
        *,
        shards: int | None,
        secret: bytes | None,
        allow_eviction: bool,
        ttl: float | None = None,
    ) -> OpenOptions:
        """Return the parameters of a filter in memory."""
        require_bloom_filter(filter_)
        info = filter_.info()
        return cls(
            name,
            info["capacity"],
            info["target_fpr"],
            shards,
            info["seed"],
            secret,
            allow_eviction,
            info["layout"],
            info["scheme"],
            info["hash"],
            ttl=ttl,
            shape=(info["num_bits"], info["num_hashes"]),
        )

    def requirements(self) -> dict[str, Any]:
        """Return the values that the manifest must have."""
        bits, probes = self.shape or (None, None)
        return {
            "backend": None if self.backend == "auto" else self.backend,
            "capacity": self.capacity,
            "fpr": self.fpr,
            "layout": self.layout,
            "scheme": self.scheme,
            "hash": self.hash,
            "num_bits": bits,
            "num_hashes": probes,
            "shards": self.shards,
            "seed": self.seed,
            "counter_bits": 0,
            "window": 0.0,
            "ttl": self.ttl,
        }

    def make_manifest(self, backend: str = STRINGS) -> Manifest:
        """Return the manifest of a new filter."""
        capacity = self.require_capacity()
        layout, bits, probes = plan.choose_shape(capacity, self.target_fpr, self.layout, self.scheme)
        bits, probes = self.shape or (bits, probes)
        spread = 1 if backend == MODULE else self.spread
        cells = _core.WireCells(
            bits,
            probes,
            layout=layout,
            scheme=self.scheme,
            hash=self.hash or "xxh3",
            shards=plan.choose_shards(layout, bits, spread) if self.shards is None else self.shards,
            seed=self.seed or 0,
            secret=self.secret,
        )
        return self._make_manifest(
            backend=backend,
            layout=layout,
            scheme=cells.scheme,
            hash=self.hash or "xxh3",
            num_bits=cells.num_bits,
            num_hashes=cells.num_hashes,
            shards=cells.shards,
            secret=format_fingerprint(cells.secret_fingerprint),
            ttl=self.ttl or 0.0,
        ).require_valid()


def require_bloom_filter(filter_: Any) -> None:
    """Raise ParameterTypeError for anything but a plain filter in memory."""
    if not isinstance(filter_, _core.BloomFilter):
        raise ParameterTypeError(
            f"filter must be a BloomFilter in memory (fullbloom.open loads one from a file), got "
            f"{type(filter_).__name__}"
        )


def _parse_seconds(name: str, value: Any, least: float, most: float, otherwise: str = "") -> float:
    """Return a number of seconds; ParameterError unless it is in a range."""
    is_number = issubclass(type(value), Real) and type(value) is not bool
    if is_number and least <= value <= most:
        return float(value)
    raise ParameterError(f"{name} must be {least} to {most:,.0f} seconds{otherwise}, got {value!r}")


#: Milliseconds to wait for replicas.
_ACKS_TIMEOUT = 1000
_MAX_ACKS = 1 << 10


def parse_acks(replicas: Any) -> Acks | None:
    """Return how many replicas must confirm what is added; ParameterError for an invalid number."""
    if type(replicas) is not int or not 0 <= replicas <= _MAX_ACKS:
        raise ParameterError(f"acks must be a number of replicas, 0 to {_MAX_ACKS:,}, got {replicas!r}")
    return Acks(replicas, _ACKS_TIMEOUT) if replicas else None


def compute_fingerprint(secret: bytes | None) -> str:
    """Return the fingerprint of a secret."""
    return format_fingerprint(_core.WireCells(512, 8, secret=secret).secret_fingerprint)


def format_fingerprint(number: int) -> str:
    """Return a secret's fingerprint in the manifest's format."""
    return f"{number:016x}" if number else ""


def _choose_backend(options: OpenOptions, server: plan.ServerInfo) -> str:
    """Return the backend of a new filter, by the modules that the server reports."""
    if options.backend in {None, STRINGS}:
        return STRINGS
    given: dict[str, Any] = {name: getattr(options, name) for name in ("layout", "scheme", "hash", "shape")}
    given["shards"] = None if options.shards == 1 else options.shards
    unsupported = ", ".join(field for field, value in given.items() if value is not None)
    if options.backend == "auto":
        return MODULE if server.module and not unsupported else STRINGS
    if unsupported:
        raise ParameterError(
            f"backend 'module' does not support {unsupported}; leave them out, or take backend='strings'"
        )
    if not server.module:
        raise EngineError(
            f"filter {options.name!r}: the server has no filters of its own (BF.RESERVE, BF.INSERT, ...); "
            "take backend='strings', or 'auto'"
        )
    return MODULE


def _require_backend(options: OpenOptions, server: plan.ServerInfo) -> str:
    """Return the backend of a new filter; EngineError if the server does not support it."""
    backend = _choose_backend(options, server)
    if backend == STRINGS:
        # The module accepts no bits, so a filter in memory cannot be stored there.
        own = ["take backend='module'"] if server.module and options.shape is None else []
        server.require_strings(options.name, *own)
    return backend


def plan_filter(options: OpenOptions, batch: int) -> Steps[Plan]:
    """Return the plan of a new filter."""
    server = yield from plan.query_server()
    new = options.make_manifest(_require_backend(options, server))
    cells = make_cells(new, options.secret)
    names = Names.from_manifest(options.name, new)
    return (yield from plan.query_plan(names, cells, new, server, batch, expiring=bool(new.ttl)))


#: Filters of a server's own by the reply to TYPE, and the commands that create and query them.
_NATIVE_TYPES = {
    b"MBbloom--": ("Bloom", "BF.RESERVE, BF.ADD", "BF.EXISTS"),
    b"bloomfltr": ("Bloom", "BF.RESERVE, BF.ADD", "BF.EXISTS"),
    b"MBbloomCF": ("cuckoo", "CF.RESERVE, CF.ADD", "CF.EXISTS"),
}


def refuse_native_filter(name: str) -> Steps[None]:
    """Raise IncompatibleFilters if a key of this name holds a filter of the server's own.

    The server itself hashes the keys of such a filter, so this package cannot query it.
    """
    key = name.encode()
    try:
        type_ = yield from read_text(key, plan.MAX_TYPE_BYTES, b"TYPE", key)
    except EngineRefused:  # this user may not run TYPE
        return
    if type_ not in _NATIVE_TYPES:
        return
    kind, created, query = _NATIVE_TYPES[type_]
    raise IncompatibleFilters(
        f"the server has a {kind} filter of its own under {name!r} ({created}), but no filter of this "
        f"package: the server itself hashes its keys. Query it by {query}, or give a capacity to create a "
        "filter of this package beside it"
    )


def open_filter(options: OpenOptions, data: bytes | memoryview | None = None) -> Steps[tuple[Manifest, bool]]:
    """Return the manifest of a filter, created with the cells in ``data`` if need be; True if it is new."""
    name = options.name
    manifest, created = (yield from create.wait_until_ready(name)), ""
    if manifest is None:
        if options.capacity is None:
            yield from refuse_native_filter(name)
        options.make_manifest()  # raises for invalid parameters
        server = yield from plan.query_server()
        new = options.make_manifest(_require_backend(options, server))
        cells = make_cells(new, options.secret)
        nodes = yield from plan.query_nodes(
            Names.from_manifest(name, new), cells, server, expiring=bool(new.ttl)
        )
        plan.make_plan(cells, new, nodes, 1).refuse(name, allow_eviction=options.allow_eviction)
        manifest, created = (yield from create.create_filter(name, new, cells, data)), new.id
    manifest.require_match(name, options.requirements())
    cells = make_cells(manifest, options.secret)
    manifest.require_match(name, {"secret": format_fingerprint(cells.secret_fingerprint)})
    return manifest, manifest.id == created


#: The layout with all counters of a key in one line.
COUNTER_LAYOUT: Final = "blocked"
#: Widths for which the bytes of the string equal those in memory.
_WIDTHS = (2, 4, 8)
_DEFAULT_BITS = 4


@dataclass(frozen=True)
class CountingOptions(FilterOptions):
    """The parameters of a counting filter."""

    counter_bits: int | None = None

    def requirements(self) -> dict[str, Any]:
        """Return the values that the manifest must have."""
        fields = ("capacity", "fpr", "counter_bits", "shards", "seed")
        return {field: getattr(self, field) for field in fields} | {
            "window": 0.0,
            "secret": compute_fingerprint(self.secret),
        }

    def make_manifest(self, spread: int) -> Manifest:
        """Return the manifest of a new filter, in ``spread`` shards if it has that many lines."""
        capacity = self.require_capacity()
        bits = _DEFAULT_BITS if self.counter_bits is None else self.counter_bits
        if bits not in _WIDTHS:
            raise ParameterError(f"counter_bits must be 2, 4 or 8, got {bits!r}")
        parameters: Any = {"counter_bits": bits, "layout": COUNTER_LAYOUT, "seed": self.seed or 0}
        shape = _core.CountingBloomFilter(capacity, self.target_fpr, **parameters)
        num_bits = shape.num_counters * bits
        shards = plan.choose_shards(COUNTER_LAYOUT, num_bits, spread) if self.shards is None else self.shards
        new = self._make_manifest(
            backend=STRINGS,
            layout=COUNTER_LAYOUT,
            scheme="",
            hash="xxh3",
            num_bits=num_bits,
            num_hashes=shape.num_hashes,
            shards=shards,
            secret=compute_fingerprint(self.secret),
            counter_bits=bits,
        )
        make_counters(new, self.secret)  # raises for invalid parameters
        return new.require_valid()


def open_counting(options: CountingOptions, spread: int) -> Steps[Manifest]:
    """Return the manifest of a counting filter, which is created if it does not exist."""
    name = options.name
    manifest = yield from create.wait_until_ready(name)
    if manifest is None:
        if options.capacity is None:
            yield from refuse_native_filter(name)
        new = options.make_manifest(spread)
        cells = make_counters(new, options.secret)
        server = (yield from plan.query_server()).require_strings(name)
        names, allowed = Names.from_manifest(name, new), options.allow_eviction
        keys = (names.manifest, *names.bits)
        yield from plan.refuse_evicting_nodes(name, keys, server, expiring=False, allow_eviction=allowed)
        manifest = yield from create.create_filter(name, new, cells)
    manifest.require_match(name, options.requirements())
    if not manifest.counter_bits:
        manifest.require_match(name, {"counter_bits": _DEFAULT_BITS})
    return manifest


def plan_counting(options: CountingOptions, spread: int, batch: int) -> Steps[Plan]:
    """Return the plan of a new counting filter."""
    new = options.make_manifest(spread)
    cells = make_counters(new, options.secret)
    server = (yield from plan.query_server()).require_strings(options.name)
    names = Names.from_manifest(options.name, new)
    return (yield from plan.query_plan(names, cells, new, server, batch, expiring=False))


_DEFAULT_GENERATIONS = 3


@dataclass(frozen=True)
class RollingOptions(FilterOptions):
    """The parameters of a window."""

    window: float | None = None
    generations: int | None = None

    def __post_init__(self) -> None:
        """Check the name and the window."""
        super().__post_init__()
        if self.window is not None:
            window = _parse_seconds("window", self.window, MIN_WINDOW, MAX_WINDOW)
            object.__setattr__(self, "window", window)

    def requirements(self) -> dict[str, Any]:
        """Return the values that the manifest must have."""
        fields = ("capacity", "fpr", "window", "generations", "shards", "seed")
        return {field: getattr(self, field) for field in fields} | {
            "counter_bits": 0,
            "secret": compute_fingerprint(self.secret),
        }

    def make_manifest(self, spread: int) -> Manifest:
        """Return the manifest of a new window, in ``spread`` shards if it has that many lines."""
        if self.capacity is None or self.window is None:
            raise FilterLost(
                f"the server has no filter {self.name!r}; give a capacity and a window to create it"
            )
        generations = _DEFAULT_GENERATIONS if self.generations is None else self.generations
        if type(generations) is not int or not MIN_GENERATIONS <= generations <= MAX_GENERATIONS:
            raise ParameterError(
                f"generations must be {MIN_GENERATIONS} to {MAX_GENERATIONS}, got {generations!r}"
            )
        plan.choose_shape(self.capacity, self.target_fpr, None, None)  # raises for an invalid rate
        # Keys may arrive in bursts: each generation has room for all of them.
        rate = 1 - (1 - self.target_fpr) ** (1 / generations)
        layout, bits, probes = plan.choose_shape(self.capacity, rate, None, None)
        cells = _core.WireCells(
            bits,
            probes,
            layout=layout,
            shards=plan.choose_shards(layout, bits, spread) if self.shards is None else self.shards,
            seed=self.seed or 0,
            secret=self.secret,
        )
        new = self._make_manifest(
            backend=STRINGS,
            layout=layout,
            scheme=cells.scheme,
            hash="xxh3",
            num_bits=cells.num_bits,
            num_hashes=cells.num_hashes,
            shards=cells.shards,
            secret=format_fingerprint(cells.secret_fingerprint),
            window=self.window,
            generations=generations,
            state=READY,
            version=WINDOW_VERSION,
        )
        return with_record(new.require_valid(), {})


def open_rolling(options: RollingOptions, spread: int) -> Steps[Manifest]:
    """Return the manifest of a window, which is created if it does not exist."""
    name = options.name
    manifest = yield from create.wait_until_ready(name)
    if manifest is None:
        if options.capacity is None:
            yield from refuse_native_filter(name)
        new = options.make_manifest(spread)
        server = (yield from plan.query_server()).require_strings(name)
        key, allowed = Names(name).manifest, options.allow_eviction
        keys = (key, *list_upcoming_keys(name, new))
        yield from plan.refuse_evicting_nodes(name, keys, server, expiring=True, allow_eviction=allowed)
        # The manifest is all: strings are created with the first keys of their generations.
        yield from call(key, b"SET", key, new.to_bytes(), b"NX")
        manifest = yield from create.wait_until_ready(name)
        if manifest is None:
            raise FilterLost(f"filter {name!r}: it was deleted while it was being created; try again")
    manifest.require_match(name, options.requirements())
    if not manifest.window:
        manifest.require_match(name, {"window": options.window or MIN_WINDOW})
    return manifest


def plan_rolling(options: RollingOptions, spread: int, batch: int) -> Steps[Plan]:
    """Return the plan of a new window."""
    new = options.make_manifest(spread)
    cells = make_cells(new, options.secret)
    server = (yield from plan.query_server()).require_strings(options.name)
    names, spare = Names(options.name), count_spare_generations(new)
    names.bits = list_upcoming_keys(options.name, new)
    return (yield from plan.query_plan(names, cells, new, server, batch, expiring=True, spare=spare))
