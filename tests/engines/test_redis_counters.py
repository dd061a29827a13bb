"""Counters on a server are those of memory, also while clients change them at the same time."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from engines.clusters import migrate_slot
from engines.connections import interrupt_replies
from engines.servers import needs_redis, strings_of

from fullbloom import CountingBloomFilter, IncompatibleFilters, ParameterError
from fullbloom.engines.redis import RedisBloomFilter, RedisCountingFilter, RedisRollingFilter
from fullbloom.engines.redis.transport import sync_transport
from fullbloom.errors import EngineNameTaken, EngineUnavailable, FilterLost

pytestmark = needs_redis


@pytest.mark.long
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("secret", "shards"), [(None, 1), (bytes(range(16)), 1), (None, 3)])
def test_counters_equal_those_of_memory(client, name, bits, secret, shards):
    options = {"counter_bits": bits, "seed": 5, "secret": secret}
    there = RedisCountingFilter(client, name, 1000, 0.02, shards=shards, **options)
    here = CountingBloomFilter(1000, 0.02, layout="blocked", **options)
    draw = random.Random(bits)
    for _ in range(30):
        keys = [draw.randrange(400) for _ in range(100)]
        assert there.add_many(keys) == here.add_many(keys)
        gone = [draw.randrange(400) for _ in range(80)]
        # In memory the keys of a batch go one after the other; here all are looked for first, and one that
        # comes twice and is there once is removed once.
        twice = [key for key in gone[:20] if here.count(key) == 1][:3] * 2
        assert there.discard_many(twice) == [here.discard(key) for key in twice]
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
def test_removal_decrements_every_count_and_restores_an_excess(client, name, bits):
    there, most = RedisCountingFilter(client, name, 100, counter_bits=bits), 2**bits - 1
    shape = CountingBloomFilter(100, counter_bits=bits, layout="blocked")
    # A server counts the bits of a byte from the other end.
    first = [p * bits for p in shape.positions("k")]
    at = [bit & ~7 | (8 - bits - (bit & 7)) for bit in first]
    hash_, key = there._storage.cells.hash("k"), strings_of(client, name)[0]

    def counters(*steps):
        return client.execute_command("BITFIELD", key, *(word for step in steps for word in step))

    def read():
        return counters(*(("GET", f"u{bits}", p) for p in at))

    for begun in range(most + 1):
        there.add("k")
        looked = there._storage.cells.hashed(hash_).batch(0, 1)
        there._run(there._storage._send(there._storage.snapshot, looked))
        values = [(begun + j * j) % (most + 1) for j in range(len(at))] if begun % 3 else [begun] * len(at)
        counters(*(("SET", f"u{bits}", p, value) for p, value in zip(at, values, strict=True)))
        taken = looked.then()
        there._run(there._storage._send(there._storage.snapshot, taken, once=True))
        assert read() == [value if value == most else max(value - 1, 0) for value in values]
        assert bool(taken.hashes(all=False)) == all(values)
        there._run(there._storage._send(there._storage.snapshot, taken.then()))
        assert read() == ([value - (value < most) for value in values] if all(values) else values)


def test_one_of_several_concurrent_removals_of_a_key_succeeds(server, name):
    rounds, clients = 300, 2
    with server.client() as client:
        there = RedisCountingFilter(client, name, 500, counter_bits=4)
        others = [f"other {i}" for i in range(400)]
        there.update(others)
        before = there.counters()
        barrier, result = threading.Barrier(clients), [[] for _ in range(clients)]

        def remove(number):
            with server.client() as own:
                mine = RedisCountingFilter(own, name)
                for turn in range(rounds):
                    barrier.wait(60)
                    if number == 0:
                        mine.add(f"key {turn}")
                    barrier.wait(60)
                    result[number].append(mine.discard(f"key {turn}"))

        threads = [threading.Thread(target=remove, args=(number,)) for number in range(clients)]
        [thread.start() for thread in threads]
        [thread.join(120) for thread in threads]
        twice = sum(all(answers) for answers in zip(*result, strict=True))
        assert all(any(answers) for answers in zip(*result, strict=True))
        # Both, only where all of its counters are shared with others: the rate of false positives.
        assert twice <= 0.01 * rounds + 5 * (0.01 * rounds) ** 0.5, twice
        assert twice or there.counters() == before
        assert twice or all(there.contains_many(others))


def test_racing_clients_never_decrement_saturated_counters(server, name):
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


def test_counters_accept_batches_of_every_kind(client, name):
    there, here = RedisCountingFilter(client, name, 30_000), CountingBloomFilter(30_000, layout="blocked")
    keys = np.arange(20_000) % 15_000
    result = there.add_many(keys)
    assert result.dtype == bool
    assert (result == here.add_many(keys)).all()
    counts = there.count_many(keys)
    assert counts.dtype == np.uint64
    assert (counts == here.count_many(keys)).all()
    assert there.contains_many(["x", 5]) == [False, True]
    there.update(iter(["x", "y"]), ["z", "x"])
    assert there.count_many(iter(["x", "y", "z", "w"])) == [2, 1, 1, 0]
    assert there.discard_many(("x", "x", "x", "w")) == [True, True, False, False]
    assert there.add_many([]) == there.discard_many([]) == []
    gone = there.discard_many(keys[:10_000])
    assert (gone == here.discard_many(keys[:10_000])).all()
    here.update(["y", "z"])
    assert there.counters() in here.to_bytes()


@pytest.mark.parametrize("after", [0, 36 * 200])
def test_acknowledged_adds_are_not_repeated_after_a_broken_connection(client, name, monkeypatch, after):
    there = RedisCountingFilter(client, name, 10_000, 1e-6)
    keys = [f"key {i}" for i in range(1000)]
    with monkeypatch.context() as patched:
        interrupt_replies(patched, after)
        assert all(there.add_many(keys)[: after // 36])  # the others may be reported as known
    counts = there.count_many(keys)
    first = after // 36
    assert counts[:first] == [1] * first
    # The server may have added the others, too, without the client knowing.
    assert set(counts[first:]) <= {1, 2}


def test_a_removal_is_not_sent_twice(client, name, monkeypatch):
    there = RedisCountingFilter(client, name, 10_000, 1e-6)
    keys = [f"key {i}" for i in range(500)]
    there.update(keys, keys)
    real, sent = sync_transport.sync_send, []

    def send(connection, exchange):
        sent.append(exchange)
        if len(sent) == 2:  # after the lookup
            interrupt_replies(monkeypatch, 130 * 50)
        return real(connection, exchange)

    monkeypatch.setattr(sync_transport, "sync_send", send)
    with pytest.raises(EngineUnavailable, match="may have been done"):
        there.discard_many(keys)
    assert len(sent) == 2
    counts = there.count_many(keys)
    assert set(counts[:40]) == {1}
    assert set(counts) <= {1, 2}
    assert there.verify()


@pytest.mark.parametrize("where", ["server", "cluster"])
def test_a_removal_that_breaks_gives_back_what_it_took_from_other_keys(request, name, monkeypatch, where):
    running = request.getfixturevalue(where)
    with running.client() as client, running.client() as second:
        there = RedisCountingFilter(client, name, 20, 0.01, shards=1)
        here = CountingBloomFilter(20, 0.01, layout="blocked")
        for filter_ in (there, here):
            filter_.update(range(20))  # in one line, so most counters are of several keys
        other, sent, real = RedisCountingFilter(second, name), [], sync_transport.sync_send

        def send(connection, exchange):
            sent.append(exchange)
            if len(sent) == 2:  # after the lookup another client removes the first key
                assert other.discard(0)
                # The reply for the first key has 4 items a counter, of at most 5 bytes; that for the second
                # one is cut.
                interrupt_replies(monkeypatch, 5 + 20 * there.manifest.num_hashes)
            return real(connection, exchange)

        with monkeypatch.context() as patched:
            patched.setattr(sync_transport, "sync_send", send)
            with pytest.raises(EngineUnavailable, match="may have been done"):
                there.discard_many([0, 1])
        here.remove(0)
        here.remove(1)
        assert there.counters() in here.to_bytes()
        assert all(there.contains_many(range(2, 20)))


def test_counters_on_a_cluster_follow_a_slot_that_moves(cluster, name):
    with cluster.client() as client:
        there = RedisCountingFilter(client, name, 20_000)
        here = CountingBloomFilter(20_000, layout="blocked")
        assert there.manifest.shards == 48
        assert there.add_many(["a", "b", "a"]) == [True, True, False]
        assert there.count_many(["a", "b", "c"]) == [2, 1, 0]
        assert there.discard_many(["a", "c"]) == [True, False]
        assert there.count("a") == 1
        assert there.delete()
        there, keys = RedisCountingFilter(client, name, 20_000, shards=5), np.arange(8000)
        assert (there.add_many(keys) == here.add_many(keys)).all()
        moved = there._storage.names.bits[2]
        source = cluster.node_of(client, moved)
        masters = [node for node in cluster.nodes if node.client().info("replication")["role"] == "master"]
        target = next(node for node in masters if node is not source)
        with migrate_slot(cluster, client.keyslot(moved), source, target) as move:
            assert (there.count_many(keys) == here.count_many(keys)).all()
            move(moved)
            # Now the source answers ASK, and the target takes commands behind ASKING only.
            assert (there.add_many(keys[:3000]) == here.add_many(keys[:3000])).all()
            assert (there.discard_many(keys[2000:5000]) == here.discard_many(keys[2000:5000])).all()
        # Now it answers MOVED.
        assert (there.discard_many(keys[:1000]) == here.discard_many(keys[:1000])).all()
        assert (there.add_many(keys[:100]) == here.add_many(keys[:100])).all()
        assert there.counters() in here.to_bytes()
        assert there.verify()


def test_lost_keys_are_reported(own_server):
    server = own_server()
    client = server.client()
    there = RedisCountingFilter(client, "f", 10_000, shards=2)
    there.update(range(3000), range(100))
    there.discard_many(range(2500))
    result = there.verify()
    assert result
    # Those removed do not count, those that were added twice are there once more.
    assert (result.keys_checked, result.keys_lost, result.restarted) == (600, 0, False)
    client.save()
    there.update(range(5000, 5050))
    server.kill()
    server.start()
    result = there.verify()
    assert not result
    assert result.restarted
    assert result.shards_lost == ()
    assert (result.keys_checked, result.keys_lost) == (650, 50)
    client.delete(strings_of(client, "f")[1])
    assert there.verify().shards_lost == (1,)
    for ask in (lambda: there.count_many(range(50)), there.counters, lambda: there.discard_many(range(50))):
        with pytest.raises(FilterLost, match="counters of shard 1"):
            ask()
    there.delete()
    other = RedisCountingFilter(client, "f", 10_000, shards=2)
    result = there.verify()
    assert result.replaced
    assert result.keys_lost == result.keys_checked
    with pytest.raises(FilterLost, match="counters"):
        there.add("a")
    assert "a" not in other
    client.flushall()
    for ask in (lambda: there.add(1), lambda: 1 in there, lambda: there.discard(1)):
        with pytest.raises(FilterLost, match="counters"):
            ask()
    assert not there.verify()


def test_a_client_remembers_a_bounded_number_of_keys(client, name):
    there = RedisCountingFilter(client, name, 50_000)
    for begun in range(0, 20_000, 500):
        there.update(range(begun, begun + 500))
    assert there.verify().keys_checked == 4096
    there.discard_many(range(20_000))
    assert there.verify().keys_checked == 0


def test_invalid_parameters_are_named(client, name):
    with pytest.raises(FilterLost, match="capacity"):
        RedisCountingFilter(client, name)
    with pytest.raises(ParameterError, match="counter_bits must be 2, 4 or 8, got 3"):
        RedisCountingFilter(client, name, 100, counter_bits=3)
    with pytest.raises(ParameterError, match="536870912"):
        RedisCountingFilter(client, name, 10**9, shards=1)
    assert not client.keys(f"{name}*")
    there = RedisCountingFilter(client, name, 100)
    with pytest.raises(KeyError):
        there.remove("nobody")
    with pytest.raises(TypeError):
        there.add(object())
    there.add("a")
    there.remove("a")
    assert "a" not in there
    with pytest.raises(IncompatibleFilters, match=r"counter_bits .server: 4, requested: 8"):
        RedisCountingFilter(client, name, counter_bits=8)
    with pytest.raises(IncompatibleFilters, match="secret"):
        RedisCountingFilter(client, name, secret=bytes(16))
    with pytest.raises(IncompatibleFilters, match="is a RedisCountingFilter"):
        RedisBloomFilter(client, name)
    RedisBloomFilter(client, name + "2", 100)
    with pytest.raises(IncompatibleFilters, match="is a RedisBloomFilter"):
        RedisCountingFilter(client, name + "2")
    (string,) = there._storage.names.bits
    client.delete(string)
    for ask in (lambda: "a" in there, there.counters, lambda: there.discard("a")):
        with pytest.raises(FilterLost, match="counters"):
            ask()
    client.lpush(string, "x")
    with pytest.raises(EngineNameTaken):
        there.count("a")


@pytest.mark.parametrize("shards", [1, 3])
def test_clear_empties_the_filter_for_every_client(client, name, shards):
    there, other = (RedisCountingFilter(client, name, 1000, shards=shards) for _ in range(2))
    there.update(range(500))
    other.update(range(500))
    other.clear()
    assert not any(there.count_many(range(500)))
    assert there.verify().ok
    assert there.add("again")
    assert other.count("again") == 1
    there.clear()  # whose manifest was that of the generation before
    assert "again" not in other
    assert not any(there.counters())
    other.delete()
    RedisCountingFilter(client, name, 1000, shards=shards).add("of another filter")
    with pytest.raises(FilterLost):
        there.clear()
    assert "of another filter" in RedisCountingFilter(client, name)


def test_info_reports_the_parameters(client, name):
    result = RedisCountingFilter(client, name, 1000, 0.02, counter_bits=8, seed=3).info()
    assert result.items() >= {"class": "RedisCountingFilter", "capacity": 1000, "target_fpr": 0.02}.items()
    assert result.items() >= {"counter_bits": 8, "seed": 3, "shards": 1, "keyed": False, "name": name}.items()
    window = RedisRollingFilter(client, f"{name}w", 1000, window=60, generations=4).info()
    assert window.items() >= {"window": 60, "generations": 4, "capacity": 1000}.items()
    assert "counter_bits" not in window
