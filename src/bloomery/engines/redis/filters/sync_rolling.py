"""`RedisRollingFilter`: keys of the last seconds, by the clock of the server that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.filters import Held
from bloomery.engines.redis.protocol import verify
from bloomery.engines.redis.protocol.open import WindowWanted, opened_window
from bloomery.engines.redis.storage.windows import Window
from bloomery.engines.redis.transport.connections import transport_of

if TYPE_CHECKING:
    from bloomery.engines.redis.protocol.verify import Verification
    from bloomery.keys import Key, Keys


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
        wanted = WindowWanted(name, capacity, fpr, window, generations, shards, seed, secret, allow_eviction)
        self._transport = transport_of(client, name)
        self._run = self._transport.run
        stood = self._run(opened_window(wanted, self._transport.shards()))
        self._there = Window(name, stood, secret)
        self._run_ids = self._run(verify.run_ids(self._there.names, whole=True))

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
        now = self._run(verify.run_ids(self._there.names, whole=True))
        return self._run(self._there.verified(restarted=now != self._run_ids))
