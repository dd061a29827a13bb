"""Windows and counters for asyncio have the answers of the others, over the same questions."""

from __future__ import annotations

import asyncio
import random
import uuid

import numpy as np
import pytest
import redis.asyncio
from engines.servers import needs_redis

from fullbloom import CountingBloomFilter, IncompatibleFilters, ParameterTypeError
from fullbloom.engines.redis import (
    AsyncRedisCountingFilter,
    AsyncRedisRollingFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import EngineFull, FilterLost

pytestmark = needs_redis

BOTH = [(RedisCountingFilter, AsyncRedisCountingFilter), (RedisRollingFilter, AsyncRedisRollingFilter)]
OPTIONS = {RedisCountingFilter: {}, RedisRollingFilter: {"window": 3600}}


@pytest.fixture
def name():
    return f"f{uuid.uuid4().hex}"


def run(main, server, **options):
    """Runs ``main(client)`` in a loop of its own."""

    async def with_client():
        async with redis.asyncio.Redis(port=server.port, **options) as client:
            return await main(client)

    return asyncio.run(with_client())


@pytest.mark.parametrize("options", [{}, {"protocol": 3}, {"decode_responses": True}], ids=str)
@pytest.mark.parametrize("shards", [1, 3])
def test_counters_are_those_of_memory(server, name, options, shards):
    async def main(client):
        there = await AsyncRedisCountingFilter.open(client, name, 3000, counter_bits=2, shards=shards)
        here, draw = CountingBloomFilter(3000, counter_bits=2, layout="blocked"), random.Random(shards)
        for _ in range(5):
            keys = np.array([draw.randrange(900) for _ in range(400)])
            assert (await there.add_many(keys) == here.add_many(keys)).all()
            gone = [draw.randrange(900) for _ in range(100)]
            for key in gone[:20]:
                assert await there.discard(key) == here.discard(key)
            unlike = sorted(set(gone[20:]))
            assert await there.discard_many(unlike) == here.discard_many(unlike)
            assert (await there.count_many(keys) == here.count_many(keys)).all()
            assert await there.contains_many(gone) == here.contains_many(gone)
        for key in ("a", "a", "b"):
            assert await there.add(key) == here.add(key)
        await there.update(["c"], iter(["d"]))
        here.update(["c", "d"])
        assert await there.count("a") == here.count("a") == 2
        assert await there.contains("b")
        await there.remove("b")
        here.remove("b")
        with pytest.raises(KeyError):
            await there.remove("nobody")
        assert await there.counters() in here.to_bytes()
        assert await there.verify()
        assert await there.delete()

    run(main, server, **options)


@pytest.mark.parametrize("shards", [1, 3])
def test_windows_are_those_of_the_other_class(server, client, name, shards):
    plain = RedisRollingFilter(client, name + "plain", 3000, 1e-3, window=3600, shards=shards)

    async def main(own):
        there = await AsyncRedisRollingFilter.open(own, name, 3000, 1e-3, window=3600, shards=shards)
        now = 1_800_000_000.0

        class Clock:
            def now(self):
                return now, now
                yield

        there._storage.clock = plain._storage.clock = Clock()
        draw = random.Random(shards)
        for _ in range(8):
            keys = [draw.randrange(5000) for _ in range(300)]
            assert await there.add_many(keys) == plain.add_many(keys)
            asked = np.arange(5000)
            assert (await there.contains_many(asked) == plain.contains_many(asked)).all()
            assert await there.fpr() == plain.fpr()
            now += 700
        assert (await there.add("a"), await there.add("a")) == (True, False)
        assert await there.contains("a")
        await there.update(["b"], iter(["c"]))
        assert await there.contains_many(["b", "c", "d"]) == [True, True, False]
        assert await there.verify()
        await there.clear()
        assert not await there.contains("a")
        assert await there.delete()

    run(main, server)


@pytest.mark.parametrize(("plain", "waiting"), BOTH)
def test_tasks_share_round_trips_and_of_those_that_add_one_key_one_is_told_so(server, name, plain, waiting):
    async def main(client):
        there = await waiting.open(client, name, 20_000, 1e-6, **OPTIONS[plain])
        batches, real = [], there._run

        def counted(steps):
            batches.append(steps)
            return real(steps)

        there._run = counted
        keys = [f"key {number}" for number in range(500)]
        assert all(await asyncio.gather(*map(there.add, keys)))
        assert all(await asyncio.gather(*map(there.contains, keys)))
        assert len(batches) < 10
        assert sum(await asyncio.gather(*(there.add("same") for _ in range(64)))) == 1
        told = await asyncio.gather(there.add("x"), there.add(object()), return_exceptions=True)
        assert told[0] is True
        assert isinstance(told[1], TypeError)
        assert not await there.contains("nobody")
        assert await there.verify()

    run(main, server)


def test_tasks_that_remove_one_key_are_told_so_as_often_as_it_was_there(server, name):
    async def main(client):
        there = await AsyncRedisCountingFilter.open(client, name, 20_000, 1e-6, counter_bits=8)
        await there.update(range(1000))
        before = await there.counters()
        await asyncio.gather(*(there.add("same") for _ in range(20)))
        assert sum(await asyncio.gather(*(there.discard("same") for _ in range(64)))) == 20
        assert await there.counters() == before

    run(main, server)


@pytest.mark.parametrize(("plain", "waiting"), BOTH)
def test_errors_and_losses(own_server, client, plain, waiting):
    server = own_server()

    async def main(own):
        with pytest.raises(ParameterTypeError, match=r"redis.asyncio.*got redis.client"):
            await waiting.open(client, "f", 1000, **OPTIONS[plain])
        with pytest.raises(FilterLost, match="capacity"):
            await waiting.open(own, "f")
        there = await waiting.open(own, "f", 1000, **OPTIONS[plain])
        with pytest.raises(IncompatibleFilters, match=r"capacity .1000 there, 5 asked for"):
            await waiting.open(own, "f", 5)
        assert repr(there).startswith(f"{waiting.__name__}('f', capacity=1000")
        await there.update(range(100))
        await own.config_set("maxmemory", 1)
        told = await asyncio.gather(*(there.add(f"secret {i}") for i in range(5)), return_exceptions=True)
        assert all(isinstance(error, EngineFull) for error in told), told
        await own.config_set("maxmemory", 0)
        server.kill()
        server.start()
        for ask in (there.add("a"), there.contains("a"), there.add_many([1])):
            with pytest.raises(FilterLost):
                await ask
        told = await there.verify()
        assert not told
        assert told.replaced
        assert told.restarted
        assert told.keys_lost == told.keys_checked == 100

    run(main, server)


@pytest.mark.parametrize(("plain", "waiting"), BOTH)
def test_a_cluster(cluster, name, plain, waiting):
    async def main():
        async with redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as client:
            there = await waiting.open(client, name, 50_000, 1e-6, **OPTIONS[plain])
            assert there.manifest.shards == 48
            keys = np.arange(20_000)
            assert (await there.add_many(keys)).all()
            assert not (await there.add_many(keys)).any()
            assert (await there.contains_many(np.arange(40_000))).sum() == 20_000
            assert all(await asyncio.gather(*(there.add(f"k{i}") for i in range(200))))
            assert await there.verify()

    asyncio.run(main())
    with cluster.client() as client:
        there = plain(client, name)
        assert there.contains_many(np.arange(20_000)).all()
        assert there.delete()
