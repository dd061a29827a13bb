"""A plan says how the server may lose keys that it acknowledged, and nothing where it does not."""

from __future__ import annotations

import asyncio
import time

import pytest
import redis
import redis.asyncio
from engines.servers import needs_redis

from fullbloom import ParameterError
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    AsyncRedisCountingFilter,
    AsyncRedisRollingFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)

pytestmark = needs_redis

EVERY_HOUR = "3600 1"
WAYS = [
    ({"appendonly": "no", "save": ""}, ["appendonly no, save ''"]),
    ({"appendonly": "no", "save": EVERY_HOUR}, [f"appendonly no, save '{EVERY_HOUR}'"]),
    ({"appendonly": "yes", "appendfsync": "everysec"}, ["a second of acknowledged keys"]),
    ({"appendonly": "yes", "appendfsync": "no"}, ["appendfsync no"]),
    ({"appendonly": "yes", "appendfsync": "always"}, []),
]


def list_warnings(client):
    return RedisBloomFilter.plan(client, 1000).warnings


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_plan_states_the_persistence_of_the_server(own_server, protocol):
    server = own_server()
    with server.client(protocol=protocol) as client:
        for settings, texts in WAYS:
            for name, value in settings.items():
                client.config_set(name, value)
            warnings = list_warnings(client)
            assert len(warnings) == len(texts), (settings, warnings)
            for text, warning in zip(texts, warnings, strict=True):
                assert text in warning
                assert warning.startswith("the server: ")
        assert RedisBloomFilter.plan(client, 1000).warnings == ()


def test_a_plan_warns_of_asynchronous_replicas(own_server):
    master = own_server(appendonly="yes", appendfsync="always")
    client = master.client()
    assert list_warnings(client) == ()
    own_server(replicaof=f"127.0.0.1 {master.port}")
    deadline = time.monotonic() + 60
    while not (warnings := list_warnings(client)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "1 connected, min-replicas-to-write 0" in warnings[0]

    async def main():
        async with redis.asyncio.Redis(port=master.port) as own:
            return (await AsyncRedisBloomFilter.plan(own, 1000)).warnings

    assert asyncio.run(main()) == warnings
    client.config_set("min-replicas-to-write", 1)
    assert list_warnings(client) == ()


def test_a_plan_without_permission_to_read_the_configuration_states_what_is_unknown(own_server):
    server = own_server()
    with server.client() as client:
        client.execute_command("ACL SETUSER one on >x ~* +@all -config")
        with redis.Redis(port=server.port, username="one", password="x") as one:
            assert "does not report whether it takes snapshots" in list_warnings(one)[0]
        client.execute_command("ACL SETUSER one -info")
        with redis.Redis(port=server.port, username="one", password="x") as one:
            assert list_warnings(one) == ()


def test_a_plan_warns_for_each_node_of_a_cluster(cluster):
    with cluster.client() as client:
        plan = RedisBloomFilter.plan(client, 1_000_000)
        assert len(plan.nodes) == 3
        for node in plan.nodes:
            of_it = [text for text in plan.warnings if text.startswith(f"the node {node.name}: ")]
            assert len(of_it) == len(node.warnings) == 2


OTHERS = [
    (RedisCountingFilter, AsyncRedisCountingFilter, {"counter_bits": 8}),
    (RedisRollingFilter, AsyncRedisRollingFilter, {"window": 3600.0, "generations": 4}),
]


@pytest.mark.parametrize(("kind", "waiting", "options"), OTHERS)
def test_plans_of_the_other_classes_match_what_is_created(own_server, kind, waiting, options):
    server = own_server()
    with server.client() as client:
        plan = kind.plan(client, 50_000, 0.001, shards=3, **options)
        assert len(plan.warnings) == 1
        assert client.keys("*") == []
        there = kind(client, "f", 50_000, 0.001, shards=3, **options)
        there.update(range(100))
        strings = [client.strlen(key) for key in client.keys("f:bits*")]
        assert (plan.num_bits, plan.num_hashes, plan.shards) == (
            there.manifest.num_bits,
            there.manifest.num_hashes,
            3,
        )
        assert plan.shard_bytes == max(strings)
        generations = options.get("generations", 0) and options["generations"] + 1  # one outlives its use
        assert plan.nbytes == sum(strings) * (generations or 1)
        assert plan.bytes_to_add > plan.bytes_to_check / 2 > 0
        for wrong in (0, True, "x"):
            with pytest.raises(ParameterError, match="batch"):
                kind.plan(client, 1000, batch=wrong, **options)

        async def main():
            async with redis.asyncio.Redis(port=server.port) as own:
                return await waiting.plan(own, 50_000, 0.001, shards=3, **options)

        again = asyncio.run(main())
        assert (again.nbytes, again.bytes_to_add, again.warnings) == (
            plan.nbytes,
            plan.bytes_to_add,
            plan.warnings,
        )


def test_plans_of_the_other_classes_ask_every_node_of_a_cluster(cluster):
    with cluster.client() as client:
        for kind, _, options in OTHERS:
            plan = kind.plan(client, 1_000_000, **options)
            assert len(plan.nodes) == 3
            assert all(node.nbytes > 0 for node in plan.nodes)
            assert abs(sum(node.nbytes for node in plan.nodes) - plan.nbytes) < 10


@pytest.mark.parametrize(("kind", "portion"), [(RedisBloomFilter, 16_384), (RedisCountingFilter, 8192)])
@pytest.mark.timed
def test_a_plan_counts_the_round_trips_of_a_large_batch(client, kind, portion):
    one, many = (kind.plan(client, 10**6, batch=batch) for batch in (portion, 3 * portion + 1))
    assert (one.round_trips, many.round_trips) == (1, 4)
    for field in ("bytes_to_check", "bytes_checked", "bytes_to_add", "bytes_added"):
        assert 3 * getattr(one, field) < getattr(many, field) < 3.1 * getattr(one, field)
    began = time.monotonic()
    kind.plan(client, 10**6, batch=10**15)
    assert time.monotonic() - began < 2
