"""A filter of the server's own that went back, or was reserved again, is noticed by every client."""

from __future__ import annotations

import threading

import pytest
import redis
from engines.modules import client, running

from fullbloom.engines.redis import RedisBloomFilter
from fullbloom.engines.redis.protocol import create
from fullbloom.engines.redis.transport.sync_transport import Transport
from fullbloom.errors import EngineError, FilterRolledBack, FullbloomError

__all__ = ["client", "running"]  # fixtures


def reserve_again(client, filter_):
    """Deletes the server's own filter and reserves its key."""
    (key,) = filter_._storage.names.bits
    client.delete(key)
    client.execute_command("BF.RESERVE", key, 0.01, 1000)


def test_a_module_filter_that_was_reserved_again_is_noticed(client):
    writer = RedisBloomFilter(client, "f", 1000, backend="module")
    writer.update(range(100))
    reader = RedisBloomFilter(client, "f")
    assert all(reader.contains_many(range(100)))
    adder = RedisBloomFilter(client, "f")
    assert 5 in adder
    reserve_again(client, writer)
    for one in (writer, reader):
        for ask in (lambda one=one: one.contains_many(range(100)), lambda one=one: 5 in one):
            with pytest.raises(FilterRolledBack, match="went back"):
                ask()
        result = one.verify()
        assert not result
        assert result.rolled_back
    with pytest.raises(FilterRolledBack):
        adder.update(range(5000, 5500))  # more than the filter had, all of them new
    writer.clear()
    assert not any(reader.contains_many(range(100)))
    reader.update(range(100))
    for one in (writer, reader, adder):
        assert all(one.contains_many(range(100)))
        assert one.verify()


def test_clears_of_a_module_filter_are_not_mistaken_for_a_rollback(running, client):
    filter_ = RedisBloomFilter(client, "f", 2000, backend="module")
    stop, failed = threading.Event(), []

    def work(number):
        with running.client() as own:
            try:
                while not stop.is_set():
                    mine = RedisBloomFilter(own, "f")  # which may be opened during a clear
                    for turn in range(8):
                        mine.add_many(range(number * 1000, number * 1000 + 40 + turn))
                        mine.contains_many(range(50))
                        mine.verify()
            except FullbloomError as error:
                failed.append(error)
                raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    [thread.start() for thread in threads]
    for _ in range(40):
        filter_.clear()
    stop.set()
    [thread.join(60) for thread in threads]
    assert not failed
    filter_.update(range(100))
    assert filter_.verify()


def test_a_module_filter_whose_clear_was_abandoned_raises_no_alarm(client):
    filter_ = RedisBloomFilter(client, "f", 2000, backend="module")
    filter_.update(range(100))
    storage = filter_._storage
    steps = create.replace_strings("f", storage.manifest, storage.cells)
    transport = Transport(client, "f")
    asks = next(steps)
    while b"RENAME" not in str(asks[0]).encode():
        try:
            asks = steps.send([transport._answer(ask) for ask in asks])
        except redis.exceptions.RedisError as error:
            asks = steps.throw(error)
        except FullbloomError as error:
            asks = steps.throw(error)
    late = RedisBloomFilter(client, "f")
    assert all(late.contains_many(range(100)))
    assert late.manifest.generation % 2 == 1
    while True:  # the paused client goes on
        try:
            asks = steps.send([transport._answer(ask) for ask in asks])
        except StopIteration:
            break
        except FullbloomError as error:
            asks = steps.throw(error)
    assert not any(late.contains_many(range(100)))
    assert not any(filter_.contains_many(range(100)))
    late.update(range(10))
    assert all(filter_.contains_many(range(10)))
    assert late.verify()
    assert filter_.verify()


def test_acks_of_a_module_filter_count_replicas_or_are_refused(client):
    there = RedisBloomFilter(client, "f", 1000, backend="module", acks=1)
    with pytest.raises(EngineError):  # no replica, or no WAIT
        there.add("a")
