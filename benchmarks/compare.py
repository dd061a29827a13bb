"""Compares two builds, interleaved: `python -m benchmarks.compare OTHER_PYTHON [--rounds N] [--quick]`.

OTHER_PYTHON is the interpreter of an environment with the other build, such as that of an earlier commit. A
round runs every case with the other build, with this one, and with the other one again, each in a fresh
process on one core (on two for the cases of two threads). The last columns are by what the same build differs
from itself: the noise. A case is slower when its median and its minimum are, by more than its own noise and
than that of nine cases in ten.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

Case = tuple[str, int, Callable[[], Any]]


def best(call: Callable[[], Any], keys: int, times: int) -> float:
    """Nanoseconds per key, the least of some runs."""
    spent = []
    for _ in range(times):
        start = time.perf_counter_ns()
        call()
        spent.append((time.perf_counter_ns() - start) / keys)
    return min(spent)


def objects(keys: int) -> dict[str, list[Any]]:
    """Keys as Python objects."""
    return {"str": [f"key-{i}" for i in range(keys)], "int": list(range(10**12, 10**12 + keys))}


def scalar(keys: int) -> Iterator[Case]:
    """One key at a time."""
    import fullbloom

    for kind, members in (
        ("int", list(range(10**12, 10**12 + keys))),
        ("str", [f"key-{i}" for i in range(keys)]),
    ):
        f = fullbloom.BloomFilter(keys)
        yield f"add {kind} {keys}", keys, lambda f=f, m=members: (f.clear(), [f.add(key) for key in m])
        yield f"in {kind} {keys}", keys, lambda f=f, m=members: [key in f for key in m]
    for cls in (fullbloom.CountingBloomFilter, fullbloom.CuckooFilter):
        f = cls(2 * keys)
        yield (
            f"{cls.__name__} add int {keys}",
            keys,
            lambda f=f, m=members: (f.clear(), [f.add(key) for key in m]),
        )
        yield f"{cls.__name__} in int {keys}", keys, lambda f=f, m=members: [key in f for key in m]
        yield f"{cls.__name__} discard int {keys}", keys, lambda f=f, m=members: [f.discard(key) for key in m]


def lists(keys: int) -> Iterator[Case]:
    """Batches of Python objects."""
    import fullbloom

    for kind, members in (
        ("int", list(range(10**12, 10**12 + keys))),
        ("str", [f"key-{i}" for i in range(keys)]),
    ):
        f = fullbloom.BloomFilter(keys)
        yield f"update list of {kind}", keys, lambda f=f, m=members: f.update(m)
        yield f"contains_many list of {kind}", keys, lambda f=f, m=members: f.contains_many(m)


def columns(keys: int, threads: int) -> Iterator[Case]:
    """Batches of NumPy arrays in each layout."""
    import numpy as np

    import fullbloom

    members = np.random.default_rng(1).integers(0, 1 << 62, keys) * 2
    for layout in ("blocked", "split", "classic", "partitioned"):
        f = fullbloom.BloomFilter(keys, layout=layout)
        name = f"{layout} {keys}" + (f" on {threads} threads" if threads > 1 else "")
        yield f"update {name}", keys, lambda f=f: (f.clear(), f.update(members, threads=threads))
        yield f"add_many {name}", keys, lambda f=f: (f.clear(), f.add_many(members, threads=threads))
        yield f"contains_many hit {name}", keys, lambda f=f: f.contains_many(members, threads=threads)
        yield f"contains_many miss {name}", keys, lambda f=f: f.contains_many(members + 1, threads=threads)


def structures(keys: int) -> Iterator[Case]:
    """Batches of every structure that takes keys alone."""
    import numpy as np

    import fullbloom

    members = np.random.default_rng(2).integers(0, 1 << 62, keys) * 2
    for row in fullbloom.variants():
        # Rows of earlier releases have no entry, but the way in which keys are added.
        entry = row.get("entry") or [row.get("adds", "key")]
        if {"label", "value", "static"} & {*row["capabilities"]} or entry != ["key"]:
            continue
        make, name = getattr(fullbloom, row["class"]), row["name"]
        filled = make(keys, 0.01)
        filled.update(members)
        yield f"{name} add_many", keys, lambda make=make: make(keys, 0.01).add_many(members)
        yield f"{name} contains_many hit", keys, lambda f=filled: f.contains_many(members)
        yield f"{name} contains_many miss", keys, lambda f=filled: f.contains_many(members + 1)
        if hasattr(filled, "discard_many"):
            yield (
                f"{name} discard and add",
                keys,
                lambda f=filled: (f.discard_many(members), f.update(members)),
            )


def worker(*, quick: bool) -> dict[str, float]:
    """Every case in this process."""
    warnings.simplefilter("ignore")
    first, size = next(iter(sorted(os.sched_getaffinity(0)))), 100_000 if quick else 1_000_000
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {first})
    figures = {}
    for cases in (
        scalar(10_000),
        scalar(size),
        lists(size),
        columns(size, 1),
        columns(10 * size, 1),
        structures(size),
    ):
        for name, keys, call in cases:
            figures[name] = best(call, keys, 9 if keys <= 10_000 else 2)
    os.sched_setaffinity(0, cores)
    for name, keys, call in columns(10 * size, 2):
        figures[name] = best(call, keys, 2)
    return figures


def measured(python: str, *, quick: bool) -> dict[str, float]:
    """The figures of one build, in a process of its own."""
    command = [python, __file__, "--worker", *(["--quick"] if quick else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def table(rounds: list[tuple[dict[str, float], ...]]) -> int:
    """Prints a line a case; the number of cases that are slower."""
    names = [name for name in rounds[0][1] if name in rounds[0][0]]
    rows = []
    for name in names:
        before, after, again = ([figures[name] for figures in build] for build in zip(*rounds, strict=True))
        ratios = [
            (statistics.median(x) / statistics.median(before), min(x) / min(before)) for x in (after, again)
        ]
        rows.append((name, min(before), min(after), *ratios[0], *ratios[1]))
    noise = {row[0]: max(abs(row[5] - 1), abs(row[6] - 1)) for row in rows}
    usual = statistics.quantiles(noise.values(), n=10)
    print(f"{'case':<44} {'before':>8} {'after':>8} {'median':>7} {'min':>7}   same build twice")
    slower = 0
    for name, old, new, median, least, again_median, again_least in sorted(rows, key=lambda row: -row[4]):
        worse = min(median, least) > 1 + max(noise[name], usual[-1])
        slower += worse
        twice = f"{again_median:.3f} {again_least:.3f}" + ("  slower" if worse else "")
        print(f"{name:<44} {old:8.2f} {new:8.2f} {median:7.3f} {least:7.3f}   {twice}")
    print(f"noise: {usual[4]:.1%} for half of the cases, {usual[-1]:.1%} for nine in ten")
    print(f"slower beyond noise: {slower} of {len(rows)}")
    return slower


def main() -> int:
    """1 when a case is slower beyond noise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("python", nargs="?", metavar="OTHER_PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(quick=options.quick)))
        return 0
    if options.python is None:
        parser.error("name the interpreter of the other build")
    rounds = []
    for number in range(options.rounds):
        builds = (options.python, sys.executable, options.python)
        rounds.append(tuple(measured(python, quick=options.quick) for python in builds))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return 1 if table(rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
