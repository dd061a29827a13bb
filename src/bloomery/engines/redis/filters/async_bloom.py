"""`AsyncRedisBloomFilter`: `RedisBloomFilter` for asyncio."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.filters import Held
from bloomery.engines.redis.filters.sync_bloom import described
from bloomery.engines.redis.protocol import create, load, reshard, verify
from bloomery.engines.redis.protocol import open as opening
from bloomery.engines.redis.protocol.load import cells_in_memory, check_same, check_secret, united_there
from bloomery.engines.redis.protocol.open import Wanted
from bloomery.engines.redis.storage.module import opened_strings
from bloomery.engines.redis.transport.async_transport import AsyncTransport, transport_of
from bloomery.engines.redis.transport.gathering import Gathering

if TYPE_CHECKING:
    from typing import Self

    from bloomery._core import BloomFilter
    from bloomery.engines.redis.protocol.plan import Plan
    from bloomery.engines.redis.protocol.verify import Verification
    from bloomery.engines.redis.storage.strings import Load, Strings
    from bloomery.keys import Key, Keys


class AsyncRedisBloomFilter(Held):
    """`RedisBloomFilter` over a client of redis.asyncio, for one server or a cluster.

    ``await AsyncRedisBloomFilter.open(...)`` makes it. Its methods are those of `RedisBloomFilter`, awaited;
    ``contains`` stands for ``in`` and ``merge`` for ``|=``. Single keys that tasks add or look for at the
    same time travel as one batch: what comes while one is on its way is the next one, so that 64 tasks take
    few round trips instead of 64. Each task gets its own answer, or its own copy of the batch's error; one
    that is cancelled harms no other, and its key may have been added. One event loop at a time.

    ``seen = await AsyncRedisBloomFilter.open(redis.asyncio.Redis(), "seen", 1_000_000, fpr=0.001)``
    """

    _SHOWN = ("capacity", "fpr", "shards")
    _there: Strings

    def __init__(self, transport: AsyncTransport, strings: Strings, run_ids: tuple[str | None, ...]) -> None:
        """Take what `open` found."""
        self._transport, self._there, self._run_ids = transport, strings, run_ids
        self._run = transport.run
        self._added = Gathering(partial(self._hashed, adding=True))
        self._looked = Gathering(partial(self._hashed, adding=False))

    @classmethod
    async def open(
        cls,
        client: Any,
        name: str,
        capacity: int | None = None,
        fpr: float | None = None,
        *,
        shards: int | None = None,
        layout: str | None = None,
        scheme: str | None = None,
        hash: str | None = None,  # noqa: A002 - the name that it has everywhere
        seed: int | None = None,
        secret: bytes | None = None,
        backend: str | None = None,
        ttl: float | None = None,
        allow_eviction: bool = False,
        acks: int = 0,
    ) -> Self:
        """Open or make the filter; parameters and errors are those of `RedisBloomFilter`."""
        wanted = Wanted(
            name,
            capacity,
            fpr,
            shards,
            layout,
            scheme,
            hash,
            seed,
            secret,
            allow_eviction=allow_eviction,
            backend=backend,
            ttl=ttl,
        )
        confirmed = opening.checked_acks(acks)
        self = await cls._opened(client, wanted)
        self._there.acks = confirmed
        return self

    @classmethod
    async def _opened(cls, client: Any, wanted: Wanted, data: memoryview | None = None) -> Self:
        transport = await transport_of(client, wanted.name)
        wanted = replace(wanted, spread=transport.shards())
        strings = await transport.run(opened_strings(wanted, data))
        ids = verify.run_ids(strings.names, whole=transport.whole)
        return cls(transport, strings, await transport.run(ids))

    @classmethod
    async def find(cls, client: Any, name: str, *, secret: bytes | None = None) -> Self | None:
        """Return the filter ``name`` if it is there."""
        wanted = Wanted(name, secret=secret)
        if await (await transport_of(client, name)).run(create.standing(name)) is None:
            return None
        return await cls._opened(client, wanted)

    @classmethod
    async def from_filter(
        cls,
        client: Any,
        name: str,
        filter: BloomFilter,  # noqa: A002
        *,
        shards: int | None = None,
        secret: bytes | None = None,
        ttl: float | None = None,
        allow_eviction: bool = False,
    ) -> Self:
        """Make a filter on the server with the parameters and bits of one in memory.

        Other clients find it once it has them.
        """
        wanted = Wanted.of(name, filter, shards=shards, secret=secret, allow_eviction=allow_eviction, ttl=ttl)
        check_secret(wanted, filter)
        self = await cls._opened(client, wanted, memoryview(filter).cast("B"))
        if not self._there.fresh:
            await self.load(filter)
        return self

    @classmethod
    async def plan(
        cls,
        client: Any,
        capacity: int,
        fpr: float | None = None,
        *,
        shards: int | None = None,
        layout: str | None = None,
        scheme: str | None = None,
        batch: int = 1000,
        name: str = "plan",
    ) -> Plan:
        """Tell what a new filter takes; makes nothing."""
        wanted = Wanted(name, capacity, fpr, shards, layout, scheme)
        transport = await transport_of(client, wanted.name)
        return await transport.run(opening.plan_filter(replace(wanted, spread=transport.shards()), batch))

    async def _hashed(self, hashes: bytes, *, adding: bool) -> bytes:
        return await self._run(self._there.each(hashes, adding=adding))

    async def add(self, key: Key, /) -> bool:
        """Add a key; True when it was certainly new."""
        return bool(await self._added.put(self._there.cells.one(key).hashes))

    async def contains(self, key: Key, /) -> bool:
        """Tell whether a key was probably added."""
        return bool(await self._looked.put(self._there.cells.one(key).hashes))

    async def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            await self._run(self._there.many(batch, adding=True, answer=False))

    async def add_many(self, keys: Any) -> Any:
        """Add many keys and answer, for each, whether it was new, in the caller's kind."""
        return await self._run(self._there.many(keys, adding=True))

    async def contains_many(self, keys: Any) -> Any:
        """Answer for each key whether it was probably added, in the caller's kind."""
        return await self._run(self._there.many(keys, adding=False))

    async def add_hashed(self, hashes: Any) -> Any:
        """As ``add_many``, of ready 64-bit hashes: of ``hash_many`` with this filter's seed and secret."""
        return await self._run(self._there.hashed(hashes, adding=True))

    async def contains_hashed(self, hashes: Any) -> Any:
        """As ``contains_many``, of ready 64-bit hashes: a list, NumPy array or other buffer of them."""
        return await self._run(self._there.hashed(hashes, adding=False))

    async def merge(self, other: BloomFilter | AsyncRedisBloomFilter) -> None:
        """Add the keys of another filter of the same parameters, in memory or on a server."""
        if isinstance(other, AsyncRedisBloomFilter):
            check_same(self.name, self.manifest, other.manifest)
            theirs, there = other._transport, other._there  # noqa: SLF001 - its own class
            near = self._transport.whole and theirs.client is self._transport.client
            if near and await self._run(united_there(self._there, there)):
                return
            other = await other.dump()
        await self._run(load.merged(self._there, cells_in_memory(self._there, other)))

    async def dump(self) -> BloomFilter:
        """Return the filter in memory, with the same bits. Keys that come meanwhile may be in it or not."""
        return await self._run(load.dumped(self._there))

    async def load(self, filter: BloomFilter) -> None:  # noqa: A002
        """Put the cells of a filter in memory in the place of those on the server."""
        self._there.need_cells("load()")
        opening.check_in_memory(filter)
        await self._run(reshard.replaced(self._there, cells_in_memory(self._there, filter)))

    async def clear(self) -> None:
        """Forget every key; each string changes at once."""
        await self._run(reshard.replaced(self._there, None))

    async def reshard(self, shards: int) -> None:
        """Go to another number of shards, while clients add and look."""
        await self._run(reshard.resharded(self._there, shards))

    async def delete(self) -> bool:
        """Delete the filter from the server; True when it was there."""
        return await self._run(reshard.deleted(self._there))

    async def fpr(self) -> float:
        """Model rate of false positives at the present load."""
        return (await self._load()).fpr

    async def approx_count(self) -> tuple[float, float]:
        """Estimated number of distinct keys and its standard deviation."""
        load = await self._load()
        return load.keys, load.keys_sd

    async def fill(self) -> float:
        """Share of set bits."""
        self._there.need_cells("fill")
        return (await self._load()).fill or 0.0

    async def _load(self) -> Load:
        return await self._run(self._there.load())

    async def verify(self) -> Verification:
        """Look for what this client knows that the server acknowledged; false when some of it is gone."""
        now = await self._run(verify.run_ids(self._there.names, whole=self._transport.whole))
        return await self._run(verify.verified(self._there, restarted=now != self._run_ids))

    async def info(self) -> dict[str, Any]:
        """Return the filter's parameters and present load."""
        return {"class": type(self).__name__, **described(self._there, await self._load())}
