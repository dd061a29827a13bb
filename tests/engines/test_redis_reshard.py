"""A filter goes to another number of shards while clients add and look, and wherever that is stopped."""

from __future__ import annotations

import asyncio
import random
import threading

import numpy as np
import pytest
import redis.asyncio
from engines.servers import needs_redis
from support import eventually

from fullbloom import BloomFilter, ParameterError
from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter
from fullbloom.engines.redis.protocol import Sleep
from fullbloom.engines.redis.storage import cells
from fullbloom.engines.redis.transport.sync_transport import Transport

pytestmark = [needs_redis, pytest.mark.usefixtures("way")]


def list_lasting(client, name):
    """The keys on the server that do not vanish by themselves."""
    return sorted(key for key in client.scan_iter(f"*{name}*") if client.pttl(key) == -1)


@pytest.mark.parametrize("steps", [[4], [3, 1, 7, 2]])
def test_a_reshard_keeps_bits_and_results(client, name, steps):
    there = RedisBloomFilter(client, name, 20_000, shards=2)
    stale = RedisBloomFilter(client, name)
    here = BloomFilter(20_000, layout="blocked")
    keys = np.arange(20_000)
    for turn, shards in enumerate(steps):
        batch = keys[turn * 3000 : (turn + 1) * 3000]
        there.update(batch)
        here.update(batch)
        there.reshard(shards)
        assert there.manifest.shards == shards
        assert (stale.contains_many(keys) == here.contains_many(keys)).all()
        assert stale.manifest == there.manifest
        assert list_lasting(client, name) == sorted(
            [there._storage.names.manifest, *there._storage.names.bits]
        )
        assert stale.dump() == there.dump() == here
        assert RedisBloomFilter(client, name).dump() == here
        assert stale.fpr() == here.fpr()
    assert stale.add("later")
    assert "later" in there
    assert there.verify()
    assert stale.verify()
    there.clear()
    assert not stale.contains_many(keys).any()
    there |= here
    assert stale.dump() == here
    there.reshard(shards)  # nothing to do
    with pytest.raises(ParameterError, match="shards"):
        there.reshard(10**6)
    assert there.delete()
    assert list_lasting(client, name) == []


def _stop_after(transport, steps, questions):
    """Answers so many questions of a generator; False if it was done by then."""
    try:
        asks = next(steps)
        for _ in range(questions):
            asks = steps.send([None if isinstance(ask, Sleep) else transport._answer(ask) for ask in asks])
    except StopIteration:
        return False
    return True  # as a process that is killed: nothing more is sent


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # what is stopped tidies nothing up
@pytest.mark.parametrize("after", ["the same", "another"])
def test_every_client_reads_correctly_wherever_a_reshard_stops(client, after):
    transport, questions, going = Transport(client, "f"), 0, True
    while going:
        client.flushall()
        mine = RedisBloomFilter(client, "f", 2000, shards=2)
        stale = RedisBloomFilter(client, "f")
        here = BloomFilter(2000, layout="blocked")
        mine.update(range(500))
        here.update(range(500))
        going = _stop_after(transport, cells.reshard(mine._storage, 3), questions)
        # Clients from before and from now see each other's keys, whichever goes first.
        clients = [stale, RedisBloomFilter(client, "f")]
        random.Random(questions).shuffle(clients)
        added = 500
        for _ in range(2):
            for one, other in (clients, reversed(clients)):
                assert one.add_many(range(added, added + 50)) == here.add_many(range(added, added + 50))
                assert all(other.contains_many(range(added + 50))), questions
                added += 50
        assert all(one.dump() == here for one in clients)
        RedisBloomFilter(client, "f").reshard(3 if after == "the same" else 5)
        for one in clients:
            assert one.dump() == here, questions
            assert all(one.contains_many(range(added)))
            assert one.manifest.shards == (3 if after == "the same" else 5)
        names = mine._storage.names.from_manifest("f", clients[0].manifest)
        assert list_lasting(client, "f") == sorted([names.manifest, *names.bits]), questions
        questions += 1
    assert questions > 40


def test_two_concurrent_reshards_reach_one_result(client):
    draw = random.Random(3)
    for turn in range(60):
        client.flushall()
        f = RedisBloomFilter(client, "f", 2000, shards=2)
        f.update(range(500))
        here = f.dump()
        both = [RedisBloomFilter(client, "f") for _ in range(2)]
        running = {n: cells.reshard(one._storage, (3, 4)[n]) for n, one in enumerate(both)}
        asks = {number: next(steps) for number, steps in running.items()}
        while running:
            number = draw.choice(sorted(running))
            try:
                result = [
                    None if isinstance(ask, Sleep) else f._transport._answer(ask) for ask in asks[number]
                ]
                asks[number] = running[number].send(result)
            except StopIteration:
                del running[number]
        assert f.dump() == here, turn
        assert f.manifest.shards in (3, 4)
        assert f.manifest.other_shards == 0
        assert list_lasting(client, "f") == sorted([f._storage.names.manifest, *f._storage.names.bits])


def test_keys_added_during_a_reshard_are_kept(server, name):
    with server.client() as client:
        there = RedisBloomFilter(client, name, 300_000, shards=2)
        done, failed, batches = threading.Event(), [], [[], []]

        def load(number):
            with server.client() as own:
                mine, start = RedisBloomFilter(own, name), number * 10**6
                while not done.is_set():
                    batch = np.arange(start, start + 1000)
                    mine.update(batch)
                    mine.add(start)
                    batches[number].append(batch)
                    start += 1000
                    if not mine.contains_many(batches[number][-1]).all():
                        failed.append(f"missed at once: {number} {len(batches[number])}")
                    if not mine.contains_many(np.concatenate(batches[number][-20:])).all():
                        failed.append(f"missed later: {number} {len(batches[number])}")

        threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
        [thread.start() for thread in threads]
        eventually(lambda: failed or all(batches))
        for shards in (5, 1, 8, 3, 2):
            there.reshard(shards)
        done.set()
        [thread.join(60) for thread in threads]
        assert not failed, failed[:5]
        every = np.concatenate([np.concatenate(some) for some in batches])
        here = BloomFilter(300_000, layout="blocked")
        here.update(every)
        assert there.dump() == here


def test_a_reshard_on_a_cluster_keeps_the_keys(cluster, name):
    with cluster.client() as client:
        there = RedisBloomFilter(client, name, 20_000, shards=3)
        stale = RedisBloomFilter(client, name)
        there.update(np.arange(10_000))
        here = there.dump()
        there.reshard(12)
        assert stale.dump() == here
        assert stale.contains_many(np.arange(10_000)).all()
        assert stale.manifest.shards == 12


def test_a_reshard_through_asyncio_keeps_the_keys(server, name):
    async def main():
        async with redis.asyncio.Redis(port=server.port) as client:
            there = await AsyncRedisBloomFilter.open(client, name, 20_000)
            stale = await AsyncRedisBloomFilter.open(client, name)
            await there.update(range(5000))
            adds = [asyncio.create_task(stale.add(("key", number))) for number in range(200)]
            await there.reshard(4)
            assert sum(await asyncio.gather(*adds)) > 190
            found = await asyncio.gather(*(there.contains(("key", number)) for number in range(200)))
            assert all(found)
            assert await stale.dump() == await there.dump()

    asyncio.run(main())
