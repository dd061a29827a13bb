"""Set reconciliation: `fullbloom sync` as a program, and the rateless encoding alone."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import WORK, Definition, Figure, Result, Table, number

SIDES = ("requesting", "serving")


def run(definition: Definition, quick: bool) -> Result:
    """The program first, then codes in fresh processes; its files are removed."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    WORK.mkdir(exist_ok=True)
    paths = [WORK / "sync.here", WORK / "sync.there"]
    try:
        order = {"paths": [str(path) for path in paths]} | {k: settings[k] for k in ("lines", "differences")}
        isolated("benchmarks.measure.reconcile:build", order)
        order = {"paths": order["paths"], "rounds": settings["rounds"]}
        _report_sync(result, settings, isolated("benchmarks.measure.reconcile:sync", order))
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    cpu = {clock.one_cpu()}
    order = {k: settings[k] for k in ("keys", "sizes", "pairs")}
    _report_symbols(result, isolated("benchmarks.measure.reconcile:symbols", order, cpu))
    streams = []
    for keys, differences in settings["streams"]:
        order = {"keys": keys, "differences": differences, "rounds": 3 * settings["rounds"]}
        streams.append((order, isolated("benchmarks.measure.reconcile:stream", order, cpu)))
    _report_streams(result, streams)
    return result


def build(paths: list[str], lines: int, differences: int) -> None:
    """Writes both files, each in an order of its own; half of the differences are of either alone."""
    import random

    draw = random.Random(lines)
    alone = differences // 2
    universe = [f"{draw.getrandbits(92):023x}\n" for _ in range(lines + alone)]
    for path, some in zip(paths, (universe[:lines], universe[alone:]), strict=True):
        draw.shuffle(some)
        Path(path).write_text("".join(some))


def sync(paths: list[str], rounds: int) -> dict[str, Any]:
    """CPU seconds and peak memory of each side, wall time, and the report of the requesting side."""
    script = shutil.which("fullbloom", path=str(Path(sys.executable).parent))
    ours = [script] if script else [sys.executable, "-m", "fullbloom"]
    cpus = sorted(os.sched_getaffinity(0), reverse=True)
    pins = [["taskset", "-c", str(cpu)] if shutil.which("taskset") else [] for cpu in (cpus[0], cpus[-1])]
    # The serving side, a child of the requesting one, is measured by a program around it.
    around = [sys.executable, "-m", "benchmarks.measure.reconcile", "{report}"]
    answer: dict[str, Any] = {side: {"cpu": [], "peak": []} for side in SIDES} | {"seconds": []}
    for _ in range(rounds):
        report = Path(paths[0]).with_suffix(".json")
        serving = (
            [word.format(report=report) for word in around] + pins[1] + [*ours, "sync", "--serve", paths[1]]
        )
        requesting = [*pins[0], *ours, "sync", "--quiet", "--json", paths[0], "--with", shlex.join(serving)]
        start = time.perf_counter()
        done = subprocess.Popen(requesting, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = done.stdout.read(), done.stderr.read()  # type: ignore[union-attr]
        _, status, usage = os.wait4(done.pid, 0)
        answer["seconds"].append(time.perf_counter() - start)
        if os.waitstatus_to_exitcode(status) != 1:  # as diff: there are differences
            raise RuntimeError(f"sync ended with status {status}: {err}")
        theirs = json.loads(report.read_text())
        report.unlink()
        # The usage of the requesting side includes its children: subtract that of the serving side.
        own = usage.ru_utime + usage.ru_stime
        _note(answer["requesting"], own - theirs["around"] - theirs["cpu"], usage.ru_maxrss * 1024)
        _note(answer["serving"], theirs["cpu"], theirs["peak"])
        answer["report"] = json.loads((out or err).strip().splitlines()[-1])
    return answer


def _note(into: dict[str, list[float]], cpu: float, peak: float) -> None:
    into["cpu"].append(cpu)
    into["peak"].append(peak)


def around(report: str, command: list[str]) -> int:
    """Runs a command, its input and output ours; writes what it cost to a file."""
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    own = time.process_time()
    cost = {"cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024, "around": own}
    Path(report).write_text(json.dumps(cost))
    return os.waitstatus_to_exitcode(status)


def symbols(keys: int, sizes: list[int], pairs: int) -> dict[str, list[float]]:
    """Symbols per difference, by number of differences, one figure per pair of sets."""
    import numpy as np

    from fullbloom.compose import RatelessDecoder, RatelessEncoder

    answer: dict[str, list[float]] = {}
    for size in sizes:
        answer[str(size)] = []
        for pair in range(pairs):
            hashes = np.random.default_rng([size, pair]).integers(
                0, 1 << 64, keys + size // 2, dtype=np.uint64
            )
            there = RatelessEncoder(hashes[:keys], hashed=True)
            here = RatelessDecoder(hashes[size // 2 :], hashed=True)
            while not here.feed(there.produce(max(32, there.symbols // 100))):
                pass
            mine, theirs, complete = here.decoded()
            if not complete or len(mine) + len(theirs) != size // 2 * 2:
                raise RuntimeError(f"{size} differences were not decoded")
            answer[str(size)].append(here.symbols / size)
    return answer


def stream(keys: int, differences: int, rounds: int) -> dict[str, list[float]]:
    """MB of symbols generated and processed per second; sets are read before."""
    import numpy as np

    from fullbloom.compose import RatelessDecoder, RatelessEncoder

    hashes = np.random.default_rng(keys).integers(0, 1 << 64, keys + differences // 2, dtype=np.uint64)
    wanted = differences * 3 // 2
    answer: dict[str, list[float]] = {"generated": [], "processed": [], "added": []}
    for _ in range(rounds):
        start = time.process_time()
        there = RatelessEncoder(hashes[:keys], hashed=True)
        answer["added"].append(keys / (time.process_time() - start) / 1e6)
        here = RatelessDecoder(hashes[differences // 2 :], hashed=True)
        start = time.process_time()
        data = there.produce(wanted)
        answer["generated"].append(len(data) / (time.process_time() - start) / 1e6)
        start = time.process_time()
        if not here.feed(data):
            raise RuntimeError(f"{wanted} symbols did not suffice")
        answer["processed"].append(len(data) / (time.process_time() - start) / 1e6)
    return answer


def _report_sync(result: Result, settings: dict[str, Any], answer: dict[str, Any]) -> None:
    lines, outcome = settings["lines"], answer["report"]
    sent, label = (
        (outcome["sent"] + outcome["received"]) / 1000,
        f"{outcome['mine'] + outcome['theirs']:,} differences",
    )
    if outcome["mine"] + outcome["theirs"] != settings["differences"] // 2 * 2:
        raise RuntimeError(f"sync found {label}")
    result.figures[f"sync/{lines}/bytes"] = Figure(sent, "kB", label)
    rows = []
    for side in SIDES:
        cpu = answer[side]["cpu"]
        result.figures[f"sync/{lines}/{side}/s"] = Figure(
            clock.median(cpu), "s", f"the {side} side", min(cpu)
        )
        rows.append(
            [side, f"{clock.median(cpu):.2f} ({min(cpu):.2f})", f"{max(answer[side]['peak']) / 1e6:,.0f}"]
        )
    seconds = answer["seconds"]
    note = (
        f"{sent:.1f} kB in both directions, {outcome['symbols']:,} symbols; from start to end "
        f"{clock.median(seconds):.2f} s ({min(seconds):.2f})"
    )
    columns = ["side", "CPU, s: median (minimum)", "peak memory, MB"]
    result.tables.append(Table(f"`fullbloom sync`, {lines:,} lines, {label}", columns, rows, note))
    result.raw["sync"] = answer
    say(f"{rows} {note}")


def _report_symbols(result: Result, answer: dict[str, list[float]]) -> None:
    rows = []
    for size, ratios in answer.items():
        mean = sum(ratios) / len(ratios)
        label = f"{int(size):,} differences"
        result.figures[f"symbols/{size}/mean"] = Figure(round(mean, 4), "x", label)
        result.figures[f"symbols/{size}/worst"] = Figure(round(max(ratios), 4), "x", label)
        rows.append([label, f"{mean:.3f}", f"{max(ratios):.3f}", str(len(ratios))])
        say("  ".join(rows[-1]))
    columns = ["differences", "symbols per difference: mean", "worst", "pairs of sets"]
    result.tables.append(Table("Symbols of the rateless encoding", columns, rows))
    result.raw["symbols"] = answer


def _report_streams(result: Result, streams: list[Any]) -> None:
    rows = []
    for order, answer in streams:
        keys, differences = order["keys"], order["differences"]
        row = [f"{keys:,} keys, {differences:,} differences"]
        for what in ("generated", "processed"):
            speed = answer[what]
            figure = Figure(clock.median(speed), "MB/s", f"{what}, {row[0]}", max(speed))
            result.figures[f"stream/{keys}/{differences}/{what}/mb_s"] = figure
        row += [f"{number(clock.median(speed))} ({number(max(speed))})" for speed in answer.values()]
        rows.append(row)
        result.raw[f"stream/{keys}/{differences}"] = answer
        say("  ".join(row))
    columns = ["sets", "symbols generated, MB/s", "processed, MB/s", "keys added, millions per second"]
    result.tables.append(Table("Speed of the rateless encoding", columns, rows, "median (best), CPU time"))


if __name__ == "__main__":
    sys.exit(around(sys.argv[1], sys.argv[2:]))
