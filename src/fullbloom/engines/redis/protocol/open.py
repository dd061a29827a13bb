"""From what was asked for to the filter that stands on the server: made if it is not there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

from fullbloom import _core
from fullbloom.engines.redis.protocol import create, plan
from fullbloom.engines.redis.protocol.generations import recording, strings_to_come
from fullbloom.engines.redis.protocol.keys import Names, cells_of, counters_of, refused
from fullbloom.engines.redis.protocol.manifest import LEAST_TTL, MODULE, MOST_TTL, READY, STRINGS, Manifest
from fullbloom.engines.redis.protocol.requests import Acks, Steps, call, read_text
from fullbloom.errors import (
    EngineError,
    EngineRefused,
    FilterLost,
    IncompatibleFilters,
    ParameterError,
    ParameterTypeError,
)

if TYPE_CHECKING:
    from fullbloom._core import BloomFilter, WireCells
    from fullbloom.engines.redis.protocol.plan import Plan

#: The rate of a new filter for which none is given.
DEFAULT_FPR = 0.01


@dataclass(frozen=True)
class Wanted:
    """A filter as the caller wants it.

    None stands for what the server says, or for the default of a new one.
    """

    name: str
    capacity: int | None = None
    fpr: float | None = None
    shards: int | None = None
    layout: str | None = None
    scheme: str | None = None
    hash: str | None = None
    seed: int | None = None
    secret: bytes | None = None
    allow_eviction: bool = False
    #: "strings", "module" (BF.* of the server), or "auto": the module where the server has it.
    backend: str | None = None
    #: Seconds for which a new filter stands; 0 for good.
    ttl: float | None = None
    #: Shards of a new filter where nobody says how many, as far as it has lines for them.
    spread: int = 1
    #: A shape that is not that of capacity and fpr: that of a filter in memory.
    shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check the name."""
        if why := refused(self.name):
            raise ParameterError(why)
        if self.backend not in {None, "auto", STRINGS, MODULE}:
            raise ParameterError(f"backend must be 'strings', 'module' or 'auto', got {self.backend!r}")
        if self.ttl is not None:
            object.__setattr__(self, "ttl", _checked(self.ttl))

    @classmethod
    def of(
        cls,
        name: str,
        filter_: BloomFilter,
        *,
        shards: int | None,
        secret: bytes | None,
        allow_eviction: bool,
        ttl: float | None = None,
    ) -> Wanted:
        """Return what a filter in memory is."""
        check_in_memory(filter_)
        info = filter_.info()
        return cls(
            name,
            info["capacity"],
            info["target_fpr"],
            shards,
            info["layout"],
            info["scheme"],
            info["hash"],
            info["seed"],
            secret,
            allow_eviction=allow_eviction,
            ttl=ttl,
            shape=(info["num_bits"], info["num_hashes"]),
        )

    def stated(self) -> dict[str, Any]:
        """Return what the manifest must say."""
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

    def manifest(self, backend: str = STRINGS) -> Manifest:
        """Return the manifest of a new filter."""
        if self.capacity is None:
            raise FilterLost(
                f"there is no filter {self.name!r} on the server; give a capacity and it is made"
            )
        fpr = DEFAULT_FPR if self.fpr is None else self.fpr
        layout, bits, probes = plan.shape(self.capacity, fpr, self.layout, self.scheme)
        bits, probes = self.shape or (bits, probes)
        spread = 1 if backend == MODULE else self.spread
        cells = _core.WireCells(
            bits,
            probes,
            layout=layout,
            scheme=self.scheme,
            hash=self.hash or "xxh3",
            shards=plan.shards(layout, bits, spread) if self.shards is None else self.shards,
            seed=self.seed or 0,
            secret=self.secret,
        )
        return Manifest(
            id=secrets.token_hex(16),
            backend=backend,
            capacity=self.capacity,
            fpr=float(fpr),
            layout=layout,
            scheme=cells.scheme,
            hash=self.hash or "xxh3",
            num_bits=cells.num_bits,
            num_hashes=cells.num_hashes,
            shards=cells.shards,
            seed=self.seed or 0,
            secret=fingerprint(cells.secret_fingerprint),
            ttl=self.ttl or 0.0,
        )


def check_in_memory(filter_: Any) -> None:
    """Raise ParameterTypeError for what is no plain filter in memory."""
    if not isinstance(filter_, _core.BloomFilter):
        raise ParameterTypeError(
            f"filter must be a BloomFilter in memory (fullbloom.open has one of a file), got "
            f"{type(filter_).__name__}"
        )


def _checked(ttl: Any) -> float:
    """Return the seconds of a ttl; ParameterError for what is none."""
    if isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and LEAST_TTL <= ttl <= MOST_TTL:
        return float(ttl)
    raise ParameterError(
        f"ttl must be {LEAST_TTL} to {MOST_TTL:,.0f} seconds, or None for a filter for good, got {ttl!r}"
    )


#: Milliseconds for which replicas are waited for.
_ACKED_WITHIN = 1000
_MOST_ACKS = 1 << 10


def checked_acks(replicas: Any) -> Acks | None:
    """Return how many replicas must confirm what is added; ParameterError for what is no such number."""
    if type(replicas) is not int or not 0 <= replicas <= _MOST_ACKS:
        raise ParameterError(f"acks must be a number of replicas, 0 to {_MOST_ACKS:,}, got {replicas!r}")
    return Acks(replicas, _ACKED_WITHIN) if replicas else None


def print_of(secret: bytes | None) -> str:
    """Return the fingerprint of a secret."""
    return fingerprint(_core.WireCells(512, 8, secret=secret).secret_fingerprint)


def fingerprint(number: int) -> str:
    """Return the fingerprint of a secret as manifests have it."""
    return f"{number:016x}" if number else ""


def _chosen(wanted: Wanted, said: plan.Server) -> str:
    """Return who holds the cells of a new filter, by what the server says it has."""
    if wanted.backend in {None, STRINGS}:
        return STRINGS
    asked: dict[str, Any] = {name: getattr(wanted, name) for name in ("layout", "scheme", "hash", "shape")}
    asked["shards"] = None if wanted.shards == 1 else wanted.shards
    named = ", ".join(field for field, value in asked.items() if value is not None)
    if wanted.backend == "auto":
        return MODULE if said.module and not named else STRINGS
    if named:
        raise ParameterError(
            f"backend 'module' has none of {named}; leave them out, or take backend='strings'"
        )
    if not said.module:
        raise EngineError(
            f"filter {wanted.name!r}: the server has no filters of its own (BF.RESERVE, BF.INSERT, ...); "
            "take backend='strings', or 'auto'"
        )
    return MODULE


def _backend(wanted: Wanted, said: plan.Server) -> str:
    """Return who holds the cells, which the server must say it can."""
    backend = _chosen(wanted, said)
    if backend == STRINGS:
        # The module takes no bits, so that a filter in memory has no place there.
        own = ["take backend='module'"] if said.module and wanted.shape is None else []
        said.for_cells(wanted.name, *own)
    return backend


def plan_filter(wanted: Wanted, batch: int) -> Steps[Plan]:
    """Return the plan of a new filter."""
    if type(batch) is not int or batch < 1:
        raise ParameterError(f"batch must be a whole number of keys, 1 or more, got {batch!r}")
    said = yield from plan.asked()
    new = wanted.manifest(_backend(wanted, said))
    cells = cells_of(new, wanted.secret)
    names = Names.of(wanted.name, new)
    nodes = yield from plan.placed(names, cells, said, ending=bool(new.ttl))
    return plan.planned(cells, new, (yield from plan.warned(names, nodes)), batch)


#: Filters of a server's own by what TYPE answers, and the commands that make and ask them.
_OWN = {
    b"MBbloom--": ("Bloom", "BF.RESERVE, BF.ADD", "BF.EXISTS"),
    b"bloomfltr": ("Bloom", "BF.RESERVE, BF.ADD", "BF.EXISTS"),
    b"MBbloomCF": ("cuckoo", "CF.RESERVE, CF.ADD", "CF.EXISTS"),
}
_LONGEST_TYPE = 1 << 10


def refuse_own(name: str) -> Steps[None]:
    """Raise IncompatibleFilters where the server has a filter of its own under a name, made by its commands.

    Such a filter hashes keys in its server, so that no hash of this package is in it.
    """
    key = name.encode()
    try:
        sort = yield from read_text(key, _LONGEST_TYPE, b"TYPE", key)
    except EngineRefused:  # this user may not know
        return
    if sort not in _OWN:
        return
    kind, made, ask = _OWN[sort]
    raise IncompatibleFilters(
        f"the server has a {kind} filter of its own under {name!r} ({made}), and this package has none "
        f"there: the server itself hashes its keys. Ask it by {ask}, or give a capacity and a "
        "filter of this package is made beside it"
    )


def opened(wanted: Wanted, data: bytes | memoryview | None = None) -> Steps[tuple[Manifest, bool]]:
    """Return the filter's manifest, made if there is none, of the cells in ``data``; True if it was made."""
    stood, made = (yield from create.standing(wanted.name)), ""
    if stood is None:
        if wanted.capacity is None:
            yield from refuse_own(wanted.name)
        wanted.manifest()  # raises what is wrong with the parameters
        said = yield from plan.asked()
        new = wanted.manifest(_backend(wanted, said))
        cells = cells_of(new, wanted.secret)
        nodes = yield from plan.placed(Names.of(wanted.name, new), cells, said, ending=bool(new.ttl))
        planned = plan.planned(cells, new, nodes, 1)
        planned.refuse(wanted.name, allow_eviction=wanted.allow_eviction)
        stood, made = (yield from create.made(wanted.name, new, cells, data)), new.id
    stood.check(wanted.name, wanted.stated())
    cells = cells_of(stood, wanted.secret)
    stood.check(wanted.name, {"secret": fingerprint(cells.secret_fingerprint)})
    return stood, stood.id == made


#: The layout of all counters of a key in one line.
COUNTER_LAYOUT: Final = "blocked"
#: Widths for which the bytes of the string are those of memory.
_WIDTHS = (2, 4, 8)
_DEFAULT_BITS = 4


@dataclass(frozen=True)
class CountingWanted:
    """A filter as the caller wants it; None stands for what the server says, or for the default."""

    name: str
    capacity: int | None
    fpr: float | None
    counter_bits: int | None
    shards: int | None
    seed: int | None
    secret: bytes | None
    allow_eviction: bool

    def __post_init__(self) -> None:
        """Check the name."""
        if why := refused(self.name):
            raise ParameterError(why)

    def stated(self) -> dict[str, Any]:
        """Return what the manifest must say."""
        fields = ("capacity", "fpr", "counter_bits", "shards", "seed")
        return {field: getattr(self, field) for field in fields} | {
            "window": 0.0,
            "secret": print_of(self.secret),
        }

    def manifest(self, spread: int) -> Manifest:
        """Return the manifest of a new filter, in ``spread`` shards if it has lines for as many."""
        if self.capacity is None:
            raise FilterLost(
                f"there is no filter {self.name!r} on the server; give a capacity and it is made"
            )
        bits = _DEFAULT_BITS if self.counter_bits is None else self.counter_bits
        if bits not in _WIDTHS:
            raise ParameterError(f"counter_bits must be 2, 4 or 8, got {bits!r}")
        fpr, seed = DEFAULT_FPR if self.fpr is None else self.fpr, self.seed or 0
        shape = _core.CountingBloomFilter(
            self.capacity, fpr, counter_bits=bits, layout=COUNTER_LAYOUT, seed=seed
        )
        num_bits = shape.num_counters * bits
        return Manifest(
            id=secrets.token_hex(16),
            backend=STRINGS,
            capacity=self.capacity,
            fpr=float(fpr),
            layout=COUNTER_LAYOUT,
            scheme="",
            hash="xxh3",
            num_bits=num_bits,
            num_hashes=shape.num_hashes,
            shards=plan.shards(COUNTER_LAYOUT, num_bits, spread) if self.shards is None else self.shards,
            seed=seed,
            secret=print_of(self.secret),
            counter_bits=bits,
        )


def opened_counters(wanted: CountingWanted, spread: int) -> Steps[Manifest]:
    """Return the manifest of a counting filter, made if there is none."""
    name = wanted.name
    stood = yield from create.standing(name)
    if stood is None:
        if wanted.capacity is None:
            yield from refuse_own(name)
        new = wanted.manifest(spread)
        cells = cast("WireCells", counters_of(new, wanted.secret))  # raises what does not fit
        said = (yield from plan.asked()).for_cells(name)
        names, allowed = Names.of(name, new), wanted.allow_eviction
        keys = (names.manifest, *names.bits)
        yield from plan.refuse_evicting_nodes(name, keys, said, ending=False, allow_eviction=allowed)
        stood = yield from create.made(name, new, cells)
    stood.check(name, wanted.stated())
    if not stood.counter_bits:
        stood.check(name, {"counter_bits": _DEFAULT_BITS})
    return stood


_DEFAULT_GENERATIONS = 3
_LEAST_GENERATIONS = 2
_MOST_GENERATIONS = 16
#: Seconds: a generation is to be longer than a batch is on its way.
_LEAST_WINDOW = 0.1


@dataclass(frozen=True)
class WindowWanted:
    """A window as the caller wants it; None stands for what the server says, or for the default."""

    name: str
    capacity: int | None
    fpr: float | None
    window: float | None
    generations: int | None
    shards: int | None
    seed: int | None
    secret: bytes | None
    allow_eviction: bool

    def __post_init__(self) -> None:
        """Check the name."""
        if why := refused(self.name):
            raise ParameterError(why)
        if self.window is not None:
            object.__setattr__(self, "window", float(self.window))

    def stated(self) -> dict[str, Any]:
        """Return what the manifest must say."""
        fields = ("capacity", "fpr", "window", "generations", "shards", "seed")
        return {field: getattr(self, field) for field in fields} | {
            "counter_bits": 0,
            "secret": print_of(self.secret),
        }

    def manifest(self, spread: int) -> Manifest:
        """Return the manifest of a new window, in ``spread`` shards if it has lines for as many."""
        if self.capacity is None or self.window is None:
            raise FilterLost(
                f"there is no filter {self.name!r} on the server; give a capacity and a window and it is made"
            )
        generations = _DEFAULT_GENERATIONS if self.generations is None else self.generations
        if type(generations) is not int or not _LEAST_GENERATIONS <= generations <= _MOST_GENERATIONS:
            raise ParameterError(
                f"generations must be {_LEAST_GENERATIONS} to {_MOST_GENERATIONS}, got {generations!r}"
            )
        if not isfinite(self.window) or self.window < _LEAST_WINDOW:
            raise ParameterError(f"window must be {_LEAST_WINDOW} seconds or more, got {self.window!r}")
        fpr = DEFAULT_FPR if self.fpr is None else self.fpr
        # Keys may come in bursts: each generation has room for all of them.
        each = 1 - (1 - fpr) ** (1 / generations)
        layout, bits, probes = plan.shape(self.capacity, each, None, None)
        shards = plan.shards(layout, bits, spread) if self.shards is None else self.shards
        cells = _core.WireCells(bits, probes, layout=layout, shards=shards)
        new = Manifest(
            id=secrets.token_hex(16),
            backend=STRINGS,
            capacity=self.capacity,
            fpr=float(fpr),
            layout=layout,
            scheme=cells.scheme,
            hash="xxh3",
            num_bits=cells.num_bits,
            num_hashes=cells.num_hashes,
            shards=cells.shards,
            seed=self.seed or 0,
            secret=print_of(self.secret),
            window=self.window,
            generations=generations,
            state=READY,
        )
        return recording(new, {})


def opened_window(wanted: WindowWanted, spread: int) -> Steps[Manifest]:
    """Return the manifest of a window, made if there is none."""
    name = wanted.name
    stood = yield from create.standing(name)
    if stood is None:
        if wanted.capacity is None:
            yield from refuse_own(name)
        new = wanted.manifest(spread)
        said = (yield from plan.asked()).for_cells(name)
        key, allowed = Names(name).manifest, wanted.allow_eviction
        keys = (key, *strings_to_come(name, new))
        yield from plan.refuse_evicting_nodes(name, keys, said, ending=True, allow_eviction=allowed)
        # All there is: strings come with their generations' first keys.
        yield from call(key, b"SET", key, new.to_bytes(), b"NX")
        stood = yield from create.standing(name)
        if stood is None:
            raise FilterLost(f"filter {name!r}: it was deleted while it was made; try again")
    stood.check(name, wanted.stated())
    if not stood.window:
        stood.check(name, {"window": _LEAST_WINDOW if wanted.window is None else wanted.window})
    return stood
