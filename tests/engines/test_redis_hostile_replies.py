"""A server that answers one command with nonsense causes one error of the package, after few requests."""

from __future__ import annotations

import pytest
import redis
from engines.servers import needs_redis
from support import LONG

from fullbloom import BloomFilter
from fullbloom.engines import redis as engine
from fullbloom.engines.redis import protocol
from fullbloom.engines.redis.protocol import create
from fullbloom.engines.redis.storage import strings
from fullbloom.engines.redis.transport import connect
from fullbloom.engines.redis.transport.sync_transport import Transport
from fullbloom.errors import EngineError, FullbloomError

pytestmark = needs_redis

REPLIES = [
    *(None, True, False, 0, 1, -5, 1 << 62, 1 << 63, 1.5, float("inf"), float("nan")),
    *(b"", b"x", "x", b"OK", [], [[]], [1, 2], [b"a"], [float("inf"), 0], {}),
    EngineError("the command is refused"),
]
LOCAL = BloomFilter(3000, layout="blocked")


def open_bitmap(client, name):
    client.setbit(name, 999, 0)
    return engine.RedisBitmapFilter(client, name, "md5-double", 1000, 3)


#: What each kind of filter does, each with a new filter.
KINDS = {
    "bloom": (
        lambda client, name: engine.RedisBloomFilter(client, name, 3000, shards=2),
        ["add", "fpr", "approx_count", "verify", "dump", "clear", "delete"],
        [lambda f: f.load(LOCAL), lambda f: f.reshard(3), lambda f: f.__ior__(LOCAL), lambda f: f.fill],
    ),
    "ttl": (
        lambda client, name: engine.RedisBloomFilter(client, name, 3000, ttl=100),
        ["add", "verify", "clear", "dump"],
        [lambda f: "a" in f],
    ),
    "counting": (
        lambda client, name: engine.RedisCountingFilter(client, name, 3000, shards=2),
        ["add", "discard", "counters", "verify", "clear", "delete"],
        [],
    ),
    "rolling": (
        lambda client, name: engine.RedisRollingFilter(client, name, 3000, shards=2, window=60),
        ["add", "fpr", "verify", "clear", "delete"],
        [lambda f: f.add_many(range(100))],
    ),
    "bitmap": (open_bitmap, ["add", "fpr", "dump"], [lambda f: f.fill, lambda f: f.verify(["a"])]),
}
NEEDS_KEY = {"add", "discard"}


def list_operations(kind):
    _, names, others = KINDS[kind]
    yield None
    for name in names:
        yield lambda f, name=name: getattr(f, name)(*(["a"] if name in NEEDS_KEY else []))
    yield from others


class Liar:
    """Answers one command with the same value, once it lies; counts the commands."""

    def __init__(self, monkeypatch):
        self.verb, self.reply, self.lies, self.seen = None, None, 0, {}
        real = Transport._call

        def call(transport, request):
            verb = request.words[0]
            self.seen[verb] = self.seen.get(verb, 0) + 1
            if verb != self.verb:
                return real(transport, request)
            self.lies += 1
            if self.lies > 1500:
                raise SystemExit("it asks without end")
            if isinstance(self.reply, Exception):
                raise self.reply
            return self.reply

        monkeypatch.setattr(Transport, "_call", call)
        monkeypatch.setattr(Transport, "_call_all", lambda own, calls: [own._call(one) for one in calls])


@pytest.mark.parametrize("scripts", ["scripts", "no scripts"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_nonsensical_reply_to_one_command_is_one_error(server, name, monkeypatch, kind, scripts):
    for module in (protocol, create):
        monkeypatch.setattr(module, "_WAIT", 0.0)  # many attempts, without their pauses
    monkeypatch.setattr(protocol, "_MAX_WAIT_FOR_OTHERS", 0.1)
    monkeypatch.setattr(strings, "RAISED_EVERY", 0.0)
    liar, open_filter = Liar(monkeypatch), KINDS[kind][0]
    user = {}
    if scripts == "no scripts":
        user = {"username": "plain", "password": "x"}
        with server.client() as admin:
            admin.acl_setuser(
                "plain", enabled=True, passwords="+x", keys="*", commands=["+@all", "-@scripting"]
            )
    number = 0
    with server.client(socket_timeout=5, **user) as client:
        for operation in list_operations(kind):

            def run(verb=None, reply=None, operation=operation):
                client.flushall()
                liar.verb, liar.lies = (verb if operation is None else None), 0
                liar.reply = reply
                filter_ = open_filter(client, name)
                if operation is not None:
                    filter_.add("before")
                    liar.verb = verb
                    liar.seen.clear()
                    operation(filter_)

            liar.seen.clear()
            run()
            for verb in sorted(liar.seen):
                for reply in REPLIES:
                    number += 1
                    if LONG or number % 3 == 0:
                        try:
                            run(verb, reply)
                        except FullbloomError as error:
                            assert str(error).isprintable()
    assert number > 100


@pytest.mark.parametrize(
    "reply", [b"+OK\r\n", b"*0\r\n", b"*1\r\n*1\r\n:1\r\n", b":1\r\n", b"$-1\r\n", b"%1\r\n:1\r\n:2\r\n"]
)
def test_a_server_that_reports_nonsense_is_no_cluster(reply):
    from engines.test_redis_hostile_servers import Liar as Server

    server = Server(reply)
    try:
        for protocol_version in (2, 3):
            url = f"redis://127.0.0.1:{server.port}?protocol={protocol_version}"
            try:
                client = connect(url, "f", timeout=0.3)
            except FullbloomError as error:
                assert str(error).isprintable()
            else:
                assert isinstance(client, redis.Redis)
    finally:
        server.close()
