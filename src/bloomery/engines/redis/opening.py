"""From what was asked for to the filter that stands on the server: made if it is not there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bloomery import _core
from bloomery.engines.redis import creation, planning, server
from bloomery.engines.redis.asks import Acks, read_text
from bloomery.engines.redis.manifest import LEAST_TTL, MODULE, MOST_TTL, STRINGS, Manifest
from bloomery.engines.redis.module import Module
from bloomery.engines.redis.names import Names, refused
from bloomery.engines.redis.snapshot import cells_of
from bloomery.engines.redis.strings import Strings
from bloomery.errors import (
    EngineError,
    EngineRefused,
    FilterLost,
    IncompatibleFilters,
    ParameterError,
    ParameterTypeError,
)

if TYPE_CHECKING:
    from bloomery._core import BloomFilter
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.planning import Plan

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
        layout, bits, probes = planning.shape(self.capacity, fpr, self.layout, self.scheme)
        bits, probes = self.shape or (bits, probes)
        spread = 1 if backend == MODULE else self.spread
        cells = _core.WireCells(
            bits,
            probes,
            layout=layout,
            scheme=self.scheme,
            hash=self.hash or "xxh3",
            shards=planning.shards(layout, bits, spread) if self.shards is None else self.shards,
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
            f"filter must be a BloomFilter in memory (bloomery.open has one of a file), got "
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


def _chosen(wanted: Wanted, said: server.Server) -> str:
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


def _backend(wanted: Wanted, said: server.Server) -> str:
    """Return who holds the cells, which the server must say it can."""
    backend = _chosen(wanted, said)
    if backend == STRINGS:
        # The module takes no bits, so that a filter in memory has no place there.
        own = ["take backend='module'"] if said.module and wanted.shape is None else []
        said.for_cells(wanted.name, *own)
    return backend


def plan(wanted: Wanted, batch: int) -> Steps[Plan]:
    """Return the plan of a new filter."""
    if type(batch) is not int or batch < 1:
        raise ParameterError(f"batch must be a whole number of keys, 1 or more, got {batch!r}")
    said = yield from server.asked()
    new = wanted.manifest(_backend(wanted, said))
    cells = cells_of(new, wanted.secret)
    names = Names.of(wanted.name, new)
    nodes = yield from planning.placed(names, cells, said, ending=bool(new.ttl))
    return planning.planned(cells, new, (yield from planning.warned(names, nodes)), batch)


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


def opened(wanted: Wanted, data: bytes | memoryview | None = None) -> Steps[Strings]:
    """Return the filter, made if there is none, of the cells in ``data`` if they are given."""
    stood, made = (yield from creation.standing(wanted.name)), ""
    if stood is None:
        if wanted.capacity is None:
            yield from refuse_own(wanted.name)
        wanted.manifest()  # raises what is wrong with the parameters
        said = yield from server.asked()
        new = wanted.manifest(_backend(wanted, said))
        cells = cells_of(new, wanted.secret)
        nodes = yield from planning.placed(Names.of(wanted.name, new), cells, said, ending=bool(new.ttl))
        planned = planning.planned(cells, new, nodes, 1)
        planned.refuse(wanted.name, allow_eviction=wanted.allow_eviction)
        stood, made = (yield from creation.made(wanted.name, new, cells, data)), new.id
    stood.check(wanted.name, wanted.stated())
    kind = Module if stood.backend == MODULE else Strings
    strings = kind(wanted.name, stood, wanted.secret)
    stood.check(wanted.name, {"secret": fingerprint(strings.cells.secret_fingerprint)})
    strings.fresh = stood.id == made
    return strings
