"""The record of the measurements: one JSON file, whose parts are measured one by one."""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import clock, machine
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.storage import load_record, save_record, today

FILE = Path(__file__).with_name("record.json")
#: Keys of the filters: the model is fitted to those up to `FITTED` and predicts the rest.
SIZES = [
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
]
FITTED, PREDICTED = 100_000_000, 1_000_000_000
#: Bytes of the shards of the plan: the memory is probed at these sizes, too.
SHARDS = [2_500_000_000, 5_000_000_000]
PLANNED = 100_000_000_000
#: What is stored of the machine of each part.
DESCRIBED = {"cpu", "cores", "memory_gib", "huge_pages", "load_average_at_start", "python", "simd", "commit"}
SYNCED = [100_000, 1_000_000, 10_000_000]
SHUFFLED = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]


def load() -> dict[str, Any]:
    """The record, empty if nothing was measured yet."""
    return load_record(FILE)


def _run(function: str, **arguments: Any) -> Any:
    result = isolated(f"benchmarks.scale.measure:{function}", arguments, {clock.one_cpu()})
    say(f"{function} {arguments}: {result}")
    return result


def _run_on_all_cores() -> dict[str, float]:
    """How much longer a build takes if every core builds a shard of its own."""
    cpus = sorted(os.sched_getaffinity(0))
    target, arguments = "benchmarks.scale.measure:measure_shard", {"count": FITTED}
    alone, together = [], []
    for _ in range(3):
        alone.append(isolated(target, arguments, {cpus[-1]}))
        with ThreadPoolExecutor(len(cpus)) as pool:
            together += pool.map(lambda cpu: isolated(target, arguments, {cpu}), cpus)
    result = {"cores": len(cpus), "alone": statistics.median(alone), "together": statistics.median(together)}
    say(f"all cores: {result}")
    return result


def measure(part: str) -> None:
    """Measure one of `PARTS` and save it."""
    described = {key: value for key, value in machine.describe().items() if key in DESCRIBED}
    rows = PARTS[part]()
    record = load()
    record.setdefault("machines", {})[part] = described
    record.setdefault("dates", {})[part] = today()
    record[part] = rows
    save_record(FILE, record)


#: Each takes less than nine minutes.
PARTS = {
    "filters": lambda: [_run("measure_filter", count=count) for count in SIZES[:-1]],
    "largest": lambda: [_run("measure_filter", count=SIZES[-1])],
    "probe": lambda: _run("probe", sizes=SHARDS),
    "cores": _run_on_all_cores,
    "route": lambda: _run("measure_route"),
    "shuffle": lambda: [_run("measure_shuffle", rows=rows) for rows in SHUFFLED],
    "simulation": lambda: [_run("simulate_shuffle", rows=rows) for rows in [*SHUFFLED, PLANNED]],
    "sync": lambda: [_run("measure_sync", count=count) for count in SYNCED],
}
