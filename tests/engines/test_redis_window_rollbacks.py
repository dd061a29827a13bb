"""A server that went back to an earlier state is noticed by every client that saw a later one."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
import redis
import redis.asyncio
from engines.servers import needs_redis
from engines.test_redis_lost_strings import Clock

from fullbloom.engines.redis import AsyncRedisRollingFilter, RedisRollingFilter
from fullbloom.errors import EngineUnavailable, FilterLost, FilterRolledBack, FullbloomError

pytestmark = needs_redis


WINDOW = {"window": 36_000, "shards": 2}
KEYS = range(1000)


@pytest.fixture
def every_add(monkeypatch):
    """Adds raise the epochs of strings each time."""
    from fullbloom.engines.redis.storage import strings

    monkeypatch.setattr(strings, "RAISED_EVERY", 0.0)


@pytest.mark.usefixtures("every_add")
def test_every_surviving_client_of_a_window_notices_a_server_that_went_back(own_server):
    server = own_server()
    client = server.client()
    writer = RedisRollingFilter(client, "f", 50_000, **WINDOW)
    reader, idle = (RedisRollingFilter(server.client(), "f") for _ in range(2))
    writer.update(KEYS)
    client.save()
    for start in range(1000, 10_000, 1000):
        writer.update(range(start, start + 1000))
    assert all(reader.contains_many(range(10_000)))
    assert all(one.verify() for one in (writer, reader))
    server.kill()
    server.start()

    async def waiting():
        async with redis.asyncio.Redis(port=server.port) as own:
            return await (await AsyncRedisRollingFilter.open(own, "f")).contains_many(KEYS)

    assert all(asyncio.run(waiting()))  # it has seen nothing later
    for one in (writer, reader):
        for ask in (lambda one=one: one.contains_many(range(10_000)), lambda one=one: one.update([1])):
            with pytest.raises(FilterRolledBack, match="went back"):
                ask()
        result = one.verify()
        assert not result
        assert result.rolled_back
    assert all(idle.contains_many(KEYS))
    idle.clear()
    for one in (writer, reader):
        assert not any(one.contains_many(KEYS))
    writer.update(KEYS)
    for one in (writer, reader, idle):
        assert all(one.contains_many(KEYS))
        assert one.verify()


@pytest.mark.usefixtures("every_add")
def test_a_window_that_went_back_to_before_a_clear_is_noticed(own_server):
    server = own_server()
    client = server.client()
    there = RedisRollingFilter(client, "f", 5000, **WINDOW)
    there.update(KEYS)
    before = client.get("f:fullbloom")
    there.clear()
    there.update(range(2000, 2100))
    client.set("f:fullbloom", before)
    there._storage.state.read_at = -1e9
    with pytest.raises(FilterRolledBack):
        there.contains_many(range(2000, 2100))
    assert there.verify().rolled_back


def test_a_generation_that_the_manifest_lacks_is_written_back(client, name):
    clock = Clock()
    there, other = (RedisRollingFilter(client, name, 5000, **WINDOW) for _ in range(2))
    there._storage.clock = other._storage.clock = clock
    there.update(range(1000))
    clock.seconds += 18_000
    before = client.get(f"{name}:fullbloom")
    there.update(range(1000, 2000))
    after = client.get(f"{name}:fullbloom")
    client.set(f"{name}:fullbloom", before)
    assert not any(other.contains_many(range(1500, 1600)))  # a client that opens it now cannot know
    there._storage.state.read_at = -1e9
    assert all(there.contains_many(range(2000)))
    assert client.get(f"{name}:fullbloom") == after
    assert all(other.contains_many(range(2000)))
    fresh = RedisRollingFilter(client, name)
    fresh._storage.clock = clock
    assert all(fresh.contains_many(range(2000)))


def test_a_generation_begun_again_after_its_loss_is_lost_to_every_client(client, name):
    clock = Clock()

    def open_():
        made = RedisRollingFilter(client, name, 5000, **WINDOW)
        made._storage.clock = clock
        return made

    there, other = open_(), open_()
    other.contains_many([1])
    before = client.get(f"{name}:fullbloom")
    there.update(KEYS)
    client.delete(*client.keys(f"{name}:bits*"))
    client.set(f"{name}:fullbloom", before)
    other.update(range(5000, 5100))  # begins the generation, which it has never heard of
    assert all(other.contains_many(range(5000, 5100)))
    with pytest.raises(FilterLost):
        there.contains_many(KEYS)
    other._storage.state.read_at = -1e9
    for _ in range(2):
        for one in (there, other, open_()):
            with pytest.raises(FilterLost):
                one.contains_many(KEYS)
            with pytest.raises(FilterLost):
                one.add("a")
            assert not one.verify()
    other.clear()
    assert there.add_many(KEYS) == [True] * len(KEYS)
    assert all(open_().contains_many(KEYS))


@pytest.mark.long
@pytest.mark.usefixtures("every_add")
def test_changes_by_other_clients_of_a_window_are_not_mistaken_for_a_rollback(server, client, name):
    there = RedisRollingFilter(client, name, 50_000, 1e-6, window=1.0, generations=3, shards=2)
    failed, ends = [], time.monotonic() + 6

    def work(number, shared):
        with server.client() as own:
            mine = there if shared else RedisRollingFilter(own, name)
            start = number * 10**6
            try:
                while time.monotonic() < ends:
                    keys, life = range(start, start + 20), mine.manifest.generation
                    began = time.monotonic()
                    mine.update(keys)
                    found = mine.contains_many(keys)
                    is_over = time.monotonic() - began >= there.manifest.window
                    if mine.manifest.generation == life and not (all(found) or is_over):
                        failed.append(keys)
                    mine._storage.state.read_at = -1e9  # reads the manifest with every batch
                    start += 20
            except FullbloomError as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(number, number < 2)) for number in range(5)]
    [thread.start() for thread in threads]
    with server.client() as own:
        clearer = RedisRollingFilter(own, name)
        while time.monotonic() < ends - 1:
            time.sleep(0.4)
            clearer.clear()
            assert clearer.verify()
    [thread.join(60) for thread in threads]
    assert not failed, failed[:3]


def test_windows_of_version_2_still_open(client, name):
    clock = Clock()
    there = RedisRollingFilter(client, name, 5000, **WINDOW)
    from dataclasses import replace

    from fullbloom.engines.redis.protocol.generations import with_record

    client.set(f"{name}:fullbloom", with_record(replace(there.manifest, version=2), {}).to_bytes())
    old, again = (RedisRollingFilter(client, name) for _ in range(2))
    for one in (old, again):
        one._storage.clock = clock
    for turn in range(3):
        old.update(range(1000 * turn, 1000 * turn + 1000))
        assert all(again.contains_many(range(1000 * turn, 1000 * turn + 1000)))
        clock.seconds += 18_000
    client.delete(max(client.keys(f"{name}:bits*"), key=client.pttl))
    with pytest.raises(FilterLost):
        again.contains_many(range(3000))


def test_acks_of_a_window_and_of_a_counting_filter_count_replicas(own_server, monkeypatch):
    from fullbloom.engines.redis.protocol import open as opening

    monkeypatch.setattr(opening, "_ACKS_TIMEOUT", 200)
    master = own_server()
    client = master.client()
    there = RedisRollingFilter(client, "f", 5000, acks=1, **WINDOW)
    for add in (lambda: there.add("a"), lambda: there.update(KEYS)):
        with pytest.raises(EngineUnavailable, match="0 of 1 replicas confirmed"):
            add()
    assert "a" in there
    replica = own_server(replicaof=f"127.0.0.1 {master.port}")
    deadline = time.monotonic() + 60
    while replica.client().info("replication")["master_link_status"] != "up":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    monkeypatch.setattr(opening, "_ACKS_TIMEOUT", 60_000)
    RedisRollingFilter(client, "f", acks=1).update(KEYS)

    async def waiting():
        async with redis.asyncio.Redis(port=master.port) as own:
            one = await AsyncRedisRollingFilter.open(own, "f", acks=1)
            await one.update(range(2000))
            assert all(await one.contains_many(range(2000)))

    asyncio.run(waiting())
    for wrong in (-1, True, 1.0, "1"):
        with pytest.raises(FullbloomError, match="acks"):
            RedisRollingFilter(client, "f", acks=wrong)
