"""The other kinds of filters on a server: counting, rolling, and bitmaps of other programs.

`AsyncRedisCountingFilter` can remove and count keys, `AsyncRedisRollingFilter` has the keys of the last
seconds, and `AsyncRedisBitmapFilter` is a filter that another program keeps in a string by SETBIT.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.engines.redis.filters import AsyncKeyBatcher, LoadWatch
from fullbloom.engines.redis.filters.async_bloom import AsyncServerFilter, AsyncServerSet
from fullbloom.engines.redis.protocol.open import (
    CountingOptions,
    RollingOptions,
    open_counting,
    open_rolling,
    parse_acks,
    plan_counting,
    plan_rolling,
)
from fullbloom.engines.redis.protocol.plan import LARGE_BATCH
from fullbloom.engines.redis.storage.counters import Counters
from fullbloom.engines.redis.storage.foreign import Bitmap
from fullbloom.engines.redis.storage.windows import Window
from fullbloom.engines.redis.transport.async_transport import create_transport

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from fullbloom._core import ForeignFilter
    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.storage.counters import Operation
    from fullbloom.engines.redis.storage.foreign import BitmapVerification
    from fullbloom.engines.redis.storage.verification import Verification
    from fullbloom.engines.redis.transport.async_transport import AsyncTransport
    from fullbloom.keys import Key, Keys


class AsyncRedisCountingFilter(AsyncServerFilter):
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
    _load_watch: LoadWatch

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
        batch: int = LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Estimate a new filter as `RedisBloomFilter.plan` does; creates nothing."""
        options = CountingOptions(name, capacity, fpr, shards, counter_bits=counter_bits)
        transport = await create_transport(client, name)
        return await transport.run(plan_counting(options, transport.count_default_shards(), batch))

    async def _open(self, client: Any, options: CountingOptions) -> None:
        await self._connect(client, options.name)
        manifest = await self._run(open_counting(options, self._transport.count_default_shards()))
        storage = self._storage = Counters(options.name, manifest, options.secret)
        self._run_ids = await self._query_run_ids()
        self._load_watch = LoadWatch(storage)
        self._adds = AsyncKeyBatcher(partial(self._send_hashes, storage.add))
        self._counts = AsyncKeyBatcher(partial(self._send_hashes, storage.count))
        self._removals = AsyncKeyBatcher(partial(self._send_hashes, storage.remove))

    async def _send_hashes(self, operate: Operation, hashes: bytes) -> bytes:
        return await self._run(self._storage.run_hashes(hashes, operate))

    @property
    def over_capacity(self) -> bool:
        """True if the filter held more keys than its capacity, at a higher rate, when last measured.

        An object reads 64 kB of the counters with the first key that it adds or removes, and then after at
        most as many keys as a sixteenth of the capacity; it warns once (CapacityWarning).
        """
        return self._load_watch.is_over

    async def add(self, key: Key, /) -> bool:
        """Add an occurrence of a key; True if it was certainly new. One round trip."""
        new = await self._adds.put(self._storage.hash_key(key)) > 0
        self._domains.record_key(key)
        await self._watch_load()
        return new

    async def remove(self, key: Key, /) -> None:
        """Remove an occurrence of a key; KeyError if it is certainly absent. Two round trips."""
        if not await self.discard(key):
            raise KeyError(key)

    async def discard(self, key: Key, /) -> bool:
        """Remove an occurrence of a key if it is probably present; True if it was."""
        found = await self._removals.put(self._storage.hash_key(key)) > 0
        self._domains.look_up_key(key, found)
        await self._watch_load()
        return found

    async def contains(self, key: Key, /) -> bool:  # blocking: __contains__
        """Return whether a key is probably present. One round trip."""
        found = await self._counts.put(self._storage.hash_key(key)) > 0
        self._domains.look_up_key(key, found)
        return found

    async def count(self, key: Key, /) -> int:
        """Return how often a key is present, rarely more; a counter's maximum means "so many or more"."""
        number = await self._counts.put(self._storage.hash_key(key))
        self._domains.look_up_key(key, number)
        return number

    async def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch; nulls are skipped."""
        for batch in keys:
            await self._run(self._storage.run_batch(batch, self._storage.add, answer=False))
            self._domains.record_batch(batch)
            await self._watch_load()

    async def add_many(self, keys: Any) -> Any:
        """Add keys in order; return for each whether it was new, in the container type of the keys."""
        new = await self._run(self._storage.run_batch(keys, self._storage.add))
        self._domains.record_batch(keys)
        await self._watch_load()
        return new

    async def discard_many(self, keys: Any) -> Any:
        """Remove an occurrence of each key that is probably present; return for each whether it was.

        The answers have the container type of the keys. A key that occurs more often in ``keys`` than in the
        filter is removed as often as the filter has it.
        """
        found = await self._run(self._storage.run_batch(keys, self._storage.remove))
        self._domains.look_up_batch(keys, found)
        await self._watch_load()
        return found

    async def contains_many(self, keys: Any) -> Any:
        """Return, for each key, whether it is probably present, in the container type of the keys."""
        found = await self._run(self._storage.run_batch(keys, self._storage.count))
        self._domains.look_up_batch(keys, found)
        return found

    async def count_many(self, keys: Any) -> Any:
        """Return how often each key is present, in the container type of the keys."""
        numbers = await self._run(self._storage.run_batch(keys, self._storage.count, counts=True))
        self._domains.look_up_batch(keys, numbers)
        return numbers

    async def counters(self) -> bytes:
        """Return all counters, byte for byte as in a `CountingBloomFilter`, the first in the lowest bits."""
        return await self._run(self._storage.read_counters())

    async def verify(self) -> Verification:
        """Check that the server still has what it acknowledged to this client; false if some of it is lost.

        Checks the filter itself, each shard, and the last 4096 keys that this client added and did not
        remove. A key that another client removed counts as lost; bits are not counted.
        """
        return await self._verify()

    async def clear(self) -> None:
        """Set all counters to 0; each string changes atomically."""
        await self._run(self._storage.clear())
        self._domains.forget()
        self._load_watch.forget()

    async def info(self) -> dict[str, Any]:
        """Return the filter's parameters; sends nothing."""
        return self._parameters()

    async def delete(self) -> bool:
        """Delete the filter from the server; True if it existed."""
        return await self._run(self._storage.delete())


class AsyncRedisRollingFilter(AsyncServerSet):
    """A time window over a stream that all clients of a Redis or Valkey server share.

    In asyncio it is created by ``open``, over a client of redis.asyncio for one server or a cluster. Its
    methods are those of `RedisRollingFilter`, awaited; ``contains`` replaces ``in``. Single keys that tasks
    add or look up at the same time travel as one batch, as those of `AsyncRedisBloomFilter` do. Cancelling a
    task harms no other, and its key may have been added. Use it in one event loop at a time.

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

    Cost: one round trip, in which all generations are queried at the same time; two or three more for the
    first keys of each client in a new generation. A lookup costs the server g times what one of
    `RedisBloomFilter` does, and an add g - 1 lookups besides.

    ``seen = await AsyncRedisRollingFilter.open(redis.asyncio.Redis(), "seen", 1_000_000, window=3600)``
    """

    _SHOWN = ("capacity", "window")
    _storage: Window
    _watches_nodes = False

    @classmethod
    async def open(  # blocking: __init__
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
        acks: int = 0,
    ) -> Self:
        """Open or create the window."""
        confirmed = parse_acks(acks)
        options = RollingOptions(
            name, capacity, fpr, shards, seed, secret, allow_eviction, window, generations
        )
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
        window: float,
        generations: int | None = None,
        shards: int | None = None,
        batch: int = LARGE_BATCH,
        name: str = "plan",
    ) -> Plan:
        """Estimate a new window as `RedisBloomFilter.plan` does a filter; creates nothing.

        The bytes are those of all generations that exist at a time.
        """
        options = RollingOptions(name, capacity, fpr, shards, window=window, generations=generations)
        transport = await create_transport(client, name)
        return await transport.run(plan_rolling(options, transport.count_default_shards(), batch))

    async def _open(self, client: Any, options: RollingOptions) -> None:
        await self._connect(client, options.name)
        manifest = await self._run(open_rolling(options, self._transport.count_default_shards()))
        self._storage = Window(options.name, manifest, options.secret)
        self._run_ids = await self._query_run_ids()
        self._create_batchers()

    async def clear(self) -> None:
        """Remove all keys."""
        await self._run(self._storage.clear())
        self._domains.forget()

    async def info(self) -> dict[str, Any]:
        """Return the window's parameters; sends nothing."""
        return self._parameters()

    async def delete(self) -> bool:
        """Delete the window from the server; True if it existed."""
        return await self._run(self._storage.delete())

    async def fpr(self) -> float:
        """Model rate of false positives at the present load; the server counts bits."""
        return await self._run(self._storage.fpr())

    async def verify(self) -> Verification:
        """Check that the server still has what it acknowledged to this client; false if some of it is lost.

        Checks the window itself and, of each generation within it, the strings (whichever client began it),
        the number of set bits, and the last 4096 keys that this client added; keys that the window has
        forgotten since do not count. ``shards_lost`` lists the numbers of generations.
        """
        return await self._verify()


class AsyncRedisBitmapFilter:
    """A filter that another program keeps in a plain string of a Redis or Valkey server by SETBIT and GETBIT.

    In asyncio it is created by ``open``, over a client of redis.asyncio for one server or a cluster. Its
    methods are those of `RedisBitmapFilter`, awaited; ``contains`` replaces ``in``.

    The string stays under its key ``name`` and keeps its layout: both programs go on with it. Nothing in it
    says by which rule its bits were set, so you do. ``rule``: a format of bits alone, see docs/formats.md;
    ``num_bits`` and ``num_hashes``: those of its program; ``order``: "msb" if position p is bit p of the
    string, as SETBIT counts, "lsb" if the program wrote bytes whose lowest bit is the first.

    ``verify=keys`` looks up keys that are known members before anything is written, and raises
    IncompatibleFilters unless all are found; the message states how many were, and how many chance finds.

    A bare string has no owner and no checksum. If it is deleted, keys are absent, and the next add creates a
    string that has only these keys, as SETBIT does. For losses that are noticed, create a `RedisBloomFilter`.

    Raises FilterLost if the key does not exist, FormatError if it holds something else or a longer string,
    ParameterError, EngineError or a subclass for what the server refuses. Cost: one BITFIELD, one round trip,
    for 8,192 bits.

    ``seen = await AsyncRedisBitmapFilter.open(redis.asyncio.Redis(), "seen:bits", "md5-double", 95851, 7)``
    """

    _bitmap: Bitmap
    _transport: AsyncTransport
    #: The result of ``verify=keys``; None without it.
    verification: BitmapVerification | None

    @classmethod
    async def open(  # blocking: __init__
        cls,
        client: Any,
        name: str,
        rule: str,
        num_bits: int,
        num_hashes: int,
        *,
        order: Literal["lsb", "msb"] = "msb",
        verify: Iterable[Key] | None = None,
    ) -> Self:
        """Open the string; nothing is written."""
        bitmap = Bitmap(name, rule, num_bits, num_hashes, order)
        self = cls.__new__(cls)
        self._bitmap = bitmap
        self._transport = await create_transport(client, name)
        await self._transport.run(bitmap.require_string())
        self.verification = None
        if verify is not None:
            self.verification = await self._transport.run(bitmap.require_members(verify))
        return self

    @property
    def name(self) -> str:
        """The string's key."""
        return self._bitmap.name

    @property
    def rule(self) -> str:
        """The rule by which bits are set."""
        return self._bitmap.rule

    @property
    def num_bits(self) -> int:
        """The number of bits."""
        return self._bitmap.num_bits

    @property
    def num_hashes(self) -> int:
        """The number of bits of a key."""
        return self._bitmap.num_hashes

    @property
    def order(self) -> str:
        """The order of the bits in a byte."""
        return self._bitmap.order

    async def add(self, key: Key, /) -> bool:
        """Add a key; True if it was new: of clients that add it, exactly one gets True. One round trip."""
        return (await self._transport.run(self._bitmap.run_batch([key], adding=True)))[0]

    async def contains(self, key: Key, /) -> bool:  # blocking: __contains__
        """Return whether a key was probably added. One round trip."""
        return (await self._transport.run(self._bitmap.run_batch([key], adding=False)))[0]

    async def update(self, /, *keys: Iterable[Key]) -> None:
        """Add the keys of each batch."""
        for batch in keys:
            await self._transport.run(self._bitmap.run_batch(batch, adding=True))

    async def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add many keys, str or bytes; return for each whether it was new. Keys before a failure stay."""
        return await self._transport.run(self._bitmap.run_batch(keys, adding=True))

    async def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Return, for each key, str or bytes, whether it was probably added."""
        return await self._transport.run(self._bitmap.run_batch(keys, adding=False))

    async def verify(self, keys: Iterable[Key]) -> BitmapVerification:
        """Count how many known members are found, and how many chance would find; nothing is written."""
        return await self._transport.run(self._bitmap.verify(keys))

    async def fill(self) -> float:  # blocking: property
        """Share of set bits, counted by the server (BITCOUNT)."""
        return await self._transport.run(self._bitmap.compute_fill())

    async def fpr(self) -> float:
        """Model false-positive rate at the present fill."""
        return float((await self._transport.run(self._bitmap.compute_fill())) ** self.num_hashes)

    async def dump(self) -> ForeignFilter:
        """Return a copy in memory, read in portions of 1 MiB; ``save`` and ``fullbloom convert`` take it on.

        Keys added meanwhile may be missing.
        """
        return await self._transport.run(self._bitmap.dump())

    def __repr__(self) -> str:
        """Show the key and the rule."""
        return (
            f"{type(self).__name__}({self.name!r}, {self.rule!r}, {self.num_bits}, {self.num_hashes}, "
            f"order={self.order!r})"
        )
