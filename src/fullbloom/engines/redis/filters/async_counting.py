"""`AsyncRedisCountingFilter`: a filter on a server from which keys can be removed, and counted."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.engines.redis.filters import StoredFilter
from fullbloom.engines.redis.filters.capacity import LoadWatch
from fullbloom.engines.redis.filters.domains import KnownDomains
from fullbloom.engines.redis.protocol import verify
from fullbloom.engines.redis.protocol.open import CountingOptions, open_counting, parse_acks, plan_counting
from fullbloom.engines.redis.storage.counters import Counters
from fullbloom.engines.redis.transport.async_transport import create_transport
from fullbloom.engines.redis.transport.connections import AsyncKeyBatcher
from fullbloom.errors import FullbloomError

if TYPE_CHECKING:
    from typing import Self

    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.protocol.verify import Verification
    from fullbloom.engines.redis.storage.counters import Operation
    from fullbloom.engines.redis.transport.async_transport import AsyncTransport
    from fullbloom.keys import Key, Keys

_LARGE_BATCH = 1000


class AsyncRedisCountingFilter(StoredFilter):
    """An approximate multiset of keys that all clients of a Redis or Valkey server share.

    In asyncio it is created by ``open``, over a client of redis.asyncio for one server or a cluster. Its
    methods are those of `RedisCountingFilter`, awaited; ``contains`` replaces ``in``. Single keys that
    tasks add, count or remove at the same time travel as one batch of each kind, as those of
    `AsyncRedisBloomFilter` do. Cancelling a task harms no other, and its key may have been added or removed.
    Use it in one event loop at a time.

    Opens the filter ``name``, or creates it if it does not exist and ``capacity`` is given; given parameters
    must match those of an existing filter (`IncompatibleFilters`). The counters are those of a
    `CountingBloomFilter` with ``layout="blocked"``, ``counter_bits`` 2, 4 or 8 each, in one string or in
    several (``shards``).

    A key that was added more often than removed is always found, as long as only keys were removed that had
    been added. A counter that reached its maximum stays there, and none falls below 0, whatever clients do
    at the same time. Of clients that remove a key's last occurrence at the same moment, one gets True;
    until the others have given back what they took, keys that share counters with it may be missed. When a
    connection breaks, keys whose add was not answered are added again, and may be counted twice; a removal is
    not repeated, and EngineUnavailable says that it may have been done.

    A filter that takes keys beyond its capacity is reported once (CapacityWarning), and by ``over_capacity``:
    each object reads some of the counters now and then.

    Raises EngineError or a subclass, FilterLost when the counters are lost. Cost: one round trip a batch of
    up to 8,192 keys, two to remove, three when others remove the same keys; 57 bytes out and 71 back a key
    to look up, 380 and 37 to add, 1,500 and 130 to remove. Source: as `CountingBloomFilter`.

    ``seen = await AsyncRedisCountingFilter.open(redis.asyncio.Redis(), "seen", 1_000_000)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _storage: Counters
    _transport: AsyncTransport

    @classmethod
    async def open(  # blocking: __init__
        cls,
        client: Any,
        name: str,
        capacity: int | None = None,
        fpr: float | None = None,
        *,
        counter_bits: int | None = None,
        shards: int | None = None,
        seed: int | None = None,
        secret: bytes | None = None,
        allow_eviction: bool = False,
        acks: int = 0,
    ) -> Self:
        """Open or create the filter."""
        confirmed = parse_acks(acks)
        options = CountingOptions(name, capacity, fpr, shards, seed, secret, allow_eviction, counter_bits)
        self = cls.__new__(cls)
        await self._open(client, options)
        self._storage.acks = confirmed
        return self

    @classmethod
    async def plan(
        cls,
        client: Any,
        capacity: int,
        fpr: float | None = None,
        *,
        counter_bits: int | None = None,
        shards: int | None = None,
        batch: int = _LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Estimate a new filter as `RedisBloomFilter.plan` does; creates nothing."""
        options = CountingOptions(name, capacity, fpr, shards, counter_bits=counter_bits)
        transport = await create_transport(client, name)
        return await transport.run(plan_counting(options, transport.shards(), batch))

    async def _open(self, client: Any, options: CountingOptions) -> None:
        self._transport = await create_transport(client, options.name)
        self._run = self._transport.run
        manifest = await self._run(open_counting(options, self._transport.shards()))
        storage = self._storage = Counters(options.name, manifest, options.secret)
        self._run_ids = await self._query_run_ids()
        self._domains = KnownDomains(options.name)
        self._load_watch = LoadWatch(options.name, manifest)
        self._adds = AsyncKeyBatcher(partial(self._send_hashes, storage.add))
        self._counts = AsyncKeyBatcher(partial(self._send_hashes, storage.count))
        self._removals = AsyncKeyBatcher(partial(self._send_hashes, storage.remove))

    async def _send_hashes(self, do: Operation, hashes: bytes) -> bytes:
        return await self._run(self._storage.each(hashes, do))

    async def _watch_load(self) -> None:
        """Find out now and then whether the filter is over capacity; warn once."""
        num_changed = self._storage.num_changed
        if self._load_watch.start(num_changed):
            try:
                with suppress(FullbloomError):  # the change succeeded
                    self._load_watch.take(await self._run(self._storage.estimate_load()), num_changed)
            finally:
                self._load_watch.end()

    @property
    def over_capacity(self) -> bool:
        """True if the filter held more keys than its capacity, at a rate above its target, when last asked.

        An object reads 64 kB of the counters with the first key that it adds or removes, and then after at
        most as many keys as a sixteenth of the capacity; it warns once (CapacityWarning).
        """
        return self._load_watch.is_over

    async def add(self, key: Key, /) -> bool:
        """Add an occurrence of a key; True if it was certainly new. One round trip."""
        new = await self._adds.put(self._storage.cells.hash(key)) > 0
        self._domains.note_key(key)
        await self._watch_load()
        return new

    async def remove(self, key: Key, /) -> None:
        """Remove an occurrence of a key; KeyError if it is certainly absent. Two round trips."""
        if not await self.discard(key):
            raise KeyError(key)

    async def discard(self, key: Key, /) -> bool:
        """Remove an occurrence of a key if it is probably present; True if it was."""
        found = await self._removals.put(self._storage.cells.hash(key)) > 0
        self._domains.look_up_key(key, found)
        await self._watch_load()
        return found

    async def contains(self, key: Key, /) -> bool:  # blocking: __contains__
        """Return whether a key is probably present. One round trip."""
        found = await self._counts.put(self._storage.cells.hash(key)) > 0
        self._domains.look_up_key(key, found)
        return found

    async def count(self, key: Key, /) -> int:
        """Return how often a key is present, rarely more; a counter's maximum means "so many or more"."""
        number = await self._counts.put(self._storage.cells.hash(key))
        self._domains.look_up_key(key, number)
        return number

    async def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            await self._run(self._storage.many(batch, self._storage.add, answer=False))
            self._domains.note_many(batch)
            await self._watch_load()

    async def add_many(self, keys: Any) -> Any:
        """Add keys in order; answer for each whether it was new, in the caller's kind."""
        new = await self._run(self._storage.many(keys, self._storage.add))
        self._domains.note_many(keys)
        await self._watch_load()
        return new

    async def discard_many(self, keys: Any) -> Any:
        """Remove an occurrence of each key that is probably present, and answer whether it was.

        In the caller's kind. A key that occurs more often in ``keys`` than in the filter is removed as often
        as the filter has it.
        """
        found = await self._run(self._storage.many(keys, self._storage.remove))
        self._domains.look_up_many(keys, found)
        await self._watch_load()
        return found

    async def contains_many(self, keys: Any) -> Any:
        """Tell for each key whether it is probably present, in the caller's kind."""
        found = await self._run(self._storage.many(keys, self._storage.count))
        self._domains.look_up_many(keys, found)
        return found

    async def count_many(self, keys: Any) -> Any:
        """Return how often each key is present, in the caller's kind."""
        numbers = await self._run(self._storage.many(keys, self._storage.count, counts=True))
        self._domains.look_up_many(keys, numbers)
        return numbers

    async def counters(self) -> bytes:
        """Return all counters, byte for byte as in a `CountingBloomFilter`, the first in the lowest bits."""
        return await self._run(self._storage.read_counters())

    async def verify(self) -> Verification:
        """Check that the server still has what it acknowledged to this client; false if some of it is lost.

        Checks the filter itself, each shard, and the last 4096 keys that this client added and did not
        remove. A key that another client removed counts as lost; bits are not counted.
        """
        restarted = await self._query_run_ids() != self._run_ids
        return await self._run(verify.compare(self._storage, restarted=restarted))

    async def _query_run_ids(self) -> tuple[str | None, ...]:
        return await self._run(verify.query_run_ids(self._storage.names, whole=self._transport.whole))

    async def clear(self) -> None:
        """Set all counters to 0; each string changes atomically."""
        await self._run(self._storage.clear())
        self._domains.forget()
        self._load_watch.forget(self._storage.num_changed)

    async def info(self) -> dict[str, Any]:
        """Return the filter's parameters, without asking the server."""
        return self._parameters()

    async def delete(self) -> bool:
        """Delete the filter from the server; True if it existed."""
        return await self._run(self._storage.delete())
