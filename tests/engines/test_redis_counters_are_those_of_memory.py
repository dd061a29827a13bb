"""Counters on a server are those of memory, and stay so whatever clients do at the same time."""

from __future__ import annotations

import random
import threading
import uuid

import pytest
from engines.servers import needs_redis

from bloomery import CountingBloomFilter, IncompatibleFilters, ParameterError
from bloomery.engines.redis import RedisBloomFilter, RedisCountingFilter
from bloomery.errors import EngineNameTaken, FilterLost

pytestmark = needs_redis


@pytest.fixture
def name():
    return f"f{uuid.uuid4().hex}"


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("secret", [None, bytes(range(16))])
def test_counters_are_those_of_memory(client, name, bits, secret):
    options = {"counter_bits": bits, "seed": 5, "secret": secret}
    there = RedisCountingFilter(client, name, 1000, 0.02, **options)
    here = CountingBloomFilter(1000, 0.02, layout="blocked", **options)
    draw = random.Random(bits)
    for _ in range(30):
        keys = [draw.randrange(400) for _ in range(100)]
        assert there.add_many(keys) == here.add_many(keys)
        gone = [draw.randrange(400) for _ in range(80)]
        # In memory the keys of a batch go one after the other; here all are looked for first.
        assert [there.discard(key) for key in gone] == [here.discard(key) for key in gone]
    hot = [900] * 20
    assert there.add_many(hot) == here.add_many(hot)
    assert [there.discard(key) for key in hot] == [here.discard(key) for key in hot]
    asked = list(range(1000))
    assert there.count_many(asked) == here.count_many(asked)
    assert there.contains_many(asked) == here.contains_many(asked)
    assert there.count(900) == (0 if bits == 8 else 2**bits - 1)  # reached their maximum, and stayed there
    stored = here.to_bytes()
    assert there.counters() in stored
    again = RedisCountingFilter(client, name, secret=secret)
    assert again.manifest == there.manifest
    assert again.counters() == there.counters()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_every_count_goes_up_and_down_as_it_should(client, name, bits):
    there = RedisCountingFilter(client, name, 100, counter_bits=bits)
    at, most = there._there.at("k")[:1], 2**bits - 1
    for count in range(most + 1):
        client.execute_command("BITFIELD", f"{name}:bits", "SET", f"u{bits}", at[0], count)
        client.execute_command(*there._there._remove(at))
        (left,) = client.execute_command("BITFIELD", f"{name}:bits", "GET", f"u{bits}", at[0])
        assert left == (most if count == most else max(count - 1, 0))


def test_of_clients_that_remove_one_key_at_once_one_is_told_and_none_takes_from_others(server, name):
    rounds, clients = 300, 2
    with server.client() as client:
        there = RedisCountingFilter(client, name, 500, counter_bits=4)
        others = [f"other {i}" for i in range(400)]
        there.update(others)
        before = there.counters()
        barrier, told = threading.Barrier(clients), [[] for _ in range(clients)]

        def remove(number):
            with server.client() as own:
                mine = RedisCountingFilter(own, name)
                for turn in range(rounds):
                    barrier.wait(30)
                    if number == 0:
                        mine.add(f"key {turn}")
                    barrier.wait(30)
                    told[number].append(mine.discard(f"key {turn}"))

        threads = [threading.Thread(target=remove, args=(number,)) for number in range(clients)]
        [thread.start() for thread in threads]
        [thread.join(120) for thread in threads]
        twice = sum(all(answers) for answers in zip(*told, strict=True))
        assert all(any(answers) for answers in zip(*told, strict=True))
        # Both, only where all of its counters are shared with others: the rate of false positives.
        assert twice <= 0.01 * rounds + 5 * (0.01 * rounds) ** 0.5, twice
        assert twice or there.counters() == before
        assert twice or all(there.contains_many(others))


def test_counters_at_their_maximum_are_never_taken_from_whoever_races(server, name):
    with server.client() as client:
        there = RedisCountingFilter(client, name, 100, counter_bits=2)
        for _ in range(3):
            there.add("k")
        assert there.count("k") == 3

        def churn(seed):
            draw = random.Random(seed)
            with server.client() as own:
                mine = RedisCountingFilter(own, name)
                for _ in range(300):
                    mine.discard("k") if draw.random() < 0.7 else mine.add("k")

        threads = [threading.Thread(target=churn, args=(seed,)) for seed in range(2)]
        [thread.start() for thread in threads]
        [thread.join(120) for thread in threads]
        assert there.count("k") == 3


def test_adds_and_removals_of_many_clients_add_up(server, name):
    with server.client() as client:
        there = RedisCountingFilter(client, name, 2000, counter_bits=8)
        empty = there.counters()

        def churn(number):
            keys = [f"{number} {i}" for i in range(150)]
            with server.client() as own:
                mine = RedisCountingFilter(own, name)
                for _ in range(3):
                    mine.update(keys)
                    assert all(mine.contains_many(keys))
                for _ in range(3):
                    assert all(mine.discard_many(keys))

        threads = [threading.Thread(target=churn, args=(number,)) for number in range(3)]
        [thread.start() for thread in threads]
        [thread.join(120) for thread in threads]
        assert there.counters() == empty


def test_a_cluster_holds_counters(cluster, name):
    with cluster.client() as client:
        there = RedisCountingFilter(client, name, 500)
        assert there.add_many(["a", "b", "a"]) == [True, True, False]
        assert there.count_many(["a", "b", "c"]) == [2, 1, 0]
        assert there.discard_many(["a", "c"]) == [True, False]
        assert there.count("a") == 1
        assert there.delete()


def test_what_is_wrong_is_named(client, name):
    with pytest.raises(FilterLost, match="capacity"):
        RedisCountingFilter(client, name)
    with pytest.raises(ParameterError, match="counter_bits must be 2, 4 or 8, got 3"):
        RedisCountingFilter(client, name, 100, counter_bits=3)
    with pytest.raises(ParameterError, match="536870912"):
        RedisCountingFilter(client, name, 10**9)
    assert not client.keys(f"{name}*")
    there = RedisCountingFilter(client, name, 100)
    with pytest.raises(KeyError):
        there.remove("nobody")
    with pytest.raises(TypeError):
        there.add(object())
    there.add("a")
    there.remove("a")
    assert "a" not in there
    with pytest.raises(IncompatibleFilters, match=r"counter_bits .4 there, 8 asked for"):
        RedisCountingFilter(client, name, counter_bits=8)
    with pytest.raises(IncompatibleFilters, match="secret"):
        RedisCountingFilter(client, name, secret=bytes(16))
    with pytest.raises(IncompatibleFilters, match="counter_bits"):
        RedisBloomFilter(client, name)
    RedisBloomFilter(client, name + "2", 100)
    with pytest.raises(IncompatibleFilters, match="counter_bits"):
        RedisCountingFilter(client, name + "2")
    client.delete(f"{name}:bits")
    for ask in (lambda: "a" in there, there.counters, lambda: there.discard("a")):
        with pytest.raises(FilterLost, match="counters"):
            ask()
    client.lpush(f"{name}:bits", "x")
    with pytest.raises(EngineNameTaken):
        there.count("a")
