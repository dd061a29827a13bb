"""`AsyncRedisRollingFilter`: `RedisRollingFilter` for asyncio."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.filters import Held
from bloomery.engines.redis.protocol import verify
from bloomery.engines.redis.protocol.open import WindowWanted, opened_window
from bloomery.engines.redis.storage.windows import Window
from bloomery.engines.redis.transport.async_transport import AsyncTransport, transport_of
from bloomery.engines.redis.transport.gathering import Gathering

if TYPE_CHECKING:
    from typing import Self

    from bloomery.engines.redis.protocol.verify import Verification
    from bloomery.keys import Key, Keys


class AsyncRedisRollingFilter(Held):
    """`RedisRollingFilter` over a client of redis.asyncio, for one server or a cluster.

    ``await AsyncRedisRollingFilter.open(...)`` makes it. Its methods are those of `RedisRollingFilter`,
    awaited; ``contains`` stands for ``in``. Single keys that tasks add or look for at the same time travel
    as one batch, as those of `AsyncRedisBloomFilter` do. A task that is cancelled harms no other, and its
    key may have been added. One event loop at a time.

    ``seen = await AsyncRedisRollingFilter.open(redis.asyncio.Redis(), "seen", 1_000_000, window=3600)``
    """

    _SHOWN = ("capacity", "window")
    _there: Window

    def __init__(self, transport: AsyncTransport, window: Window, run_ids: tuple[str | None, ...]) -> None:
        """Take what `open` found."""
        self._there, self._run_ids, self._run = window, run_ids, transport.run
        self._added = Gathering(partial(self._each, adding=True))
        self._looked = Gathering(partial(self._each, adding=False))

    @classmethod
    async def open(
        cls,
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
    ) -> Self:
        """Open or make the window; parameters and errors are those of `RedisRollingFilter`."""
        wanted = WindowWanted(name, capacity, fpr, window, generations, shards, seed, secret, allow_eviction)
        transport = await transport_of(client, name)
        stood = await transport.run(opened_window(wanted, transport.shards()))
        there = Window(name, stood, secret)
        return cls(transport, there, await transport.run(verify.run_ids(there.names, whole=True)))

    async def _each(self, hashes: bytes, *, adding: bool) -> bytes:
        return await self._run(self._there.each(hashes, adding=adding))

    async def add(self, key: Key, /) -> bool:
        """Add a key; True when it was certainly not in the window."""
        return bool(await self._added.put(self._there.hasher.one(key).hashes))

    async def contains(self, key: Key, /) -> bool:
        """Tell whether a key was probably added within the window."""
        return bool(await self._looked.put(self._there.hasher.one(key).hashes))

    async def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            await self._run(self._there.many(batch, adding=True, answer=False))

    async def add_many(self, keys: Any) -> Any:
        """Add many keys and answer, for each, whether it was new, in the caller's kind."""
        return await self._run(self._there.many(keys, adding=True))

    async def contains_many(self, keys: Any) -> Any:
        """Answer for each key whether it was probably added within the window, in the caller's kind."""
        return await self._run(self._there.many(keys, adding=False))

    async def clear(self) -> None:
        """Forget every key."""
        await self._run(self._there.cleared())

    async def info(self) -> dict[str, Any]:
        """Return the window's parameters; the server is not asked."""
        return self._parameters()

    async def delete(self) -> bool:
        """Delete the window from the server; True when it was there."""
        return await self._run(self._there.deleted())

    async def fpr(self) -> float:
        """Model rate of false positives at the present load."""
        return await self._run(self._there.fpr())

    async def verify(self) -> Verification:
        """Look for what this client knows that the server acknowledged; false when some of it is gone."""
        now = await self._run(verify.run_ids(self._there.names, whole=True))
        return await self._run(self._there.verified(restarted=now != self._run_ids))
