"""While nodes of a cluster are flushed, restarted empty, and strings deleted, no window answers a wrong "no".

A campaign: threads and tasks, of clients of their own, add and look; ``FULLBLOOM_LONG`` makes it longer, and
adds processes.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
import redis.asyncio
import redis.exceptions
from engines.clusters import PATIENT, Cluster
from engines.servers import needs_redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from support import LONG

from fullbloom.engines.redis import AsyncRedisRollingFilter, RedisRollingFilter
from fullbloom.errors import FilterLost, FullbloomError

pytestmark = needs_redis

WINDOW, GENERATIONS = 3.0, 4
SECONDS = 60 * LONG if LONG else 6
NAME = "window"
OPTIONS = {"window": WINDOW, "generations": GENERATIONS, "shards": 6}


class Worker:
    """Adds keys of its own, and looks for those that must be there."""

    def __init__(self, number):
        self.draw, self.number, self.made = random.Random(number), number, 0
        #: Key, the window it is in (id and times it was cleared), and when it was added at the earliest.
        self.added: list[tuple[str, tuple[str, int], float]] = []
        self.seen: Counter[str] = Counter()

    @staticmethod
    def life(there):
        return there.manifest.id, there.manifest.generation

    def next(self):
        """Keys to add, and keys to look for with what is known of them."""
        keys = [f"{self.number} {self.made + i}" for i in range(20)]
        self.made += 20
        self.added = [one for one in self.added[-3000:] if time.monotonic() - one[2] < WINDOW]
        return keys, self.draw.sample(self.added, min(40, len(self.added)))

    def acknowledged(self, keys, life, began):
        self.added += [(key, life, began) for key in keys]
        self.seen["added"] += len(keys)

    def judge(self, there, known, found):
        now, life = time.monotonic(), self.life(there)
        must = [
            is_found
            for (_, its, began), is_found in zip(known, found, strict=True)
            if its == life and now - began < WINDOW
        ]
        self.seen["found"] += sum(must)
        self.seen["wrong no"] += len(must) - sum(must)

    def failed(self, error):
        self.seen[type(error).__name__ if isinstance(error, FullbloomError) else f"raw {error!r}"] += 1
        return isinstance(error, FilterLost) and "manifest" in str(error)


def make_retry():
    return Retry(ConstantBackoff(0.1), 20)


def work(port, number, ends):
    """One client for threads."""
    worker, there = Worker(number), None
    client = None
    while client is None:
        with suppress(redis.exceptions.RedisClusterException):  # its node may be on its way back
            client = redis.RedisCluster(host="127.0.0.1", port=port, retry=make_retry())
    while time.time() < ends:
        try:
            there = there or RedisRollingFilter(client, NAME)
            keys, known = worker.next()
            life, began = worker.life(there), time.monotonic()
            there.add_many(keys)
            worker.acknowledged(keys, life, began)
            worker.judge(there, known, there.contains_many([key for key, *_ in known]))
        except Exception as error:  # noqa: BLE001 - counted
            there = None if worker.failed(error) else there
            time.sleep(0.02)
    return dict(worker.seen)


def wait(port, number, ends):
    """One client for asyncio, with three tasks."""

    async def task(client, one):
        worker, there = Worker(number * 10 + one), None
        while time.time() < ends:
            try:
                there = there or await AsyncRedisRollingFilter.open(client, NAME)
                keys, known = worker.next()
                life, began = worker.life(there), time.monotonic()
                await asyncio.gather(*(there.add(key) for key in keys))
                worker.acknowledged(keys, life, began)
                worker.judge(there, known, await asyncio.gather(*(there.contains(key) for key, *_ in known)))
            except Exception as error:  # noqa: BLE001 - counted
                there = None if worker.failed(error) else there
                await asyncio.sleep(0.02)
        return worker.seen

    async def main():
        async with redis.asyncio.RedisCluster(host="127.0.0.1", port=port, retry=make_retry()) as client:
            result = await asyncio.gather(*(task(client, one) for one in range(3)))
        return dict(sum(result, Counter()))

    return asyncio.run(main())


def breaks(cluster, client, draw):
    """Does one thing that loses strings; returns what."""
    strings = client.keys(f"{NAME}:bits*") or [NAME.encode()]
    how = draw.choice(["flush", "restart", "delete", "expire", "cut"])
    node = cluster.node_of(client, draw.choice([*strings, f"{NAME}:fullbloom"]))
    key = draw.choice(strings)
    if how == "flush":
        with node.client() as own:
            own.flushall()
    elif how == "restart":
        node.kill()
        node.start()
    elif how == "delete":
        client.delete(key)
    elif how == "expire":
        client.pexpire(key, 1)
    else:
        with suppress(TypeError):
            client.set(key, client.get(key)[:100], keepttl=True)
    return how


def chaos(cluster, ends, done):
    """Breaks something, and now and then clears the window or makes it again."""
    draw = random.Random(5)
    with cluster.client(retry=make_retry()) as client:
        while time.time() < ends:
            with suppress(
                redis.exceptions.RedisError, redis.exceptions.RedisClusterException, FullbloomError, OSError
            ):
                time.sleep(draw.uniform(0.5, 1.5))
                done[breaks(cluster, client, draw)] += 1
                time.sleep(0.3)
                there = RedisRollingFilter(client, NAME, 20_000, 1e-6, **OPTIONS)
                if draw.random() < 0.7:
                    there.clear()
                    done["cleared"] += 1


@pytest.fixture
def without_failover(tmp_path):
    """A cluster whose replicas do not take over: a master that comes back has nothing."""
    running = Cluster(tmp_path)
    running.set_node_timeout(PATIENT)
    for node in running.nodes:
        with node.client() as own:
            own.config_set("cluster-replica-no-failover", "yes")
    yield running
    running.stop()


@pytest.mark.timed
def test_no_client_returns_a_false_negative_during_losses(without_failover):
    cluster, result, done = without_failover, [], Counter()
    with cluster.client() as client:
        RedisRollingFilter(client, NAME, 20_000, 1e-6, **OPTIONS)
    ends, port = time.time() + SECONDS, cluster.nodes[0].port
    jobs = [(work, 1), (work, 2), (wait, 3)]
    if LONG:
        with multiprocessing.get_context("spawn").Pool(6) as pool:
            results = [
                pool.apply_async(job, (port, number, ends))
                for job, number in (*jobs, (wait, 4), (work, 5), (wait, 6))
            ]
            chaos(cluster, ends, done)
            result = [one.get(120) for one in results]
    else:
        threads = [
            threading.Thread(target=lambda job=job, n=n: result.append(job(port, n, ends))) for job, n in jobs
        ]
        [thread.start() for thread in threads]
        chaos(cluster, ends, done)
        [thread.join(60) for thread in threads]
    seen = sum(map(Counter, result), Counter())
    assert len(result) == (6 if LONG else 3)
    assert not seen["wrong no"], (seen, done)
    assert not [what for what in seen if what.startswith("raw")]
    assert seen["found"] > 100
    assert done
