"""A filter on a server with more keys than it was sized for warns as one in memory does."""

from __future__ import annotations

import asyncio
import warnings

import pytest
import redis.asyncio
from engines.servers import needs_redis

from fullbloom import BloomFilter, CapacityWarning, hash_many
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    AsyncRedisCountingFilter,
    RedisBloomFilter,
    RedisCountingFilter,
)

pytestmark = needs_redis

CAPACITY, FPR = 2000, 0.01
#: How keys are added: in memory and on the server alike.
WAYS = {
    "add": lambda there, keys: [there.add(key) for key in keys],
    "update": lambda there, keys: [there.update(keys)],
    "add_many": lambda there, keys: [there.add_many(keys)],
    "add_hashed": lambda there, keys: [there.add_hashed(hash_many(keys, seed=5))],
}


def warned(add, there, keys):
    """Where the warnings about the capacity came from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what other tests left to the collector
        add(there, keys)
    assert all(one.category is CapacityWarning for one in caught)
    return [one.filename for one in caught]


#: Kinds of filters: their classes for threads and for asyncio.
KINDS = {
    "bloom": (RedisBloomFilter, AsyncRedisBloomFilter),
    "counting": (RedisCountingFilter, AsyncRedisCountingFilter),
}


class Plain:
    """Filters for threads."""

    def __init__(self, server, kind):
        self.kind = kind
        self._class, self._async_class = KINDS[kind]
        self._client = server.client()

    def open(self, name, *args, **options):
        return self._class(self._client, name, *args, **options)

    def do(self, done):
        return done

    def close(self):
        self._client.close()


class Waiting(Plain):
    """Filters for asyncio."""

    def __init__(self, server, kind):
        super().__init__(server, kind)
        self._client.close()
        self._loop = asyncio.new_event_loop()
        self._client = redis.asyncio.Redis(port=server.port)

    def open(self, name, *args, **options):
        return self.do(self._async_class.open(self._client, name, *args, **options))

    def do(self, done):
        async def caller():
            return await done

        return self._loop.run_until_complete(caller())

    def close(self):
        self.do(self._client.aclose())
        self._loop.close()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=[Plain, Waiting])
def surface(request, server, kind):
    instance = request.param(server, kind)
    yield instance
    instance.close()


@pytest.fixture(params=WAYS)
def add(request, surface):
    """Adds keys in one way, to a filter on the server."""

    def added(there, keys):
        if surface.kind == "counting" and request.param == "add_hashed":
            pytest.skip("a counting filter on a server takes no hashes")
        if request.param == "add":
            for key in keys:
                surface.do(there.add(key))
        else:
            (done,) = WAYS[request.param](there, keys)
            surface.do(done)

    return added


def keys(start, stop):
    return [f"k{number}" for number in range(start, stop)]


@pytest.mark.parametrize("way", WAYS)
def test_a_filter_in_memory_warns_once(way):
    here = BloomFilter(CAPACITY, FPR, seed=5)
    assert warned(WAYS[way], here, keys(0, CAPACITY)) == []
    assert len(warned(WAYS[way], here, keys(CAPACITY, 2 * CAPACITY))) == 1
    assert warned(WAYS[way], here, keys(2 * CAPACITY, 3 * CAPACITY)) == []


@pytest.mark.long
def test_a_filter_on_a_server_warns_once(surface, add, name):
    there = surface.open(name, CAPACITY, FPR, seed=5)
    assert warned(add, there, keys(0, CAPACITY)) == []
    assert not there.over_capacity
    # Deviations of the estimate, and the part of the capacity after which the server is asked again.
    assert warned(add, there, keys(CAPACITY, CAPACITY * 5 // 4)) == [__file__]
    assert there.over_capacity
    assert warned(add, there, keys(CAPACITY * 5 // 4, 2 * CAPACITY)) == []
    # Another client warns with its first new key.
    other = surface.open(name)
    assert not other.over_capacity
    assert warned(add, other, keys(3 * CAPACITY, 3 * CAPACITY + 100)) == [__file__]
    assert other.over_capacity


@pytest.mark.long
def test_a_cleared_filter_is_not_over_capacity(surface, add, name):
    there = surface.open(name, CAPACITY, FPR, seed=5)
    assert warned(add, there, keys(0, 2 * CAPACITY)) == [__file__]
    surface.do(there.clear())
    assert not there.over_capacity
    assert warned(add, there, keys(0, 10)) == []
    assert not there.over_capacity


def test_keys_of_other_clients_count(surface, name):
    first, second = (surface.open(name, CAPACITY, FPR) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        for start in range(0, 2 * CAPACITY, 100):
            surface.do(first.add_many(keys(start, start + 50)))
            surface.do(second.add_many(keys(start + 50, start + 100)))
    assert first.over_capacity
    assert second.over_capacity


def test_the_load_is_measured_rarely(server, name):
    with server.client() as client:
        there = RedisBloomFilter(client, name, 100_000)
        before = client.info("commandstats").get("cmdstat_bitcount", {"calls": 0})["calls"]
        for start in range(0, 50_000, 50):
            there.add_many(range(start, start + 50))
        asked = client.info("commandstats")["cmdstat_bitcount"]["calls"] - before
    assert 1 <= asked <= 10


def test_removed_keys_do_not_count(server, name):
    with server.client() as client:
        there = RedisCountingFilter(client, name, CAPACITY, FPR)
        with pytest.warns(CapacityWarning):
            there.add_many(keys(0, CAPACITY * 5 // 4))
        assert there.over_capacity
        there.discard_many(keys(0, CAPACITY // 2))
        assert not there.over_capacity


def test_a_sample_of_the_counters_shows_the_load(server, name):
    """Of a filter of several shards, whose counters are read in part."""
    capacity = 60_000
    with server.client() as client:
        there = RedisCountingFilter(client, name, capacity, FPR, shards=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for start in range(0, capacity, 3000):
                there.add_many(range(start, start + 3000))
        before = client.info("stats")["total_net_output_bytes"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            for start in range(capacity, capacity * 5 // 4, 100):
                there.add_many(range(start, start + 100))
        assert [one.category for one in caught] == [CapacityWarning]
        received = client.info("stats")["total_net_output_bytes"] - before
    assert there.over_capacity
    # 0.6 MB are the replies to 150 batches; a sample of 64 kB with each would be 10 MB.
    assert received < 5_000_000
