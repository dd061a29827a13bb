"""`AsyncRedisCountingFilter`: `RedisCountingFilter` for asyncio."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.filters import Held
from bloomery.engines.redis.protocol import verify
from bloomery.engines.redis.protocol.open import CountingWanted, checked_acks, opened_counters
from bloomery.engines.redis.storage.counters import Counters
from bloomery.engines.redis.transport.async_transport import AsyncTransport, transport_of
from bloomery.engines.redis.transport.gathering import Gathering

if TYPE_CHECKING:
    from typing import Self

    from bloomery.engines.redis.protocol.verify import Verification
    from bloomery.engines.redis.storage.counters import Do
    from bloomery.keys import Key, Keys


class AsyncRedisCountingFilter(Held):
    """`RedisCountingFilter` over a client of redis.asyncio, for one server or a cluster.

    ``await AsyncRedisCountingFilter.open(...)`` makes it. Its methods are those of `RedisCountingFilter`,
    awaited; ``contains`` stands for ``in``. Single keys that tasks add, count or remove at the same time
    travel as one batch of each kind, as those of `AsyncRedisBloomFilter` do. A task that is cancelled harms
    no other, and its key may have been added or removed. One event loop at a time.

    ``seen = await AsyncRedisCountingFilter.open(redis.asyncio.Redis(), "seen", 1_000_000)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _there: Counters

    def __init__(
        self, transport: AsyncTransport, counters: Counters, run_ids: tuple[str | None, ...]
    ) -> None:
        """Take what `open` found."""
        self._transport, self._there, self._run_ids = transport, counters, run_ids
        self._run = transport.run
        self._added = Gathering(partial(self._each, counters.add))
        self._counted = Gathering(partial(self._each, counters.count))
        self._removed = Gathering(partial(self._each, counters.remove))

    @classmethod
    async def open(
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
        """Open or make the filter; parameters and errors are those of `RedisCountingFilter`."""
        wanted = CountingWanted(name, capacity, fpr, counter_bits, shards, seed, secret, allow_eviction)
        transport = await transport_of(client, name)
        confirmed = checked_acks(acks)
        stood = await transport.run(opened_counters(wanted, transport.shards()))
        counters = Counters(name, stood, secret)
        counters.acks = confirmed
        ids = verify.run_ids(counters.names, whole=transport.whole)
        return cls(transport, counters, await transport.run(ids))

    async def _each(self, do: Do, hashes: bytes) -> bytes:
        return await self._run(self._there.each(hashes, do))

    async def add(self, key: Key, /) -> bool:
        """Add an occurrence of a key; True when it was certainly new."""
        return await self._added.put(self._there.cells.hash(key)) > 0

    async def remove(self, key: Key, /) -> None:
        """Remove an occurrence of a key; KeyError for one that was certainly not there."""
        if not await self.discard(key):
            raise KeyError(key)

    async def discard(self, key: Key, /) -> bool:
        """Remove an occurrence of a key if it seems to be there; True when it did."""
        return await self._removed.put(self._there.cells.hash(key)) > 0

    async def contains(self, key: Key, /) -> bool:
        """Tell whether a key probably is there."""
        return await self.count(key) > 0

    async def count(self, key: Key, /) -> int:
        """Return how often a key is there, rarely more; "so many or more" at the counters' maximum."""
        return await self._counted.put(self._there.cells.hash(key))

    async def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            await self._run(self._there.many(batch, self._there.add, answer=False))

    async def add_many(self, keys: Any) -> Any:
        """Add keys in order and answer, for each, whether it was new, in the caller's kind."""
        return await self._run(self._there.many(keys, self._there.add))

    async def discard_many(self, keys: Any) -> Any:
        """Remove an occurrence of each key that seems to be there, and answer whether it did."""
        return await self._run(self._there.many(keys, self._there.remove))

    async def contains_many(self, keys: Any) -> Any:
        """Answer for each key whether it probably is there, in the caller's kind."""
        return await self._run(self._there.many(keys, self._there.count))

    async def count_many(self, keys: Any) -> Any:
        """Return how often each key is there, in the caller's kind."""
        return await self._run(self._there.many(keys, self._there.count, counts=True))

    async def counters(self) -> bytes:
        """Return all counters, byte for byte as in a `CountingBloomFilter`."""
        return await self._run(self._there.cells_there())

    async def verify(self) -> Verification:
        """Look for what this client knows that the server acknowledged; false when some of it is gone."""
        now = await self._run(verify.run_ids(self._there.names, whole=self._transport.whole))
        return await self._run(verify.compared(self._there, restarted=now != self._run_ids))

    async def clear(self) -> None:
        """Set every counter to 0; each string changes at once."""
        await self._run(self._there.cleared())

    async def info(self) -> dict[str, Any]:
        """Return the filter's parameters; the server is not asked."""
        return self._parameters()

    async def delete(self) -> bool:
        """Delete the filter from the server; True when it was there."""
        return await self._run(self._there.deleted())
