"""A client that stops, is paused or cancelled between two steps loses no key and leaves no string behind."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
import threading
import time

import pytest
import redis.asyncio
from engines.servers import needs_redis, strings_of
from engines.steps import Run

from fullbloom import BloomFilter
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    AsyncRedisCountingFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.engines.redis.protocol import Call, create
from fullbloom.engines.redis.protocol.open import OpenOptions
from fullbloom.engines.redis.storage import cells, strings
from fullbloom.engines.redis.storage.foreign import open_strings
from fullbloom.engines.redis.transport import sync_transport
from fullbloom.errors import CapacityWarning, EngineTimeout, EngineUnavailable, FilterLost

pytestmark = needs_redis
KEYS = range(500)


def list_lasting(client, name):
    """The keys of a name that do not expire."""
    return sorted(key for key in client.scan_iter(f"*{name}*") if client.pttl(key) == -1)


def state_of(client, name):
    stored = client.get(f"{name}:fullbloom")
    return stored and json.loads(stored)["state"]


def make_bloom(keys, capacity=5000):
    local = BloomFilter(capacity, layout="blocked")
    local.update(keys)
    return local


@pytest.mark.parametrize("later", ["within a minute", "after a minute"])
def test_a_creator_that_was_paused_leaves_the_filter_as_others_have_it(client, name, later):
    """Another client completes the creation, adds keys and moves the filter to other strings."""
    paused = Run(client, name, open_strings(OpenOptions(name, 2000)))
    while state_of(client, name) != "closing":
        paused.step()
    before = strings_of(client, name)
    other = RedisBloomFilter(client, name)
    other.update(KEYS)
    other.reshard(3)
    if later == "after a minute":
        client.delete(*before)  # which they do by themselves
    paused.finish()
    assert all(other.contains_many(KEYS))
    assert list_lasting(client, name) == sorted([other._storage.names.manifest, *other._storage.names.bits])


def test_a_creator_that_failed_late_leaves_the_filter_that_others_use(client, name):
    """Its last step has no reply; by then another client has completed it and cleared the filter."""
    creator = Run(client, name, open_strings(OpenOptions(name, 2000)))
    creator.run_until(lambda _, words: words[0] == b"PERSIST")
    other = RedisBloomFilter(client, name)
    other.clear()
    other.update(KEYS)
    try:
        creator.requests = creator.steps.throw(EngineUnavailable("no reply"))
    except EngineUnavailable:
        pytest.fail("the filter exists")
    assert creator.finish().manifest.id == other.manifest.id
    assert all(other.contains_many(KEYS))


def test_two_loads_at_once_leave_the_cells_of_one(client, name):
    """Both begin with the same generation, of which only one may replace the strings."""
    clients = [RedisBloomFilter(client, name, 5000, shards=2) for _ in range(2)]
    contents = [memoryview(make_bloom(keys)).cast("B") for keys in (range(2000), range(2000, 4000))]
    runs = [
        Run(client, name, cells.replace_cells(one._storage, data))
        for one, data in zip(clients, contents, strict=True)
    ]
    manifest = f"{name}:fullbloom".encode()
    for run in runs:
        run.run_until(lambda key, words: key == manifest and words[0] == b"EVAL")
    runs[0].run_until(lambda key, words: key != manifest and words[0] == b"EVAL")
    runs[0].step()  # the first string
    for _ in range(100):  # the other begins again, or replaces both strings
        runs[1].over or runs[1].step()
    runs[0].over or runs[0].finish()
    runs[1].finish()
    assert memoryview(RedisBloomFilter(client, name).dump()).cast("B").tobytes() in contents


@pytest.mark.parametrize("how", ["load", "clear", "from_filter"])
@pytest.mark.timed
def test_strings_written_for_longer_than_they_live_are_complete(client, name, monkeypatch, how):
    """They have a time to live until they are used, which is renewed."""
    monkeypatch.setattr(create, "TEMPORARY_TTL", 1500)  # a busy machine may pause the test between two steps
    local, began = make_bloom(KEYS, 2000), time.monotonic()
    if how == "from_filter":
        options = OpenOptions.from_filter(name, local, shards=8, secret=None, allow_eviction=False)
        steps = open_strings(options, memoryview(local).cast("B"))
    else:
        filter_ = RedisBloomFilter(client, name, 2000, shards=8)
        filter_.update(["old"])
        steps = cells.replace_cells(filter_._storage, memoryview(local).cast("B") if how == "load" else None)
    run = Run(client, name, steps)
    while not run.over:
        time.sleep(0.06)
        run.step()
    assert time.monotonic() - began > 1.5
    found = RedisBloomFilter(client, name).contains_many([*KEYS, "old"])
    assert found == [how != "clear"] * len(KEYS) + [False]


def test_a_creation_with_cells_takes_commands_in_proportion_to_the_shards(client, name):
    local = make_bloom(KEYS, 1_000_000)
    counts = []
    for shards in (50, 200):
        before = client.info("stats")["total_commands_processed"]
        RedisBloomFilter.from_filter(client, f"{name}{shards}", local, shards=shards)
        counts.append(client.info("stats")["total_commands_processed"] - before)
    assert counts[1] < 5 * counts[0]


@pytest.mark.timed
def test_a_slow_creator_renews_no_manifest_of_another_filter(client, name, monkeypatch):
    """While it writes its cells, its unfinished filter is deleted and another one is created."""
    monkeypatch.setattr(create, "TEMPORARY_TTL", 400)
    local = make_bloom(KEYS, 2000)
    options = OpenOptions.from_filter(name, local, shards=2, secret=None, allow_eviction=False)
    slow = Run(client, name, open_strings(options, memoryview(local).cast("B")))
    while state_of(client, name) != "building":
        slow.step()
    client.delete(f"{name}:fullbloom")
    with monkeypatch.context() as patched:
        patched.setattr(create, "TEMPORARY_TTL", 60_000)  # its creation may take long
        other = RedisBloomFilter(client, name, 2000, shards=2)
    time.sleep(0.2)
    with pytest.raises(FilterLost):
        slow.finish()
    time.sleep(0.5)
    other.update(KEYS)
    assert all(RedisBloomFilter(client, name).contains_many(KEYS))


def test_a_writer_interrupted_for_longer_than_its_strings_live_replaces_none(client, name):
    """Its string expires while it writes the pieces; those that follow create a string without a tag."""
    filter_ = RedisBloomFilter(client, name, 2000)
    filter_.update(KEYS)
    local = make_bloom(range(1000, 1500), 2000)
    run = Run(client, name, cells.replace_cells(filter_._storage, memoryview(local).cast("B")))
    run.run_until(lambda _, words: words[0] == b"SETRANGE" and words[2] == 0)
    client.delete(*client.scan_iter(f"*{name}*new:*"))
    with pytest.raises(EngineTimeout, match="interrupted"):
        run.finish()
    assert all(RedisBloomFilter(client, name).contains_many(KEYS))
    assert list_lasting(client, name) == sorted(
        [filter_._storage.names.manifest, *filter_._storage.names.bits]
    )


def test_a_reshard_enters_no_state_without_its_strings(client, name):
    """The strings that a stopped client created expire just when the next one has found them."""
    filter_ = RedisBloomFilter(client, name, 2000, shards=2)
    filter_.update(KEYS)
    stopped = Run(client, name, cells.reshard(RedisBloomFilter(client, name)._storage, 3))
    stopped.run_until(lambda _, words: words[0] == b"PERSIST")
    run = Run(client, name, cells.reshard(filter_._storage, 3))
    run.run_until(lambda _, words: words[0] == b"PERSIST")
    client.delete(*(key for key in client.scan_iter(f"*{name}:bits@*") if client.pttl(key) > 0))
    run.finish()
    assert filter_.manifest.shards == 3
    assert all(filter_.contains_many(KEYS))


def test_a_merge_on_the_server_leaves_only_keys_that_expire(client, name):
    filter_, other = RedisBloomFilter(client, name, 5000), RedisBloomFilter(client, f"{name}2", 5000)
    other.update(KEYS)
    run = Run(client, name, cells.merge_on_server(filter_._storage, other._storage))
    while not run.over:
        assert all(client.pttl(key) > 0 for key in client.scan_iter(f"*{name}*or:*"))
        run.step()
    assert all(filter_.contains_many(KEYS))


def test_a_merge_of_a_filter_that_lost_its_cells_is_an_error(client, name):
    """An add of another client left a string without a tag in the place of the lost one."""
    filter_, other = RedisBloomFilter(client, name, 5000), RedisBloomFilter(client, f"{name}2", 5000)
    other.update(KEYS)
    (key,) = other._storage.names.bits
    client.delete(key)
    client.setbit(key, 7, 1)
    with pytest.raises(FilterLost):
        filter_ |= other
    assert list_lasting(client, f"{name}:") == sorted(
        [filter_._storage.names.manifest, *filter_._storage.names.bits]
    )


@pytest.mark.parametrize("which", ["target", "source"])
def test_a_merge_on_the_server_reports_that_a_filter_was_resharded(client, name, which):
    """Its bits may be in strings only that no client reads any more, so the cells pass through memory."""
    filter_, other = (RedisBloomFilter(client, one, 5000, shards=2) for one in (name, f"{name}2"))
    other.update(KEYS)
    run = Run(client, name, cells.merge_on_server(filter_._storage, other._storage))
    run.run_until(lambda _, words: words[0] == b"EVAL" and b"COPY" in words)
    resharded = filter_ if which == "target" else other
    old = resharded._storage.names.bits
    RedisBloomFilter(client, resharded.name).reshard(3)
    client.delete(*old)  # which they do by themselves after a minute
    assert run.finish() is False
    filter_ |= other
    assert all(RedisBloomFilter(client, name).contains_many(KEYS))


def test_keys_whose_removal_was_cancelled_are_not_reported_lost(server, name):
    """The server may have removed them, and no client can know."""

    async def main():
        async with redis.asyncio.Redis(port=server.port) as client:
            filter_ = await AsyncRedisCountingFilter.open(client, name, 20_000)
            await filter_.add_many(range(2000))
            send = filter_._transport._send

            async def cancel_after(batch):
                replies = await send(batch)
                if batch.once:
                    raise asyncio.CancelledError
                return replies

            filter_._transport._send = cancel_after
            with pytest.raises(asyncio.CancelledError):
                await filter_.discard_many(range(1000))
            filter_._transport._send = send
            assert await filter_.verify()

    asyncio.run(main())


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter, RedisRollingFilter])
def test_an_epoch_that_could_not_be_raised_is_raised_with_the_next_add(client, name, monkeypatch, kind):
    """Also if that add writes to another shard: otherwise no client would notice that the first went back."""
    monkeypatch.setattr(strings, "RAISED_EVERY", 0.0)
    options = {"window": 36_000} if kind is RedisRollingFilter else {}
    filter_ = kind(client, name, 50_000, shards=2, **options)
    filter_.add("begins a generation")

    def read_epochs():
        return [int.from_bytes(client.getrange(key, -4, -1), "big") for key in strings_of(client, name)]

    before, answer = read_epochs(), filter_._transport._answer
    filter_._transport._answer = lambda request: _refuse_scripts(answer, request)
    filter_.update(KEYS)
    assert read_epochs() == before
    filter_._transport._answer = answer
    filter_.add("one key, in one of the shards")
    assert all(after > epoch for after, epoch in zip(read_epochs(), before, strict=True))


def _refuse_scripts(answer, request):
    if isinstance(request, Call) and request.words[0] == b"EVAL":
        raise EngineUnavailable("no reply")
    return answer(request)


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_verify_reports_no_loss_while_other_threads_add_keys(client, name, kind):
    filter_ = kind(client, name, 50_000)
    filter_.update(range(1000))
    run = Run(client, name, filter_._storage.verify(restarted=False))
    added = 1000
    while not run.over:
        filter_.update(range(added, added + 50))
        added += 50
        run.step()
    assert run.value
    assert run.value.keys_lost == 0


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_verify_reports_no_loss_while_another_client_clears(client, name, kind):
    """At every step of the verification, which begins again."""
    steps = 0
    while True:
        filter_ = kind(client, name, 2000, shards=2)
        filter_.update(KEYS)
        run = Run(client, name, filter_._storage.verify(restarted=False))
        for _ in range(steps):
            run.over or run.step()
        if run.over:
            break
        kind(client, name).clear()
        assert run.finish(), steps
        filter_.delete()
        steps += 1
    assert steps > 3


def test_counters_are_those_of_one_moment_while_another_client_clears(client, name):
    filter_ = RedisCountingFilter(client, name, 20_000, shards=2)
    filter_.update(range(5000))
    whole = filter_.counters()
    run = Run(client, name, filter_._storage.read_counters())
    first, second = filter_._storage.names.bits
    run.run_until(lambda key, words: key == first and words[0] == b"GETRANGE" and words[2] == 0)
    run.run_until(lambda key, words: key == second and words[0] == b"GETRANGE" and words[2] == 0)
    RedisCountingFilter(client, name).clear()
    assert run.finish() in (whole, bytes(len(whole)))


def test_a_load_measured_before_a_clear_is_not_taken_after_it(client, name):
    filter_ = RedisBloomFilter(client, name, 1000)
    filter_.load(make_bloom(range(4000), 1000))
    with pytest.warns(CapacityWarning):
        filter_.add("measures")
    assert filter_.over_capacity
    filter_.load(make_bloom(range(4000), 1000))
    measuring = Run(client, name, filter_._load_watch.measure())
    measuring.run_until(lambda _, words: words[0] == b"BITCOUNT")
    replies = [measuring.transport._answer(one) for one in measuring.requests]
    filter_.clear()
    with pytest.raises(StopIteration):
        measuring.steps.send(replies)
    assert not filter_.over_capacity


def test_an_object_continues_in_another_event_loop(server, name, monkeypatch):
    """The first loop is closed while one key is on its way and another one waits."""
    unraisable = []
    gc.collect()  # what other tests left
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    client = redis.asyncio.Redis(port=server.port)
    loop = asyncio.new_event_loop()
    filter_ = loop.run_until_complete(AsyncRedisBloomFilter.open(client, name, 1000))
    send, tasks = filter_._transport._send, []

    async def wait(_batch):
        await asyncio.sleep(60)

    async def start():
        filter_._transport._send = wait
        for number in range(2):
            tasks.append(loop.create_task(filter_.add(number)))
            for _ in range(5):
                await asyncio.sleep(0)

    loop.run_until_complete(start())
    loop.run_until_complete(client.aclose())
    loop.close()
    filter_._transport._send = send

    async def main():
        async with redis.asyncio.Redis(port=server.port) as own:
            filter_._transport.client = own
            return await asyncio.wait_for(filter_.add("a"), 60), await filter_.contains("a")

    assert asyncio.run(main()) == (True, True)
    for task in tasks:
        task._log_destroy_pending = False
    tasks.clear()
    gc.collect()
    assert unraisable == []


@pytest.mark.parametrize("single", [False, True])
def test_no_batch_takes_the_replies_of_one_that_a_signal_interrupted(own_server, name, monkeypatch, single):
    """A signal handler may raise when the commands are sent and no reply is read."""
    server = own_server()
    filter_ = RedisBloomFilter(server.client(single_connection_client=single), name, 1000)
    filter_.add("present")
    real = sync_transport.sync_send

    def send(connection, exchange):
        real(connection, exchange)
        raise KeyboardInterrupt

    server.process.send_signal(signal.SIGSTOP)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(sync_transport, "sync_send", send)
            with pytest.raises(KeyboardInterrupt):
                filter_.contains_many(["present"])
        threading.Timer(0.3, server.process.send_signal, [signal.SIGCONT]).start()
        assert filter_.contains_many(["absent"]) == [False]
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert filter_.contains_many(["present", "absent"]) == [True, False]
