"""Filters that a server has of its own are there or not, whoever meets, dies or is cut off on the way."""

from __future__ import annotations

import threading

import pytest
import redis
from engines.modules import client, running
from engines.proxy import CuttingProxy
from engines.test_redis_disconnects import walked
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from fullbloom import IncompatibleFilters
from fullbloom.engines.redis import (
    RedisBloomFilter,
    protocol,
)
from fullbloom.engines.redis.protocol import create
from fullbloom.engines.redis.protocol.open import OpenOptions
from fullbloom.engines.redis.storage.foreign import open_strings
from fullbloom.engines.redis.transport.sync_transport import Transport
from fullbloom.errors import EngineError, EngineTimeout

__all__ = ["client", "running"]  # fixtures


@pytest.mark.parametrize("killed", range(1, 12))
def test_a_client_that_dies_during_creation_leaves_only_expiring_keys(client, killed):
    transport, sent = Transport(client, "f"), []

    class Died(BaseException):
        pass

    def call_once(ask):
        if len(sent) == killed:
            raise Died
        sent.append(ask.words[0])
        return Transport._call(transport, ask)

    transport._call = call_once
    try:
        transport.run(open_strings(OpenOptions("f", 1000, backend="module")))
    except Died:
        closing = b"closing" in (client.get("f:fullbloom") or b"")
        assert closing or all(client.pttl(key) > 0 for key in client.scan_iter()), sent
    else:
        assert killed > 8


def test_two_clients_that_create_different_filters_get_one_error(running, client):
    met, result = threading.Barrier(2), []

    def make(capacity):
        with running.client() as own:
            own.ping()
            met.wait()
            try:
                result.append(RedisBloomFilter(own, "f", capacity, backend="module").capacity)
            except IncompatibleFilters as error:
                result.append(str(error))

    for _ in range(5):
        threads = [threading.Thread(target=make, args=(capacity,)) for capacity in (1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (instance,), (refused,) = ([one for one in result if isinstance(one, kind)] for kind in (int, str))
        assert f"capacity (server: {instance}, requested: {3000 - instance})" in refused
        f = RedisBloomFilter(client, "f")
        assert f.add("a")
        f.delete()
        result.clear()
        assert list(client.scan_iter()) == []


@pytest.mark.parametrize("later", [False, True])
def test_an_abandoned_creation_expires(client, monkeypatch, later):
    with monkeypatch.context() as patch:
        patch.setattr(create, "_roll_back", lambda *_: iter(()))

        def stop(*_):
            raise EngineError("stopped")
            yield

        patch.setattr(create, "_close", stop)
        with pytest.raises(EngineError, match="stopped"):
            RedisBloomFilter(client, "f", 1000, backend="module")
        assert client.exists("f:fullbloom")
    (expiring,) = (key for key in client.scan_iter() if client.pttl(key) > 0)
    if later:
        client.delete(expiring)  # as it does after a minute
    # A client that comes now completes it, or begins again.
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    assert f.add("a")
    assert all(client.pttl(key) == -1 for key in client.scan_iter())


def test_an_expired_building_manifest_is_replaced(client, monkeypatch):
    new = OpenOptions("f", 1000, backend="module").make_manifest("module")
    client.set("f:fullbloom", new.to_bytes(), nx=True, px=400)
    assert RedisBloomFilter(client, "f", 2000, backend="module").capacity == 2000
    client.delete("f:fullbloom")
    client.set("f:fullbloom", new.to_bytes(), nx=True, px=60_000)
    monkeypatch.setattr(protocol, "_MAX_WAIT_FOR_OTHERS", 0.1)
    with pytest.raises(EngineTimeout):
        RedisBloomFilter(client, "f", 1000, backend="module")


def test_the_filter_exists_at_every_moment_of_clear(running, client):
    f = RedisBloomFilter(client, "f", 1000, backend="module")
    stop, result = threading.Event(), []

    def go_on():
        with running.client() as own:
            g = RedisBloomFilter(own, "f")
            try:
                while not stop.is_set():
                    g.add_many(range(50))
                    g.contains_many(range(50))
            except EngineError as error:
                result.append(error)

    threads = [threading.Thread(target=go_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        f.clear()
    stop.set()
    for thread in threads:
        thread.join()
    assert not result


def settled(client, f, where):
    """There for good, or to the end of its term, with nothing beside it that stays."""
    ends = f.manifest.expires or -1
    names = {f._storage.names.manifest, *f._storage.names.bits}
    found = {key: client.pexpiretime(key) for key in client.scan_iter()}
    assert names <= found.keys(), where
    for key, end in found.items():
        assert end == ends if key in names else end > 0, (key, end, where)
    assert f.add("later"), where
    assert f.verify(), where


@pytest.fixture
def beside(running):
    """A client beside the one that is cut off."""
    with running.client() as instance:
        instance.flushall()
        yield instance


@pytest.fixture(params=[True, False], ids=["with retries", "without"])
def cut(request, running):
    """A proxy, and a client through it that tries again, or not."""
    proxy = CuttingProxy(running.port)
    retry = Retry(ConstantBackoff(0.005), 3) if request.param else None
    with redis.Redis(port=proxy.port, retry=retry, socket_timeout=60) as own:
        yield proxy, own
    proxy.close()


@pytest.mark.parametrize("ttl", [None, 3600])
def test_creation_is_atomic_wherever_the_connection_breaks(beside, cut, ttl):
    proxy, own = cut

    def check(error, where):
        f = RedisBloomFilter.find(beside, "f")
        if f is not None:
            settled(beside, f, where)
        else:
            assert error is not None, where
            assert all(beside.pttl(key) > 0 for key in beside.scan_iter()), where

    def make(_):
        RedisBloomFilter(own, "f", 1000, backend="module", ttl=ttl)

    assert walked(proxy, own, make, beside.flushall, check) > 8


@pytest.mark.parametrize("ttl", [None, 3600])
def test_clear_is_atomic_wherever_the_connection_breaks(beside, cut, ttl):
    proxy, own = cut

    def before():
        beside.flushall()
        f = RedisBloomFilter(own, "f", 1000, backend="module", ttl=ttl)
        f.add_many(["a", "b"])
        return f

    def check(error, where):
        f = RedisBloomFilter(beside, "f")
        if error is not None:
            assert f.contains_many(["a", "b"]) in ([True, True], [False, False]), where
            f.clear()
        assert "a" not in f, where
        settled(beside, f, where)

    assert walked(proxy, own, lambda f: f.clear(), before, check) > 5
