"""`RedisRollingFilter`: keys of the last seconds, by the clock of the server that holds them."""

from __future__ import annotations

import secrets
from math import isfinite
from typing import TYPE_CHECKING, Any

from bloomery import _core
from bloomery.engines.redis import creation, planning, server
from bloomery.engines.redis.asks import call
from bloomery.engines.redis.cluster import transport_of
from bloomery.engines.redis.held import Held
from bloomery.engines.redis.manifest import READY, Manifest
from bloomery.engines.redis.names import Names, refused
from bloomery.engines.redis.opening import DEFAULT_FPR, print_of
from bloomery.engines.redis.windows import Window
from bloomery.errors import FilterLost, ParameterError

if TYPE_CHECKING:
    from bloomery.engines.redis.asks import Steps
    from bloomery.keys import Key, Keys

_DEFAULT_GENERATIONS = 3
_LEAST_GENERATIONS = 2
_MOST_GENERATIONS = 16
#: Seconds: a generation is to be longer than a batch is on its way.
_LEAST_WINDOW = 0.1


class RedisRollingFilter(Held):
    """A window of time over a stream that all clients of a Redis or Valkey server share.

    A key is remembered for at least ``window`` seconds after it was added, by the server's clock, and for
    ``window * g / (g - 1)`` at most, with g ``generations`` of strings that take turns: the rule of a
    `RollingBloomFilter` with ``window=``. ``capacity`` is the number of keys that come within the window;
    the rate of false positives is at most ``fpr`` with all generations full, each at
    ``1 - (1 - fpr)**(1/g)``. Nobody has to turn them, and they vanish by themselves.

    Opens the window ``name``, or makes it if there is none and ``capacity`` and ``window`` are given; given
    parameters must be those that are there. Of clients that add one new key at a time exactly one is told
    True, except while a generation turns. Raises EngineError and its kin; FilterLost when a generation is
    gone that this client has written to. Cost: g times that of `RedisBloomFilter` to look and to add; the
    generations of a look are asked one after the other.

    ``seen = RedisRollingFilter(redis.Redis(), "seen", 1_000_000, window=3600)``
    """

    _SHOWN = ("capacity", "window")
    _there: Window

    def __init__(
        self,
        client: Any,
        name: str,
        capacity: int | None = None,
        fpr: float | None = None,
        *,
        window: float | None = None,
        generations: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
        allow_eviction: bool = False,
    ) -> None:
        """Open or make the window."""
        if why := refused(name):
            raise ParameterError(why)
        stated = {
            "capacity": capacity,
            "fpr": fpr,
            "window": None if window is None else float(window),
            "generations": generations,
            "seed": seed,
        }
        self._run = transport_of(client, name).run
        self._there = self._run(_opened(name, stated, secret, allow_eviction=allow_eviction))

    def add(self, key: Key, /) -> bool:
        """Add a key; True when it was certainly not in the window. Two round trips."""
        return self._run(self._there.one(key, adding=True))

    def __contains__(self, key: Key, /) -> bool:
        """Tell whether a key was probably added within the window."""
        return self._run(self._there.one(key, adding=False))

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            self._run(self._there.many(batch, adding=True, answer=False))

    def add_many(self, keys: Any) -> Any:
        """Add many keys and answer, for each, whether it was new, in the caller's kind."""
        return self._run(self._there.many(keys, adding=True))

    def contains_many(self, keys: Any) -> Any:
        """Answer for each key whether it was probably added within the window, in the caller's kind."""
        return self._run(self._there.many(keys, adding=False))

    def clear(self) -> None:
        """Forget every key."""
        self._run(self._there.cleared())

    def delete(self) -> bool:
        """Delete the window from the server; True when it was there."""
        return self._run(self._there.deleted())

    def fpr(self) -> float:
        """Model rate of false positives at the present load; the server counts bits."""
        absent = 1.0
        for ones in self._run(self._there.fills()):
            absent *= 1 - self._there.cells.fpr(ones)
        return 1 - absent


def _opened(
    name: str, stated: dict[str, Any], secret: bytes | None, *, allow_eviction: bool
) -> Steps[Window]:
    print_ = print_of(secret)
    stood = yield from creation.standing(name)
    if stood is None:
        new = _new(name, stated, print_)
        Window(name, new, secret)  # raises what does not fit a string
        said = (yield from server.asked()).for_cells(name)
        planning.refuse_evicting(said, name, allow_eviction=allow_eviction)
        key = Names(name).manifest
        # All there is: strings come with their first keys.
        yield from call(key, b"SET", key, new.to_bytes(), b"NX")
        stood = yield from creation.standing(name)
        if stood is None:
            raise FilterLost(f"filter {name!r}: it was deleted while it was made; try again")
    stood.check(name, {**stated, "counter_bits": 0, "secret": print_})
    if not stood.window:
        stood.check(name, {"window": stated["window"] or _LEAST_WINDOW})
    return Window(name, stood, secret)


def _new(name: str, stated: dict[str, Any], secret: str) -> Manifest:
    capacity, window = stated["capacity"], stated["window"]
    if capacity is None or window is None:
        raise FilterLost(
            f"there is no filter {name!r} on the server; give a capacity and a window and it is made"
        )
    generations = _DEFAULT_GENERATIONS if stated["generations"] is None else stated["generations"]
    if not isinstance(generations, int) or not _LEAST_GENERATIONS <= generations <= _MOST_GENERATIONS:
        raise ParameterError(
            f"generations must be {_LEAST_GENERATIONS} to {_MOST_GENERATIONS}, got {generations!r}"
        )
    if not isfinite(window) or window < _LEAST_WINDOW:
        raise ParameterError(f"window must be {_LEAST_WINDOW} seconds or more, got {window!r}")
    fpr = DEFAULT_FPR if stated["fpr"] is None else stated["fpr"]
    # Keys may come in bursts: each generation has room for all of them.
    layout, bits, probes = planning.shape(capacity, 1 - (1 - fpr) ** (1 / generations), None, None)
    cells = _core.WireCells(bits, probes, layout=layout)
    return Manifest(
        id=secrets.token_hex(16),
        backend="strings",
        capacity=capacity,
        fpr=float(fpr),
        layout=layout,
        scheme=cells.scheme,
        hash="xxh3",
        num_bits=cells.num_bits,
        num_hashes=cells.num_hashes,
        shards=1,
        seed=stated["seed"] or 0,
        secret=secret,
        window=window,
        generations=generations,
        state=READY,
    )
