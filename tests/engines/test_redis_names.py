"""The keys of a filter on a server, and those of other filters whose names begin alike."""

from __future__ import annotations

import json

import pytest
from engines.servers import needs_redis

from fullbloom.engines.redis import RedisBloomFilter, RedisCountingFilter, RedisRollingFilter
from fullbloom.engines.redis.transport import delete_keys

pytestmark = needs_redis

KINDS = {RedisBloomFilter: {}, RedisCountingFilter: {}, RedisRollingFilter: {"window": 3600}}


@pytest.mark.parametrize("decode_responses", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("shards", [1, 3])
def test_deleting_the_keys_of_a_lost_filter_keeps_filters_of_similar_names(
    server, name, kind, shards, decode_responses
):
    with server.client() as client:
        client.flushall()
        lost = kind(client, name, 1000, shards=shards, **KINDS[kind])
        lost.update(range(100))
        others = [
            kind(client, name + suffix, 1000, shards=shards, **KINDS[kind])
            for suffix in (":bits", ":bitsy", ":bits:0123456789abcdef", ":bits@1", "x", ":bits:0")
        ]
        for one in others:
            one.update(range(100))
        number = json.loads(client.get(f"{name}:fullbloom"))["id"][:16].encode()
        kept = [
            key for key in client.scan_iter() if number not in key and key != f"{name}:fullbloom".encode()
        ]
        client.delete(f"{name}:fullbloom")
        with server.client(decode_responses=decode_responses) as own:
            delete_keys(own, name)
        for one in others:
            assert all(one.contains_many(range(100)))
        assert sorted(client.scan_iter()) == sorted(kept)


def test_deleting_the_keys_of_a_name_covers_reshards_and_earlier_releases(client, name):
    filter_ = RedisBloomFilter(client, name, 5000, shards=2)
    filter_.reshard(3)
    for key in (f"{name}:bits", f"{name}:bits:7", f"{name}:bits@3:12", f"{{{name}:fullbloom}}:reshard"):
        client.set(key, "old")
    client.delete(f"{name}:fullbloom")
    delete_keys(client, name)
    assert client.keys(f"*{name}*") == []
