"""Whatever happens to a string of a filter, every client finds the loss, and none answers a wrong "no"."""

from __future__ import annotations

import asyncio
import json
import time
import uuid

import numpy as np
import pytest
import redis.asyncio
from engines.servers import needs_redis

from fullbloom.engines import redis as engine
from fullbloom.errors import EngineNameTaken, EngineRefused, FilterLost, FullbloomError

pytestmark = needs_redis

#: What is done to a string, given its client, its name, and the name of another string of the filter.
DAMAGES = {
    "deleted": lambda client, key, _: client.delete(key),
    "expired": lambda client, key, _: client.pexpire(key, 1) and time.sleep(0.01),
    "emptied": lambda client, key, _: client.set(key, b"", keepttl=True),
    "cut by a byte": lambda client, key, _: client.set(key, client.get(key)[:-1], keepttl=True),
    "without its tag": lambda client, key, _: client.set(key, client.get(key)[:-16], keepttl=True),
    "cut in half": lambda client, key, _: client.set(key, client.get(key)[: client.strlen(key) // 2]),
    "overwritten": lambda client, key, _: client.set(key, b"x" * client.strlen(key)),
    "zeros": lambda client, key, _: client.set(key, bytes(client.strlen(key))),
    "another one": lambda client, key, other: client.copy(other, key, replace=True),
    "of another type": lambda client, key, _: client.delete(key) and client.lpush(key, 1),
}
KINDS = {
    "bloom": (engine.RedisBloomFilter, engine.AsyncRedisBloomFilter, {}),
    "bloom with an end": (engine.RedisBloomFilter, engine.AsyncRedisBloomFilter, {"ttl": 3600}),
    "counting": (engine.RedisCountingFilter, engine.AsyncRedisCountingFilter, {}),
    "rolling": (
        engine.RedisRollingFilter,
        engine.AsyncRedisRollingFilter,
        {"window": 36_000, "generations": 4},
    ),
}
KEYS = np.arange(500)


@pytest.fixture(scope="module")
def waiting(server):
    """A client for asyncio, and what runs its coroutines."""
    with asyncio.Runner() as runner:
        client = redis.asyncio.Redis(port=server.port)

        async def wait_for(awaited):
            return await awaited

        yield client, lambda awaited: runner.run(wait_for(awaited))
        runner.run(client.aclose())


class Clock:
    """A server's clock that a test moves."""

    def __init__(self):
        self.seconds = time.time()

    def now(self):
        return self.seconds, self.seconds
        yield


class Fleet:
    """Clients of one filter, for threads and for asyncio."""

    def __init__(self, kind, client, waiting, name):
        self.plain, self.awaited, self.options = KINDS[kind]
        self.client, (self.own, self.run), self.name = client, waiting, name
        self.clock = Clock() if kind == "rolling" else None

    def open(self, *, waits, **options):
        """A new client: what asks it, by the name of the method."""
        if waits:
            there = self.run(self.awaited.open(self.own, self.name, **options))
        else:
            there = self.plain(self.client, self.name, **options)
        if self.clock:
            there._storage.clock = self.clock

        def ask(method, *args):
            answer = getattr(there, method)(*args)
            return self.run(answer) if waits else answer

        return ask

    def strings(self):
        """The names of the filter's strings."""
        return sorted(key for key in self.client.keys(f"{self.name}:*") if b":bits" in key)


def fill(kind, client, waiting):
    """A filter with keys in all of its strings, and two clients that know it."""
    fleet = Fleet(kind, client, waiting, f"f{uuid.uuid4().hex}")
    writer = fleet.open(waits=False, capacity=2012, shards=2, **fleet.options)
    other = fleet.open(waits=True)
    for _ in range(3 if fleet.clock else 1):
        writer("update", KEYS)
        assert other("contains_many", KEYS).all()
        if fleet.clock:
            fleet.clock.seconds += 12_000
    return fleet, writer, other


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_string_that_is_damaged_is_lost_to_every_client(client, waiting, kind, damage):
    fleet, writer, other = fill(kind, client, waiting)
    strings, lost = fleet.strings(), FilterLost if damage != "of another type" else EngineNameTaken
    assert len(strings) == (6 if kind == "rolling" else 2)
    assert len({client.strlen(string) for string in strings}) == 1
    for number, string in enumerate((strings[0], strings[-1])):
        before = fleet.open(waits=bool(number))  # opens the filter, and asks nothing yet
        kept, left = client.dump(string), max(client.pttl(string), 0)
        DAMAGES[damage](client, string, strings[1 if number == 0 else 0])
        for one in (writer, other, before, fleet.open(waits=not number)):
            for ask in ("contains_many", "add_many", "contains_many"):
                with pytest.raises(lost):
                    one(ask, KEYS)
            if lost is FilterLost:
                assert not one("verify")
        client.restore(string, left, kept, replace=True)
        assert writer("contains_many", KEYS).all()
        assert other("contains_many", KEYS).all()
    client.delete(strings[0])
    if kind == "rolling":  # cleared, the loss is over
        other("clear")
        assert not writer("contains_many", KEYS).any()
        writer("update", KEYS)
        assert other("contains_many", KEYS).all()
    other("delete")
    assert not fleet.strings()


def test_a_client_paused_while_it_starts_a_generation_hides_no_loss(client):
    name, clock = f"f{uuid.uuid4().hex}", Clock()
    paused, writer, reader = (
        engine.RedisRollingFilter(client, name, 2012, window=36_000, shards=2) for _ in range(3)
    )
    for one in (paused, writer, reader):
        one._storage.clock = clock
    steps = paused._storage.run_batch(KEYS, adding=True)
    asks = next(steps)
    while b"EVAL" not in asks[0].words:  # which creates the strings
        asks = steps.send(paused._transport._answer_all(asks))
    writer.update(KEYS)
    client.delete(next(key for key in client.keys(f"{name}:bits*") if key.endswith(b":1")))
    answers = paused._transport._answer_all(asks)
    assert len(client.keys(f"{name}:bits*")) == 2  # it has created the string that was lost
    with pytest.raises(FilterLost):
        asks = steps.send(answers)
        while True:
            asks = steps.send(paused._transport._answer_all(asks))
    for one in (paused, writer, reader, engine.RedisRollingFilter(client, name)):
        one._storage.clock = clock
        with pytest.raises(FilterLost):
            one.contains_many(KEYS)
    reader.clear()
    assert paused.add_many(KEYS).all()


def test_clients_that_start_a_generation_at_once_share_its_strings(client):
    name, clock = f"f{uuid.uuid4().hex}", Clock()
    there = [engine.RedisRollingFilter(client, name, 20_000, 1e-6, window=36_000, shards=3) for _ in range(6)]
    for one in there:
        one._storage.clock = clock
    for turn in range(4):
        steps = [
            one._storage.run_batch(KEYS + 1000 * number, adding=True) for number, one in enumerate(there)
        ]
        asks, result = [next(each) for each in steps], {}
        while len(result) < len(steps):  # one question of each in turn
            for number in set(range(len(steps))) - set(result):
                try:
                    asks[number] = steps[number].send(there[number]._transport._answer_all(asks[number]))
                except StopIteration as stop:
                    result[number] = stop.value
        assert all(new.all() for new in result.values()) or turn
        for one in there:
            assert all(one.contains_many(KEYS + 1000 * number).all() for number in range(len(there)))
        clock.seconds += 18_000


def test_servers_that_evict_volatile_keys_are_refused_for_filters_with_a_ttl(own_server):
    client = own_server(maxmemory="100mb", maxmemory_policy="volatile-lru").client()
    engine.RedisBloomFilter(client, "plain", 1000)
    engine.RedisCountingFilter(client, "counting", 1000)
    for make in (
        lambda **options: engine.RedisRollingFilter(client, "f", 1000, window=60, **options),
        lambda **options: engine.RedisBloomFilter(client, "g", 1000, ttl=60, **options),
    ):
        with pytest.raises(EngineRefused, match="volatile-lru") as caught:
            make()
        assert "or a volatile policy" not in str(caught.value)
        assert make(allow_eviction=True).add("a")


def test_the_eviction_policy_of_every_node_is_checked(cluster):
    with cluster.client() as client:
        node = cluster.nodes[2]
        with node.client() as own:
            own.config_set("maxmemory", "100mb")
            own.config_set("maxmemory-policy", "allkeys-lru")
            try:
                for make in (
                    lambda: engine.RedisRollingFilter(client, "evicted", 1000, window=60),
                    lambda: engine.RedisCountingFilter(client, "evicted", 1000),
                    lambda: engine.RedisBloomFilter(client, "evicted", 1000),
                ):
                    with pytest.raises(EngineRefused, match=str(node.port)):
                        make()
            finally:
                own.config_set("maxmemory", 0)
                own.config_set("maxmemory-policy", "noeviction")


def test_a_window_with_a_changed_manifest_is_refused(client):
    name = f"f{uuid.uuid4().hex}"
    there = engine.RedisRollingFilter(client, name, 2012, window=36_000)
    there.update(KEYS)
    key = f"{name}:fullbloom"
    stored = json.loads(client.get(key))
    begun = stored["begun"]
    for change in (
        *(
            {"begun": value}
            for value in ("", " ", "x", begun[:-1], begun[1:], begun + " ", begun.replace(":", ";"))
        ),
        *({"begun": value} for value in (None, 5, [], "1:2:3 " * 5000, begun.split(" ")[-1])),
        *({"window": value} for value in (18_000.0, 72_000.0, 0.0, 1e300, "x")),
        *({"generations": value} for value in (2, 4, 0, 1, 2**32)),
        *(
            {"seed": 1},
            {"shards": 2},
            {"num_bits": stored["num_bits"] * 2},
            {"num_hashes": 3},
            {"generation": 2},
        ),
    ):
        client.set(key, json.dumps(stored | change))
        with pytest.raises(FullbloomError):
            fresh = engine.RedisRollingFilter(client, name)
            assert fresh.contains_many(KEYS).all(), change
            raise AssertionError(change)
    stored.pop("begun")
    client.set(key, json.dumps(stored))
    with pytest.raises(FullbloomError):
        engine.RedisRollingFilter(client, name)


def test_windows_need_no_scripts(own_server):
    server = own_server()
    with server.client() as admin:
        admin.acl_setuser("plain", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-@scripting"])
        with server.client(username="plain", password="any") as client:
            there, other = (
                engine.RedisRollingFilter(client, "f", 2012, window=36_000, shards=3) for _ in range(2)
            )
            clock = there._storage.clock = other._storage.clock = Clock()
            for _ in range(4):
                there.update(KEYS)
                assert other.contains_many(KEYS).all()
                assert all(client.pttl(key) > 0 for key in client.keys("f:bits*"))
                clock.seconds += 18_000
            client.delete(max(client.keys("f:bits*"), key=client.pttl))  # of the newest generation
            with pytest.raises(FilterLost):
                other.contains_many(KEYS)
            other.clear()
            assert there.add_many(KEYS).all()
            assert there.delete()
            assert not client.keys("*")
