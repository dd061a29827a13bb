"""Filters that a server has of its own, behind the same class, where it answers that it has them.

The package's own service is one of them, with keyed filters and, plain, with RedisBloom's.
BLOOMERY_REDISBLOOM names RedisBloom's module for redis-server, BLOOMERY_VALKEY and BLOOMERY_VALKEY_BLOOM a
valkey-server and its module.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
import uuid
from math import inf

import numpy as np
import pytest
import redis
from engines import servers
from engines.servers import Server, needs_redis
from service.conftest import Running

from bloomery import IncompatibleFilters, ParameterError, hash_key
from bloomery.engines.redis import (
    AsyncRedisBloomFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
    opening,
)
from bloomery.engines.redis.opening import Wanted
from bloomery.engines.redis.transport import Transport
from bloomery.errors import EngineError, EngineRefused, EngineTimeout, FilterLost

SERVICES = {"service": (), "plain service": ("--plain",)}
PROGRAMS = {
    "redisbloom": (servers.REDIS, os.environ.get("BLOOMERY_REDISBLOOM")),
    "valkey-bloom": (os.environ.get("BLOOMERY_VALKEY"), os.environ.get("BLOOMERY_VALKEY_BLOOM")),
}


class Service(Running):
    """`bloomery serve`, as the tests have servers."""

    def __init__(self, folder, *options, **environment):
        super().__init__(folder, *options, BLOOMERY_RESP_FLUSH="true", **environment)

    @property
    def port(self):
        return int(self.resp.rpartition(":")[2])

    def client(self, **options):
        return redis.Redis(port=self.port, **options)


@pytest.fixture(scope="module", params=[*PROGRAMS, *SERVICES])
def running(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    if request.param in SERVICES:
        pytest.importorskip("bloomery_server", reason="needs the wheel bloomery-server")
        started = Service(folder, *SERVICES[request.param])
        yield started
        started.kill()
        return
    program, module = PROGRAMS[request.param]
    if not program or not module:
        pytest.skip("needs BLOOMERY_REDISBLOOM, or BLOOMERY_VALKEY and BLOOMERY_VALKEY_BLOOM")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "REDIS", program)
        started = Server(folder, loadmodule=module)
        yield started
        started.kill()


@pytest.fixture(params=[2, 3])
def client(request, running):
    with running.client(protocol=request.param) as made:
        made.flushall()
        yield made


@pytest.fixture
def service(tmp_path):
    """A function that starts a service for one test."""
    pytest.importorskip("bloomery_server", reason="needs the wheel bloomery-server")
    started = []

    def start(*options):
        started.append(Service(tmp_path / f"service{len(started)}", *options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_keys_of_every_kind_are_told_by_their_hash(client):
    f = RedisBloomFilter(client, "f", 10_000, 0.001, backend="auto", seed=5)
    assert f.manifest.backend == "module"
    assert f.add("a")
    assert not f.add("a")
    assert f.add(5)
    assert f.add_many(["a", 7, 7]) == [False, True, False]
    assert (f.contains_many(np.array([5, 7, 9])) == [True, True, False]).all()
    assert "5" not in f
    (key,) = [key for key in client.scan_iter() if key.startswith(b"f:bits:")]
    assert client.execute_command("BF.EXISTS", key, hash_key(5, seed=5).to_bytes(8, "little"))
    f.update(range(10_000))
    assert f.contains_many(range(10_000)) == [True] * 10_000
    wrong = sum(f.contains_many(range(10**6, 10**6 + 20_000)))
    assert wrong <= 20 + 6 * 20**0.5  # at most 0.001, and six deviations of 20,000 trials
    number, deviation = f.approx_count()
    assert abs(number - 10_003) <= 6 * max(deviation, 10)
    assert f.info()["backend"] == "module"
    assert "fill" not in f.info()
    assert f.verify()


def test_every_client_goes_by_the_manifest(client):
    made = RedisBloomFilter(client, "f", 1000, backend="module", secret=bytes(16))
    made.add("k")
    again = RedisBloomFilter(client, "f", secret=bytes(16))
    assert again.manifest == made.manifest
    assert "k" in again
    with pytest.raises(IncompatibleFilters, match=r"backend .'module' there, 'strings' asked for"):
        RedisBloomFilter(client, "f", backend="strings", secret=bytes(16))
    with pytest.raises(IncompatibleFilters, match="secret"):
        RedisBloomFilter(client, "f")


def test_what_only_strings_have_is_refused_and_names_the_remedy(client, running):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    for ask in (
        f.dump,
        lambda: f.load(None),
        lambda: f.fill,
        lambda: f.__ior__(RedisBloomFilter(client, "f")),
    ):
        with pytest.raises(EngineError, match="backend='strings'"):
            ask()
    with pytest.raises(ParameterError, match="shards"):
        RedisBloomFilter(client, "g", 1000, backend="module", shards=2)
    if isinstance(running, Service):
        with pytest.raises(EngineError, match="no strings that hold cells"):
            RedisBloomFilter(client, "g", 1000, backend="auto", shards=2)
    else:
        assert RedisBloomFilter(client, "g", 1000, backend="auto", shards=2).manifest.backend == "strings"


def test_a_filter_that_is_gone_is_told_and_not_made_anew_by_an_add(client):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    f.update(["a", "b"])
    (key,) = f._there.names.bits
    client.delete(key)
    for ask in (lambda: "a" in f, lambda: f.add("c"), lambda: f.update(range(100))):
        with pytest.raises(FilterLost):
            ask()
    assert not client.exists(key)
    told = f.verify()
    assert not told
    assert told.shards_lost == (0,)
    assert f.delete()
    assert list(client.scan_iter()) == []


def test_cleared_is_empty_for_every_client(client):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    g = RedisBloomFilter(client, "f")
    g.update(range(100))
    f.clear()
    assert g.contains_many(range(100)) == [False] * 100
    assert g.verify()
    assert client.pttl(f._there.names.bits[0]) == -1


def test_a_filter_ends_at_its_moment_and_is_made_anew_by_the_next_add(client):
    f = RedisBloomFilter(client, "f", 1000, backend="module", ttl=0.5)
    g = RedisBloomFilter(client, "f")
    f.update(range(100))
    (key,) = f._there.names.bits
    f._there.ends = g._there.ends = inf  # clients that do not know that it is over
    while client.exists(key):
        time.sleep(0.01)
    assert g.contains_many(range(100)) == [False] * 100
    assert g.approx_count()[0] == 0
    assert g.verify()
    object.__setattr__(f.manifest, "ttl", 3600.0)
    object.__setattr__(g.manifest, "ttl", 3600.0)
    assert all(f.add_many(range(100)))
    assert g.contains_many(range(100)) == [True] * 100
    assert f.manifest.backend == "module"
    assert {client.pexpiretime(key) for key in client.scan_iter()} == {f.manifest.expires}
    assert len(list(client.scan_iter())) == 2
    before = f.manifest.expires
    time.sleep(0.002)
    f.clear()
    assert client.pexpiretime(f._there.names.bits[0]) == f.manifest.expires > before


@pytest.mark.parametrize("killed", range(1, 12))
def test_a_client_that_dies_while_it_makes_one_leaves_nothing_that_stays(client, killed):
    transport, sent = Transport(client, "f"), []

    class Died(BaseException):
        pass

    def asked(ask):
        if len(sent) == killed:
            raise Died
        sent.append(ask.words[0])
        return Transport._called(transport, ask)

    transport._called = asked
    try:
        transport.run(opening.opened(Wanted("f", 1000, backend="module")))
    except Died:
        closing = b"closing" in (client.get("f:bloomery") or b"")
        assert closing or all(client.pttl(key) > 0 for key in client.scan_iter()), sent
    else:
        assert killed > 8


@needs_redis
@pytest.mark.parametrize("backend", ["auto", "module"])
def test_a_server_without_them_is_asked_and_not_guessed(server, backend):
    name = f"f{uuid.uuid4().hex}"
    with server.client() as plain:
        if backend == "auto":
            assert RedisBloomFilter(plain, name, 1000, backend=backend).manifest.backend == "strings"
        else:
            with pytest.raises(EngineError, match=r"BF\.RESERVE"):
                RedisBloomFilter(plain, name, 1000, backend=backend)
            assert not list(plain.scan_iter(f"{name}*"))
    with pytest.raises(ParameterError, match="backend"):
        RedisBloomFilter(plain, name, 1000, backend="guess")


def test_tasks_have_it_as_threads_do(running, client):
    protocol = client.connection_pool.connection_kwargs["protocol"]

    async def told():
        async with redis.asyncio.Redis(port=running.port, protocol=protocol) as waiting:
            f = await AsyncRedisBloomFilter.open(waiting, "f", 10_000, 0.001, backend="auto", seed=5)
            assert f.manifest.backend == "module"
            assert await f.add("a")
            assert not await f.add("a")
            assert await f.add_many(["a", 7, 7]) == [False, True, False]
            assert await f.contains_many(["a", 7, "absent"]) == [True, True, False]
            new = await asyncio.gather(*(f.add(key) for key in range(1000)))
            assert sum(new) >= 990
            assert all(await asyncio.gather(*(f.contains(key) for key in range(1000))))
            assert await f.verify()
            with pytest.raises(EngineError, match="backend='strings'"):
                await f.dump()
            again = await AsyncRedisBloomFilter.open(waiting, "f", seed=5)
            await again.clear()
            assert await f.contains_many(range(100)) == [False] * 100
            assert await f.verify()
            with pytest.raises(IncompatibleFilters, match="capacity"):
                await AsyncRedisBloomFilter.open(waiting, "f", 20_000, seed=5)
            assert await f.delete()

    asyncio.run(told())
    assert RedisBloomFilter.find(client, "f") is None


def test_of_two_who_make_it_unlike_one_is_told(running, client):
    met, told = threading.Barrier(2), []

    def make(capacity):
        with running.client() as own:
            own.ping()
            met.wait()
            try:
                told.append(RedisBloomFilter(own, "f", capacity, backend="module").capacity)
            except IncompatibleFilters as error:
                told.append(str(error))

    for _ in range(5):
        threads = [threading.Thread(target=make, args=(capacity,)) for capacity in (1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (made,), (refused,) = ([one for one in told if isinstance(one, kind)] for kind in (int, str))
        assert f"capacity ({made} there, {3000 - made} asked for)" in refused
        f = RedisBloomFilter(client, "f")
        assert f.add("a")
        f.delete()
        told.clear()
        assert list(client.scan_iter()) == []


def test_what_was_begun_and_left_goes_by_itself(client, monkeypatch):
    from bloomery.engines.redis import creation

    with monkeypatch.context() as patch:
        patch.setattr(creation, "_BUILT_WITHIN", 300)
        patch.setattr(creation, "_undone", lambda *_: iter(()))

        def stop(*_):
            raise EngineError("stopped")
            yield

        patch.setattr(creation, "_closed", stop)
        with pytest.raises(EngineError, match="stopped"):
            RedisBloomFilter(client, "f", 1000, backend="module")
        assert client.exists("f:bloomery")
    # Who comes meanwhile waits until it is gone, or brings it to its end.
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    assert f.add("a")
    assert all(client.pttl(key) == -1 for key in client.scan_iter())


def test_a_building_manifest_that_expires_makes_room(client, monkeypatch):
    from bloomery.engines.redis import creation

    new = Wanted("f", 1000, backend="module").manifest("module")
    client.set("f:bloomery", new.to_bytes(), nx=True, px=400)
    assert RedisBloomFilter(client, "f", 2000, backend="module").capacity == 2000
    client.delete("f:bloomery")
    client.set("f:bloomery", new.to_bytes(), nx=True, px=60_000)
    monkeypatch.setattr(creation, "_WAITS", 2)
    with pytest.raises(EngineTimeout):
        RedisBloomFilter(client, "f", 1000, backend="module")


@pytest.mark.parametrize("options", SERVICES.values(), ids=SERVICES)
def test_a_service_that_keeps_what_it_acknowledged_has_lost_nothing(service, options):
    running = service("--durability", "always", *options)
    f = RedisBloomFilter(running.client(), "f", 10_000, backend="auto")
    f.update(range(5000))
    f.clear()
    f.update(range(5000))
    running.kill()
    running.start()
    again = RedisBloomFilter(running.client(), "f")
    assert again.manifest == f.manifest
    assert again.contains_many(range(5000)) == [True] * 5000
    f._transport.client = running.client()  # the port is another one
    told = f.verify()
    assert told
    assert told.restarted
    assert told.keys_checked == 4096


@pytest.mark.parametrize("options", SERVICES.values(), ids=SERVICES)
def test_a_service_that_comes_back_as_it_was_before_has_lost_the_last_keys_and_says_so(service, options):
    running = service(*options)
    f = RedisBloomFilter(running.client(), "f", 10_000, backend="auto")
    f.update(range(3000))
    running.client().save()
    data, copy = running.folder / "data", running.folder / "copy"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock"))
    f.update(range(10**6, 10**6 + 500))
    late = RedisBloomFilter(running.client(), "late", 1000, backend="auto")
    late.update(["a", "b", "c"])
    running.kill()
    shutil.rmtree(data)
    copy.rename(data)
    running.start()
    f._transport.client = late._transport.client = running.client()
    told = f.verify()
    assert not told
    assert told.restarted
    assert told.shards_lost == ()
    assert 480 <= told.keys_lost <= 500  # at most 1 %, and six deviations of 500 trials
    assert f.contains_many(range(3000)) == [True] * 3000
    assert not late.verify()
    assert late.verify().replaced
    with pytest.raises(FilterLost):
        late.add("d")
    running.kill()
    shutil.rmtree(data)  # nothing was kept
    running.start()
    f._transport.client = running.client()
    told = f.verify()
    assert told.replaced
    assert told.keys_lost == told.keys_checked == 3500
    with pytest.raises(FilterLost):
        f.add("d")


@pytest.mark.parametrize("options", SERVICES.values(), ids=SERVICES)
def test_a_service_has_no_strings_and_says_what_to_take(service, options):
    client = service(*options).client()
    for backend, asked in (
        (None, {}),
        ("strings", {}),
        ("auto", {"shards": 2}),
        ("auto", {"layout": "classic"}),
    ):
        with pytest.raises(EngineError, match=r"no strings that hold cells .* take backend='module'"):
            RedisBloomFilter(client, "f", 1000, backend=backend, **asked)
    for kind, asked in ((RedisCountingFilter, {}), (RedisRollingFilter, {"window": 60})):
        with pytest.raises(EngineError, match="no strings that hold cells"):
            kind(client, "f", 1000, **asked)
    assert client.dbsize() == 0
    with pytest.raises(EngineError, match="1 to 128"):
        RedisBloomFilter(client, "a/b", 1000, backend="module")
    assert client.dbsize() == 0


def test_a_service_asks_who_comes_and_refuses_what_a_token_may_not(service):
    running = service()
    made = running.http.post("/v1/tokens", json={"name": "all", "scopes": ["read", "write", "admin"]}).json()
    bearer = {"authorization": f"Bearer {made['token']}"}
    tokens = {
        name: running.http.post("/v1/tokens", headers=bearer, json={"name": name, **rights}).json()["token"]
        for name, rights in {
            "reader": {"scopes": ["read"]},
            "tenant": {"scopes": ["read", "write"], "patterns": ["mine:*", "{mine:*"]},
        }.items()
    }
    with pytest.raises(EngineRefused, match="password"):
        RedisBloomFilter(running.client(), "mine:f", 1000, backend="module")
    with pytest.raises(EngineRefused, match="does not know this user") as told:
        RedisBloomFilter(running.client(password="not-this-one"), "mine:f", 1000, backend="module")
    assert "not-this-one" not in str(told.value)
    reader = running.client(password=tokens["reader"])
    with pytest.raises(EngineRefused, match="does not allow"):
        RedisBloomFilter(reader, "mine:f", 1000, backend="module")
    tenant = running.client(password=tokens["tenant"])
    with pytest.raises(EngineRefused, match="does not allow"):
        RedisBloomFilter(tenant, "theirs:f", 1000, backend="module")
    f = RedisBloomFilter(tenant, "mine:f", 1000, backend="module")
    assert f.add("a")
    f.clear()
    assert f.add("a")
    looked = RedisBloomFilter(reader, "mine:f")
    assert "a" in looked
    with pytest.raises(EngineRefused, match="does not allow"):
        looked.add("b")
    assert looked.verify()
    with running.client(password=made["token"]) as admin:
        assert {key.decode() for key in admin.scan_iter("theirs*")} == set()


def test_it_is_there_at_every_moment_while_it_is_cleared(running, client):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    stop, told = threading.Event(), []

    def go_on():
        with running.client() as own:
            g = RedisBloomFilter(own, "f")
            try:
                while not stop.is_set():
                    g.add_many(range(50))
                    g.contains_many(range(50))
            except EngineError as error:
                told.append(error)

    threads = [threading.Thread(target=go_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        f.clear()
    stop.set()
    for thread in threads:
        thread.join()
    assert not told


def test_names_on_a_service_have_room_for_the_keys_made_of_them(service):
    client = service().client()
    f = RedisBloomFilter(client, "n" * 83, 1000, backend="module")
    f.add("a")
    f.clear()
    assert f.add("a")
    f = RedisBloomFilter(client, "n" * 84, 1000, backend="module")
    f.add("a")
    with pytest.raises(EngineError, match="a name is 1 to 128"):
        f.clear()
    assert "a" in f
    assert f.verify()
    tagged = RedisBloomFilter(client, "{tenant}:seen", 1000, backend="module")
    tagged.clear()
    assert tagged.add("a")
