"""A cluster is one filter: one round trip to each node, also while slots move."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import redis.asyncio
from engines.clusters import HASTY, PATIENT, Cluster, failover_retry, migrate_slot
from engines.servers import needs_redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from support import eventually

from fullbloom import BloomFilter
from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter
from fullbloom.engines.redis.storage import strings
from fullbloom.engines.redis.transport import sync_transport
from fullbloom.errors import EngineFull, EngineRefused, EngineUnavailable, FullbloomError, IncompatibleFilters

pytestmark = [needs_redis, pytest.mark.usefixtures("way")]


@pytest.fixture
def client(cluster):
    with cluster.client() as instance:
        yield instance


@pytest.mark.parametrize(
    ("shape", "shards"), [({}, None), ({}, 1), ({"layout": "split"}, 7), ({"layout": "classic"}, 1)]
)
def test_results_and_bits_equal_those_of_memory(client, name, shape, shards):
    there = RedisBloomFilter(client, name, 3000, 0.02, shards=shards, seed=7, **shape)
    here = BloomFilter(3000, 0.02, seed=7, layout=there.manifest.layout)
    keys = np.arange(2500) * 7919
    twice = np.concatenate([keys, keys[:500]])
    assert (there.add_many(twice) == here.add_many(twice)).all()
    asked = np.arange(0, 7919 * 5000, 7919)
    assert (there.contains_many(asked) == here.contains_many(asked)).all()
    assert there.dump() == here
    assert there.fpr() == here.fpr()
    again = RedisBloomFilter(client, name)
    assert again.manifest == there.manifest
    assert 7919 in again
    assert again.verify()
    more = BloomFilter(3000, 0.02, seed=7, layout=there.manifest.layout)
    more.update(["x"])
    there |= more
    there |= RedisBloomFilter(client, name)
    assert "x" in again
    there.clear()
    assert "x" not in again
    there.load(here)
    assert there.dump() == here
    assert again.delete()


def test_unlike_parameters_are_named(client, name):
    RedisBloomFilter(client, name, 1000, 0.02)
    with pytest.raises(IncompatibleFilters, match=r"fpr .server: 0.02, requested: 0.5"):
        RedisBloomFilter(client, name, fpr=0.5)


def test_new_filters_are_spread_evenly(client, name):
    there = RedisBloomFilter(client, name, 1_000_000)
    assert there.manifest.shards == 48
    nodes = [client.get_node_from_key(key).port for key in there._storage.names.bits]
    assert all(nodes.count(node) >= 6 for node in set(nodes))
    assert len(set(nodes)) == 3
    assert RedisBloomFilter(client, name + "small", 10).manifest.shards < 48


def test_a_batch_costs_one_round_trip_to_each_node_that_it_touches(cluster, client, name, way, monkeypatch):
    monkeypatch.setattr(strings, "RAISED_EVERY", math.inf)
    there = RedisBloomFilter(client, name, 100_000, shards=48)
    log = []
    for call in ("send", "receive"):
        real = getattr(sync_transport, f"sync_{call}")

        def record(connection, exchange, real=real, call=call, **acks):
            log.append((call, connection.port))
            return real(connection, exchange, **acks)

        monkeypatch.setattr(sync_transport, f"sync_{call}", record)
    before = cluster.commands()
    there.add_many(np.arange(10_000))
    # All is sent before anything is waited for: one round trip to each node, at the same time.
    assert [call for call, _ in log] == ["send"] * 3 + ["receive"] * 3
    assert len({port for _, port in log[:3]}) == 3
    after = cluster.commands()
    masters = {port: after[port] - before[port] for port in {port for _, port in log}}
    keys = 10_000 if way == "by key" else 48 * 5  # a script, and what it calls
    assert keys + 48 <= sum(masters.values()) < keys + 48 + 60  # and what nodes say to each other
    log.clear()
    assert 5 in there
    assert len(log) == 2


def test_batches_follow_a_slot_that_moves(cluster, client, name):
    there = RedisBloomFilter(client, name, 50_000, shards=6)
    keys = np.arange(20_000)
    there.update(keys[:5000])
    moved = there._storage.names.bits[2]
    slot = client.keyslot(moved)
    source = cluster.node_of(client, moved)
    target = next(
        node
        for node in cluster.nodes[:3]
        if node is not source and node.client().info("replication")["role"] == "master"
    )
    with migrate_slot(cluster, slot, source, target) as move:
        assert there.contains_many(keys[:5000]).all()  # the string is where it was
        # Bits on their way would lie where the slot goes to; nothing may be made there.
        assert not there.add_many(keys[:5000]).any()
        assert target.client().execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) == 0
        move(moved)
        # Now the source answers ASK, and the target takes commands behind ASKING only.
        assert there.contains_many(keys[:5000]).all()
        assert there.add_many(keys[5000:6000]).sum() > 950
        assert not there.add_many(keys[5000:6000]).any()
    # Now it answers MOVED.
    assert there.contains_many(keys[:6000]).all()
    there.update(keys[6000:7000])
    here = BloomFilter(50_000, layout="blocked")
    here.update(keys[:7000])
    assert there.dump() == here
    assert there.verify()


def test_redirects_are_followed_until_the_nodes_agree(cluster, client, name, monkeypatch):
    there = RedisBloomFilter(client, name, 50_000, shards=6)
    keys = np.arange(5000)
    there.update(keys)
    moved = there._storage.names.bits[2]
    source = cluster.node_of(client, moved)
    target = next(node for node in cluster.nodes[:3] if node.port != source.port)
    with migrate_slot(cluster, client.keyslot(moved), source, target) as move, source.client() as here:
        move(moved)
        with target.client() as other:
            owner = other.execute_command("CLUSTER MYID").decode()
        # Each of the two nodes redirects to the other one, until `migrate_slot` ends.
        here.execute_command("CLUSTER SETSLOT", client.keyslot(moved), "NODE", owner)
        met, agreed = threading.Semaphore(0), threading.Event()

        def pause(_seconds):  # after some redirections; there is a bound on how many it follows
            met.release()
            assert agreed.wait(60)

        monkeypatch.setattr(sync_transport, "sync_sleep", pause)
        with ThreadPoolExecutor(3) as pool:
            asked = [
                pool.submit(there.contains_many, keys),
                pool.submit(there.add_many, keys + 5000),
                pool.submit(there.fpr),
            ]
            assert all(met.acquire(timeout=60) for _ in asked)
            with target.client() as other:
                other.execute_command("CLUSTER SETSLOT", client.keyslot(moved), "NODE", owner)
            agreed.set()
            assert asked[0].result().all()
            assert asked[1].result().sum() > 4900
            assert asked[2].result() < 0.01
    assert there.contains_many(keys + 5000).all()


def test_slots_that_move_repeatedly_under_load_lose_no_key(cluster, client, name):
    there = RedisBloomFilter(client, name, 100_000, shards=4)
    bits = there._storage.names.bits[0]
    slot, done, failed, added = client.keyslot(bits), threading.Event(), [], []

    def load():
        try:
            with cluster.client() as own:
                mine = RedisBloomFilter(own, name)
                while not done.is_set():
                    batch = np.arange(len(added) * 500, (len(added) + 1) * 500)
                    mine.update(batch)
                    added.append(batch)
                    if not mine.contains_many(batch).all():
                        failed.append("a key is missed")
        except FullbloomError as error:
            failed.append(error)

    worker = threading.Thread(target=load)
    worker.start()
    masters = [node for node in cluster.nodes if node.client().info("replication")["role"] == "master"]
    for turn in range(6):
        with cluster.client() as fresh:
            source = cluster.node_of(fresh, bits)
        target = masters[(masters.index(source) + 1) % 3]
        with migrate_slot(cluster, slot, source, target) as move:
            time.sleep(0.05)
            if turn % 2:
                move(bits)
                time.sleep(0.05)
    eventually(lambda: failed or len(added) > 3)
    done.set()
    worker.join(60)
    assert not failed, failed
    assert there.contains_many(np.concatenate(added)).all()


def test_a_batch_waits_for_the_failover_of_a_killed_master(tmp_path, monkeypatch):
    monkeypatch.setattr(strings, "RAISED_EVERY", math.inf)  # a replica without the last epoch is a rollback
    running = Cluster(tmp_path)
    running.set_node_timeout(PATIENT)
    between = threading.Lock()  # confirmations of replicas are not awaited from a master that is killed
    try:
        with running.client(retry=failover_retry()) as client:
            there = RedisBloomFilter(client, "f", 200_000, shards=12)
            there.update(np.arange(20_000))
            client.wait(1, 60_000, target_nodes="primaries")
            victim = running.node_of(client, there._storage.names.bits[0])
            running.set_node_timeout(HASTY)

            def kill():
                with between:
                    victim.kill()

            timer = threading.Timer(0.1, kill)
            timer.start()
            batch = 4
            while timer.is_alive() or batch < 20:
                there.update(np.arange(batch * 5000, (batch + 1) * 5000))
                batch += 1
                with between:
                    if victim.process.poll() is None:
                        client.wait(1, 60_000, target_nodes="primaries")
            timer.join()
            outcome = there.verify()
            assert outcome.restarted
            assert outcome.shards_lost == ()
            assert outcome.keys_lost < 4096
            found = there.contains_many(np.arange(batch * 5000))
            assert found[:20_000].all()  # these had reached the replica
            # What was acknowledged and had not reached it is all that can be gone: part of one batch at most.
            assert (~found).sum() <= 5000, (~found).sum()
            there.update(np.arange(batch * 5000))
            assert there.contains_many(np.arange(batch * 5000)).all()
    finally:
        running.stop()


def test_an_unreachable_cluster_is_an_error_of_the_package(tmp_path):
    running = Cluster(tmp_path)
    try:
        client = running.client(retry=Retry(NoBackoff(), 1))
        there = RedisBloomFilter(client, "f", 1000)
        there.add("secret key")
    finally:
        running.stop()
    for ask in (lambda: "secret key" in there, lambda: there.add_many(["secret key"]), there.fpr):
        with pytest.raises(EngineUnavailable) as caught:
            ask()
        assert "secret key" not in str(caught.value)


@contextmanager
def _limited(node, **options):
    """A node with another configuration."""
    with node.client() as direct:
        before = {name: direct.config_get(name)[name] for name in options}
        for name, value in options.items():
            direct.config_set(name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                direct.config_set(name, value)


def test_a_plan_names_the_node_that_lacks_memory(cluster, client, name):
    plan = RedisBloomFilter.plan(client, 10_000_000, 0.01, name=name)
    masters = {f"127.0.0.1:{node.port}" for node in cluster.nodes if cluster_master(node)}
    assert {node.name for node in plan.nodes} == masters
    assert sum(node.shards for node in plan.nodes) == plan.shards == 48
    assert sum(node.nbytes for node in plan.nodes) == plan.nbytes
    assert plan.fits
    assert not plan.evicts
    short = next(node for node in cluster.nodes if cluster_master(node))
    with _limited(short, maxmemory="8mb"):
        plan = RedisBloomFilter.plan(client, 50_000_000, 0.01, name=name)
        assert not plan.fits
        outcome = min(plan.nodes, key=lambda node: node.room)
        assert outcome.name == f"127.0.0.1:{short.port}"
        assert 0 < outcome.shards < 48
        assert (plan.maxmemory, plan.used_memory) == (8 << 20, outcome.used_memory)
        with pytest.raises(
            EngineFull, match=rf"the node 127.0.0.1:{short.port} has space .* of its 48 shards"
        ):
            RedisBloomFilter(client, name, 50_000_000)
        assert RedisBloomFilter.find(client, name) is None
    with _limited(short, **{"maxmemory-policy": "allkeys-lru", "maxmemory": "1gb"}):
        everywhere = RedisBloomFilter.plan(client, 100_000, name=name)
        assert (everywhere.evicts, everywhere.policy, everywhere.fits) == (True, "allkeys-lru", True)
        with pytest.raises(
            EngineRefused, match=rf"the node 127.0.0.1:{short.port} may evict its strings .*allkeys-lru"
        ):
            RedisBloomFilter(client, name, 100_000)

        async def main():
            async with redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as own:
                outcome = await AsyncRedisBloomFilter.plan(own, 100_000, name=name)
                assert sum(node.shards for node in outcome.nodes) == everywhere.shards
                assert {node.name for node in outcome.nodes if node.evicts} == {f"127.0.0.1:{short.port}"}

        asyncio.run(main())
        assert RedisBloomFilter(client, name, 100_000, allow_eviction=True).add(1)


def cluster_master(node):
    with node.client() as direct:
        return direct.info("replication")["role"] == "master"
