"""Filters that a server has of its own, behind the same class, where it answers that it has them."""

from __future__ import annotations

import asyncio
import time
import uuid
from math import inf

import numpy as np
import pytest
import redis
from engines.modules import Service, client, running
from engines.servers import needs_redis

from fullbloom import IncompatibleFilters, ParameterError, hash_key
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import EngineError, FilterLost

__all__ = ["client", "running"]  # fixtures


def test_module_filters_store_keys_by_their_hash(client):
    f = RedisBloomFilter(client, "f", 10_000, 0.001, backend="auto", seed=5)
    assert f.manifest.backend == "module"
    assert f.add("a")
    assert not f.add("a")
    assert f.add(5)
    assert f.add_many(["a", 7, 7]) == [False, True, False]
    assert (f.contains_many(np.array([5, 7, 9])) == [True, True, False]).all()
    assert "5" not in f
    (key,) = [key for key in client.scan_iter() if key.startswith(b"f:bits:")]
    assert client.execute_command("BF.EXISTS", key, hash_key(5, seed=5).to_bytes(8, "little"))
    f.update(range(10_000))
    assert f.contains_many(range(10_000)) == [True] * 10_000
    wrong = sum(f.contains_many(range(10**6, 10**6 + 20_000)))
    assert wrong <= 20 + 6 * 20**0.5  # at most 0.001, and six deviations of 20,000 trials
    number, deviation = f.approx_count()
    assert abs(number - 10_003) <= 6 * max(deviation, 10)
    assert f.info()["backend"] == "module"
    assert "fill" not in f.info()
    assert f.verify()


def test_every_client_follows_the_manifest(client):
    instance = RedisBloomFilter(client, "f", 1000, backend="module", secret=bytes(16))
    instance.add("k")
    again = RedisBloomFilter(client, "f", secret=bytes(16))
    assert again.manifest == instance.manifest
    assert "k" in again
    with pytest.raises(IncompatibleFilters, match=r"backend .server: 'module', requested: 'strings'"):
        RedisBloomFilter(client, "f", backend="strings", secret=bytes(16))
    with pytest.raises(IncompatibleFilters, match="secret"):
        RedisBloomFilter(client, "f")


def test_string_operations_are_refused_with_the_remedy(client, running):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    for ask in (
        f.dump,
        lambda: f.load(None),
        lambda: f.fill,
        lambda: f.__ior__(RedisBloomFilter(client, "f")),
    ):
        with pytest.raises(EngineError, match="backend='strings'"):
            ask()
    with pytest.raises(ParameterError, match="shards"):
        RedisBloomFilter(client, "g", 1000, backend="module", shards=2)
    if isinstance(running, Service):
        with pytest.raises(EngineError, match="no strings that hold cells"):
            RedisBloomFilter(client, "g", 1000, backend="auto", shards=2)
    else:
        assert RedisBloomFilter(client, "g", 1000, backend="auto", shards=2).manifest.backend == "strings"


def test_a_lost_module_filter_is_not_recreated_by_an_add(client):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    f.update(["a", "b"])
    (key,) = f._storage.names.bits
    client.delete(key)
    for ask in (lambda: "a" in f, lambda: f.add("c"), lambda: f.update(range(100))):
        with pytest.raises(FilterLost):
            ask()
    assert not client.exists(key)
    report = f.verify()
    assert not report
    assert report.shards_lost == (0,)
    assert f.delete()
    assert list(client.scan_iter()) == []


def test_clear_empties_a_module_filter_for_every_client(client):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    g = RedisBloomFilter(client, "f")
    g.update(range(100))
    f.clear()
    assert g.contains_many(range(100)) == [False] * 100
    assert g.verify()
    assert client.pttl(f._storage.names.bits[0]) == -1


def test_a_module_filter_expires_and_the_next_add_recreates_it(client):
    f, g = (RedisBloomFilter(client, "f", 1000, backend="module", ttl=0.5) for _ in range(2))
    f.update(range(100))
    (key,) = f._storage.names.bits
    f._storage.ends = g._storage.ends = inf  # clients that do not know that it is over
    while client.exists(key):
        time.sleep(0.01)
    assert g.contains_many(range(100)) == [False] * 100
    assert g.approx_count()[0] == 0
    assert g.verify()
    object.__setattr__(f.manifest, "ttl", 3600.0)
    object.__setattr__(g.manifest, "ttl", 3600.0)
    assert all(f.add_many(range(100)))
    assert g.contains_many(range(100)) == [True] * 100
    assert f.manifest.backend == "module"
    assert {client.pexpiretime(key) for key in client.scan_iter()} == {f.manifest.expires}
    assert len(list(client.scan_iter())) == 2
    before = f.manifest.expires
    time.sleep(0.002)
    f.clear()
    assert client.pexpiretime(f._storage.names.bits[0]) == f.manifest.expires > before


@needs_redis
@pytest.mark.parametrize("backend", ["auto", "module"])
def test_a_server_without_the_module_is_detected(server, backend):
    name = f"f{uuid.uuid4().hex}"
    with server.client() as plain:
        if backend == "auto":
            assert RedisBloomFilter(plain, name, 1000, backend=backend).manifest.backend == "strings"
        else:
            with pytest.raises(EngineError, match=r"BF\.RESERVE"):
                RedisBloomFilter(plain, name, 1000, backend=backend)
            assert not list(plain.scan_iter(f"{name}*"))
    with pytest.raises(ParameterError, match="backend"):
        RedisBloomFilter(plain, name, 1000, backend="guess")


def test_asyncio_supports_module_filters(running, client):
    protocol = client.connection_pool.connection_kwargs["protocol"]

    async def verify():
        async with redis.asyncio.Redis(port=running.port, protocol=protocol) as waiting:
            f = await AsyncRedisBloomFilter.open(waiting, "f", 10_000, 0.001, backend="auto", seed=5)
            assert f.manifest.backend == "module"
            assert await f.add("a")
            assert not await f.add("a")
            assert await f.add_many(["a", 7, 7]) == [False, True, False]
            assert await f.contains_many(["a", 7, "absent"]) == [True, True, False]
            new = await asyncio.gather(*(f.add(key) for key in range(1000)))
            assert sum(new) >= 990
            assert all(await asyncio.gather(*(f.contains(key) for key in range(1000))))
            assert await f.verify()
            with pytest.raises(EngineError, match="backend='strings'"):
                await f.dump()
            again = await AsyncRedisBloomFilter.open(waiting, "f", seed=5)
            await again.clear()
            assert await f.contains_many(range(100)) == [False] * 100
            assert await f.verify()
            with pytest.raises(IncompatibleFilters, match="capacity"):
                await AsyncRedisBloomFilter.open(waiting, "f", 20_000, seed=5)
            assert await f.delete()

    asyncio.run(verify())
    assert RedisBloomFilter.find(client, "f") is None


@pytest.mark.parametrize("command", ["BF", "CF"])
def test_a_filter_created_by_server_commands_is_named(running, client, command):
    words = ["f", "0.01", "1000"] if command == "BF" else ["f", "1000"]
    try:
        client.execute_command(f"{command}.RESERVE", *words)
    except redis.ResponseError:
        pytest.skip(f"this server has no {command}.RESERVE")
    client.execute_command(f"{command}.ADD", "f", "ada")
    for cls in (RedisBloomFilter, RedisCountingFilter, RedisRollingFilter):
        with pytest.raises(IncompatibleFilters, match=rf"filter of its own under 'f' .*{command}\.EXISTS"):
            cls(client, "f")
    with pytest.raises(FilterLost, match="no filter 'away'"):
        RedisBloomFilter(client, "away")

    async def open_filter():
        async with redis.asyncio.Redis(port=running.port) as waiting:
            await AsyncRedisBloomFilter.open(waiting, "f")

    with pytest.raises(IncompatibleFilters, match=f"{command}.EXISTS"):
        asyncio.run(open_filter())
    beside = RedisBloomFilter(client, "f", 1000, backend="module")
    assert beside.add("ada")
    assert client.execute_command(f"{command}.EXISTS", "f", "ada")
