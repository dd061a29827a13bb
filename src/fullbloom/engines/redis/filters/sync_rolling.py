# Generated from async_rolling.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""`RedisRollingFilter`: the keys of the last seconds, by the clock of the server that stores them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.filters import StoredFilter
from fullbloom.engines.redis.filters.domains import KnownDomains
from fullbloom.engines.redis.protocol import verify
from fullbloom.engines.redis.protocol.open import RollingOptions, open_rolling, parse_acks, plan_rolling
from fullbloom.engines.redis.storage.windows import Window
from fullbloom.engines.redis.transport.connections import KeyBatcher
from fullbloom.engines.redis.transport.sync_transport import create_transport

if TYPE_CHECKING:
    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.protocol.verify import Verification
    from fullbloom.engines.redis.transport.sync_transport import Transport
    from fullbloom.keys import Key, Keys

_LARGE_BATCH = 1000


class RedisRollingFilter(StoredFilter):
    """A time window over a stream that all clients of a Redis or Valkey server share.

    A key is remembered for at least ``window`` seconds after it was added, by the server's clock, and for at
    most ``window * g / (g - 1)``, where g is the number of ``generations``: strings that are used in turn, by
    the rule of a `RollingBloomFilter` with ``window=``. ``capacity`` is the number of keys that arrive within
    the window; the rate of false positives is at most ``fpr`` with all generations full, each at
    ``1 - (1 - fpr)**(1/g)``. No client has to rotate generations, and they expire by themselves. Each is one
    string, or several (``shards``). The manifest records each generation before its first key is
    acknowledged.

    Opens the window ``name``, or creates it if it does not exist and ``capacity`` and ``window`` are given;
    given parameters must match those of an existing window. Of clients that add one new key at a time exactly
    one gets the answer that it is new, except while a generation changes. A server that may evict keys with a
    time to live is refused without ``allow_eviction=True``.

    Raises EngineError or a subclass: FilterLost, for every client, when strings of a generation within the
    window are lost, until it ends or the window is cleared or deleted; FilterRolledBack if a server went back
    to an earlier state than this client saw. ``acks=1`` waits until one replica has what was added (WAIT, at
    most a second): EngineUnavailable if fewer confirm it, although the add may have been done.

    Cost: one round trip, in which all generations are asked at the same time; two or three more for the first
    keys of each client in a new generation. A lookup costs the server g times what one of `RedisBloomFilter`
    does, and an add g - 1 lookups besides.

    ``seen = RedisRollingFilter(redis.Redis(), "seen", 1_000_000, window=3600)``
    """

    _SHOWN = ("capacity", "window")
    _storage: Window
    _transport: Transport

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
        acks: int = 0,
    ) -> None:
        """Open or create the window."""
        confirmed = parse_acks(acks)
        options = RollingOptions(
            name, capacity, fpr, shards, seed, secret, allow_eviction, window, generations
        )
        self._open(client, options)
        self._storage.acks = confirmed

    @classmethod
    def plan(
        cls,
        client: Any,
        capacity: int,
        fpr: float | None = None,
        *,
        window: float,
        generations: int | None = None,
        shards: int | None = None,
        batch: int = _LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Estimate a new window as `RedisBloomFilter.plan` does a filter; creates nothing.

        The bytes are those of all generations that exist at a time.
        """
        options = RollingOptions(name, capacity, fpr, shards, window=window, generations=generations)
        transport = create_transport(client, name)
        return transport.run(plan_rolling(options, transport.shards(), batch))

    def _open(self, client: Any, options: RollingOptions) -> None:
        self._transport = create_transport(client, options.name)
        self._run = self._transport.run
        manifest = self._run(open_rolling(options, self._transport.shards()))
        self._storage = Window(options.name, manifest, options.secret)
        self._run_ids = self._query_run_ids()
        self._domains = KnownDomains(options.name)
        self._adds = KeyBatcher(partial(self._send_hashes, adding=True))
        self._lookups = KeyBatcher(partial(self._send_hashes, adding=False))

    def _send_hashes(self, hashes: bytes, *, adding: bool) -> bytes:
        return self._run(self._storage.each(hashes, adding=adding))

    def add(self, key: Key, /) -> bool:
        """Add a key; True if it was certainly not in the window. One round trip."""
        new = bool(self._adds.put(self._storage.hasher.one(key).hashes))
        self._domains.note_key(key)
        return new

    def __contains__(self, key: Key, /) -> bool:
        """Return whether a key was probably added within the window. One round trip."""
        found = bool(self._lookups.put(self._storage.hasher.one(key).hashes))
        self._domains.look_up_key(key, found)
        return found

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            self._run(self._storage.many(batch, adding=True, answer=False))
            self._domains.note_many(batch)

    def add_many(self, keys: Any) -> Any:
        """Add many keys; answer for each whether it was new, in the caller's kind."""
        new = self._run(self._storage.many(keys, adding=True))
        self._domains.note_many(keys)
        return new

    def contains_many(self, keys: Any) -> Any:
        """Tell for each key whether it was probably added within the window, in the caller's kind."""
        found = self._run(self._storage.many(keys, adding=False))
        self._domains.look_up_many(keys, found)
        return found

    def clear(self) -> None:
        """Remove all keys."""
        self._run(self._storage.clear())
        self._domains.forget()

    def info(self) -> dict[str, Any]:
        """Return the window's parameters, without asking the server."""
        return self._parameters()

    def delete(self) -> bool:
        """Delete the window from the server; True if it existed."""
        return self._run(self._storage.delete())

    def fpr(self) -> float:
        """Model rate of false positives at the present load; the server counts bits."""
        return self._run(self._storage.fpr())

    def verify(self) -> Verification:
        """Check that the server still has what it acknowledged to this client; false if some of it is lost.

        Checks the window itself and, of each generation within it, the strings (whichever client began it),
        the number of set bits, and the last 4096 keys that this client added; keys that the window has
        forgotten since do not count. ``shards_lost`` lists the numbers of generations.
        """
        restarted = self._query_run_ids() != self._run_ids
        return self._run(self._storage.verify(restarted=restarted))

    def _query_run_ids(self) -> tuple[str | None, ...]:
        return self._run(verify.query_run_ids(self._storage.names, whole=True))
