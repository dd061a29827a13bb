"""`RedisRollingFilter`: keys of the last seconds, by the clock of the server that holds them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from bloomery import _core
from bloomery.engines.redis import creation, planning, server
from bloomery.engines.redis.asks import call
from bloomery.engines.redis.cluster import transport_of
from bloomery.engines.redis.held import Held
from bloomery.engines.redis.manifest import READY, STRINGS, Manifest
from bloomery.engines.redis.names import Names, refused
from bloomery.engines.redis.opening import DEFAULT_FPR, print_of, refuse_own
from bloomery.engines.redis.window_contents import recording
from bloomery.engines.redis.windows import Window, strings_to_come
from bloomery.errors import FilterLost, ParameterError

if TYPE_CHECKING:
    from bloomery.engines.redis.acknowledged import Verification
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
    ``1 - (1 - fpr)**(1/g)``. Nobody has to turn them, and they vanish by themselves. Each is one string, or
    several (``shards``). The manifest records each generation before its first key is acknowledged.

    Opens the window ``name``, or makes it if there is none and ``capacity`` and ``window`` are given; given
    parameters must be those that are there. Of clients that add one new key at a time exactly one is told
    True, except while a generation turns. Raises EngineError and its kin; FilterLost, for every client, when
    strings of a generation within the window are gone, until that generation ends or the window is cleared
    or deleted. A server that may evict keys with a time to live is refused without ``allow_eviction=True``.

    Cost: one round trip, in which all generations are asked at the same time; two or three more where a
    generation has begun, for the first keys of each client. A look takes g times what `RedisBloomFilter`
    asks of the server, and an add g - 1 looks beside its own.

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
        shards: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
        allow_eviction: bool = False,
    ) -> None:
        """Open or make the window."""
        wanted = Wanted(name, capacity, fpr, window, generations, shards, seed, secret, allow_eviction)
        self._transport = transport_of(client, name)
        self._run = self._transport.run
        self._there = self._run(opened(wanted, self._transport.shards()))
        self._run_ids = self._run(server.run_ids(self._there.names, whole=True))

    def add(self, key: Key, /) -> bool:
        """Add a key; True when it was certainly not in the window. One round trip."""
        return self._run(self._there.one(key, adding=True))

    def __contains__(self, key: Key, /) -> bool:
        """Tell whether a key was probably added within the window. One round trip."""
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

    def info(self) -> dict[str, Any]:
        """Return the window's parameters; the server is not asked."""
        return self._parameters()

    def delete(self) -> bool:
        """Delete the window from the server; True when it was there."""
        return self._run(self._there.deleted())

    def fpr(self) -> float:
        """Model rate of false positives at the present load; the server counts bits."""
        return self._run(self._there.fpr())

    def verify(self) -> Verification:
        """Look for what this client knows that the server acknowledged; false when some of it is gone.

        Looked for are the window itself and, of each generation within it, the strings (whoever began it),
        the number of set bits, and the last 4096 keys that this client added; what the window has forgotten
        since does not count. ``shards_lost`` has the numbers of generations.
        """
        now = self._run(server.run_ids(self._there.names, whole=True))
        return self._run(self._there.verified(restarted=now != self._run_ids))


@dataclass(frozen=True)
class Wanted:
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
        layout, bits, probes = planning.shape(self.capacity, each, None, None)
        shards = planning.shards(layout, bits, spread) if self.shards is None else self.shards
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


def opened(wanted: Wanted, spread: int) -> Steps[Window]:
    """Return the window, made if there is none."""
    name = wanted.name
    stood = yield from creation.standing(name)
    if stood is None:
        if wanted.capacity is None:
            yield from refuse_own(name)
        new = wanted.manifest(spread)
        said = (yield from server.asked()).for_cells(name)
        key, allowed = Names(name).manifest, wanted.allow_eviction
        keys = (key, *strings_to_come(name, new))
        yield from planning.refuse_evicting_nodes(name, keys, said, ending=True, allow_eviction=allowed)
        # All there is: strings come with their generations' first keys.
        yield from call(key, b"SET", key, new.to_bytes(), b"NX")
        stood = yield from creation.standing(name)
        if stood is None:
            raise FilterLost(f"filter {name!r}: it was deleted while it was made; try again")
    stood.check(name, wanted.stated())
    if not stood.window:
        stood.check(name, {"window": _LEAST_WINDOW if wanted.window is None else wanted.window})
    return Window(name, stood, wanted.secret)
