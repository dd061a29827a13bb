"""A window on a server remembers and forgets as one in memory, by the server's clock, whoever writes."""

from __future__ import annotations

import random
import threading
import time
import uuid

import numpy as np
import pytest
from engines.servers import needs_redis

from bloomery import IncompatibleFilters, ParameterError, RollingBloomFilter
from bloomery.engines.redis import RedisBloomFilter, RedisRollingFilter, windows
from bloomery.errors import FilterLost

pytestmark = needs_redis


@pytest.fixture
def name():
    return f"f{uuid.uuid4().hex}"


class Clock:
    """A server's clock that a test moves; known to within ``apart`` seconds."""

    def __init__(self, now: float, apart: float = 0.0):
        self.seconds, self.apart = now, apart

    def now(self):
        return self.seconds - self.apart, self.seconds
        yield


@pytest.mark.parametrize("generations", [2, 3, 5])
@pytest.mark.parametrize("apart", [0.0, 7.0])
def test_the_rule_is_that_of_memory(client, name, generations, apart):
    stretch, draw = 100, random.Random(generations)
    window = float(stretch * (generations - 1))
    there = RedisRollingFilter(client, name, 2000, 1e-7, window=window, generations=generations)
    here = RollingBloomFilter(2000, 1e-7, generations=generations, window=window)
    began = (int(time.time()) // stretch + 1) * stretch
    clock = there._there.clock = Clock(began, apart)
    here.advance(began)
    added = {}
    for turn in range(60):
        keys = [draw.randrange(3000) for _ in range(20)]
        told = there.add_many(keys), here.add_many(keys)
        # Where the time is known to within some seconds only, keys live in both generations it may be.
        assert told[0] == told[1] or apart, turn
        added |= dict.fromkeys(keys, clock.seconds)
        asked = list(range(0, 3000, 7)) + keys
        assert there.contains_many(asked) == here.contains_many(asked) or apart
        assert all(there.contains_many([key for key, at in added.items() if clock.seconds - at <= window]))
        forgotten = [key for key, at in added.items() if clock.seconds - apart - at > window + stretch]
        assert not any(there.contains_many(forgotten))
        clock.seconds += draw.randrange(1, stretch)
        here.advance(clock.seconds)


def test_keys_and_strings_vanish_by_themselves(client, name, monkeypatch):
    monkeypatch.setattr(windows, "_KEPT", 0)
    there = RedisRollingFilter(client, name, 1000, window=0.6, generations=3)
    seen = RedisRollingFilter(client, name)
    assert there.add("a")
    began = time.monotonic()
    assert not there.add("a")
    known = "a" in seen
    assert known or time.monotonic() - began > 0.6
    deadline = time.monotonic() + 20
    while "a" in seen:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert time.monotonic() - began > 0.6 - 0.1
    while client.keys(f"{name}:bits*"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert seen.add("a")


def test_batches_of_every_kind(client, name):
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


def test_many_clients_that_turn_at_the_same_time_lose_no_key(server, name):
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


def test_clearing_and_losses(server, name):
    with server.client() as one, server.client() as two:
        there = RedisRollingFilter(one, name, 1000, window=3600)
        other = RedisRollingFilter(two, name)
        there.update(["a", "b"])
        assert not other.add("a")
        other.clear()
        assert there.contains_many(["a", "b"]) == [False, False]
        assert there.add("a")
        one.delete(*one.keys(f"{name}:bits*"))
        with pytest.raises(FilterLost, match="generation"):
            "a" in there  # noqa: B015
        assert there.add("a")
        assert there.delete()
        assert not one.keys(f"{name}*")
        with pytest.raises(FilterLost, match="manifest"):
            there.add("a")


def test_a_cluster_holds_a_window(cluster, name):
    with cluster.client() as client:
        there = RedisRollingFilter(client, name, 1000, window=3600)
        assert there.add_many(["a", "b", "a"]) == [True, True, False]
        assert there.contains_many(["a", "c"]) == [True, False]
        there.clear()
        assert "a" not in there
        assert there.delete()


def test_what_is_wrong_is_named(client, name):
    with pytest.raises(FilterLost, match="window"):
        RedisRollingFilter(client, name, 1000)
    for wrong in ({"window": 0.0}, {"window": float("nan")}, {"window": 5, "generations": 17}):
        with pytest.raises(ParameterError, match=r"window|generations"):
            RedisRollingFilter(client, name, 1000, **wrong)
    RedisRollingFilter(client, name, 1000, window=60)
    with pytest.raises(IncompatibleFilters, match=r"window .60.0 there, 61.0 asked for"):
        RedisRollingFilter(client, name, window=61)
    with pytest.raises(IncompatibleFilters, match="is a RedisRollingFilter"):
        RedisBloomFilter(client, name)
    RedisBloomFilter(client, name + "2", 100)
    with pytest.raises(IncompatibleFilters, match="is a RedisBloomFilter"):
        RedisRollingFilter(client, name + "2")
