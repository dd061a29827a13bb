"""Threads and tasks share objects on a cluster while another client reshards: nothing is lost or left.

A campaign: each client has one object per kind for its threads, and one for its tasks. ``FULLBLOOM_LONG``
makes it longer, and runs each client in a process of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing.pool
import threading
import time
import traceback
from collections import Counter

import numpy as np
import pytest
import redis
import redis.asyncio
from engines.servers import needs_redis
from support import LONG

from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    AsyncRedisCountingFilter,
    AsyncRedisRollingFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import FilterLost, FullbloomError

pytestmark = needs_redis

SECONDS = 60 * LONG if LONG else 4
CLIENTS = 4 if LONG else 2
THREADS, TASKS = 2, 3
BATCH = 200
#: Numbers of keys that one thread or task has for itself.
OWN = 10_000_000
SHARDS = [20, 48, 7, 33] if LONG else [5, 12, 4, 9]
KINDS = {
    "plain": (
        RedisBloomFilter,
        AsyncRedisBloomFilter,
        {"capacity": 200_000 * (1 + 9 * bool(LONG)), "fpr": 1e-4},
    ),
    "counts": (RedisCountingFilter, AsyncRedisCountingFilter, {"capacity": 50_000 * (1 + 9 * bool(LONG))}),
    "window": (RedisRollingFilter, AsyncRedisRollingFilter, {"capacity": 100_000, "window": 3600.0}),
}


class Client:
    """Adds keys in threads and tasks, looks for them at once, and for all of them at the end."""

    def __init__(self, port, number, ends):
        self.port, self.number, self.ends = port, number, ends
        self.acknowledged = {name: [] for name in KINDS}
        self.seen, self.wrong = Counter(), []

    def failed(self, error):
        """Counts an error; one outside of the tree is wrong, and so is a loss, as nothing is lost here."""
        self.seen[type(error).__name__] += 1
        if not isinstance(error, FullbloomError) or isinstance(error, FilterLost):
            self.wrong.append("".join(traceback.format_exception(error)[-3:]))

    def record(self, name, keys, found):
        self.acknowledged[name].append(keys)
        self.seen["added"] += len(keys)
        self.seen["wrong no"] += len(keys) - int(np.count_nonzero(found))

    def thread(self, filters, place):
        start = (self.number * (THREADS + TASKS) + place) * OWN
        while time.time() < self.ends:
            for name, filter_ in filters.items():
                keys = np.arange(start, start + BATCH)
                try:
                    filter_.update(keys)
                    self.record(name, keys, filter_.contains_many(keys))
                except Exception as error:  # noqa: BLE001 - counted
                    self.failed(error)
            start += BATCH

    async def task(self, filters, place):
        start = (self.number * (THREADS + TASKS) + THREADS + place) * OWN
        while time.time() < self.ends:
            for name, filter_ in filters.items():
                try:
                    await filter_.add(start)
                    self.record(name, [start], [await filter_.contains(start)])
                except Exception as error:  # noqa: BLE001 - counted
                    self.failed(error)
            start += 1

    async def tasks(self):
        async with redis.asyncio.RedisCluster(host="127.0.0.1", port=self.port) as client:
            filters = {name: await kind.open(client, name) for name, (_, kind, _) in KINDS.items()}
            await asyncio.gather(*(self.task(filters, place) for place in range(TASKS)))

    def work(self):
        """Work until the end; return the results, the errors, and how many keys are missing by kind."""
        with redis.RedisCluster(host="127.0.0.1", port=self.port) as client:
            filters = {name: kind(client, name) for name, (kind, _, _) in KINDS.items()}
            threads = [
                threading.Thread(target=self.thread, args=(filters, place)) for place in range(THREADS)
            ]
            threads.append(threading.Thread(target=lambda: asyncio.run(self.tasks())))
            [thread.start() for thread in threads]
            [thread.join(SECONDS + 60) for thread in threads]
            for name, filter_ in filters.items():
                keys = np.concatenate(self.acknowledged[name])
                missing = int(np.count_nonzero(~np.asarray(filter_.contains_many(keys), bool)))
                self.seen[f"missing {name}"] += missing
        return self.seen, self.wrong


def work(*about):
    """Runs a client in this process."""
    return Client(*about).work()


def staying(cluster):
    """The keys of all masters that stay."""
    found = set()
    for node in cluster.nodes[:3]:
        with node.client() as client:
            found |= {key for key in client.scan_iter() if client.pttl(key) == -1}
    return found


@pytest.fixture
def pool():
    if LONG:
        with multiprocessing.get_context("spawn").Pool(CLIENTS) as instance:
            yield instance
    else:
        with multiprocessing.pool.ThreadPool(CLIENTS) as instance:
            yield instance


@pytest.mark.timed
def test_clients_that_share_objects_during_reshards_lose_no_key(cluster, pool):
    with cluster.client() as client:
        instance = {name: kind(client, name, **options) for name, (kind, _, options) in KINDS.items()}
        ends, port = time.time() + SECONDS, cluster.nodes[0].port
        results = [pool.apply_async(work, (port, number, ends)) for number in range(CLIENTS)]
        reshards = 0
        while time.time() < ends - 1 or reshards < 2:
            instance["plain"].reshard(SHARDS[reshards % len(SHARDS)])
            reshards += 1
        result = [one.get(SECONDS + 120) for one in results]
        seen = sum((one for one, _ in result), Counter())
        assert not [wrong for _, some in result for wrong in some], seen
        assert not [what for what in seen if what.startswith(("missing", "wrong"))], seen
        assert seen["added"] > 10_000
        assert reshards > 1
        names = instance["plain"]._storage.names
        plain = {key for key in staying(cluster) if key.startswith(b"plain:")}
        assert plain == {names.manifest, *names.bits}
        for filter_ in instance.values():
            filter_.delete()
        assert staying(cluster) == set()
