"""A filter with a ttl ends at one moment of the server's clock, and the next add begins its next term."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import numpy as np
import pytest
import redis.asyncio
from commands import REDIS, run_command
from engines.servers import SECONDS, needs_redis

from fullbloom import BloomFilter, IncompatibleFilters, ParameterError
from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter
from fullbloom.errors import FilterLost

pytestmark = needs_redis
KEYS = np.arange(500)


@pytest.fixture(autouse=True)
def _empty(client):
    client.flushall()


def over(client, name="f"):
    """Waits until a filter has come to its end."""
    deadline = time.monotonic() + SECONDS
    while client.exists(f"{name}:fullbloom"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def moments(client, key="*"):
    return {client.pexpiretime(key) for key in client.scan_iter(key)}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_all_keys_of_a_filter_expire_at_once(client, shards, layout):
    shards = 1 if layout == "classic" else shards
    before = client.time()[0] * 1000
    f = RedisBloomFilter(client, "f", 5000, shards=shards, layout=layout, ttl=3600)
    assert len(client.keys()) == 1 + shards
    (moment,) = moments(client)
    assert before + 3_600_000 <= moment <= (client.time()[0] + 1) * 1000 + 3_600_000
    assert (f.manifest.ttl, f.manifest.expires) == (3600.0, moment)
    assert (f.info()["ttl"], f.info()["expires"]) == (3600.0, moment / 1000)
    f.update(KEYS)
    f |= f.dump()
    if layout == "blocked":
        f.reshard(4)
    full = f.dump()
    f.load(full)
    last = {key: client.pexpiretime(key) for key in client.scan_iter() if b":to:" not in key}
    strings = [key for key in last if b"@1" in key or b":fullbloom" in key or layout == "classic"]
    assert {last[key] for key in strings} == {moment}
    assert f.contains_many(KEYS).all()
    assert f.verify()
    assert f.dump() == full
    client.execute_command("CLIENT", "PAUSE", 2)  # so that the next moment is another one
    f.clear()
    (later,) = {client.pexpiretime(key) for key in (*f._storage.names.bits, b"f:fullbloom")}
    assert later == f.manifest.expires > moment
    assert not f.contains_many(KEYS).any()


def test_an_expired_filter_is_empty_and_the_next_add_recreates_it(client):
    f = RedisBloomFilter(client, "f", 5000, 0.001, shards=2, seed=3, secret=bytes(16), ttl=2.0)
    other = RedisBloomFilter(client, "f", 5000, 0.001, shards=2, seed=3, secret=bytes(16), ttl=2.0)
    f.update(KEYS)
    other.update(KEYS)
    over(client)
    assert 1 not in f
    assert not other.contains_many(KEYS).any()
    assert not f.contains_hashed([1, 2, 3])[0]
    assert f.approx_count() == (0.0, 0.0)
    assert (f.fill, f.fpr(), f.info()["approx_count"]) == (0.0, 0.0, 0.0)
    assert f.dump() == BloomFilter(5000, 0.001, layout="blocked", seed=3, secret=bytes(16))
    result = f.verify()
    assert result.ok
    assert not result.replaced
    assert client.keys() == []  # no client created it
    with pytest.raises(FilterLost, match="capacity"):
        RedisBloomFilter(client, "f", secret=bytes(16))
    old = f.manifest
    assert f.add_many(KEYS).all()  # all are new
    new = f.manifest
    assert (new.id != old.id, new.expires > old.expires, new.generation) == (True, True, 0)
    same = {"id": old.id, "expires": old.expires, "generation": old.generation, "state": old.state}
    assert json.loads(new.to_bytes()) | same == json.loads(old.to_bytes())
    assert len(moments(client)) <= 1


@pytest.mark.long
def test_every_change_of_an_expired_filter_restarts_its_ttl(client):
    full = BloomFilter(1000, layout="blocked")
    full.update(KEYS)
    empty = BloomFilter(1000, layout="blocked")

    def merge(f):
        f |= full

    changes = {
        "add": (lambda f: f.add(1), None),
        "update": (lambda f: f.update(KEYS), full),
        "merge": (merge, full),
        "load": (lambda f: f.load(full), full),
        "clear": (lambda f: f.clear(), empty),
        "reshard": (lambda f: f.reshard(2), empty),
    }
    filters = {name: RedisBloomFilter(client, name, 1000, ttl=1.5) for name in changes}
    for f in filters.values():
        f.add("old")
    for name, (change, expected) in changes.items():
        f = filters[name]
        over(client, name)
        id_ = f.manifest.id
        change(f)
        assert f.manifest.id != id_, name
        found = f.dump()
        if client.exists(f"{name}:fullbloom") and expected is not None:
            assert found == expected, name
        assert "old" not in found
    retired = {f"reshard:bits:{filters['reshard'].manifest.id[:16]}".encode()}  # which goes in a minute
    for name, f in filters.items():
        over(client, name)
        assert not f.delete()
        assert set(client.scan_iter(f"{name}:bits*")) <= retired


def test_one_of_several_clients_recreates_an_expired_filter(server, client):
    instance = [RedisBloomFilter(server.client(), "f", 1000, shards=3, ttl=2.0) for _ in range(4)]
    for f in instance:
        f.update(KEYS)
    over(client)
    new, barrier = [None] * 4, threading.Barrier(4)

    def add(number):
        barrier.wait(SECONDS)
        new[number] = instance[number].add_many(KEYS)

    for f in instance:  # so that it lasts for all of them
        object.__setattr__(f.manifest, "ttl", 3600.0)
    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join(SECONDS) for thread in threads]
    assert len({f.manifest.id for f in instance}) == 1
    assert (np.sum(new, axis=0) == 1).all()  # exactly one client added each key
    assert len(client.keys()) == 4
    assert len(moments(client)) == 1


def test_adds_after_the_expiry_leave_nothing_and_are_repeated(client):
    """A batch that is on its way at the end writes to strings that are gone."""
    f = RedisBloomFilter(client, "f", 5000, shards=2, ttl=2.0)
    f.update(KEYS)
    f._storage.ends = time.monotonic() + 3600  # this client does not know that it is over
    over(client)
    object.__setattr__(f.manifest, "ttl", 3600.0)
    old = f._storage.names.bits
    assert not f.contains_many(KEYS).any()
    f._storage.ends = time.monotonic() + 3600
    assert f.add_many(KEYS).all()
    assert not client.exists(*old)
    assert f.contains_many(KEYS).all()
    assert sorted(client.keys()) == sorted([b"f:fullbloom", *f._storage.names.bits])


@pytest.mark.parametrize("gone", ["f:bits*:1", "f:fullbloom"])
def test_a_filter_that_vanishes_before_its_expiry_is_lost(client, gone):
    f = RedisBloomFilter(client, "f", 5000, shards=2, ttl=3600)
    f.update(KEYS)
    client.delete(*client.keys(gone))
    # A client that has the manifest notices by the strings.
    asks = [f.dump, f.clear] if gone == "f:fullbloom" else [f.dump, lambda: f.contains_many(KEYS)]
    for ask in asks:
        with pytest.raises(FilterLost):
            ask()
    assert not f.verify()
    f.delete()
    assert client.keys() == []


def test_another_ttl_than_that_on_the_server_is_named(client):
    RedisBloomFilter(client, "f", 1000, ttl=60)
    RedisBloomFilter(client, "g", 1000)
    assert RedisBloomFilter(client, "f").manifest.ttl == 60.0
    assert RedisBloomFilter(client, "f", ttl=60).manifest.ttl == 60.0
    with pytest.raises(IncompatibleFilters, match=r"ttl .server: 60.0, requested: 61.0"):
        RedisBloomFilter(client, "f", ttl=61)
    with pytest.raises(IncompatibleFilters, match=r"ttl .server: 0.0, requested: 60.0"):
        RedisBloomFilter(client, "g", ttl=60)
    assert "ttl" not in json.loads(client.get("g:fullbloom"))
    assert "ttl" not in RedisBloomFilter(client, "g").info()


@pytest.mark.parametrize("ttl", [0, -1, 0.01, True, "60", float("nan"), float("inf"), 1e12, b"1"])
def test_an_invalid_ttl_is_refused(client, ttl):
    with pytest.raises(ParameterError, match=r"ttl must be 0.1 to 1,000,000,000 seconds"):
        RedisBloomFilter(client, "f", 1000, ttl=ttl)
    assert client.keys() == []


def test_from_filter_and_asyncio_accept_a_ttl(server, client):
    full = BloomFilter(1000, layout="blocked")
    full.update(KEYS)
    instance = RedisBloomFilter.from_filter(client, "f", full, ttl=3600)
    assert instance.dump() == full
    assert len(moments(client)) == 1

    async def main():
        async with redis.asyncio.Redis(port=server.port) as own:
            f = await AsyncRedisBloomFilter.from_filter(own, "f", full, ttl=3600)
            assert f.manifest.expires == instance.manifest.expires  # loaded, it keeps its end
            g = await AsyncRedisBloomFilter.open(own, "g", 1000, ttl=1.0)
            await asyncio.gather(*(g.add(n) for n in range(50)))
            while await own.exists("g:fullbloom"):
                await own.time()
            assert not any(await asyncio.gather(*(g.contains(n) for n in range(50))))
            assert (await g.approx_count())[0] == 0
            assert (await g.verify()).ok
            assert all(await asyncio.gather(*(g.add(n) for n in range(50))))

    asyncio.run(main())


def test_a_ttl_that_expires_during_creation_is_one_error(client, monkeypatch):
    from fullbloom.engines.redis.protocol import create

    real = create.write_string

    def slow(*args):
        yield from real(*args)
        time.sleep(0.3)

    monkeypatch.setattr(create, "write_string", slow)
    with pytest.raises(TimeoutError, match=r"its ttl of 0.2 s was over before it was created"):
        RedisBloomFilter(client, "f", 1000, ttl=0.2)
    assert client.keys() == []


@pytest.mark.parametrize("how", ["merge", "clear", "reshard"])
def test_a_change_that_always_takes_longer_than_the_ttl_is_one_error(client, how):
    f = RedisBloomFilter(client, "f", 100_000, ttl=1.0)
    answer, change = f._transport._answer, {"clear": f.clear, "reshard": lambda: f.reshard(2)}

    def delay(request):
        time.sleep(0.1)
        return answer(request)

    f._transport._answer = delay
    if how == "merge":
        local = BloomFilter(100_000, layout="blocked")
        change["merge"] = lambda: f.__ior__(local)
    with pytest.raises(TimeoutError, match=r"its ttl of 1.0 s was over"):
        for _ in range(20):
            change[how]()


def test_ttls_work_where_scripts_are_forbidden(client, own_server):
    server = own_server(rename_command=["EVAL", ""])
    client = server.client()
    f = RedisBloomFilter(client, "f", 1000, shards=2, ttl=3600)
    f.update(KEYS)
    f |= f.dump()
    f.clear()
    assert len({client.pexpiretime(key) for key in client.scan_iter() if b":to:" not in key}) == 1
    g = RedisBloomFilter(client, "g", 1000)
    g.clear()
    assert client.ttl(g._storage.names.bits[0]) == -1


@pytest.mark.long
def test_a_filter_on_a_cluster_expires_node_by_node(cluster):
    client = cluster.client()
    client.flushall()
    f, other = (RedisBloomFilter(cluster.client(), "f", 20_000, shards=12, ttl=3.0) for _ in range(2))
    f.update(KEYS)
    moment = f.manifest.expires
    assert all(client.pexpiretime(key) in (moment, -2) for key in (b"f:fullbloom", *f._storage.names.bits))
    over(client)
    assert not other.contains_many(KEYS).any()
    assert f.add_many(KEYS).all()
    object.__setattr__(other.manifest, "ttl", f.manifest.ttl)
    other.add(501)
    assert other.manifest.id == f.manifest.id or f.manifest.expires < other.manifest.expires


@pytest.mark.parametrize("late", [-300, 300])
def test_nodes_with_different_clocks_expire_separately(cluster, monkeypatch, late):
    """The manifest ends 300 ms before the strings do, or after: nothing is lost, and the next term begins."""
    client = cluster.client()
    client.flushall()
    f = RedisBloomFilter(client, "f", 20_000, shards=6, ttl=2.0)
    f.update(KEYS)
    moment = f.manifest.expires
    for key in f._storage.names.bits:  # as nodes do whose clocks are behind, or ahead
        client.pexpireat(key, moment + late)
    from fullbloom.engines.redis.storage import strings

    real = strings.read_time
    monkeypatch.setattr(
        strings, "read_time", lambda key: _shift_time(real, key, f._storage.names.manifest, late)
    )
    id_ = f.manifest.id
    deadline = time.monotonic() + SECONDS
    while f.manifest.id == id_:
        assert time.monotonic() < deadline
        f.update(KEYS)
        time.sleep(0.01)
    assert f.manifest.generation == 0
    assert f.contains_many(KEYS).all() or f.manifest.expires < time.time() * 1000


def _shift_time(real, key, manifest, late):
    return (yield from real(key)) - (0 if key == manifest else late)


def test_redis_load_accepts_a_ttl(server, client, tmp_path):
    full = BloomFilter(1000, layout="blocked")
    full.update(KEYS)
    full.save(tmp_path / "f.bloom")
    url = f"redis://127.0.0.1:{server.port}/0"

    def run(*words):
        return run_command(*words, imports=REDIS)

    done = run("redis-load", tmp_path / "f.bloom", url, "f", "--ttl", 3600)
    assert (done.returncode, done.stderr) == (0, "")
    assert client.pexpiretime("f:fullbloom") == RedisBloomFilter(client, "f").manifest.expires
    result = json.loads(run("redis-info", url, "f", "--json").stdout)
    assert result["ttl"] == 3600.0
    assert abs(result["expires"] - client.time()[0] - 3600) < 600
    assert "ttl" in run("redis-info", url, "f").stdout
    wrong = run("redis-load", tmp_path / "f.bloom", url, "g", "--ttl", "soon")
    assert wrong.returncode == 2
    assert "--ttl" in wrong.stderr
