"""More than one task, server or generation: asyncio beside the plain client, a cluster beside one server.

All by turns in one run; keys per second, the median of turns, and of the ratios of each turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import redis
import redis.asyncio

from benchmarks.engines.servers import free_port, server
from fullbloom.engines.redis import (
    AsyncRedisBloomFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

CAPACITY, FPR = 1_000_000, 0.01
TURNS, TASKS, SINGLE, BATCH, MANY, NODES = 15, 64, 2000, 10_000, 5, 6


def _format_ratio(name: str, ours: list[float], theirs: list[float]) -> str:
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    return f"  {name:42} {statistics.median(ours):12,.0f} keys/s  {ratio:5.2f}x"


async def _tasks(there: AsyncRedisBloomFilter, call: str, numbers: Iterator[int]) -> float:
    ask, each = getattr(there, call), SINGLE // TASKS * 4

    async def task() -> None:
        for _ in range(each):
            await ask(next(numbers))

    begun = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(TASKS)))
    return TASKS * each / (time.perf_counter() - begun)


def tasks(port: int) -> Iterator[str]:
    """Single keys: of one client that waits for each, and of 64 tasks."""
    numbers = itertools.count()
    rates: dict[str, list[float]] = {}

    async def run(plain: RedisBloomFilter) -> None:
        async with redis.asyncio.Redis(port=port) as client:
            there = await AsyncRedisBloomFilter.open(client, plain.name)
            for _ in range(TURNS):
                for call, ask in (("add", plain.add), ("contains", plain.__contains__)):
                    begun = time.perf_counter()
                    for _ in range(SINGLE):
                        ask(next(numbers))
                    rates.setdefault(call, []).append(SINGLE / (time.perf_counter() - begun))
                    rates.setdefault(f"async {call}", []).append(await _tasks(there, call, numbers))

    with redis.Redis(port=port) as client:
        asyncio.run(run(RedisBloomFilter(client, "tasks", CAPACITY, FPR)))
    for call in ("add", "contains"):
        yield _format_ratio(f"one key a time, {call}", rates[call], rates[call])
        yield _format_ratio(f"{TASKS} tasks, {call}", rates[f"async {call}"], rates[call])


def _time(call: Callable[[Any], Any], batches: list[Any]) -> float:
    begun = time.perf_counter()
    for batch in batches:
        call(batch)
    return sum(map(len, batches)) / (time.perf_counter() - begun)


def _create_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def cluster(folder: Path, port: int) -> Iterator[str]:
    """Batches of 10,000 to one server, to one with a replica, and to three masters with one each."""
    at_once = ["--repl-diskless-sync-delay", "0"]
    options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", *at_once]
    with contextlib.ExitStack() as stack:
        ports = []
        for number in range(NODES):
            bus = ["--cluster-port", str(free_port())]
            ports.append(stack.enter_context(server(_create_folder(folder / str(number)), *options, *bus)))
        hosts = [f"127.0.0.1:{each}" for each in ports]
        words = ["redis-cli", "--cluster", "create", *hosts, "--cluster-replicas", "1", "--cluster-yes"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        master = stack.enter_context(server(_create_folder(folder / "master"), *at_once))
        follow = ["--replicaof", f"127.0.0.1 {master}"]
        stack.enter_context(server(_create_folder(folder / "replica"), *at_once, *follow))
        time.sleep(5)  # replicas have their masters' data
        followed = stack.enter_context(redis.Redis(port=master))
        several = stack.enter_context(redis.RedisCluster(host="127.0.0.1", port=ports[0]))
        one = stack.enter_context(redis.Redis(port=port))
        clients = {"one server": one, "one with a replica": followed, "cluster of six": several}
        # Batches that are dense in their shards, whose keys go together, and sparse ones, whose keys do not.
        for what, capacity in (("dense", CAPACITY), ("sparse", 50 * CAPACITY)):
            filters = {name: RedisBloomFilter(each, what, capacity, FPR) for name, each in clients.items()}
            yield from _by_turns(what, filters)


def _by_turns(what: str, filters: dict[str, RedisBloomFilter]) -> Iterator[str]:
    rates: dict[tuple[str, str], list[float]] = {}
    numbers = itertools.count()
    for _ in range(TURNS):
        for name, each in filters.items():
            batches = [np.arange(n * BATCH, (n + 1) * BATCH) for n in itertools.islice(numbers, MANY)]
            for call in ("add_many", "contains_many"):
                rates.setdefault((name, call), []).append(_time(getattr(each, call), batches))
    for (name, call), measured in rates.items():
        yield _format_ratio(f"{what}, {name}, {call}", measured, rates["one server", call])


class _Clock:
    """A clock for a window, so that all of its generations have come before it is measured."""

    def __init__(self) -> None:
        self.seconds = time.time()

    def now(self) -> Generator[Any, Any, tuple[float, float]]:
        """Return the time, known exactly."""
        yield from ()
        return self.seconds, self.seconds


def _full(window: RedisRollingFilter, generations: int) -> RedisRollingFilter:
    """Write to all generations."""
    clock = window._storage.clock = _Clock()  # type: ignore[assignment]  # noqa: SLF001 - nobody waits for hours
    for number in range(generations):
        clock.seconds += window.manifest.window / (generations - 1)
        window.update(np.arange(-number * BATCH - BATCH, -number * BATCH))
    return window


def kinds(port: int) -> Iterator[str]:
    """Windows and counters beside the plain filter, batches of 10,000."""
    with redis.Redis(port=port) as client:
        filters: dict[str, Any] = {
            "plain": RedisBloomFilter(client, "plain", CAPACITY, FPR),
            "window, 3 generations": _full(
                RedisRollingFilter(client, "window", CAPACITY, FPR, window=3600), 3
            ),
            "counters of 4 bits": RedisCountingFilter(client, "counters", CAPACITY, FPR),
        }
        rates: dict[tuple[str, str], list[float]] = {}
        numbers = itertools.count()
        for _ in range(TURNS):
            for name, each in filters.items():
                batches = [np.arange(n * BATCH, (n + 1) * BATCH) for n in itertools.islice(numbers, MANY)]
                for call in ("add_many", "contains_many", "discard_many"):
                    if hasattr(each, call):
                        rates.setdefault((name, call), []).append(_time(getattr(each, call), batches))
        for (name, call), measured in rates.items():
            yield _format_ratio(f"{name}, {call}", measured, rates["plain", call.replace("discard", "add")])


def run(folder: Path) -> Iterator[str]:
    """The lines of the table."""
    (folder / "one").mkdir()
    with server(folder / "one") as port:
        yield from tasks(port)
        yield from cluster(folder, port)
        yield from kinds(port)
