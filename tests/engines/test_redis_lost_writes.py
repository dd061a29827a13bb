"""Losses of acknowledged keys are reported.

By the next batch where the cells are gone, by verify() where only the latest of them are.
"""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
import redis
from engines.servers import needs_redis, strings_of

from fullbloom.engines.redis import RedisBloomFilter
from fullbloom.errors import (
    EngineFull,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
)

pytestmark = needs_redis


def test_a_server_restarted_without_its_data_has_lost_the_filter(own_server):
    server = own_server()
    client = server.client()
    f = RedisBloomFilter(client, "f", 10_000)
    f.update(range(1000))
    assert f.verify()
    server.kill()
    server.start()
    with pytest.raises(FilterLost, match="manifest"):
        5 in f  # noqa: B015
    with pytest.raises(FilterLost):
        f.add(5)
    result = f.verify()
    assert not result
    assert result.replaced
    assert result.restarted
    assert result.keys_lost == result.keys_checked == 1000
    f.delete()
    assert RedisBloomFilter(client, "f", 10_000).add(5)


def test_a_server_restarted_with_an_older_snapshot_has_lost_the_last_keys(own_server):
    server = own_server()
    client = server.client()
    f = RedisBloomFilter(client, "f", 100_000, shards=3)
    f.update(range(20_000))
    client.save()
    f.update(range(20_000, 20_500))
    server.kill()
    server.start()
    result = f.verify()
    assert not result.ok
    assert result.restarted
    assert not result.replaced
    assert result.shards_lost == ()
    assert result.keys_checked == 4096
    assert 490 <= result.keys_lost <= 500  # one is found wrongly now and then
    assert result.bits_found < result.bits_expected


def test_a_server_restarted_with_its_log_has_lost_nothing(own_server):
    server = own_server(appendonly="yes", appendfsync="always")
    client = server.client()
    f = RedisBloomFilter(client, "f", 100_000)
    f.update(range(20_000))
    server.kill()
    server.start()
    result = f.verify()
    assert result
    assert result.restarted
    assert result.keys_lost == 0
    assert all(f.contains_many(range(20_000)))


@pytest.mark.parametrize("gone", ["a string", "the manifest"])
def test_an_evicted_or_deleted_string_is_reported(client, gone):
    client.flushall()
    f = RedisBloomFilter(client, "f", 10_000, shards=2)
    f.update(range(500))
    client.delete(strings_of(client, "f")[1] if gone == "a string" else "f:fullbloom")
    result = f.verify()
    assert not result
    assert result.shards_lost == ((1,) if gone == "a string" else (0, 1))
    if gone == "a string":
        with pytest.raises(FilterLost, match="shard 1"):
            f.contains_many(range(500))
        with pytest.raises(FilterLost, match="shard 1"):
            f.update(range(500))
        with pytest.raises(FilterLost, match="shard 1"):
            f.dump()


def test_another_filter_of_the_same_name_is_detected(client):
    client.flushall()
    f = RedisBloomFilter(client, "f", 10_000)
    f.add("a")
    f.delete()
    g = RedisBloomFilter(client, "f", 10_000)
    with pytest.raises(FilterLost, match="another one of this name"):
        "a" in f  # noqa: B015
    assert f.verify().replaced
    assert "a" not in g


def test_a_filter_cleared_by_another_client_stays_usable(server):
    with server.client() as one, server.client() as two:
        one.flushall()
        f = RedisBloomFilter(one, "f", 10_000, shards=2)
        g = RedisBloomFilter(two, "f")
        f.update(range(100))
        g.clear()
        assert not any(f.contains_many(range(100)))
        assert f.verify().keys_checked == 0
        assert f.add(7)
        assert f.verify()
        assert 7 in g


def test_vanished_bits_are_detected(client):
    client.flushall()
    f = RedisBloomFilter(client, "f", 10_000)
    f.update(range(6000))
    assert f.verify()
    f.update(range(6000, 8000))
    (string,) = strings_of(client, "f")
    client.setrange(string, 0, bytes(client.strlen(string) - 16))
    result = f.verify()
    assert not result
    assert result.keys_lost == 4096


def test_a_filter_works_again_when_its_server_is_back(own_server):
    server = own_server(appendonly="yes")
    client = server.client(retry=None)
    f = RedisBloomFilter(client, "f", 1000)
    f.add("a")
    server.stop()
    for ask in (
        lambda: "a" in f,
        lambda: f.add("secret key"),
        lambda: f.update(["secret key"]),
        f.fpr,
        f.dump,
    ):
        with pytest.raises(EngineUnavailable) as caught:
            ask()
        assert isinstance(caught.value, ConnectionError)
        assert str(server.port) in str(caught.value) or "closed" in str(caught.value).lower()
        assert "secret key" not in str(caught.value)
    server.start()
    assert "a" in f


@pytest.mark.timed
def test_a_server_that_does_not_respond_is_a_timeout(own_server):
    server = own_server()
    client = server.client(socket_timeout=0.2, retry=None)
    f = RedisBloomFilter(client, "f", 1000)
    f.add("a")
    server.process.send_signal(signal.SIGSTOP)
    try:
        for ask in (lambda: "a" in f, lambda: f.add("b"), f.fpr):
            with pytest.raises(EngineTimeout):
                ask()
    finally:
        server.process.send_signal(signal.SIGCONT)
    # No later batch gets the late replies: the connection was closed.
    assert f.contains_many(["a", "nobody"]) == [True, False]


def test_a_batch_is_retried_on_a_restarted_server(own_server):
    server = own_server(appendonly="yes", appendfsync="always")
    client = server.client(retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.2), 100))
    f = RedisBloomFilter(client, "f", 1_000_000)
    done = threading.Event()

    def restarts():
        for _ in range(3):
            done.wait(0.3)
            server.kill()
            server.start()

    keeper = threading.Thread(target=restarts)
    keeper.start()
    batch = 0
    while keeper.is_alive():
        f.update(np.arange(batch * 5000, (batch + 1) * 5000))
        batch += 1
    keeper.join()
    assert f.contains_many(np.arange(batch * 5000)).all()
    assert f.verify()


def test_a_replica_refuses_changes(own_server):
    master = own_server()
    RedisBloomFilter(master.client(), "f", 1000).add("a")
    replica = own_server(replicaof=["127.0.0.1", master.port])
    client = replica.client()
    for _ in range(500):
        if client.exists("f:fullbloom") and client.info("replication")["master_link_status"] == "up":
            break
        threading.Event().wait(0.02)
    f = RedisBloomFilter(client, "f")
    assert "a" in f
    for change in (lambda: f.add("b"), f.clear, lambda: RedisBloomFilter(client, "g", 1000)):
        with pytest.raises(EngineRefused, match="replica"):
            change()


def test_a_server_without_memory_refuses_creation_and_keeps_no_key(own_server):
    server = own_server(maxmemory="6mb", maxmemory_policy="noeviction")
    client = server.client()
    plan = RedisBloomFilter.plan(client, 10_000_000, 0.01)
    assert not plan.fits
    with pytest.raises(EngineFull, match="maxmemory"):
        RedisBloomFilter(client, "f", 10_000_000, 0.01)
    f = RedisBloomFilter(client, "g", 100_000)
    client.config_set("maxmemory", 1)
    for change in (
        lambda: f.add("k"),
        f.clear,
        lambda: RedisBloomFilter(client, "h", 1000, allow_eviction=True),
    ):
        with pytest.raises(EngineFull):
            change()
    assert "k" not in f
    client.config_set("maxmemory", 0)
    assert f.add("k")
    assert sorted(key.decode() for key in client.scan_iter()) == [*strings_of(client, "g"), "g:fullbloom"]


def test_an_evicting_server_is_refused_unless_allowed(own_server):
    client = own_server(maxmemory="100mb", maxmemory_policy="allkeys-lru").client()
    assert RedisBloomFilter.plan(client, 1000).evicts
    with pytest.raises(EngineRefused, match="allow_eviction"):
        RedisBloomFilter(client, "f", 1000)
    assert client.keys() == []
    assert RedisBloomFilter(client, "f", 1000, allow_eviction=True).add(1)
    for policy in ("noeviction", "volatile-lru"):
        client.config_set("maxmemory-policy", policy)
        RedisBloomFilter(client, policy, 1000)


def test_a_refused_authentication_is_reported_without_the_password(own_server):
    server = own_server(requirepass="right")
    for options in ({}, {"password": "wrong-password"}):
        with pytest.raises(EngineRefused, match="password") as caught:
            RedisBloomFilter(server.client(**options), "f", 1000)
        assert "wrong-password" not in str(caught.value)
    client = server.client(password="right")
    f = RedisBloomFilter(client, "f", 1000)
    assert f.add(1)
    client.execute_command(
        "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+ping", "+client", "+hello", "+info"
    )
    reader = RedisBloomFilter(server.client(username="reader", password="pw"), "f")
    assert 1 in reader
    for change in (lambda: reader.add(2), lambda: reader.update([2])):
        with pytest.raises(EngineRefused, match="user"):
            change()


def test_a_string_replaced_by_another_type_is_reported(client):
    client.flushall()
    f = RedisBloomFilter(client, "f", 1000)
    (string,) = strings_of(client, "f")
    client.delete(string)
    client.lpush(string, "x")
    from fullbloom.errors import EngineNameTaken

    for ask in (lambda: 1 in f, lambda: f.add(1), f.fpr, f.dump):
        with pytest.raises(EngineNameTaken, match="something other"):
            ask()
