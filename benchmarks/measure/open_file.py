"""Time and memory of the first open in a process."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import WORK, Definition, Figure, Result, Table, number

FILE = WORK / "open.bloom"
LATER = 200


def run(definition: Definition, quick: bool) -> Result:
    """One process writes the file, each sample is a process of its own."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    WORK.mkdir(exist_ok=True)
    size = settings["megabytes"]
    try:
        order = {"path": str(FILE), "megabytes": size, "keys": settings["keys"]}
        instance = isolated("benchmarks.measure.open_file:build", order)
        rows = [_temperature(result, size, settings["processes"], cold) for cold in (False, True)]
    finally:
        FILE.unlink(missing_ok=True)
    columns = ["file", "first open, ms", "resident growth, MB", "first query, us", "later opens, us"]
    note = f"median (minimum; for memory, maximum); saving took {number(instance['save_s'])} s"
    result.tables.append(Table(f"Open a {instance['bytes'] / 1e6:,.0f} MB file", columns, rows, note))
    return result


def _temperature(result: Result, size: int, processes: int, cold: bool) -> list[str]:
    name = "cold" if cold else "in the page cache"
    order = {"path": str(FILE), "cold": cold}
    samples = [isolated("benchmarks.measure.open_file:once", order) for _ in range(processes)]
    ms, mb, query, later = ([s[key] for s in samples] for key in ("ms", "mb", "query_us", "later_us"))
    if cold:
        disk = [s["disk_ms"] for s in samples]
        floor = f"{number(clock.median(disk))} ({number(min(disk))}) ms"
        result.notes.append(f"for comparison: one cold 4 KiB read of the same file takes {floor}")
    result.figures[f"{name}/ms"] = Figure(clock.median(ms), "ms", f"{size} MB, {name}", min(ms))
    result.figures[f"{name}/mb"] = Figure(max(mb), "MB", f"{size} MB, {name}, the worst of {processes}")
    result.raw[name] = samples
    row = [
        name,
        f"{number(clock.median(ms))} ({number(min(ms))})",
        f"{number(clock.median(mb))} ({number(max(mb))})",
    ]
    row += [f"{number(clock.median(some))} ({number(min(some))})" for some in (query, later)]
    say("  ".join(row))
    return row


def build(path: str, megabytes: int, keys: int) -> dict[str, float]:
    """Writes a filter of `megabytes` that holds `keys` integers."""
    import numpy as np

    from fullbloom import BloomFilter

    one = BloomFilter(1_000_000, 0.01)
    f = BloomFilter(megabytes * 8_000_000 * 1_000_000 // one.num_bits, 0.01)
    f.update(np.arange(keys, dtype=np.int64))
    start = time.perf_counter()
    f.save(path)
    return {"save_s": time.perf_counter() - start, "bytes": Path(path).stat().st_size}


def once(path: str, cold: bool) -> dict[str, float]:
    """One first open."""
    import fullbloom

    disk = 0.0
    if cold:
        _forget(path)
        disk = _first_read(path)
        _forget(path)
    for _ in range(3):
        before = _resident()
    start = time.perf_counter_ns()
    f = fullbloom.open(path)
    opened = time.perf_counter_ns()
    after = _resident()
    asked = time.perf_counter_ns()
    found = 0 in f
    answered = time.perf_counter_ns()
    if not found:
        raise SystemExit("the file lost a key")
    later = time.perf_counter_ns()
    for _ in range(LATER):
        fullbloom.open(path)
    later = time.perf_counter_ns() - later
    return {
        "ms": (opened - start) / 1e6,
        "disk_ms": disk,
        "mb": (after - before) / 1e6,
        "query_us": (answered - asked) / 1e3,
        "later_us": later / LATER / 1e3,
    }


def _resident() -> int:
    """Resident bytes, exact (the counters of /proc/self/statm lag by some pages a processor)."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise OSError("no Rss in /proc/self/smaps_rollup")


def _first_read(path: str) -> float:
    """Milliseconds of one 4 KiB read that the disk must serve, for comparison with a cold open."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        start = time.perf_counter_ns()
        os.pread(descriptor, 4096, 0)
        return (time.perf_counter_ns() - start) / 1e6
    finally:
        os.close(descriptor)


def _forget(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
