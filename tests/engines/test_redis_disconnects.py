"""A connection breaks at each command of what makes, changes or deletes a filter, done by the server or not.

Clients that try again come through; others get one clear error. Either way the filter is whole and usable
for the next client, or there is nothing under its name.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import redis
import redis.asyncio
from engines.proxy import CuttingProxy
from engines.servers import needs_redis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from support import LONG

from fullbloom import BloomFilter
from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter
from fullbloom.errors import EngineUnavailable

pytestmark = needs_redis
OLD, NEW = np.arange(300), np.arange(1000, 1300)


def in_memory(keys):
    instance = BloomFilter(1000, layout="blocked")
    instance.update(keys)
    return instance


EMPTY, BEFORE, AFTER = in_memory([]), in_memory(OLD), in_memory(NEW)


def make(client, **options):
    return RedisBloomFilter(client, "f", 1000, **options)


MAKING = {
    "make": lambda client: make(client, shards=2),
    "make with a ttl": lambda client: make(client, shards=2, ttl=3600),
    "make of one in memory": lambda client: RedisBloomFilter.from_filter(client, "f", AFTER, shards=2),
}
CHANGING = {
    "clear": (lambda f: f.clear(), EMPTY, {}),
    "clear with a ttl": (lambda f: f.clear(), EMPTY, {"ttl": 3600}),
    "load": (lambda f: f.load(AFTER), AFTER, {}),
    "reshard": (lambda f: f.reshard(2), BEFORE, {"shards": 1}),
    "reshard with a ttl": (lambda f: f.reshard(2), BEFORE, {"shards": 1, "ttl": 3600}),
    "merge": (lambda f: f.__ior__(AFTER), BEFORE | AFTER, {"ttl": 3600}),
}


@pytest.fixture(scope="module")
def proxy(server):
    running = CuttingProxy(server.port)
    yield running
    running.close()


def clients(proxy):
    """One that tries again, and one that does not."""
    again = Retry(ConstantBackoff(0.005), 3)
    return [redis.Redis(port=proxy.port, retry=retry, socket_timeout=60) for retry in (again, None)]


def walked(proxy, client, act, before, check, stride=1):
    """Cut the connection at each command in turn; return the number of commands."""
    for after in (False, True):
        for cut in range(1, 500, stride):
            given = before()
            proxy.start(cut, after=after)
            error = None
            try:
                act(given)
            except EngineUnavailable as refused:
                error = refused
            through, names = proxy.cut is not None, list(proxy.names)
            proxy.start(None)
            assert error is None or client.get_retry() is None, (names, cut)
            check(error, (after, cut, names))
            if through:
                break
        else:
            raise AssertionError("no end")
    return cut


def settled(client, f, full, where):
    """Whole, for good or to the end of its term, and nothing beside it that stays."""
    assert f.dump() == full, where
    ends = f.manifest.expires or -1
    names = {f._storage.names.manifest, *f._storage.names.bits}
    found = {key: client.pexpiretime(key) for key in client.scan_iter("*f*")}
    assert names <= found.keys(), where
    for key, end in found.items():
        assert end == ends if key in names else end > 0, (key, end, where)
    assert f.add("later"), where
    assert f.verify(), where


@pytest.mark.parametrize("kind", MAKING)
@pytest.mark.parametrize("retries", [True, False])
def test_creation_is_atomic_wherever_the_connection_breaks(client, proxy, kind, retries):
    own = clients(proxy)[0 if retries else 1]
    full = AFTER if "memory" in kind else EMPTY

    def check(error, where):
        f = RedisBloomFilter.find(client, "f")
        if error is not None and f is None:
            assert client.keys() == [], where
            return
        assert f is not None, where
        settled(client, f, full, where)

    steps = walked(proxy, own, MAKING[kind], lambda: (client.flushall(), own)[1], check)
    assert steps > 12


@pytest.mark.parametrize("kind", CHANGING)
@pytest.mark.parametrize("retries", [True, False])
def test_changes_are_atomic_wherever_the_connection_breaks(client, proxy, kind, retries):
    own = clients(proxy)[0 if retries else 1]
    act, full, options = CHANGING[kind]

    def before():
        client.flushall()
        f = make(own, **{"shards": 2, **options})
        f.update(OLD)
        return f

    def check(error, where):
        f = RedisBloomFilter(client, "f")
        if error is not None:
            found = f.contains_many(OLD)  # of each string what was there, or what came
            assert found.all() or full is not BEFORE, where
            ends = f.manifest.expires or -1  # of cleared ones the next one's
            assert all(client.pexpiretime(key) >= ends for key in f._storage.names.bits), where
            act(f)
        settled(client, f, full, where)

    stride = 5 if "reshard" in kind and (retries or options.get("ttl")) and not LONG else 1
    assert walked(proxy, own, act, before, check, stride) > 6


@pytest.mark.parametrize("retries", [True, False])
def test_creation_through_asyncio_is_atomic(client, proxy, retries):
    async def open_filter():
        retry = AsyncRetry(ConstantBackoff(0.005), 3) if retries else None
        async with redis.asyncio.Redis(port=proxy.port, retry=retry, socket_timeout=60) as own:
            f = await AsyncRedisBloomFilter.open(own, "f", 1000, shards=2, ttl=3600)
            await f.clear()

    def check(error, where):
        f = RedisBloomFilter.find(client, "f")
        if f is None:
            assert error is not None, where
            assert client.keys() == [], where
            return
        if error is not None:
            f.clear()
        settled(client, f, EMPTY, where)

    own = clients(proxy)[0 if retries else 1]
    before = client.flushall
    walked(proxy, own, lambda _: asyncio.run(open_filter()), before, check)


@pytest.mark.parametrize("retries", [True, False])
def test_deletion_is_complete_wherever_the_connection_breaks(client, proxy, retries):
    own = clients(proxy)[0 if retries else 1]

    def before():
        client.flushall()
        return make(own, shards=2)

    def check(error, where):
        f = RedisBloomFilter.find(client, "f")
        if error is None:
            assert f is None, where
            assert client.keys() == [], where
            return
        if f is not None:
            settled(client, f, EMPTY, where)
            assert f.delete()
        assert client.keys() == [], where

    assert walked(proxy, own, lambda f: f.delete(), before, check) > 5


class _Died(BaseException):
    """As a process that is killed: nothing more is sent."""


@pytest.mark.parametrize("ttl", [None, 3600])
def test_a_client_that_dies_during_clear_leaves_no_expiring_cells(client, ttl):
    for left in range(100):
        client.flushall()
        f = make(client, shards=2, ttl=ttl)
        f.update(OLD)
        sent = []

        def call_late(ask, f=f, sent=sent, left=left):
            sent.append(ask.words[0])
            if len(sent) > left:
                raise _Died
            return type(f._transport)._call(f._transport, ask)

        f._transport._call = call_late
        try:
            f.clear()
        except _Died:
            found = RedisBloomFilter(client, "f")
            ends = found.manifest.expires or -1
            kept = [client.pexpiretime(key) for key in found._storage.names.bits]
            assert all(one >= ends if ttl else one == ends for one in kept), sent
            assert found.dump() is not None
        else:
            break
    assert left >= 10
