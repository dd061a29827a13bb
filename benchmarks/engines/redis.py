"""One client, one server, 1 % at a million keys: batches of 1,000 and single keys, by turns in one run.

Beside `RedisBloomFilter` in strings stand the client's own pipelines of GETBIT and SETBIT, one per bit, on
bits of the same shape and size, and filters of the server's own: of `fullbloom serve`, keyed and plain, and,
where FULLBLOOM_REDISBLOOM names the module, of RedisBloom.
Keys per second: the median of turns.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import redis

from benchmarks.engines.servers import server
from benchmarks.service.process import running
from fullbloom import BloomFilter
from fullbloom.engines.redis import RedisBloomFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BATCH, TURNS, SINGLE = 1000, 40, 2000
CAPACITY, FPR = 1_000_000, 0.01
#: Batches that a pipeline gets in a turn; it is slow.
FEW = 1
MANY = 10


def integers(numbers: range) -> Any:
    """Keys as a NumPy array."""
    return np.arange(numbers.start, numbers.stop)


def texts(numbers: range) -> Any:
    """Keys of 20 bytes."""
    return [f"{number:020d}" for number in numbers]


def pipelines(client: redis.Redis, like: BloomFilter) -> dict[str, Callable[[Any], Any]]:
    """What people write with redis-py, one command a bit; positions come from memory, for nothing."""

    def run(command: str, positions: list[list[int]]) -> list[bool]:
        pipe = client.pipeline(transaction=False)
        for key in positions:
            for position in key:
                if command == "check":
                    pipe.getbit("plain", position)
                else:
                    pipe.setbit("plain", position, 1)
        bits = pipe.execute()
        k = like.num_hashes
        return [all(bits[at : at + k]) for at in range(0, len(bits), k)]

    return {name: lambda positions, name=name: run(name, positions) for name in ("check", "add")}


def rate(call: Callable[[Any], Any], batches: list[Any]) -> float:
    """Keys per second."""
    begun = time.perf_counter()
    for batch in batches:
        call(batch)
    return len(batches) * BATCH / (time.perf_counter() - begun)


def contenders(
    client: redis.Redis, services: dict[str, redis.Redis], like: BloomFilter
) -> dict[str, tuple[int, dict[str, Callable[[Any], Any]]]]:
    """Name, batches a turn, and what checks and adds."""
    found = {"GETBIT, SETBIT of redis-py": (FEW, pipelines(client, like))}
    instance = {"strings": RedisBloomFilter(client, "strings", CAPACITY, FPR)}
    instance["4 shards"] = RedisBloomFilter(client, "sharded", CAPACITY, FPR, shards=4)
    instance["classic"] = RedisBloomFilter(client, "classic", CAPACITY, FPR, layout="classic")
    if os.environ.get("FULLBLOOM_REDISBLOOM"):
        instance["module"] = RedisBloomFilter(client, "module", CAPACITY, FPR, backend="module")
    for name, service in services.items():
        RedisBloomFilter(service, "module", CAPACITY, FPR, backend="module").delete()
        instance[name] = RedisBloomFilter(service, "module", CAPACITY, FPR, backend="module")
    for name, filter_ in instance.items():
        found[name] = (MANY, {"check": filter_.contains_many, "add": filter_.add_many})
    return found


def batches(client: redis.Redis, services: dict[str, redis.Redis]) -> Iterator[str]:
    """Rates of batches."""
    like = BloomFilter(CAPACITY, FPR, layout="blocked")
    for kind in (integers, texts):
        rates: dict[tuple[str, str], list[float]] = {}
        numbers = itertools.count()
        rivals = contenders(client, services, like)
        for _ in range(TURNS):
            for name, (many, calls) in rivals.items():
                fresh = [range(n * BATCH, (n + 1) * BATCH) for n in itertools.islice(numbers, many)]
                keys = [kind(numbers_) for numbers_ in fresh]
                if many == FEW:
                    keys = [[like.positions(key) for key in batch] for batch in keys]
                for action in ("add", "check"):
                    rates.setdefault((name, action), []).append(rate(calls[action], keys))
        for (name, action), measured in rates.items():
            result = statistics.median(measured)
            plain = statistics.median(rates["GETBIT, SETBIT of redis-py", action])
            yield f"  {kind.__name__:9} {name:27} {action:6} {result:12,.0f} keys/s  {result / plain:6.1f}x"
        client.flushall()


def single(client: redis.Redis) -> Iterator[str]:
    """Microseconds of one call, beside one GET."""
    filter_ = RedisBloomFilter(client, "single", CAPACITY, FPR)
    client.set("text", "x" * 64)
    numbers = itertools.count()
    calls = {
        "GET": lambda: client.get("text"),
        "in": lambda: next(numbers) in filter_,
        "add": lambda: filter_.add(next(numbers)),
    }
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(20):
        for name, call in calls.items():
            begun = time.perf_counter()
            for _ in range(SINGLE // 10):
                call()
            taken[name].append((time.perf_counter() - begun) / (SINGLE // 10))
    for name, measured in taken.items():
        median = statistics.median(measured)
        times = median / statistics.median(taken["GET"])
        yield f"  one {name:4} {median * 1e6:7.1f} us  {times:.2f}x of one GET"


def run(folder: Path) -> Iterator[str]:
    """The lines of the table."""
    module = os.environ.get("FULLBLOOM_REDISBLOOM")
    with (
        server(folder, *(["--loadmodule", module] if module else [])) as port,
        redis.Redis(port=port) as client,
    ):
        yield from single(client)
        with contextlib.ExitStack() as stack:
            services = {}
            for name, flags in {"service": (), "plain service": ("--plain",)}.items():
                place = folder / name
                place.mkdir()
                host, _, number = (
                    stack.enter_context(running(place, *flags)).addresses["resp"].rpartition(":")
                )
                services[name] = stack.enter_context(redis.Redis(host=host, port=int(number)))
            yield from batches(client, services)
