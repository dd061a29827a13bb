"""A filter is changed by one client while others add, look up, delete and change keys, without a loss."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

import numpy as np
import pytest
from engines.servers import needs_redis
from engines.steps import Run
from support import LONG, SCALE, eventually

from fullbloom import BloomFilter
from fullbloom.engines.redis import RedisBloomFilter, RedisCountingFilter, RedisRollingFilter
from fullbloom.engines.redis.protocol import Call, SendBatch
from fullbloom.engines.redis.storage import cells
from fullbloom.engines.redis.transport import sync_transport
from fullbloom.engines.redis.transport.connections import list_buffers
from fullbloom.errors import EngineNameTaken, FilterLost, FullbloomError

pytestmark = [needs_redis, pytest.mark.usefixtures("way")]


def list_lasting(client, name):
    """The keys on the server that stay."""
    return sorted(key for key in client.scan_iter(f"*{name}*") if client.pttl(key) == -1)


def test_a_batch_in_flight_ignores_a_manifest_found_by_another_thread(client, name):
    """Two threads share one object; one sends its batch, the other learns of a reshard, the replies come."""
    owner = RedisBloomFilter(client, name, 20_000, shards=2)
    shared = RedisBloomFilter(client, name)
    batch = Run(client, name, shared._storage.run_batch(range(1000), adding=True))
    while not isinstance(batch.requests[0], SendBatch):
        batch.step()
    owner.reshard(3)
    assert 5 not in shared  # the other thread uses the new strings from here on
    batch.finish()
    assert all(shared.contains_many(range(1000)))
    assert all(RedisBloomFilter(client, name).contains_many(range(1000)))


@pytest.mark.parametrize("paused_at", range(0, 60, 1 if LONG else 12))
def test_a_resharder_that_was_paused_overwrites_no_later_manifest(client, name, paused_at):
    filter_ = RedisBloomFilter(client, name, 5000, shards=2)
    filter_.update(range(1000))
    paused = Run(client, name, cells.reshard(RedisBloomFilter(client, name)._storage, 3))
    for _ in range(paused_at):
        if not paused.over:
            paused.step()
    stale = RedisBloomFilter(client, name)
    filter_.reshard(5)
    filter_.update(range(1000, 2000))
    filter_.reshard(4)
    filter_.update(range(2000, 3000))
    manifest = client.get(f"{name}:fullbloom")
    before = client.info("stats")["total_commands_processed"]
    paused.finish()
    assert client.info("stats")["total_commands_processed"] - before < 600
    for one in (filter_, stale, RedisBloomFilter(client, name)):
        stale.add_many(range(3000, 3100))
        assert all(one.contains_many(range(3100)))
    if filter_.manifest.shards == 4:
        assert client.get(f"{name}:fullbloom") == manifest
    names = filter_._storage.names
    assert list_lasting(client, name) == sorted([names.manifest, *names.bits])


def test_clears_and_reshards_that_interleave_leave_one_filter(client, name):
    draw = random.Random(7)
    for turn in range(3 * SCALE):
        client.flushall()
        makers = [RedisBloomFilter(client, name, 2000, shards=2) for _ in range(3)]
        makers[0].update(range(300))
        here = BloomFilter(2000, layout="blocked")
        here.update(range(500, 600))
        runs = [
            Run(client, name, cells.reshard(makers[0]._storage, 3)),
            Run(client, name, cells.replace_cells(makers[1]._storage, memoryview(here).cast("B"))),
            Run(client, name, cells.reshard(makers[2]._storage, 4)),
        ]
        late = RedisBloomFilter(client, name)
        while running := [run for run in runs if not run.over]:
            draw.choice(running).step()
            if not draw.randrange(20):
                late.add(draw.randrange(10**9))
        late.update(range(900, 1000))
        for one in (*makers, late):
            assert all(one.contains_many(range(900, 1000))), turn
            assert all(one.contains_many(range(500, 600))), turn
        names = late._storage.names
        assert list_lasting(client, name) == sorted([names.manifest, *names.bits]), turn


def test_keys_added_by_one_client_during_a_reshard_are_reported_new(client, name):
    """At every step of the reshard another batch is begun, and sent when the next step is done."""
    filter_ = RedisBloomFilter(client, name, 200_000, fpr=1e-9, shards=2)
    mine = RedisBloomFilter(client, name)
    going = Run(client, name, cells.reshard(filter_._storage, 3))
    start = 0
    while not going.over:
        batch = Run(client, name, mine._storage.run_batch(range(start, start + 40), adding=True))
        going.step()
        assert batch.finish() == [True] * 40, start
        start += 40
    assert all(filter_.contains_many(range(start)))
    assert start > 1000


def test_a_batch_that_is_delayed_during_reshards_reports_no_key_new_twice(client, name):
    """It is begun at any step, perhaps sent in part, and continues many steps later, after another client."""
    draw = random.Random()
    for _ in range(60 * SCALE):
        client.flushall()
        filter_ = RedisBloomFilter(client, name, 20_000, fpr=1e-9, shards=2)
        mine, other = RedisBloomFilter(client, name), RedisBloomFilter(client, name)
        shards = iter([3, 2, 3, 2, 3, 2])
        going = Run(client, name, cells.reshard(filter_._storage, next(shards)))
        before, begun, pause = draw.randrange(130), draw.randrange(3), draw.randrange(140)
        is_current = draw.random() < 0.7
        case = before, begun, pause, is_current
        for turn in range(before + pause):
            if turn == before:
                if is_current:
                    mine.add("the state of this moment")
                batch = Run(client, name, mine._storage.run_batch(range(80), adding=True))
                for _ in range(begun):
                    batch.over or batch.step()
            if going.over:
                going = Run(client, name, cells.reshard(filter_._storage, next(shards)))
            going.step()
        if pause == 0:
            batch = Run(client, name, mine._storage.run_batch(range(80), adding=True))
        theirs = other.add_many(list(range(40)))
        own = batch.finish()
        assert not any(both == (True, True) for both in zip(own, theirs, strict=False)), case
        if is_current or not begun:  # otherwise the keys may have been copied before the batch was sent again
            assert own[40:] == [True] * 40, case  # no other client added these
        going.finish()
        assert all(filter_.contains_many(range(80))), case


def test_a_key_on_its_way_while_a_reshard_switches_is_new_to_one_client(client, name, monkeypatch):
    """The server executes the add before it switches, and the command for the tag afterwards."""
    filter_ = RedisBloomFilter(client, name, 20_000, fpr=1e-9, shards=2)
    slow, other = RedisBloomFilter(client, name), RedisBloomFilter(client, name)
    going = Run(client, name, cells.reshard(filter_._storage, 3))
    while not filter_._storage.snapshot.is_copying:
        going.step()
    assert slow.add_many([5]) == [True]  # learns the state
    assert other.add_many([6]) == [True]
    new, real, theirs = filter_._storage.snapshot.other.names.bits, sync_transport.sync_send, []

    def send_in_parts(connection, exchange):
        monkeypatch.setattr(sync_transport, "sync_send", real)
        exchange.restart()
        commands, before = b"".join(list_buffers(exchange)), sum(map(client.bitcount, new))
        tag = commands.rindex(b"*", 0, commands.rindex(b"GETRANGE"))
        connection.send_packed_command([commands[:tag]])
        eventually(lambda: sum(map(client.bitcount, new)) > before)
        theirs.extend(other.add_many([7]))
        going.finish()
        connection.send_packed_command([commands[tag:]])

    monkeypatch.setattr(sync_transport, "sync_send", send_in_parts)
    assert slow.add_many([7]) + theirs in ([True, False], [False, True])
    assert 7 in filter_


def test_no_key_is_reported_new_twice_during_a_reshard(server, name):
    with server.client() as client:
        filter_ = RedisBloomFilter(client, name, 100_000, fpr=1e-9, shards=2)
        result, failed = [np.zeros(20_000, np.int64) for _ in range(2)], []

        def add(number):
            with server.client() as own:
                mine = RedisBloomFilter(own, name)
                for start in range(0, 20_000, 500):
                    try:
                        result[number][start : start + 500] = mine.add_many(np.arange(start, start + 500))
                    except FullbloomError as error:
                        failed.append(error)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(2)]
        [thread.start() for thread in threads]
        reshards = 0
        while any(thread.is_alive() for thread in threads):
            filter_.reshard(3 - reshards % 2)
            reshards += 1
        assert not failed
        every = result[0] + result[1]
        assert every.max() == 1
        # Each reshard starts and ends once, and meets one batch of each client then: 500 keys.
        assert (every == 0).sum() <= reshards * 2 * 500
        assert filter_.contains_many(np.arange(20_000)).all()


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter, RedisRollingFilter])
@pytest.mark.parametrize("how", ["delete", "flushall"])
def test_an_add_after_the_deletion_leaves_no_key(client, name, kind, how):
    options = {"window": 36_000} if kind is RedisRollingFilter else {}
    filter_ = kind(client, name, 5000, shards=3, **options)
    other = kind(client, name)
    filter_.update(range(100))
    other.delete() if how == "delete" else client.flushall()
    for add in (lambda: filter_.add("late"), lambda: filter_.update(range(2000)), lambda: filter_.add(7)):
        with pytest.raises(FilterLost):
            add()
        assert client.keys(f"*{name}*") == []
    again = kind(client, name, 800, shards=2, **options)
    again.update(range(100))
    with pytest.raises(FilterLost):
        filter_.update(range(2000))
    assert not filter_.verify()
    assert all(again.contains_many(range(100)))
    filter_.delete()
    assert client.keys(f"*{name}*") == []


def test_a_filter_recreated_under_load_is_complete(server, name):
    done, wrong = threading.Event(), []

    def add():
        with server.client() as own:
            while not done.is_set():
                try:
                    mine = RedisBloomFilter(own, name, 3000, shards=2)
                    mine.update(range(200))
                except (FilterLost, EngineNameTaken) as error:
                    wrong.extend([error] * isinstance(error, EngineNameTaken))
                except FullbloomError as error:
                    wrong.append(error)

    threads = [threading.Thread(target=add) for _ in range(3)]
    with server.client() as client:
        [thread.start() for thread in threads]
        for _ in range(15 * SCALE):
            RedisBloomFilter(client, name, 3000, shards=2).delete()
        done.set()
        [thread.join(60) for thread in threads]
        assert not wrong, wrong[:3]
        RedisBloomFilter(client, name, 3000, shards=2).delete()
        assert list_lasting(client, name) == []


def test_deletion_removes_the_keys_of_a_started_reshard(client, name):
    steps = 0
    while True:
        filter_ = RedisBloomFilter(client, name, 2000, shards=2)
        going = Run(client, name, cells.reshard(RedisBloomFilter(client, name)._storage, 3))
        for _ in range(steps):
            if not going.over:
                going.step()
        over = going.over
        filter_.delete()
        assert list_lasting(client, name) == [], steps
        if over:
            break
        with suppress(FilterLost):  # or it was through but for what vanishes by itself
            going.finish()
        assert list_lasting(client, name) == [], steps
        steps += 1 if LONG else 7
    assert steps > 30


def test_a_reshard_compares_the_manifest_before_it_writes_it(client, name):
    """Nothing of a reshard sets a manifest without comparing it first."""
    filter_ = RedisBloomFilter(client, name, 2000, shards=2)
    going = Run(client, name, cells.reshard(filter_._storage, 3))
    while not going.over:
        for ask in going.requests:
            if isinstance(ask, Call) and ask.key == f"{name}:fullbloom".encode():
                assert ask.words[0] in {b"GETRANGE", b"EXISTS", b"EVAL"}
        going.step()


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_an_add_during_the_deletion_leaves_no_key_if_the_deleting_client_stops(client, name, kind):
    filter_ = kind(client, name, 5000)
    filter_.update(range(100))
    deleting = kind(client, name)._storage
    run = Run(client, name, deleting.delete() if kind is RedisCountingFilter else cells.delete(deleting))
    run.run_until(lambda _, words: words[0] == b"EVAL" and b"DEL" in words)
    with pytest.raises(FilterLost):
        filter_.update(range(2000))
    assert client.keys(f"{name}:bits*") == []
