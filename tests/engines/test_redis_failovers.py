"""With acks=1 no acknowledged key is lost when a master dies while clients add and another reshards.

A campaign of FULLBLOOM_LONG.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from engines.clusters import Cluster, failover_retry
from engines.servers import needs_redis
from support import LONG

from fullbloom.engines.redis import RedisBloomFilter, RedisCountingFilter, RedisRollingFilter
from fullbloom.errors import FilterLost, FilterRolledBack, FullbloomError

pytestmark = [needs_redis, pytest.mark.skipif(not LONG, reason="a campaign of FULLBLOOM_LONG")]

SECONDS = 30 * LONG
KINDS = {
    "plain": (RedisBloomFilter, {"capacity": 500_000, "fpr": 1e-4}),
    "counts": (RedisCountingFilter, {"capacity": 200_000}),
    "window": (RedisRollingFilter, {"capacity": 500_000, "window": 3600.0}),
}


class Adders:
    """Threads that add keys to each kind, and what became of the keys."""

    def __init__(self, cluster):
        self.cluster, self.ends = cluster, time.monotonic() + SECONDS
        self.acknowledged, self.seen, self.wrong = {name: [] for name in KINDS}, Counter(), []

    def add(self, number):
        """Adds keys until the end."""
        with self.cluster.client(retry=failover_retry()) as client:
            start, filters = number * 10**7, {}
            while time.monotonic() < self.ends:
                for name in KINDS:
                    self.add_batch(client, filters, name, np.arange(start, start + 100))
                start += 100

    def add_batch(self, client, filters, name, keys):
        """Adds a batch; a loss and an error outside of the tree are wrong."""
        try:
            if name not in filters:
                filters[name] = KINDS[name][0](client, name, acks=1)
            filters[name].update(keys)
            self.acknowledged[name].append(keys)
        except FilterRolledBack:  # of an epoch that no replica had, after the keys were confirmed
            filters.pop(name)
            self.seen["rolled back"] += 1
        except Exception as error:  # noqa: BLE001 - counted
            self.seen[type(error).__name__] += 1
            if isinstance(error, FilterLost) or not isinstance(error, FullbloomError):
                self.wrong.append(error)


def test_no_acknowledged_key_is_lost_in_a_failover_during_reshards(tmp_path):
    cluster = Cluster(tmp_path)
    adders = Adders(cluster)
    try:
        with cluster.client(retry=failover_retry()) as client:
            made = {name: kind(client, name, **options) for name, (kind, options) in KINDS.items()}
            threads = [threading.Thread(target=adders.add, args=(number,)) for number in range(3)]
            [thread.start() for thread in threads]
            shards, is_killed = 0, False
            while time.monotonic() < adders.ends:
                if not is_killed and time.monotonic() > adders.ends - SECONDS / 2:
                    cluster.nodes[0].kill()
                    is_killed = True
                    time.sleep(4)  # its replica takes over
                    cluster.nodes[0].start()  # which is the replica now
                with suppress(FullbloomError):
                    made["plain"].reshard((20, 48, 7, 33)[shards % 4])
                    shards += 1
            [thread.join(120) for thread in threads]
            assert is_killed
            assert shards > 2
            assert not adders.wrong, (adders.wrong[:3], adders.seen)
            for name, (kind, _) in KINDS.items():
                keys = np.concatenate(adders.acknowledged[name])
                assert len(keys) > 5000
                assert np.asarray(kind(client, name).contains_many(keys), bool).all(), (name, adders.seen)
                print(f"{name}: {len(keys):,} acknowledged keys, 0 missing; {dict(adders.seen)}")
    finally:
        cluster.stop()
