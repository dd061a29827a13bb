"""Nothing that a manifest or a server says is believed: one error of the tree, soon, in little memory."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import threading
import time
import tracemalloc
from contextlib import suppress

import pytest
import redis
import redis.asyncio
from engines.servers import needs_redis, strings_of
from support import LONG

from fullbloom import FullbloomError
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    AsyncRedisCountingFilter,
    AsyncRedisRollingFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import EngineTimeout, EngineUnavailable, FilterLost, FilterRolledBack

pytestmark = needs_redis

KINDS = {
    RedisBloomFilter: {"capacity": 3000, "shards": 2, "seed": 7},
    RedisCountingFilter: {"capacity": 3000, "shards": 2, "seed": 7},
    RedisRollingFilter: {"capacity": 3000, "shards": 2, "seed": 7, "window": 600.0},
}
ASYNCHRONOUS = {
    RedisBloomFilter: AsyncRedisBloomFilter,
    RedisCountingFilter: AsyncRedisCountingFilter,
    RedisRollingFilter: AsyncRedisRollingFilter,
}
#: Twenty values that no field is to be believed with.
HOSTILE = [
    *(None, True, "", "x", "\x1b[2J", "9" * 400, [], {}, -1, 0, 1, 2, 65_536, 0.0, 0.5, 1e300),
    *((1 << 32) - 1, 1 << 63, float("nan"), 10**40),
]
FIELDS = [
    *("id", "backend", "capacity", "fpr", "layout", "scheme", "hash", "num_bits", "num_hashes", "shards"),
    *("seed", "secret", "generation", "counter_bits", "window", "generations", "cut", "other_shards"),
    *("other_cut", "state", "key_rule", "version", "ttl", "expires"),
]
#: The clients' timeout.
SECONDS = 0.3
#: Of the hostile values each field gets every fifth, each kind and field others; all with FULLBLOOM_LONG.
EVERY = 1 if LONG else 5


def keys():
    return [f"key {number}" for number in range(300)]


async def _look_up_async(kind, port):
    async with redis.asyncio.Redis(port=port, socket_timeout=SECONDS) as client:
        there = await ASYNCHRONOUS[kind].open(client, "f")
        return await there.contains_many(keys())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.timed
def test_a_forged_manifest_is_one_error_in_bounded_time(server, client, kind, field, request):
    client.flushall()
    kind(client, "f", **KINDS[kind]).update(keys())
    stored = json.loads(client.get("f:fullbloom"))
    if field not in stored:
        stored |= {"ttl": 0.0, "expires": 0}
    first = (FIELDS.index(field) + 2 * list(KINDS).index(kind)) % EVERY
    tracemalloc.start()
    request.addfinalizer(tracemalloc.stop)
    for number, value in list(enumerate(HOSTILE))[first::EVERY]:
        client.set("f:fullbloom", json.dumps(stored | {field: value}))
        tracemalloc.reset_peak()
        began = time.monotonic()
        try:
            if number % 4:
                with server.client(socket_timeout=SECONDS) as own:
                    answers = kind(own, "f").contains_many(keys())
            else:
                answers = asyncio.run(_look_up_async(kind, server.port))
        except FullbloomError as error:
            assert "\x1b" not in str(error)
        else:
            assert all(answers), (field, value)
        assert time.monotonic() - began < SECONDS + 1.5, (field, value)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20, (field, value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("of", ["open before", "opened after"])
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("seed", lambda value: value + 1),
        ("num_hashes", lambda value: value - 1),
        ("num_bits", lambda value: value - 1024),
        ("shards", lambda value: value + 1),
        ("capacity", lambda value: value + 1),
        ("fpr", lambda value: value / 2),
        ("hash", lambda _: "md5"),
    ],
)
def test_a_changed_parameter_is_an_error(client, kind, of, field, change):
    client.flushall()
    there = kind(client, "f", **KINDS[kind])
    there.update(keys())
    stored = json.loads(client.get("f:fullbloom"))
    client.set("f:fullbloom", json.dumps(stored | {field: change(stored[field])}, sort_keys=True))
    if of == "open before":
        if kind is RedisRollingFilter:  # which reads its manifest once a second
            there._storage.state.read_at = -1e9
            with pytest.raises(FullbloomError):
                there.contains_many(keys())
        else:
            assert all(there.contains_many(keys()))  # which knows what it was
        return
    with pytest.raises(FullbloomError):
        kind(client, "f").contains_many(keys())
    with pytest.raises(FullbloomError):
        asyncio.run(_look_up_async(kind, client.connection_pool.connection_kwargs["port"]))


@pytest.mark.timed
def test_opening_waits_for_creation_no_longer_than_the_timeout(server, client):
    client.flushall()
    RedisBloomFilter(client, "f", 1000)
    stored = json.loads(client.get("f:fullbloom"))
    client.set("f:fullbloom", json.dumps(stored | {"state": "building"}))
    with server.client(socket_timeout=0.3) as own:
        began = time.monotonic()
        with pytest.raises(EngineTimeout, match="not done"):
            RedisBloomFilter(own, "f")
        assert time.monotonic() - began < 1.5


class Liar:
    """A server that responds to each command with the same bytes, except those that clients send first."""

    def __init__(self, answer: bytes):
        self.answer = answer
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                here, _ = self.listening.accept()
                threading.Thread(target=self._serve, args=(here,), daemon=True).start()

    def _serve(self, here):
        with suppress(OSError, ValueError), here, here.makefile("rb") as commands:
            while line := commands.readline():
                words = [commands.read(int(commands.readline()[1:]) + 2) for _ in range(int(line[1:]))]
                greeting = words[0][:-2].upper() in {b"HELLO", b"CLIENT", b"SELECT"}
                here.sendall(b"+OK\r\n" if greeting else self.answer)

    def close(self):
        self.listening.close()


ANSWERS = [
    *(b"+OK\r\n", b":1\r\n", b":-1\r\n", b"$-1\r\n", b"*0\r\n", b"*-1\r\n", b"$0\r\n\r\n"),
    *(b"$5\r\nhello\r\n", b":99999999999999999999999999\r\n", b":x\r\n", b"$99999999999999999999\r\n"),
    *(b"*2\r\n:1\r\n$1\r\nx\r\n", b"*1\r\n" * 3000 + b":1\r\n", b"hello\r\n", b"\r\n"),
    *(b"-\x1b[2JERR \x1b]0;x\x07\r\n", b"-MOVED x y\r\n", b"-MOVED 1 127.0.0.1:99999999\r\n", b"-ASK\r\n"),
    *(b"$3\r\n\xff\xfe\xfd\r\n", b"%1\r\n+a\r\n+b\r\n"),
]
#: Each answer with one kind, and all of them with each kind with FULLBLOOM_LONG.
LIES = [
    pytest.param(kind, answer, id=f"{kind.__name__}-{answer[:20]!r}")
    for number, answer in enumerate(ANSWERS)
    for at, kind in enumerate(KINDS)
    if LONG or number % len(KINDS) == at
]


@pytest.mark.parametrize(("kind", "answer"), LIES)
def test_invalid_replies_of_a_server_are_one_error(kind, answer):
    liar = Liar(answer)
    try:
        with redis.Redis(port=liar.port, protocol=2, socket_timeout=0.2, retry=None) as client:
            with pytest.raises(FullbloomError) as result:
                kind(client, "f", **KINDS[kind]).update(keys())
            assert str(result.value).isprintable()

        async def main():
            async with redis.asyncio.Redis(port=liar.port, protocol=2, socket_timeout=0.2, retry=None) as own:
                with pytest.raises(FullbloomError):
                    there = await ASYNCHRONOUS[kind].open(own, "f", **KINDS[kind])
                    await there.update(keys())

        asyncio.run(main())
    finally:
        liar.close()


class Flood:
    """A server's connections, of which each answers the commands for cells with bytes that do not end."""

    #: Where a server would stop: its longest text.
    MOST = 512 << 20
    VERBS = (b"GETRANGE", b"GETBIT", b"SETBIT", b"BITFIELD", b"EVAL")

    def __init__(self, server):
        self.server = server
        #: What comes first, and what comes again and again.
        self.lie = None
        self.sent = 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                here, _ = self.listening.accept()
                there = socket.create_connection(("127.0.0.1", self.server.port))
                threading.Thread(target=self._commands, args=(here, there), daemon=True).start()
                threading.Thread(target=self._replies, args=(here, there), daemon=True).start()

    def _commands(self, here, there):
        with suppress(OSError), here, there:
            while data := here.recv(1 << 20):
                if self.lie is not None and any(verb in data for verb in self.VERBS):
                    first, more = self.lie
                    here.sendall(first)
                    while self.sent < self.MOST:
                        here.sendall(more)
                        self.sent += len(more)
                    return
                there.sendall(data)

    @staticmethod
    def _replies(here, there):
        with suppress(OSError):
            while data := there.recv(1 << 16):
                here.sendall(data)

    def close(self):
        self.listening.close()


FLOODS = {
    "text": (b"$%d\r\n" % Flood.MOST, b"x" * 65_536),
    "line": (b"+", b"x" * 65_536),
    "array": (b"*8\r\n", b":" + b"0" * 60_000 + b"\r\n"),
    "arrays": (b"", b"*1\r\n" * 10_000),
    "texts": (b"*65536\r\n", b"$16\r\n" + b"x" * 16 + b"\r\n"),
    "message": (b">65000\r\n", b"$60000\r\n" + b"x" * 60_000 + b"\r\n"),
}


@pytest.mark.parametrize("surface", ["threads", "asyncio"])
@pytest.mark.parametrize("lie", FLOODS)
def test_a_reply_longer_than_the_request_allows_is_refused(server, client, surface, lie):
    client.flushall()
    for kind, options in KINDS.items():
        kind(client, kind.__name__, **options).update(keys()[:200])
    flood = Flood(server)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    #: One key, and keys that go together.
    asks = [lambda f: f.contains_many(["a"]), lambda f: f.update(["a"]), lambda f: f.update(keys())]

    def refuse(kind, ask):
        with redis.Redis(port=flood.port, socket_timeout=60, retry=None) as own:
            there = kind(own, kind.__name__)
            flood.lie = FLOODS[lie]
            with pytest.raises(FullbloomError) as result:
                ask(there)
            flood.lie = None
        assert str(result.value).isprintable()

    async def refuse_async(kind, ask):
        async with redis.asyncio.Redis(port=flood.port, socket_timeout=60, retry=None) as own:
            there = await ASYNCHRONOUS[kind].open(own, kind.__name__)
            flood.lie = FLOODS[lie]
            with pytest.raises(FullbloomError):
                await ask(there)
            flood.lie = None

    try:
        for kind in KINDS:
            for ask in asks:
                flood.sent = 0
                if surface == "threads":
                    refuse(kind, ask)
                else:
                    asyncio.run(refuse_async(kind, ask))
                # What the sockets hold is the system's.
                assert flood.sent < 24 << 20, (kind.__name__, flood.sent)
    finally:
        flood.close()
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert kilobytes < 48 << 10


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter], ids=lambda kind: kind.__name__)
def test_every_surviving_client_detects_a_rolled_back_server(own_server, kind, monkeypatch):
    from fullbloom.engines.redis.storage import strings

    monkeypatch.setattr(strings, "RAISED_EVERY", 0.0)
    server = own_server()
    client = server.client()
    writer = kind(client, "f", 50_000, shards=2)
    reader, idle = kind(server.client(), "f"), kind(server.client(), "f")
    writer.update(range(1000))
    client.save()
    for start in range(1000, 20_000, 1000):
        writer.update(range(start, start + 1000))
    assert reader.contains_many(range(20_000))
    assert all(writer.verify() for _ in range(2))
    server.kill()
    server.start()
    for one in (writer, reader):
        for ask in (lambda one=one: one.contains_many(range(20_000)), lambda one=one: one.update([1])):
            with pytest.raises(FilterRolledBack, match="went back"):
                ask()
        result = one.verify()
        assert not result
        assert result.rolled_back
    idle.contains_many(range(10))  # it had seen nothing later
    kind(client, "f").update(range(1000, 20_000))
    with pytest.raises(FilterLost):
        writer.add(5)
    writer.clear()
    writer.update(range(20_000))
    assert writer.verify()
    assert all(reader.contains_many(range(20_000)))  # which finds out that the filter was cleared
    assert not writer.verify().rolled_back


def test_adds_of_other_clients_are_not_mistaken_for_a_rollback(server, monkeypatch):
    from fullbloom.engines.redis.storage import strings

    monkeypatch.setattr(strings, "RAISED_EVERY", 0.0)
    with server.client() as client:
        client.flushall()
        shared = RedisBloomFilter(client, "f", 50_000, shards=2)
        failed = []

        def add(number):
            try:
                for start in range(0, 3000, 50):
                    shared.update(range(number * 10_000 + start, number * 10_000 + start + 50))
            except FullbloomError as error:
                failed.append(error)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
        [thread.start() for thread in threads]
        [thread.join(60) for thread in threads]
        assert not failed
        assert shared.verify()
        assert len(strings_of(client, "f")) == 2


def test_acks_counts_the_confirmations_of_replicas(own_server, monkeypatch):
    from fullbloom.engines.redis.protocol import open as opening

    monkeypatch.setattr(opening, "_ACKS_TIMEOUT", 200)
    kinds = (RedisBloomFilter, RedisCountingFilter)
    master = own_server()
    client = master.client()
    for kind in kinds:
        there = kind(client, kind.__name__, 10_000, acks=1)
        for add in (lambda there=there: there.add("a"), lambda there=there: there.update(range(5000))):
            with pytest.raises(EngineUnavailable, match="0 of 1 replicas confirmed"):
                add()
        assert "a" in there
    replica = own_server(replicaof=f"127.0.0.1 {master.port}")
    deadline = time.monotonic() + 60
    while replica.client().info("replication")["master_link_status"] != "up":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    monkeypatch.setattr(opening, "_ACKS_TIMEOUT", 60_000)
    for kind in kinds:
        kind(client, kind.__name__, acks=1).update(range(5000, 6000))

    async def main():
        async with redis.asyncio.Redis(port=master.port) as own:
            for kind in kinds:
                again = await ASYNCHRONOUS[kind].open(own, kind.__name__, acks=1)
                await again.update(range(6000, 7000))
            monkeypatch.setattr(opening, "_ACKS_TIMEOUT", 300)
            for kind in kinds:
                with pytest.raises(EngineUnavailable):
                    await (await ASYNCHRONOUS[kind].open(own, kind.__name__, acks=3)).add("b")

    asyncio.run(main())
    for kind in kinds:
        for wrong in (-1, True, 1.0, "1"):
            with pytest.raises(FullbloomError, match="acks"):
                kind(client, kind.__name__, acks=wrong)
