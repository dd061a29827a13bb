"""`RedisCountingFilter`: a filter whose counters a server holds, so that keys can be removed and counted."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, cast

from bloomery import _core
from bloomery.engines.redis import creation, planning, server
from bloomery.engines.redis.cluster import transport_of
from bloomery.engines.redis.counters import LAYOUT, WIDTHS, Counters
from bloomery.engines.redis.held import Held
from bloomery.engines.redis.manifest import Manifest
from bloomery.engines.redis.names import refused
from bloomery.engines.redis.opening import DEFAULT_FPR, print_of
from bloomery.errors import FilterLost, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bloomery._core import WireCells
    from bloomery.engines.redis.asks import Steps
    from bloomery.keys import Key

_DEFAULT_BITS = 4


class RedisCountingFilter(Held):
    """An approximate multiset of keys that all clients of a Redis or Valkey server share.

    Opens the filter ``name``, or makes it if there is none and ``capacity`` is given; given parameters must
    be those that are there (`IncompatibleFilters`). The counters are those of a `CountingBloomFilter` with
    ``layout="blocked"``, ``counter_bits`` 2, 4 or 8 each, in one string (at most 512 MB).

    No key is missed that was added more often than removed, as long as only keys were removed that had been
    added. A counter that reached its maximum stays there for ever, and none falls below 0, whatever clients
    do at the same time. Of clients that remove a key's last occurrence at the same moment one is told True;
    until the others have given back what they took, keys that share counters with it may be missed.

    Raises EngineError and its kin, FilterLost when the counters are gone. Cost: a pipeline of the client a
    1,024 keys, two to remove; some ten thousand keys a second. Source: as `CountingBloomFilter`.

    ``seen = RedisCountingFilter(redis.Redis(), "seen", 1_000_000)``
    """

    _there: Counters

    def __init__(
        self,
        client: Any,
        name: str,
        capacity: int | None = None,
        fpr: float | None = None,
        *,
        counter_bits: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
        allow_eviction: bool = False,
    ) -> None:
        """Open or make the filter."""
        if why := refused(name):
            raise ParameterError(why)
        stated = {"capacity": capacity, "fpr": fpr, "counter_bits": counter_bits, "seed": seed}
        self._run = transport_of(client, name).run
        self._there = self._run(_opened(name, stated, secret, allow_eviction=allow_eviction))

    def add(self, key: Key, /) -> bool:
        """Add an occurrence of a key; True when it was certainly new. One round trip."""
        return self._run(self._there.added([key]))[0]

    def remove(self, key: Key, /) -> None:
        """Remove an occurrence of a key; KeyError for one that was certainly not there. Two round trips."""
        if not self.discard(key):
            raise KeyError(key)

    def discard(self, key: Key, /) -> bool:
        """Remove an occurrence of a key if it seems to be there; True when it did."""
        return self._run(self._there.removed([key]))[0]

    def __contains__(self, key: Key, /) -> bool:
        """Tell whether a key probably is there. One round trip."""
        return self.count(key) > 0

    def count(self, key: Key, /) -> int:
        """Return how often a key is there, rarely more; "so many or more" at the counters' maximum."""
        return self._run(self._there.counted([key]))[0]

    def update(self, /, *keys: Iterable[Key]) -> None:
        """Add the keys of each iterable."""
        for some in keys:
            self.add_many(some)

    def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add keys in order and answer, for each, whether it was new."""
        return self._run(self._there.added(keys))

    def discard_many(self, keys: Iterable[Key]) -> list[bool]:
        """Remove an occurrence of each key that seems to be there, and answer whether it did."""
        return self._run(self._there.removed(keys))

    def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Answer for each key whether it probably is there."""
        return [count > 0 for count in self.count_many(keys)]

    def count_many(self, keys: Iterable[Key]) -> list[int]:
        """Return how often each key is there."""
        return self._run(self._there.counted(keys))

    def counters(self) -> bytes:
        """Return all counters, byte for byte as in a `CountingBloomFilter`, the first in the lowest bits."""
        return self._run(self._there.cells_there())

    def delete(self) -> bool:
        """Delete the filter from the server; True when it was there."""
        return self._run(creation.deleted(self.name, self.manifest))


def _opened(
    name: str, stated: dict[str, Any], secret: bytes | None, *, allow_eviction: bool
) -> Steps[Counters]:
    print_ = print_of(secret)
    stood = yield from creation.standing(name)
    if stood is None:
        new = _new(name, stated, print_)
        counters = Counters(name, new, secret)
        longest = counters.cells.nbytes
        if longest + 16 > planning.LONGEST:
            raise ParameterError(
                f"a string of a server has at most {planning.LONGEST} bytes and the counters need {longest}; "
                "take a lower capacity, fewer counter_bits or a higher fpr"
            )
        planning.refuse_evicting((yield from server.asked()), name, allow_eviction=allow_eviction)
        stood = yield from creation.made(name, new, cast("WireCells", counters.cells))
    stood.check(name, {**stated, "window": 0.0, "secret": print_})
    if not stood.counter_bits:
        stood.check(name, {"counter_bits": _DEFAULT_BITS})
    return Counters(name, stood, secret)


def _new(name: str, stated: dict[str, Any], secret: str) -> Manifest:
    if stated["capacity"] is None:
        raise FilterLost(f"there is no filter {name!r} on the server; give a capacity and it is made")
    bits = _DEFAULT_BITS if stated["counter_bits"] is None else stated["counter_bits"]
    if bits not in WIDTHS:
        raise ParameterError(f"counter_bits must be 2, 4 or 8, got {bits!r}")
    fpr = DEFAULT_FPR if stated["fpr"] is None else stated["fpr"]
    seed = stated["seed"] or 0
    shape = _core.CountingBloomFilter(stated["capacity"], fpr, counter_bits=bits, layout=LAYOUT, seed=seed)
    return Manifest(
        id=secrets.token_hex(16),
        backend="strings",
        capacity=stated["capacity"],
        fpr=float(fpr),
        layout=LAYOUT,
        scheme="",
        hash="xxh3",
        num_bits=shape.num_counters * bits,
        num_hashes=shape.num_hashes,
        shards=1,
        seed=seed,
        secret=secret,
        counter_bits=bits,
    )
