"""NumPy arrays: every layout, one and two threads, the C++ yardstick between the rounds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say, yardstick
from benchmarks.model import Definition, Figure, Result, Table, count_name, number

OPERATIONS = ("update", "add_many", "contains_many (hit)", "contains_many (miss)")
COLUMNS = ["layout", "keys", "threads", *OPERATIONS, "first update"]


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each case."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    tool, why = yardstick.compiled()
    if tool is None:
        result.notes.append(why)
    usable = len(os.sched_getaffinity(0))
    threads = [t for t in settings["threads"] if t <= usable]
    if threads != settings["threads"]:
        result.notes.append(f"rows with more than {usable} threads: this process may use {usable} processors")
    rows: list[list[str]] = []
    for case in settings["cases"]:
        beside = str(tool.program) if tool and case["layout"] == "blocked" else None
        order = {**case, "threads": threads, "fpr": settings["fpr"], "cpu": clock.one_cpu(), "beside": beside}
        # Fresh memory for 100 MB of answers cost between 10 and 420 ms on a virtual machine, by what its host
        # had to supply: up to 4 ns per key that no filter can help.
        answer = isolated("benchmarks.measure.numpy_batch:worker", order, keeps_memory=True)
        rows += _report(result, case, answer)
        result.raw[f"{case['layout']}/{case['keys']}"] = answer
    note = (
        "ns per key: median (minimum); CPU time with one thread, wall time with more; "
        "results are written to memory that the process already had"
    )
    result.tables.append(Table("NumPy `int64`, fpr 1 %", COLUMNS, rows, note))
    return result


def worker(
    layout: str, keys: int, rounds: int, threads: list[int], fpr: float, cpu: int, beside: str | None
) -> dict[str, Any]:
    """Samples [wall, cpu] by threads and operation, and those of the yardstick."""
    import numpy as np

    from fullbloom import BloomFilter

    draw = np.random.default_rng(keys)
    members = draw.integers(-(1 << 62), 1 << 62, keys, dtype=np.int64) * 2
    absent = draw.integers(-(1 << 62), 1 << 62, keys, dtype=np.int64) * 2 + 1
    f = BloomFilter(keys, fpr, layout=layout)
    tool = yardstick.Yardstick(Path(beside)) if beside else None
    samples: dict[str, Any] = {str(t): {op: [] for op in OPERATIONS} for t in threads}
    others: dict[str, list[float]] = {}
    with clock.pinned({cpu}):
        first = clock.wall_and_cpu(lambda: f.update(members), keys)
    for round_ in range(rounds):
        for t in clock.rotated(threads, round_):
            cpus = {cpu} if t == 1 else os.sched_getaffinity(0)
            with clock.pinned(set(cpus)), clock.no_gc():
                _round(samples[str(t)], f, members, absent, t)
        if tool is not None:
            with clock.pinned({cpu}):
                for op, ns in tool.run(keys).items():
                    others.setdefault(op, []).append(ns)
    return {"samples": samples, "first": first, "yardstick": others, "bits": f.num_bits / keys}


def _round(into: dict[str, list[Any]], f: Any, members: Any, absent: Any, threads: int) -> None:
    n = len(members)
    if threads > 1:
        # Not timed: after a pause a virtual machine's other processors take some 20 ms to come back.
        f.contains_many(members, threads=threads)
    f.clear()
    into["update"].append(clock.wall_and_cpu(lambda: f.update(members, threads=threads), n))
    f.clear()
    into["add_many"].append(clock.wall_and_cpu(lambda: f.add_many(members, threads=threads), n))
    for op, keys in (("contains_many (hit)", members), ("contains_many (miss)", absent)):
        into[op].append(clock.wall_and_cpu(lambda: f.contains_many(keys, threads=threads), n))  # noqa: B023


def _report(result: Result, case: dict[str, Any], answer: dict[str, Any]) -> list[list[str]]:
    layout, keys = case["layout"], case["keys"]
    name, rows = count_name(keys), []
    for t, ops in answer["samples"].items():
        first = number(answer["first"][1]) if t == "1" else ""
        row = [layout, name, t]
        for op, pairs in ops.items():
            times = [pair[1] if t == "1" else pair[0] for pair in pairs]
            mid, low = clock.median(times), min(times)
            row.append(f"{number(mid)} ({number(low)})")
            label = f"{op}, {layout}, {name}"
            figure = Figure(mid, "ns", label, low)
            result.figures[f"{layout}/{keys}/{t}/{op}/ns"] = figure
            if t != "1" and "1" in answer["samples"]:
                one = [pair[0] for pair in answer["samples"]["1"][op]]
                ratio = Figure(clock.median(one) / mid, "x", f"{label}, {t} threads", min(one) / low)
                result.figures[f"{layout}/{keys}/{t}/{op}/speed-up"] = ratio
                row[-1] += f", {ratio.value:.2f}x"
        rows.append([*row, first])
    if answer["yardstick"]:
        times = answer["yardstick"]
        cells = [
            f"{number(clock.median(times[op]))} ({number(min(times[op]))})" if op in times else "-"
            for op in OPERATIONS
        ]
        rows.append(["C++ split block", name, "1", *cells, ""])
    for row in rows:
        say("  ".join(row))
    return rows
