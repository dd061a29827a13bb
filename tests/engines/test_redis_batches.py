"""Keys of a batch that is dense in its shard go together, as one string of bits that the server merges.

Nobody sees it by the answers, the bits, the times to live or what is left behind.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import redis
from engines.servers import needs_redis, strings_of

from fullbloom import BloomFilter
from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter, RedisRollingFilter
from fullbloom.errors import EngineError, EngineFull, FilterLost

pytestmark = needs_redis

KEYS = np.arange(2000) * 7919


def scripts(client):
    """How many scripts the server has run."""
    return client.info("commandstats").get("cmdstat_eval", {"calls": 0})["calls"]


@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("layout", ["blocked", "split", "classic", "two-block"])
def test_batches_of_any_size_give_the_results_of_memory(client, name, layout, shards):
    if layout in {"classic", "two-block"} and shards > 1:
        shards = 1
    random = np.random.default_rng(sum(map(ord, layout)) + shards)
    there = RedisBloomFilter(client, name, 20_000, layout=layout, shards=shards)
    here = BloomFilter(20_000, layout=layout)
    before = scripts(client)
    for size in (1, 15, 16, 90, 100, 400, 3000, 17_000):
        keys = random.integers(0, 30_000, size)
        assert (there.add_many(keys) == here.add_many(keys)).all(), size
        assert (there.contains_many(keys[:100] + 1) == here.contains_many(keys[:100] + 1)).all()
    assert there.dump() == here
    assert there.verify().bits_found >= there.verify().bits_expected
    assert before < scripts(client), "none of them went together"


def test_each_key_is_reported_new_to_exactly_one_client(server, client, name):
    RedisBloomFilter(client, name, 10_000, 1e-9)

    def add(number):
        with server.client() as own:
            mine = RedisBloomFilter(own, name)
            # The same keys in turn: some go together, some do not.
            parts = [KEYS] if number % 2 else [KEYS[at : at + 10] for at in range(0, 2000, 10)]
            return sum(int(mine.add_many(part).sum()) for part in parts)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, range(4))) == 2000


def test_ttls_are_kept_to_the_millisecond(client, name):
    there = RedisBloomFilter(client, name, 10_000)
    bits = there._storage.names.bits[0]
    client.pexpireat(bits, 4_000_000_000_123)
    for _ in range(20):
        there.update(KEYS)
    assert client.pexpiretime(bits) == 4_000_000_000_123
    here = BloomFilter(10_000, layout="blocked")
    here.update(KEYS)
    assert there.dump() == here
    window = RedisRollingFilter(client, f"{name}window", 10_000, window=600)
    window.update(KEYS[:10])
    ends = {key: client.pexpiretime(key) for key in client.scan_iter(f"{name}window:bits*")}
    window.update(KEYS)
    assert ends
    assert ends.items() <= {key: client.pexpiretime(key) for key in ends}.items()


def test_batches_leave_no_temporary_key(client, name):
    RedisBloomFilter(client, name, 10_000, shards=3).update(KEYS)
    tagged = f"{{{name}}}tagged"
    RedisBloomFilter(client, tagged, 10_000, shards=3).update(KEYS)
    for of in (name, tagged):
        keys = {key for key in client.scan_iter(f"*{name}*") if (b"tagged" in key) == ("tagged" in of)}
        assert keys == {*map(str.encode, strings_of(client, of)), f"{of}:fullbloom".encode()}
        assert len(keys) == 4


def test_where_scripts_are_forbidden_keys_are_sent_singly(server, client, name):
    client.acl_setuser(name, enabled=True, passwords=["+word"], keys=["*"], commands=["+@all", "-@scripting"])
    there = RedisBloomFilter(client, name, 10_000, shards=3)
    before = scripts(client)
    with server.client(username=name, password="word") as own:
        mine = RedisBloomFilter(own, name)
        assert sum(mine.add_many(KEYS)) > 1990
        refused = client.info("commandstats")["cmdstat_eval"]["rejected_calls"]
        assert not mine.add_many(KEYS).any()
        assert client.info("commandstats")["cmdstat_eval"]["rejected_calls"] == refused  # not tried again
    assert scripts(client) == before
    assert there.contains_many(KEYS).all()


def test_where_scripts_are_forbidden_tasks_send_keys_singly(server, client, name):
    client.acl_setuser(name, enabled=True, passwords=["+word"], keys=["*"], commands=["+@all", "-@scripting"])
    RedisBloomFilter(client, name, 10_000)

    async def main():
        async with redis.asyncio.Redis(port=server.port, username=name, password="word") as own:
            mine = await AsyncRedisBloomFilter.open(own, name)
            assert sum(await mine.add_many(KEYS)) > 1990
            assert (await mine.contains_many(KEYS)).all()

    asyncio.run(main())


def test_a_forbidden_temporary_key_is_not_needed(server, client, name):
    allowed = [f"{name}:*"]
    client.acl_setuser(name, enabled=True, passwords=["+word"], keys=allowed, commands=["+@all"])
    RedisBloomFilter(client, name, 10_000)
    with server.client(username=name, password="word") as own:
        mine = RedisBloomFilter(own, name)
        assert sum(mine.add_many(KEYS)) > 1990


@pytest.mark.parametrize("change", ["gone", "shorter", "longer", "another"])
def test_a_foreign_string_is_reported_and_not_written(client, name, change):
    there = RedisBloomFilter(client, name, 10_000)
    bits = there._storage.names.bits[0]
    held = client.get(bits)
    now = {"gone": None, "shorter": held[:-17], "longer": held + b"\0", "another": b"\0" * 99}[change]
    client.delete(bits)
    if now is not None:
        client.set(bits, now)
    with pytest.raises(FilterLost):
        there.add_many(KEYS)
    assert client.get(bits) == now


def test_batches_handle_cleared_filters_and_strings_of_another_type(client, name):
    there, other = RedisBloomFilter(client, name, 10_000), RedisBloomFilter(client, name)
    there.update(KEYS)
    other.clear()
    assert there.add_many(KEYS).sum() > 1990
    assert not other.add_many(KEYS).any()
    bits = there._storage.names.bits[0]
    client.delete(bits)
    client.hset(bits, "a", "b")
    with pytest.raises(EngineError, match="holds something other"):
        there.add_many(KEYS)


def test_a_full_server_refuses_a_batch_and_keeps_no_temporary_key(own_server, name):
    with own_server().client() as client:
        there = RedisBloomFilter(client, name, 1_000_000)
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 100_000)
        with pytest.raises(EngineFull):
            there.update(np.arange(10_000))
        client.config_set("maxmemory", 0)
        assert sorted(client.keys()) == sorted([there._storage.names.bits[0], there._storage.names.manifest])
        there.update(np.arange(10_000))
        assert there.contains_many(np.arange(10_000)).all()


def test_the_plan_states_the_bytes_sent(client):
    dense = RedisBloomFilter.plan(client, 100_000, batch=10_000)
    sparse = RedisBloomFilter.plan(client, 100_000_000, batch=10_000)
    assert dense.nbytes < dense.bytes_to_add < dense.nbytes + 1000
    assert dense.bytes_added == dense.nbytes
    assert sparse.bytes_to_add > 10_000 * 300
    assert sparse.bytes_added < 10_000 * 40
