"""Classes for threads and for asyncio have the same methods, parameters, answers and refusals."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from dataclasses import asdict, is_dataclass

import numpy as np
import pytest
import redis.asyncio
from engines.modules import Service
from engines.servers import needs_redis

from fullbloom import AsyncClient, BloomFilter, Client, hash_many
from fullbloom.client import AsyncRemoteFilter, RemoteFilter
from fullbloom.engines import redis as engine
from fullbloom.errors import EngineError

PAIRS = [
    (engine.RedisBloomFilter, engine.AsyncRedisBloomFilter),
    (engine.RedisCountingFilter, engine.AsyncRedisCountingFilter),
    (engine.RedisRollingFilter, engine.AsyncRedisRollingFilter),
    (engine.RedisBitmapFilter, engine.AsyncRedisBitmapFilter),
    (Client, AsyncClient),
    (RemoteFilter, AsyncRemoteFilter),
]
#: What an operator, a constructor or a context manager is called where it is awaited.
AWAITED = {
    "__contains__": "contains",
    "__ior__": "merge",
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "close": "aclose",
}
#: The class method that the constructor of the blocking class corresponds to.
OPENED = "open"


def surface(class_) -> dict[str, inspect.Signature]:
    """The public methods of a class and their parameters, under the names of what is awaited."""
    found = {}
    for name, member in inspect.getmembers_static(class_):
        if name in AWAITED.values() or name in AWAITED or not name.startswith("_"):
            if isinstance(member, property):
                found[name] = inspect.signature(member.fget)
            elif name != "_client":
                callable_ = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                if callable(callable_):
                    found[AWAITED.get(name, name)] = inspect.signature(callable_)
    found.pop(OPENED, None)
    return found


def same(signature: inspect.Signature) -> list[tuple]:
    """Names, kinds and defaults of the parameters, and their types without "Async"."""
    return [
        (
            one.kind is one.POSITIONAL_ONLY or one.name,
            one.kind,
            one.default,
            str(one.annotation).replace("Async", ""),
        )
        for one in signature.parameters.values()
    ]


@pytest.mark.parametrize(("plain", "waiting"), PAIRS)
def test_sync_and_async_classes_have_the_same_methods_and_parameters(plain, waiting):
    here, there = surface(plain), surface(waiting)
    assert set(here) == set(there)
    for name, signature in here.items():
        assert same(signature) == same(there[name]), name
    instance = inspect.signature(getattr(waiting, OPENED, waiting))
    assert same(inspect.signature(plain)) == same(instance)


class Plain:
    """Does a step with a filter for threads."""

    def __init__(self, classes, client):
        self.class_, self.client = classes[0], client

    def drive(self, steps):
        return steps(self)

    def do(self, there, name, *args, **options):
        if name == "contains":
            return args[0] in there
        if name == "merge":
            there |= args[0]
            return None
        found = getattr(there, name)
        return found(*args, **options) if callable(found) else found

    def make(self, how, *args, **options):
        instance = self.class_ if how == OPENED else getattr(self.class_, how)
        return instance(self.client, *args, **options)


class Waiting(Plain):
    """Does a step with a filter for asyncio, in one loop for all steps."""

    def __init__(self, classes, port, **options):
        self.class_, self.loop = classes[1], asyncio.new_event_loop()
        self.client = redis.asyncio.Redis(port=port, **options)

    def drive(self, steps):
        try:
            return steps(self)
        finally:
            self.loop.run_until_complete(self.client.aclose())
            self.loop.close()

    def do(self, there, name, *args, **options):
        found = getattr(there, name)
        return self.loop.run_until_complete(found(*args, **options)) if callable(found) else found

    def make(self, how, *args, **options):
        return self.loop.run_until_complete(getattr(self.class_, how)(self.client, *args, **options))


def to_plain(value):
    """An answer, so that those of both classes compare."""
    if isinstance(value, BloomFilter):
        return value.to_bytes()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if is_dataclass(value):
        return to_plain(asdict(value))
    if isinstance(value, dict):
        return {
            key: to_plain(one)
            for key, one in value.items()
            if key not in {"id", "used_memory", "nodes", "expires"}
        }
    if isinstance(value, (str, bytes, int, float, list, tuple, type(None))):
        return value.replace("Async", "") if isinstance(value, str) else value
    return re.sub("Async|at 0x[0-9a-f]+", "", repr(value))


def outcome(ask):
    """The answer, or the kind of the error and what it says."""
    try:
        return to_plain(ask())
    except Exception as error:  # noqa: BLE001 - any is an outcome
        kinds = [kind.__name__ for kind in type(error).__mro__]
        said = re.sub("Async|[0-9a-f]{16,}|at 0x[0-9a-f]+|[.]asyncio", "", str(error))
        return kinds, said.replace("redis.RedisCluster", "")


def bloom(face):
    local, keyed = (
        BloomFilter(2000, layout="blocked", seed=3),
        BloomFilter(2000, layout="blocked", secret=b"x" * 16),
    )
    local.update(range(900))
    keys, log = np.arange(500), []

    def step(do):
        log.append(outcome(do))

    for name, options in (
        ("nobody", {}),
        ("f", {"capacity": 2000, "fpr": 1.5}),
        ("f", {"capacity": 2000, "shards": 10**9}),
        ("f", {"capacity": 2000, "backend": "else"}),
        ("f", {"capacity": 2000, "ttl": 0}),
        ("", {"capacity": 2000}),
    ):
        step(lambda name=name, options=options: face.make("open", name, **options))
    step(lambda: face.make("find", "f"))
    step(lambda: face.make("plan", 10_000, 0.001, batch=10))
    there = face.make("open", "f", 2000, shards=3, seed=3)
    step(lambda: face.make("open", "f", 3000))
    step(lambda: face.make("find", "f"))
    for name, *args in (
        ("add", "a"),
        ("add", "a"),
        ("add", object()),
        ("contains", "a"),
        ("contains", "b"),
        ("contains", None),
        ("update", ["b", "c"], iter(["d"])),
        ("update", 5),
        ("add_many", keys),
        ("add_many", ["x", "x", 7]),
        ("contains_many", np.arange(1000)),
        ("contains_many", iter(["x", "nobody"])),
        ("contains_many", "text"),
        ("add_hashed", hash_many(["h1", "h2"], seed=3)),
        ("contains_hashed", hash_many(["h1", "h2", "h3"], seed=3)),
        ("contains_hashed", [1, 2**64]),
        ("contains_hashed", [0.5]),
        ("fpr",),
        ("approx_count",),
        ("fill",),
        ("dump",),
        ("verify",),
        ("info",),
        ("load", local),
        ("load", BloomFilter(10)),
        ("load", "text"),
        ("contains_many", keys),
        ("merge", keyed),
        ("merge", 7),
        ("reshard", 5),
        ("reshard", 0),
        ("reshard", 10**9),
        ("dump",),
        ("clear",),
        ("contains_many", keys),
        ("merge", local),
        ("dump",),
    ):
        step(lambda name=name, args=args: face.do(there, name, *args))
    step(lambda: face.make("from_filter", "g", local, shards=5))
    step(lambda: face.make("from_filter", "g", local, shards=5, secret=b"y" * 16))
    step(lambda: face.make("from_filter", "k", keyed))
    step(lambda: face.make("from_filter", "k", "text"))
    other = face.make("open", "g")
    face.do(other, "add", "of g")
    step(lambda: face.do(there, "merge", other))
    step(lambda: face.do(there, "contains", "of g"))
    step(lambda: face.do(face.make("open", "h", 2000, ttl=3600), "info"))
    step(lambda: face.do(there, "merge", face.make("open", "h")))
    step(lambda: face.do(there, "delete"))
    step(lambda: face.do(there, "delete"))
    for name, *args in (
        ("add", 1),
        ("contains", 1),
        ("dump",),
        ("clear",),
        ("load", local),
        ("verify",),
        ("fpr",),
    ):
        step(lambda name=name, args=args: face.do(there, name, *args))
    return log


#: What filters of every kind do at first.
FIRST = (
    ("add", "a"),
    ("add", "a"),
    ("add", object()),
    ("contains", "a"),
    ("contains", "b"),
    ("update", np.arange(300), ["x", "x"]),
    ("update", 5),
    ("add_many", ["x", "y"]),
    ("contains_many", np.arange(400)),
    ("info",),
)
#: What they do at last: they are deleted, and what follows finds nothing.
LAST = (
    ("clear",),
    ("contains_many", ["x"]),
    ("delete",),
    ("delete",),
    ("add", 1),
    ("contains", 1),
    ("clear",),
)


def script(face, refusals, options, other, own):
    """Options that are refused, then a filter: what all do, and between it what is its own."""
    log = [outcome(lambda refusal=refusal: face.make("open", "f", **refusal)) for refusal in ({}, *refusals)]
    there = face.make("open", "f", 1000, shards=2, **options)
    log.append(outcome(lambda: face.make("open", "f", **other)))
    for name, *args in (*FIRST, *own, *LAST, *own[-1:]):
        log.append(outcome(lambda name=name, args=args: face.do(there, name, *args)))
    return log


def counting(face):
    own = (
        ("count", "a"),
        ("remove", "a"),
        ("remove", "nobody"),
        ("discard", "a"),
        ("discard", "a"),
        ("discard_many", ["y", "y"]),
        ("count_many", np.arange(400)),
        ("counters",),
        ("verify",),
    )
    refusals = {"capacity": 1000, "counter_bits": 3}, {"capacity": 1000, "fpr": 0}
    return script(face, refusals, {"counter_bits": 4}, {"counter_bits": 8}, own)


def rolling(face):
    refusals = (
        {"capacity": 1000},
        {"capacity": 1000, "window": 0},
        {"capacity": 10, "window": 1, "generations": 1},
    )
    return script(face, refusals, {"window": 36_000, "generations": 4}, {"window": 5}, (("fpr",),))


def refusals(face):
    """A server that takes no changes: each kind, each way of asking."""
    log = []
    for number, (class_, options) in enumerate(
        zip(
            [pair[isinstance(face, Waiting)] for pair in PAIRS[:3]],
            ({"shards": 3}, {"shards": 3}, {"shards": 3, "window": 3600}),
            strict=True,
        )
    ):
        face.class_ = class_
        there = face.make("open", f"r{number}", 2000, **options)
        face.memory(1)
        for name, arg in (
            ("add", "secret"),
            ("add_many", list(range(100))),
            ("update", [1]),
            ("add_many", np.arange(9000)),
        ):
            log.append(outcome(lambda there=there, name=name, arg=arg: face.do(there, name, arg)))
            assert "EngineFull" in log[-1][0]
            assert "ExceptionGroup" not in log[-1][0]
        log.append(outcome(lambda there=there: face.do(there, "clear")))
        face.memory(0)
        log.append(outcome(lambda there=there: face.do(there, "add", "secret")))
    return log


@needs_redis
@pytest.mark.parametrize(
    ("steps", "pair"),
    list(zip((bloom, counting, rolling, refusals), [*PAIRS[:3], PAIRS[0]], strict=True)),
)
def test_sync_and_async_classes_return_and_refuse_alike(own_server, steps, pair):
    server, logs = own_server(), []
    with server.client() as client:
        for face in (Plain(pair, client), Waiting(pair, server.port)):
            client.flushall()
            face.memory = lambda limit: client.config_set("maxmemory", limit)
            logs.append(face.drive(steps))
    assert len(logs[0]) > 10
    for number, (here, there) in enumerate(zip(*logs, strict=True)):
        assert here == there, number


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    pytest.importorskip("fullbloom_server", reason="needs the wheel fullbloom-server")
    running = Service(tmp_path_factory.mktemp("service"))
    yield running
    running.kill()


def test_module_filters_refuse_string_operations_before_sending(service):
    local = BloomFilter(1000, layout="blocked")
    local.add("else")

    def steps(face):
        there, log = face.make("open", "m", 1000, backend="module"), []
        face.do(there, "update", ["a", "b"])
        for name, *args in (("load", local), ("dump",), ("fill",), ("merge", local), ("reshard", 3)):
            log.append(outcome(lambda name=name, args=args: face.do(there, name, *args)))
            assert EngineError.__name__ in log[-1][0]
            assert face.do(there, "contains_many", ["a", "b", "else"]) == [True, True, False]
        log += [face.do(there, "contains", "a"), to_plain(face.do(there, "verify")), face.do(there, "delete")]
        return log

    logs = [
        face.drive(steps) for face in (Plain(PAIRS[0], service.client()), Waiting(PAIRS[0], service.port))
    ]
    assert logs[0] == logs[1]


@needs_redis
@pytest.mark.parametrize("face", [Plain, Waiting])
def test_a_loaded_filter_becomes_ready_after_its_keys_are_written(server, client, face, monkeypatch):
    local = BloomFilter(200_000, layout="blocked")
    local.update(range(100_000))
    ones, states = int(np.unpackbits(np.frombuffer(local, np.uint8)).sum()), []
    client.flushall()

    def look():
        stored = client.get("f:fullbloom")
        state = "missing" if stored is None else json.loads(stored)["state"]
        found = sum(client.bitcount(key, 0, -17) for key in client.scan_iter("f:bits*"))
        assert state != "ready" or found == ones
        states.append(state)

    instance = face(PAIRS[0], client) if face is Plain else face(PAIRS[0], server.port)
    own = instance.client = server.client() if face is Plain else instance.client
    real = own.execute_command
    if face is Plain:
        monkeypatch.setattr(own, "execute_command", lambda *words, **how: (look(), real(*words, **how))[1])
    else:

        async def execute(*words, **how):
            look()
            return await real(*words, **how)

        monkeypatch.setattr(own, "execute_command", execute)
    instance.drive(lambda face: face.make("from_filter", "f", local, shards=2))
    look()
    assert {"missing", "building", "ready"} <= set(states)


def steps_of_a_client(client, do, each):
    """The same requests of a service over a client, waited for by ``do``."""
    log = []

    def step(ask):
        log.append(outcome(lambda: do(ask())))

    step(lambda: client.create("s", 1000, fpr=0.001, kind="counting", keyed=False, seed=1))
    step(lambda: client.create("s", 1000))
    step(lambda: client.create("t", -1))
    there = client.filter("s")
    for name, *args in (
        ("add", "a"),
        ("add", "a"),
        ("count", "a"),
        ("update", ["b", "c\nd", 5]),
        ("add_many", ["b", "e"]),
        ("contains_many", ["b", "e", "x"]),
        ("remove", "b"),
        ("remove_many", ["e", "nobody"]),
        ("dump",),
        ("merge", "s"),
        ("merge", "nobody"),
        ("restore", b"none"),
        ("clear",),
        ("contains_many", ["a"]),
    ):
        step(lambda name=name, args=args: getattr(there, name)(*args))
    local = BloomFilter(1000)
    local.add("a")
    step(lambda: client.filter("u").restore(local.to_bytes()))
    step(lambda: client.filter("u").restore(local.to_bytes()))
    step(lambda: client.filter("u").restore(local.to_bytes(), replace=True))
    log.append(sorted(set(do(client.filter("u").info()))))
    log.append(each(client.names("")))
    step(lambda: client.delete("u"))
    step(lambda: client.delete("u"))
    step(lambda: client.filter("u").clear())
    log.append([repr(there).replace("Async", "")])
    step(lambda: client.delete("s"))
    return log


def test_sync_and_async_http_clients_return_and_refuse_alike(service):
    with Client(service.url) as client:
        logs = [steps_of_a_client(client, lambda value: value, list)]
        client.create("s", 10)
        assert ("s" in client, "none" in client, "a" in client.filter("s")) == (True, False, False)
        client.delete("s")

    async def collect_names(names):
        return [name async for name in names]

    with asyncio.Runner() as runner:
        client = AsyncClient(service.url)

        def do(value):
            async def awaited():
                return await value

            return runner.run(awaited()) if inspect.isawaitable(value) else value

        logs.append(steps_of_a_client(client, do, lambda names: runner.run(collect_names(names))))
        do(client.create("s", 10))
        found = do(client.contains("s")), do(client.contains("none")), do(client.filter("s").contains("a"))
        assert found == (True, False, False)
        do(client.delete("s"))
        do(client.aclose())
    assert len(logs[0]) > 20
    for number, (here, there) in enumerate(zip(*logs, strict=True)):
        assert here == there, number
