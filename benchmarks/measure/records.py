"""Whole programs that keep the first record of each key, of CSV and of JSON lines."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import dedup, say
from benchmarks.model import HERE, WORK, Definition, Figure, Result, Table, number

FRAMES = {
    "csv": b'--------,________________,2026-11-22T06:17:00Z,0129.95,"Berlin, Mitte",GET,200,'
    b"a note of some words\n",
    "jsonl": b'{"id": 1--------, "user": {"key": "________________", "tags": ["a", "b"]}, '
    b'"at": "2026-11-22T06:17:00Z", "price": 129.95, "city": "Berlin, Mitte"}\n',
}
HEADER = {"csv": b"id,user,at,price,city,verb,status,note\n", "jsonl": b""}
SELECT = {"csv": "user", "jsonl": "user.key"}
PYTHON = {"csv": "Python csv + set", "jsonl": "Python json + set"}
ONE, TWO = "fullbloom dedup --select", "fullbloom dedup --select --threads 2"
#: Rivals of one processor: what is imported, and the program.
OTHERS = {"Polars": "polars", "DuckDB": "duckdb"}
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "DUCKDB_THREADS": "1"}


def run(definition: Definition, quick: bool) -> Result:
    """Makes the files one after the other, runs the programs; nothing of them is left."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    WORK.mkdir(exist_ok=True)
    for kind in FRAMES:
        path = WORK / f"records.{kind}"
        try:
            order = {"path": str(path), "kind": kind, "megabytes": settings["megabytes"]}
            instance = isolated("benchmarks.measure.records:build", order)
            programs = _programs(kind, path, result)
            order = {k: settings[k] for k in ("rounds", "rival_rounds")} | {
                "programs": programs,
                "path": str(path),
            }
            samples = isolated("benchmarks.measure.records:worker", order)
        finally:
            path.unlink(missing_ok=True)
        _report(result, kind, instance, samples)
    return result


def build(path: str, kind: str, megabytes: int) -> dict[str, int]:
    """Writes the file: 4/5 distinct keys, 1/5 repeats of them, shuffled."""
    import numpy as np

    frame = FRAMES[kind]
    rows = megabytes * 10**6 // len(frame)
    draw = np.random.default_rng(rows)
    distinct = rows * 4 // 5
    ids = np.concatenate([np.arange(distinct), draw.integers(0, distinct, rows - distinct)]).astype(np.uint64)
    draw.shuffle(ids)
    ids *= np.uint64(0x9E3779B97F4A7C15)
    key, place = frame.index(b"_"), frame.index(b"--------")
    hexadecimal = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    with Path(path).open("wb") as out:
        out.write(HEADER[kind])
        for start in range(0, rows, 1 << 18):
            part = ids[start : start + (1 << 18)]
            numbers = np.arange(start, start + len(part), dtype=np.uint64)
            block = np.tile(np.frombuffer(frame, dtype=np.uint8), (len(part), 1))
            for digit in range(16):
                block[:, key + digit] = hexadecimal[(part >> np.uint64(4 * digit)) & np.uint64(15)]
            for digit in range(8):
                block[:, place + digit] = 48 + (numbers // np.uint64(10 ** (7 - digit))) % np.uint64(10)
            out.write(block.tobytes())
    return {"rows": rows, "distinct": distinct, "bytes": Path(path).stat().st_size}


def _programs(kind: str, path: Path, result: Result) -> list[list[Any]]:
    """Each program: its name, its processors, its words."""
    script = shutil.which("fullbloom", path=str(Path(sys.executable).parent))
    ours = [script] if script else [sys.executable, "-m", "fullbloom"]
    ours += ["dedup", "--quiet", "--select", SELECT[kind], str(path)]
    rival = [sys.executable, str(HERE / "rivals" / "records.py")]
    programs = [[ONE, 1, ours], [PYTHON[kind], 1, [*rival, kind, str(path)]]]
    if len(os.sched_getaffinity(0)) > 1:
        programs.insert(1, [TWO, 2, [*ours, "--threads", "2"]])
    else:
        result.notes.append("two threads: this machine has one processor")
    if kind == "csv":
        for name, module in OTHERS.items():
            if importlib.util.find_spec(module) is None:
                result.notes.append(f"{name}: not installed")
            else:
                programs.append([name, 1, [*rival, module, str(path)]])
        result.notes.append("qsv: left out, because it must be built from source")
    return programs


def worker(programs: list[Any], path: str, rounds: int, rival_rounds: int) -> dict[str, dict[str, Any]]:
    """Samples of each program, and how many lines it wrote."""
    cpus = sorted(os.sched_getaffinity(0), reverse=True)
    os.environ.update(ONE_THREAD)
    for block in dedup.iter_blocks(Path(path)):
        del block
    answers: dict[str, dict[str, Any]] = {name: {"samples": []} for name, *_ in programs}
    for round_ in range(rounds):
        for name, threads, words in clock.rotated(programs, round_):
            if name not in (ONE, TWO) and round_ >= rival_rounds:
                continue
            pin = ["taskset", "-c", ",".join(map(str, cpus[:threads]))] if shutil.which("taskset") else []
            answers[name]["samples"].append(dedup.timed([*pin, *words]))
            say(f"{name}: {answers[name]['samples'][-1]['seconds']:.2f} s")
    for name, _, words in programs:
        answers[name]["written"] = dedup.count_lines(words)
    return answers


def _report(result: Result, kind: str, instance: dict[str, int], answers: dict[str, Any]) -> None:
    size, rows = instance["bytes"] / 1e6, []
    seconds = {name: [s["seconds"] for s in answer["samples"]] for name, answer in answers.items()}
    cpu = {name: clock.median([s["cpu"] for s in answer["samples"]]) for name, answer in answers.items()}
    for name, answer in answers.items():
        peak = max(s["peak"] for s in answer["samples"]) / 1e6
        speed = f"{number(size / clock.median(seconds[name]))} ({number(size / min(seconds[name]))})"
        missing = instance["distinct"] - (answer["written"] - len(HEADER[kind].splitlines()))
        rows.append([name, speed, f"{cpu[name]:.2f}", f"{peak:,.0f}", f"{missing:,}"])
        if name == ONE:
            label = f"{kind}, {size:,.0f} MB"
            result.figures[f"{kind}/mb_s"] = Figure(size / clock.median(seconds[name]), "MB/s", label)
            result.figures[f"{kind}/memory_mb"] = Figure(peak, "MB", label)
    python = PYTHON[kind]
    result.figures[f"{kind}/times_python"] = Figure(cpu[python] / cpu[ONE], "x", f"{kind}, {python}")
    others = {name: cpu[name] for name in OTHERS if name in cpu}
    if others:
        best = min(others, key=lambda name: others[name])
        result.figures[f"{kind}/times_fastest"] = Figure(others[best] / cpu[ONE], "x", f"{kind}, {best}")
    if TWO in seconds:
        ratio = clock.median(seconds[ONE]) / clock.median(seconds[TWO])
        result.figures[f"{kind}/times_one_thread"] = Figure(
            ratio, "x", kind, min(seconds[ONE]) / min(seconds[TWO])
        )
    columns = ["program", "MB/s: median (best)", "CPU, s", "peak memory, MB", "distinct keys missing"]
    title = f"{kind}: {size:,.0f} MB, {instance['rows']:,} records, {instance['distinct']:,} keys"
    result.tables.append(Table(title, columns, rows))
    result.raw[kind] = answers
