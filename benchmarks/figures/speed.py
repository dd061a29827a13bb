"""Throughput on this machine: the essay's test of 100,000 keys, the base hashes, a pipeline to Redis."""

from __future__ import annotations

import importlib
import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullbloom
from benchmarks import clock
from benchmarks.measure.base_hashes import worker

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT, ROUNDS = 100_000, 7
HASH_COLUMNS: tuple[str | int, ...] = ("int64", 8, 24, 64, 256)
RIVALS = {"rbloom": "Bloom", "abloom": "BloomFilter"}


def texts(prefix: str, count: int = COUNT) -> list[str]:
    """Short keys."""
    return [f"{prefix}-{number}" for number in range(count)]


def list_makers() -> dict[str, Callable[[], Any]]:
    """Filters for 100,000 keys at 1 %, by name."""
    makers: dict[str, Callable[[], Any]] = {
        f"BloomFilter, {layout}": lambda layout=layout: fullbloom.BloomFilter(COUNT, 0.01, layout=layout)
        for layout in ("blocked", "classic")
    }
    makers["CountingBloomFilter"] = lambda: fullbloom.CountingBloomFilter(COUNT, 0.01)
    makers["ScalableBloomFilter"] = lambda: fullbloom.ScalableBloomFilter(10_000, 0.01)
    makers["CuckooFilter"] = lambda: fullbloom.CuckooFilter(COUNT, 0.01)
    for name, cls in RIVALS.items():
        try:
            make = getattr(importlib.import_module(name), cls)
        except ImportError:
            continue  # `make bench` installs them
        makers[name] = lambda make=make: make(COUNT, 0.01)
    return makers


def measure_throughput() -> list[dict[str, Any]]:
    """ns per key of single calls and of batches, and the rate on 100,000 absent keys; filters take turns."""
    present, absent = texts("present"), texts("absent")
    makers = list_makers()
    held = {name: make() for name, make in makers.items()}
    calls: dict[str, dict[str, Callable[[], Any]]] = {}
    for name, make in makers.items():
        known = held[name]
        known.update(present)
        calls[name] = {
            "add": lambda make=make: _add_each(make(), present),
            "update": lambda make=make: make().update(present),
            "contains": lambda known=known: [key in known for key in absent],
        }
        if hasattr(known, "contains_many"):
            calls[name]["contains_many"] = lambda known=known: known.contains_many(absent)
    best: dict[str, dict[str, float]] = {name: {} for name in makers}
    for round_ in range(ROUNDS):
        for name in clock.rotated([*makers], round_):
            for what, call in calls[name].items():
                with clock.no_gc():
                    best[name][what] = min(best[name].get(what, math.inf), clock.wall(call, COUNT))
    return [
        {
            "name": name,
            "contains_many": None,
            **best[name],
            "rate": sum(key in known for key in absent) / COUNT,
            "missed": sum(key not in known for key in present),
        }
        for name, known in held.items()
    ]


def _add_each(held: Any, keys: list[str]) -> None:
    add = held.add
    for key in keys:
        add(key)


def measure_hashes() -> dict[str, dict[str, float]]:
    """ns a key of each base hash, by the length of the keys."""
    found: dict[str, dict[str, float]] = {}
    for column in HASH_COLUMNS:
        width = 8 if isinstance(column, str) else column
        samples = worker(column, min(500_000, 32_000_000 // width), 5)
        for name, times in samples.items():
            found.setdefault(name, {})[column if isinstance(column, str) else f"{column} bytes"] = min(times)
    return found


def measure_redis() -> float | None:
    """Insertions a second into a filter in a Redis server on this machine; None without a server."""
    try:
        from redis import Redis

        from benchmarks.engines.servers import server
        from fullbloom.engines.redis import RedisBloomFilter
    except ImportError:
        return None
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            server(Path(folder)) as port,
            Redis(port=port) as client,
        ):
            held = RedisBloomFilter(client, "figures", capacity=1_000_000, fpr=0.01)
            keys = texts("present", 500_000)
            start = time.perf_counter()
            held.update(keys)
            return len(keys) / (time.perf_counter() - start)
    except SystemExit:
        return None  # neither redis-server nor valkey-server is installed


def measure() -> dict[str, Any]:
    """All of it; some 20 seconds."""
    return {"throughput": measure_throughput(), "hashes": measure_hashes(), "redis": measure_redis()}
