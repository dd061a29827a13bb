"""A window on a server remembers and forgets as one in memory, by the server's clock."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import numpy as np
import pytest
import redis
import redis.asyncio
from engines.clusters import migrate_slot
from engines.connections import interrupt_replies
from engines.servers import needs_redis
from engines.steps import Run

from fullbloom import BloomFilter, IncompatibleFilters, ParameterError, RollingBloomFilter
from fullbloom.engines.redis import AsyncRedisRollingFilter, RedisBloomFilter, RedisRollingFilter
from fullbloom.engines.redis.protocol import generations
from fullbloom.engines.redis.storage import strings
from fullbloom.engines.redis.transport import sync_transport
from fullbloom.errors import EngineRefused, EngineTimeout, FilterLost

pytestmark = needs_redis


class Clock:
    """A server's clock that a test moves; known to within ``apart`` seconds."""

    def __init__(self, now: float, apart: float = 0.0):
        self.seconds, self.apart = now, apart

    def now(self):
        return self.seconds - self.apart, self.seconds
        yield


@pytest.mark.parametrize("generations", [2, 3, 5])
@pytest.mark.parametrize(("apart", "shards"), [(0.0, 1), (7.0, 1), (0.0, 3)])
def test_windows_forget_as_those_of_memory(client, name, generations, apart, shards):
    stretch, draw = 100, random.Random(generations)
    window = float(stretch * (generations - 1))
    options = {"window": window, "generations": generations, "shards": shards}
    there = RedisRollingFilter(client, name, 2000, 1e-7, **options)
    here = RollingBloomFilter(2000, 1e-7, generations=generations, window=window)
    began = (int(time.time()) // stretch + 1) * stretch
    clock = there._storage.clock = Clock(began, apart)
    here.advance(began)
    added = {}
    for turn in range(60):
        keys = [draw.randrange(3000) for _ in range(20)]
        result = there.add_many(keys), here.add_many(keys)
        # Where the time is known to within some seconds only, keys live in both generations it may be.
        assert result[0] == result[1] or apart, turn
        added |= dict.fromkeys(keys, clock.seconds)
        asked = list(range(0, 3000, 7)) + keys
        assert there.contains_many(asked) == here.contains_many(asked) or apart
        assert all(there.contains_many([key for key, at in added.items() if clock.seconds - at <= window]))
        forgotten = [key for key, at in added.items() if clock.seconds - apart - at > window + stretch]
        assert not any(there.contains_many(forgotten))
        clock.seconds += draw.randrange(1, stretch)
        here.advance(clock.seconds)


@pytest.mark.timed
def test_keys_and_strings_expire(client, name, monkeypatch):
    # Long enough for a client that knows the server's time only to within a slow round trip.
    monkeypatch.setattr(generations, "GRACE", 2)
    there = RedisRollingFilter(client, name, 1000, window=0.6, generations=3)
    seen = RedisRollingFilter(client, name)
    assert there.add("a")
    began = time.monotonic()
    assert not there.add("a")
    known = "a" in seen
    assert known or time.monotonic() - began > 0.6
    deadline = time.monotonic() + 60
    while "a" in seen:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert time.monotonic() - began > 0.6 - 0.1
    while client.keys(f"{name}:bits*"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert seen.add("a")


def test_windows_accept_batches_of_every_kind(client, name):
    there = RedisRollingFilter(client, name, 50_000, window=3600)
    keys = np.arange(40_000)
    new = there.add_many(keys)
    assert new.dtype == bool
    assert new.sum() > 39_000
    assert there.contains_many(keys).all()
    assert there.contains_many(["x", 5]) == [False, True]
    there.update(iter(["x", "y"]), ["z"])
    assert there.contains_many(iter(["x", "y", "z"])) == [True] * 3
    assert there.add_many(["q", "q"]) == [True, False]
    assert there.add_many([]) == []
    assert 0 < there.fpr() < 0.01


def test_clients_that_start_a_generation_at_once_lose_no_key(server, name):
    window, failed = 0.5, []
    with server.client() as client:
        RedisRollingFilter(client, name, 20_000, 1e-6, window=window, generations=4)

    def work(number):
        with server.client() as own:
            mine = RedisRollingFilter(own, name)
            for turn in range(60):
                key = f"{number} {turn}"
                before = time.monotonic()
                mine.add(key)
                found = mine.contains_many([f"{number} {turn - back}" for back in range(min(turn, 3) + 1)])
                if not found[0] and time.monotonic() - before < window:
                    failed.append(key)
                time.sleep(0.01)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not failed


def test_clear_empties_a_window_and_losses_are_errors(server, name):
    with server.client() as one, server.client() as two:
        there = RedisRollingFilter(one, name, 1000, window=3600)
        other = RedisRollingFilter(two, name)
        there.update(["a", "b"])
        assert not other.add("a")
        other.clear()
        assert there.contains_many(["a", "b"]) == [False, False]
        assert there.add("a")
        one.delete(*one.keys(f"{name}:bits*"))
        for ask in (there.add, there.__contains__, other.add, RedisRollingFilter(two, name).__contains__) * 2:
            with pytest.raises(FilterLost, match="generation"):
                ask("a")
        # What adds have left there has no mark, and ends.
        assert all(one.pttl(key) > 0 for key in one.keys(f"{name}:bits*"))
        there.clear()
        assert not one.keys(f"{name}:bits*")
        assert other.add("a")
        assert there.delete()
        assert not one.keys(f"{name}*")
        with pytest.raises(FilterLost, match="manifest"):
            there.add("a")


def test_the_cells_equal_those_of_a_filter_in_memory(client, name):
    there = RedisRollingFilter(client, name, 2000, window=3600, shards=3, seed=4)
    clock = there._storage.clock = Clock(time.time())
    keys = [f"key {i}" for i in range(2000)]
    there.update(keys)
    generation = int(clock.seconds // 1800)
    strings = [client.get(there._storage.state.make_key(generation, shard)) for shard in range(3)]
    here = BloomFilter(2000, 1 - (1 - 0.01) ** (1 / 3), layout="blocked", seed=4)
    here.update(keys)
    assert b"".join(string[:-16] for string in strings) == memoryview(here).tobytes()
    assert all(client.pttl(there._storage.state.make_key(generation, shard)) > 3600_000 for shard in range(3))


def test_all_generations_are_read_in_one_round_trip(client, name, monkeypatch):
    there, log = RedisRollingFilter(client, name, 10_000, window=3600, generations=4), []
    other = RedisRollingFilter(client, name)
    clock = there._storage.clock = other._storage.clock = Clock(time.time())
    for _ in range(4):
        clock.seconds += 1200
        there.add("first")
        assert "first" in other
    for call in ("send", "receive"):
        real = getattr(sync_transport, f"sync_{call}")

        def record(connection, exchange, *acks, real=real, call=call):
            log.append((call, exchange))
            return real(connection, exchange, *acks)

        monkeypatch.setattr(sync_transport, f"sync_{call}", record)
    monkeypatch.setattr(strings, "RAISED_EVERY", 1e9)  # what is done once in a while
    monkeypatch.setattr(generations, "_READ_INTERVAL", 1e9)
    called = []
    monkeypatch.setattr(client, "execute_command", lambda *words, **_: called.append(words))
    for ask in (lambda: "a" in there, lambda: there.add("a"), lambda: "b" in other):
        log.clear()
        ask()
        assert [call for call, _ in log] == ["send", "receive"]
        assert len(log[0][1].parts) == 4
    # No client has added a key since the generation began: the manifest is read, too.
    clock.seconds += 1200
    log.clear()
    assert "a" in other
    assert [call for call, _ in log] == ["send", "receive"]
    assert len(log[0][1].parts) == 4
    assert b":fullbloom" in log[0][1].parts[-1].buffer
    assert not called
    monkeypatch.undo()
    for one in (there, other):
        one._storage.clock = generations.Clock(one._storage.names.manifest)
    there.clear()
    there.add("a")
    log.clear()
    port = client.get_connection_kwargs()["port"]
    for options in (
        {"single_connection_client": True},
        {"connection_pool": redis.BlockingConnectionPool(port=port, max_connections=1, timeout=60)},
    ):
        with redis.Redis(port=port, **options) as own:
            same = RedisRollingFilter(own, name)
            assert same.contains_many(["a", "c"]) == [True, False]
            keys = np.arange(5000)
            same.update(keys)
            assert not same.add_many(keys).any()
            with monkeypatch.context() as patched:
                patched.setattr(
                    sync_transport, "sync_find_reader", lambda _: None
                )  # the client's parser reads
                assert same.contains_many(keys).all()
                assert same.contains_many(["a", "c"]) == [True, False]


@pytest.mark.parametrize("after", [0, 1, 50_000, 100_000])
def test_a_lookup_is_retried_after_a_broken_connection(client, name, monkeypatch, after):
    there = RedisRollingFilter(client, name, 10_000, 1e-6, window=3600)
    keys = np.arange(3000)
    there.add_many(keys[:1000])
    interrupt_replies(monkeypatch, after)
    assert there.contains_many(keys).tolist() == [True] * 1000 + [False] * 2000
    interrupt_replies(monkeypatch, after)
    result = there.add_many(keys)
    assert not result[:1000].any()  # the others may be reported as known
    assert there.contains_many(keys).all()


def test_lost_keys_are_reported(own_server):
    server = own_server()
    client = server.client()
    there = RedisRollingFilter(client, "f", 20_000, 1e-6, window=300, generations=3)
    clock = there._storage.clock = Clock(1_800_000_075)
    there.update(range(1000))
    clock.seconds += 150
    there.update(range(1000, 3000))
    result = there.verify()
    assert result
    assert (result.keys_checked, result.keys_lost, result.restarted, result.shards_lost) == (
        3000,
        0,
        False,
        (),
    )
    assert result.bits_found == result.bits_expected > 0
    clock.seconds += 300  # the first thousand are forgotten, as they should
    assert there.verify().keys_checked == 2000
    there.update(range(3000, 3100))
    client.save()
    there.update(range(3100, 3150))
    server.kill()
    server.start()
    result = there.verify()
    assert not result
    assert result.restarted
    assert (result.keys_checked, result.keys_lost) == (2150, 50)
    assert result.bits_found < result.bits_expected
    generation = int(clock.seconds // 150)
    client.delete(there._storage.state.make_key(generation))
    result = there.verify()
    assert not result
    assert (result.shards_lost, result.keys_lost) == ((generation,), 150)
    client.delete("f:fullbloom")
    RedisRollingFilter(client, "f", 20_000, 1e-6, window=300, generations=3)
    result = there.verify()
    assert result.replaced
    assert result.keys_lost == result.keys_checked == 2150


def test_a_window_cleared_by_another_client_is_not_lost(server, name):
    with server.client() as one, server.client() as two:
        there, other = (
            RedisRollingFilter(client, name, 1000, window=3600, shards=2) for client in (one, two)
        )
        there.update(range(500))
        other.clear()
        result = there.verify()
        assert result
        assert result.keys_checked == 0
        assert there.add(1)
        assert there.verify().keys_checked == 1
        other.clear()
        # Strings that an add finds missing are created again, with a time to live.
        assert all(there.add_many(range(100)))
        strings = one.keys(f"{name}:bits*")
        assert strings
        assert all(one.pttl(key) > 0 for key in strings)


def test_a_window_on_a_cluster_follows_a_slot_that_moves(cluster, name):
    with cluster.client() as client:
        there = RedisRollingFilter(client, name, 20_000, window=3600)
        assert there.manifest.shards == 48
        assert there.add_many(["a", "b", "a"]) == [True, True, False]
        assert there.contains_many(["a", "c"]) == [True, False]
        there.clear()
        assert "a" not in there
        assert there.delete()
        assert not client.keys(f"{name}*")
        there = RedisRollingFilter(client, name, 20_000, 1e-6, window=3600, shards=4)
        clock, keys = Clock(time.time()), np.arange(9000)
        there._storage.clock = clock
        there.update(keys[:3000])
        clock.seconds += 1800
        there.update(keys[3000:6000])
        moved = there._storage.state.make_key(int(clock.seconds // 1800), 1)
        source = cluster.node_of(client, moved)
        masters = [node for node in cluster.nodes if node.client().info("replication")["role"] == "master"]
        target = next(node for node in masters if node is not source)
        with migrate_slot(cluster, client.keyslot(moved), source, target) as move:
            assert there.contains_many(keys[:6000]).all()
            move(moved)
            assert there.contains_many(keys[:6000]).all()
            assert there.add_many(keys[5000:7000]).tolist() == [False] * 1000 + [True] * 1000
        assert there.contains_many(keys[:7000]).all()
        assert not there.contains_many(keys[7000:]).any()
        assert there.verify()


def test_invalid_parameters_are_named(client, name):
    with pytest.raises(FilterLost, match="window"):
        RedisRollingFilter(client, name, 1000)
    for wrong in ({"window": 0.0}, {"window": float("nan")}, {"window": 5, "generations": 17}):
        with pytest.raises(ParameterError, match=r"window|generations"):
            RedisRollingFilter(client, name, 1000, **wrong)
    RedisRollingFilter(client, name, 1000, window=60)
    with pytest.raises(IncompatibleFilters, match=r"window .server: 60.0, requested: 61.0"):
        RedisRollingFilter(client, name, window=61)
    with pytest.raises(IncompatibleFilters, match="is a RedisRollingFilter"):
        RedisBloomFilter(client, name)
    RedisBloomFilter(client, name + "2", 100)
    with pytest.raises(IncompatibleFilters, match="is a RedisBloomFilter"):
        RedisRollingFilter(client, name + "2")


def test_a_window_of_many_strings_takes_few_connections(server, name):
    """asyncio used to send one command of each string over a connection of its own."""

    async def main():
        async with redis.asyncio.Redis(port=server.port, max_connections=2) as own:
            filter_ = await AsyncRedisRollingFilter.open(own, name, 100_000, window=3600, shards=64)
            assert all(await filter_.add_many(range(100)))
            assert all(await filter_.contains_many(range(100)))
            await filter_.clear()
            assert not any(await filter_.contains_many(range(100)))
            return await filter_.delete()

    assert asyncio.run(main())


@pytest.mark.long
@pytest.mark.parametrize("shards", [1, 4])
def test_adding_to_a_window_shorter_than_a_round_trip_is_one_error(client, name, shards):
    filter_ = RedisRollingFilter(client, name, 1000, window=0.1, generations=16, shards=shards)
    answer = filter_._transport._answer_all

    def answer_late(requests):
        time.sleep(0.01)
        return answer(requests)

    filter_._transport._answer_all = answer_late
    with pytest.raises(EngineTimeout, match=r"window of 0.1 s|keep changing it"):
        filter_.add("a")


def test_a_user_without_the_permission_to_create_strings_gets_one_error(server, client, name):
    client.acl_setuser(
        "reader", enabled=True, passwords="+x", keys="*", commands=["+@all", "-@scripting", "-renamenx"]
    )
    RedisRollingFilter(client, name, 1000, window=60)
    with server.client(username="reader", password="x") as own:
        filter_ = RedisRollingFilter(own, name)
        with pytest.raises(EngineRefused, match="does not allow this user"):
            filter_.add("a")
        assert "a" not in filter_
    assert not client.keys(f"*{name}*new:*")


def test_a_deleted_window_leaves_no_string_if_the_command_was_sent_twice(client, name):
    """The server deleted the manifest, and the reply was lost: the second command finds nothing."""
    other = RedisRollingFilter(client, name, 1000, window=3600)
    other.add("a")
    old = RedisRollingFilter(client, name)
    other.delete()
    RedisRollingFilter(client, name, 1000, window=3600).add("b")  # which the first object does not know
    run = Run(client, name, old._storage.delete())
    run.run_until(lambda _, words: words[0] == b"EVAL")
    client.delete(f"{name}:fullbloom")
    assert run.finish()
    assert client.keys(f"*{name}*") == []
