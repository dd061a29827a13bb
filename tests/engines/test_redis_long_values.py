"""A long value under a key of a manifest or a record is refused without being read whole."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
import redis.asyncio
from engines.servers import needs_redis
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

pytestmark = needs_redis

#: The longest string of a server with FULLBLOOM_LONG.
NBYTES = 512 << 20 if LONG else 64 << 20
MEMORY = 50 << 20
KINDS = {
    RedisBloomFilter: (AsyncRedisBloomFilter, {}),
    RedisCountingFilter: (AsyncRedisCountingFilter, {}),
    RedisRollingFilter: (AsyncRedisRollingFilter, {"window": 600.0}),
}


@pytest.fixture
def refuse():
    """Calls something that must raise an error of the tree, in little memory."""

    def call(ask):
        tracemalloc.start()
        try:
            with pytest.raises(FullbloomError):
                ask()
            assert tracemalloc.get_traced_memory()[1] < MEMORY
        finally:
            tracemalloc.stop()

    return call


def lengthen(client, key, start=b""):
    """Sets a long value, which the server makes."""
    client.set(key, start)
    client.setrange(key, NBYTES - 1, b" ")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("start", ["junk", "the manifest"])
def test_a_long_value_in_place_of_a_manifest_is_refused(server, client, name, refuse, kind, start):
    waiting, options = KINDS[kind]
    open_ = kind(client, name, 1000, **options)
    open_.update(range(100))
    key = f"{name}:fullbloom"
    lengthen(client, key, client.get(key) if start != "junk" else b"")
    refuse(lambda: kind(client, name))
    refuse(lambda: kind(client, name, 1000, **options))
    refuse(open_.clear)
    refuse(open_.delete)
    if kind is RedisBloomFilter:
        refuse(lambda: kind.find(client, name))
        refuse(lambda: open_.reshard(3))
        refuse(open_.verify)

    async def wait():
        async with redis.asyncio.Redis(port=server.port) as own:
            await waiting.open(own, name)

    refuse(lambda: asyncio.run(wait()))
    client.delete(key)


def test_a_long_value_in_place_of_the_record_of_a_reshard_is_refused(client, name, refuse):
    filter_ = RedisBloomFilter(client, name, 1000)
    lengthen(client, f"{{{name}:fullbloom}}:reshard")
    refuse(lambda: filter_.reshard(3))
    refuse(filter_.clear)


def test_a_manifest_is_watched_in_little_memory_where_scripts_are_refused(own_server, refuse):
    with own_server().client() as admin:
        admin.acl_setuser("plain", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-@scripting"])
        with redis.Redis(
            port=admin.connection_pool.connection_kwargs["port"], username="plain", password="x"
        ) as client:
            filter_ = RedisBloomFilter(client, "f", 1000)
            real, key = client.execute_command, b"f:fullbloom"

            def read(*words, **options):
                try:
                    return real(*words, **options)
                finally:
                    if words[0] == b"GETRANGE" and words[1] == key:
                        lengthen(admin, key, admin.getrange(key, 0, 2000))

            client.execute_command = read
            refuse(filter_.clear)


def test_an_empty_value_is_not_a_missing_manifest(client, name, refuse):
    client.set(f"{name}:fullbloom", b"")
    refuse(lambda: RedisBloomFilter(client, name, 1000))
    client.delete(f"{name}:fullbloom")
    assert RedisBloomFilter(client, name, 1000).add("a")
