"""Filters for asyncio: concurrent tasks share round trips, and each gets its own result or error."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager

import numpy as np
import pytest
import redis.asyncio
from engines.clusters import join_node
from engines.servers import free_port, needs_redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fullbloom import BloomFilter, IncompatibleFilters, ParameterTypeError
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    AsyncRedisCountingFilter,
    AsyncRedisRollingFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import EngineFull, EngineRefused, EngineTimeout, EngineUnavailable, FilterLost

pytestmark = needs_redis


def run(main, server, **options):
    """Runs ``main(client)`` in a loop of its own."""

    async def with_client():
        async with redis.asyncio.Redis(port=server.port, **options) as client:
            return await main(client)

    return asyncio.run(with_client())


@pytest.mark.parametrize(
    "options", [{}, {"protocol": 2}, {"decode_responses": True}, {"socket_timeout": 60}], ids=str
)
@pytest.mark.parametrize(("shape", "shards"), [({}, 1), ({}, 3), ({"layout": "classic"}, 1)])
def test_results_and_bits_equal_those_of_memory(server, name, options, shape, shards):
    async def main(client):
        there = await AsyncRedisBloomFilter.open(client, name, 3000, 0.02, shards=shards, seed=7, **shape)
        here = BloomFilter(3000, 0.02, seed=7, layout=there.manifest.layout)
        keys = np.arange(2500) * 7919
        assert (await there.add_many(keys) == here.add_many(keys)).all()
        asked = np.arange(0, 7919 * 5000, 7919)
        assert (await there.contains_many(asked) == here.contains_many(asked)).all()
        assert (await there.add("a"), await there.add("a")) == (here.add("a"), here.add("a"))
        assert await there.contains("a")
        await there.update(["b", "c"], iter(["d"]))
        here.update(["b", "c", "d"])
        assert await there.dump() == here
        assert await there.fpr() == here.fpr()
        assert await there.approx_count() == here.approx_count()
        assert await there.fill() == here.fill
        assert (await there.info())["shards"] == shards
        assert await there.verify()
        other = await AsyncRedisBloomFilter.from_filter(client, name + "2", here)
        await other.merge(there)
        assert await other.dump() == here
        await there.clear()
        assert not await there.contains("b")
        await there.load(here)
        assert await there.contains("b")
        with pytest.raises(IncompatibleFilters):
            await there.merge(BloomFilter(10))
        plan = await AsyncRedisBloomFilter.plan(client, 1_000_000)
        assert plan.shards == 1
        assert await there.delete()

    run(main, server, **options)


def test_sync_and_async_clients_share_one_filter(server, client, name):
    there = RedisBloomFilter(client, name, 1000)
    there.add(1)

    async def main(own):
        same = await AsyncRedisBloomFilter.open(own, name)
        assert await same.contains(1)
        assert not await same.add(1)
        assert same.manifest == there.manifest

    run(main, server)


def test_clients_of_the_wrong_kind_are_named(server, client, name):
    async def main(own):
        with pytest.raises(ParameterTypeError, match=r"redis.asyncio.*got redis.client"):
            await AsyncRedisBloomFilter.open(client, name, 1000)
        with pytest.raises(ParameterTypeError, match="AsyncRedisBloomFilter"):
            RedisBloomFilter(own, name, 1000)

    run(main, server)


def test_concurrent_tasks_share_round_trips(server, name):
    async def main(own):
        there = await AsyncRedisBloomFilter.open(own, name, 100_000)
        here = BloomFilter(100_000, layout="blocked")
        batches = []
        real = there._transport._send

        async def send(request):
            batches.append(len(request.batch))
            return await real(request)

        there._transport._send = send

        async def task(number):
            outcome = []
            for turn in range(20):
                key = f"{number}-{turn}"
                outcome.append(
                    (await there.add(key), await there.contains(key), await there.contains(key + "?"))
                )
            return outcome

        outcome = await asyncio.gather(*(task(number) for number in range(64)))
        assert sum(batches) == 64 * 20 * 3
        assert len(batches) < 64 * 20 * 3 / 10
        for number, turns in enumerate(outcome):
            for turn, (_, known, _) in enumerate(turns):
                here.add(f"{number}-{turn}")
                assert known
        assert await there.dump() == here
        assert sum(new for turns in outcome for new, _, _ in turns) > 1270
        # Of tasks that add the same key at the same time, exactly one gets the answer that it is new.
        assert sum(await asyncio.gather(*(there.add("same") for _ in range(64)))) == 1

    run(main, server)


def test_a_refused_key_is_the_error_of_its_own_task(server, name):
    async def main(client):
        there = await AsyncRedisBloomFilter.open(client, name, 1000)
        outcome = await asyncio.gather(
            there.add("a"), there.add(object()), there.add("b"), return_exceptions=True
        )
        assert outcome[0] is True
        assert outcome[2] is True
        assert isinstance(outcome[1], TypeError)

    run(main, server)


def test_a_cancelled_task_harms_no_other(server, name):
    async def main(client):
        there = await AsyncRedisBloomFilter.open(client, name, 10_000)
        for turn in range(50):
            tasks = [asyncio.create_task(there.add((turn, number))) for number in range(20)]
            for _ in range(turn % 5):
                await asyncio.sleep(0)
            for task in tasks[::3]:
                task.cancel()
            outcome = await asyncio.gather(*tasks, return_exceptions=True)
            for number, answer in enumerate(outcome):
                assert answer is True or (number % 3 == 0 and isinstance(answer, asyncio.CancelledError)), (
                    answer
                )
            found = await there.contains_many([(turn, number) for number in range(20) if number % 3])
            assert all(found)

    run(main, server)


def test_cancelled_batches_leave_no_late_replies(server, name):
    async def main(client):
        there = await AsyncRedisBloomFilter.open(client, name, 100_000)
        await there.update(range(1000))
        for turn in range(20):
            batch = asyncio.create_task(there.contains_many(range(5000)))
            for _ in range(turn):
                await asyncio.sleep(0)
            batch.cancel()
            await asyncio.gather(batch, return_exceptions=True)
            assert await there.contains_many([1, 10**9]) == [True, False]

    run(main, server)


@pytest.mark.long
@pytest.mark.timed
def test_every_task_gets_its_own_error_of_the_package(own_server):
    server = own_server()

    async def main(client):
        there = await AsyncRedisBloomFilter.open(client, "f", 10_000)
        await client.config_set("maxmemory", 1)
        outcome = await asyncio.gather(*(there.add(f"secret {i}") for i in range(10)), return_exceptions=True)
        assert all(isinstance(error, EngineFull) for error in outcome)
        assert len({id(error) for error in outcome}) == 10
        assert "secret" not in str(outcome)
        await client.config_set("maxmemory", 0)
        assert await there.add("secret 0")
        server.process.send_signal(signal.SIGSTOP)
        try:
            outcome = await asyncio.gather(
                there.contains(1), there.add(2), there.fpr(), return_exceptions=True
            )
            assert all(isinstance(error, EngineTimeout) for error in outcome), outcome
        finally:
            server.process.send_signal(signal.SIGCONT)
        assert await there.contains("secret 0")
        assert not await there.contains("nobody")
        server.kill()
        outcome = await asyncio.gather(
            there.contains("a"), there.add("b"), there.dump(), return_exceptions=True
        )
        assert all(isinstance(error, EngineUnavailable) for error in outcome), outcome
        server.start(requirepass="right")
        outcome = await asyncio.gather(there.contains("a"), there.add("b"), return_exceptions=True)
        assert all(isinstance(error, EngineRefused) for error in outcome), outcome

    run(main, server, socket_timeout=0.3, retry=None)


def test_one_filter_works_in_successive_event_loops(server, name):
    async def first():
        async with redis.asyncio.Redis(port=server.port) as client:
            there = await AsyncRedisBloomFilter.open(client, name, 1000)
            await there.add("a")
            return there

    there = asyncio.run(first())

    async def second():
        async with there._transport.client:
            assert await there.contains("a")

    asyncio.run(second())


def test_results_on_a_cluster_equal_those_of_memory(cluster, name):
    async def main():
        async with redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as client:
            there = await AsyncRedisBloomFilter.open(client, name, 50_000)
            here = BloomFilter(50_000, layout="blocked")
            assert there.manifest.shards == 48
            keys = np.arange(20_000)
            assert (await there.add_many(keys) == here.add_many(keys)).all()
            assert await there.dump() == here
            assert (
                await there.contains_many(np.arange(40_000)) == here.contains_many(np.arange(40_000))
            ).all()
            outcome = await asyncio.gather(*(there.add(f"k{i}") for i in range(200)))
            assert sum(outcome) > 190
            assert await there.verify()
            await there.clear()
            assert await there.approx_count() == (0, 0)

    asyncio.run(main())


def test_an_unreachable_cluster_is_an_error_of_the_package(name):
    async def main():
        async with asyncio.timeout(60):
            client = redis.asyncio.RedisCluster(
                host="127.0.0.1", port=free_port(), retry=Retry(NoBackoff(), 0)
            )
            with pytest.raises(EngineUnavailable):
                await AsyncRedisBloomFilter.open(client, name)

    asyncio.run(main())


def test_a_node_that_joins_during_a_migration_is_used(cluster, name, tmp_path):
    keys, moved = np.arange(1000), f"{name}:bits:1".encode()

    async def waiting():
        async with redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as own:
            there = await AsyncRedisBloomFilter.open(own, name)
            with moving():
                assert (await there.contains_many(keys)).all()
                assert not (await there.add_many(keys)).any()
                assert await there.verify()

    with cluster.client() as client, join_node(cluster, tmp_path / "new") as target:
        there = RedisBloomFilter(client, name, 2000, shards=4)
        there.update(keys)
        slot, source = client.keyslot(moved), cluster.node_of(client, moved)

        @contextmanager
        def moving():
            with source.client() as here, target.client() as new:
                ids = [one.execute_command("CLUSTER MYID").decode() for one in (here, new)]
                new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[0])
                here.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[1])
                here.execute_command("MIGRATE", "127.0.0.1", target.port, moved, 0, 10_000)
                yield
                here.execute_command("CLUSTER SETSLOT", slot, "STABLE")
                new.execute_command("MIGRATE", "127.0.0.1", source.port, moved, 0, 10_000)

        with moving():
            assert there.contains_many(keys).all()
            assert not there.add_many(keys).any()
            assert there.verify()
        asyncio.run(waiting())


BOTH = [(RedisCountingFilter, AsyncRedisCountingFilter), (RedisRollingFilter, AsyncRedisRollingFilter)]
OPTIONS = {RedisCountingFilter: {}, RedisRollingFilter: {"window": 3600}}


@pytest.mark.parametrize(("plain", "waiting"), BOTH)
def test_of_tasks_that_add_one_key_in_shared_round_trips_one_adds_it(server, name, plain, waiting):
    async def main(client):
        there = await waiting.open(client, name, 20_000, 1e-6, **OPTIONS[plain])
        batches, real = [], there._run

        def count(steps):
            batches.append(steps)
            return real(steps)

        there._run = count
        keys = [f"key {number}" for number in range(500)]
        assert all(await asyncio.gather(*map(there.add, keys)))
        assert all(await asyncio.gather(*map(there.contains, keys)))
        assert len(batches) < 10
        assert sum(await asyncio.gather(*(there.add("same") for _ in range(64)))) == 1
        outcome = await asyncio.gather(there.add("x"), there.add(object()), return_exceptions=True)
        assert outcome[0] is True
        assert isinstance(outcome[1], TypeError)
        assert not await there.contains("nobody")
        assert await there.verify()

    run(main, server)


def test_concurrent_removals_succeed_as_often_as_the_key_was_added(server, name):
    async def main(client):
        there = await AsyncRedisCountingFilter.open(client, name, 20_000, 1e-6, counter_bits=8)
        await there.update(range(1000))
        before = await there.counters()
        await asyncio.gather(*(there.add("same") for _ in range(20)))
        assert sum(await asyncio.gather(*(there.discard("same") for _ in range(64)))) == 20
        assert await there.counters() == before

    run(main, server)


@pytest.mark.parametrize(("plain", "waiting"), BOTH)
def test_full_servers_and_losses_are_errors_of_the_package(own_server, client, plain, waiting):
    server = own_server()

    async def main(own):
        with pytest.raises(ParameterTypeError, match=r"redis.asyncio.*got redis.client"):
            await waiting.open(client, "f", 1000, **OPTIONS[plain])
        with pytest.raises(FilterLost, match="capacity"):
            await waiting.open(own, "f")
        there = await waiting.open(own, "f", 1000, **OPTIONS[plain])
        with pytest.raises(IncompatibleFilters, match=r"capacity .server: 1000, requested: 5"):
            await waiting.open(own, "f", 5)
        assert repr(there).startswith(f"{waiting.__name__}('f', capacity=1000")
        await there.update(range(100))
        await own.config_set("maxmemory", 1)
        outcome = await asyncio.gather(*(there.add(f"secret {i}") for i in range(5)), return_exceptions=True)
        assert all(isinstance(error, EngineFull) for error in outcome), outcome
        await own.config_set("maxmemory", 0)
        server.kill()
        server.start()
        for ask in (there.add("a"), there.contains("a"), there.add_many([1])):
            with pytest.raises(FilterLost):
                await ask
        outcome = await there.verify()
        assert not outcome
        assert outcome.replaced
        assert outcome.restarted
        assert outcome.keys_lost == outcome.keys_checked == 100

    run(main, server)
