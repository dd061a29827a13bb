"""A plan says how the server may lose keys that it acknowledged, and nothing where it does not."""

from __future__ import annotations

import asyncio
import time

import pytest
import redis
import redis.asyncio
from engines.servers import needs_redis

from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter

pytestmark = needs_redis

EVERY_HOUR = "3600 1"
WAYS = [
    ({"appendonly": "no", "save": ""}, ["appendonly no, save ''"]),
    ({"appendonly": "no", "save": EVERY_HOUR}, [f"appendonly no, save '{EVERY_HOUR}'"]),
    ({"appendonly": "yes", "appendfsync": "everysec"}, ["a second of acknowledged keys"]),
    ({"appendonly": "yes", "appendfsync": "no"}, ["appendfsync no"]),
    ({"appendonly": "yes", "appendfsync": "always"}, []),
]


def planned(client):
    return RedisBloomFilter.plan(client, 1000).warnings


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_plan_states_the_persistence_of_the_server(own_server, protocol):
    server = own_server()
    with server.client(protocol=protocol) as client:
        for settings, texts in WAYS:
            for name, value in settings.items():
                client.config_set(name, value)
            warnings = planned(client)
            assert len(warnings) == len(texts), (settings, warnings)
            for text, warning in zip(texts, warnings, strict=True):
                assert text in warning
                assert warning.startswith("the server: ")
        assert RedisBloomFilter.plan(client, 1000).warnings == ()


def test_a_plan_warns_of_asynchronous_replicas(own_server):
    master = own_server(appendonly="yes", appendfsync="always")
    client = master.client()
    assert planned(client) == ()
    own_server(replicaof=f"127.0.0.1 {master.port}")
    deadline = time.monotonic() + 20
    while not (warnings := planned(client)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "1 connected, min-replicas-to-write 0" in warnings[0]

    async def main():
        async with redis.asyncio.Redis(port=master.port) as own:
            return (await AsyncRedisBloomFilter.plan(own, 1000)).warnings

    assert asyncio.run(main()) == warnings
    client.config_set("min-replicas-to-write", 1)
    assert planned(client) == ()


def test_a_plan_without_permission_to_read_the_configuration_states_what_is_unknown(own_server):
    server = own_server()
    with server.client() as client:
        client.execute_command("ACL SETUSER one on >x ~* +@all -config")
        with redis.Redis(port=server.port, username="one", password="x") as one:
            assert "does not tell whether it takes snapshots" in planned(one)[0]
        client.execute_command("ACL SETUSER one -info")
        with redis.Redis(port=server.port, username="one", password="x") as one:
            assert planned(one) == ()


def test_a_plan_warns_for_each_node_of_a_cluster(cluster):
    with cluster.client() as client:
        plan = RedisBloomFilter.plan(client, 1_000_000)
        assert len(plan.nodes) == 3
        for node in plan.nodes:
            of_it = [text for text in plan.warnings if text.startswith(f"the node {node.name}: ")]
            assert len(of_it) == len(node.warnings) == 2
