"""Whole programs that remove repeated lines, one processor each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import HERE, WORK, Definition, Figure, Result, Table, number

FILE = WORK / "lines.txt"
LINE = 60
Sample = dict[str, float]


def run(definition: Definition, quick: bool) -> Result:
    """Makes the file, runs the programs. Held small, since a child's peak memory starts at its parent's."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    WORK.mkdir(exist_ok=True)
    try:
        instance = isolated("benchmarks.measure.dedup:build", {"path": str(FILE), "lines": settings["lines"]})
        ours, others = _programs(settings["ours"], instance, result)
        order = {k: settings[k] for k in ("rounds", "rival_rounds")}
        order |= {"programs": ours + others, "rivals": [name for name, _ in others], "cpu": clock.one_cpu()}
        samples = isolated("benchmarks.measure.dedup:worker", order)
    finally:
        FILE.unlink(missing_ok=True)
    _report(result, settings, instance, samples)
    return result


def build(path: str, lines: int) -> dict[str, int]:
    """Writes the file: 4/5 distinct lines, 1/5 repeats of them, shuffled."""
    import numpy as np

    draw = np.random.default_rng(lines)
    distinct = lines * 4 // 5
    ids = np.concatenate([np.arange(distinct), draw.integers(0, distinct, lines - distinct)]).astype(
        np.uint64
    )
    draw.shuffle(ids)
    ids *= np.uint64(0x9E3779B97F4A7C15)
    hexadecimal = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    frame = b"user=%s GET /catalogue/item?from=mail status=200" % (b"_" * 16)
    frame = frame[: LINE - 1].ljust(LINE - 1, b".") + b"\n"
    at = frame.index(b"_")
    with Path(path).open("wb") as out:
        for start in range(0, lines, 1 << 20):
            part = ids[start : start + (1 << 20)]
            block = np.tile(np.frombuffer(frame, dtype=np.uint8), (len(part), 1))
            for digit in range(16):
                block[:, at + digit] = hexadecimal[(part >> np.uint64(4 * digit)) & np.uint64(15)]
            out.write(block.tobytes())
    return {"lines": lines, "distinct": distinct, "bytes": Path(path).stat().st_size}


def _programs(ours: list[list[str]], instance: dict[str, int], result: Result) -> tuple[list[Any], list[Any]]:
    script = shutil.which("fullbloom", path=str(Path(sys.executable).parent))
    start = [script] if script else [sys.executable, "-m", "fullbloom"]
    words = {"file": str(FILE), "distinct": instance["distinct"]}
    mine = [[name, start + [word.format(**words) for word in command]] for name, *command in ours]
    python, rivals = sys.executable, HERE / "rivals"
    others = [
        ["sort -u", ["sort", "-u", str(FILE)]],
        ["awk '!s[$0]++'", ["awk", "!s[$0]++", str(FILE)]],
        ["Python set", [python, str(rivals / "dedup_set.py"), str(FILE)]],
        ["Python + abloom", [python, str(rivals / "dedup_abloom.py"), str(FILE), str(instance["distinct"])]],
    ]
    for name, command in others[:2]:
        if shutil.which(command[0]) is None:
            result.notes.append(f"{name}: not installed")
    return mine, [other for other in others if shutil.which(other[1][0])]


def worker(
    programs: list[Any], rounds: int, rival_rounds: int, rivals: list[str], cpu: int
) -> dict[str, dict[str, Any]]:
    """Samples of each program, and how many lines it wrote; the message of one that failed."""
    pin = ["taskset", "-c", str(cpu)] if shutil.which("taskset") else []
    for block in iter_blocks(FILE):
        del block
    answers: dict[str, dict[str, Any]] = {name: {"samples": []} for name, _ in programs}
    for round_ in range(rounds):
        for name, command in clock.rotated(programs, round_):
            answer = answers[name]
            if "failed" in answer or (name in rivals and round_ >= rival_rounds):
                continue
            try:
                answer["samples"].append(time_command(pin + command))
            except subprocess.CalledProcessError as error:
                answer["failed"] = f"status {error.returncode}: {error.stderr}"
            else:
                say(f"{name}: {answer['samples'][-1]['seconds']:.2f} s")
    for name, command in programs:
        if "failed" not in answers[name]:
            answers[name]["written"] = count_lines(command)
    return answers


def time_command(command: list[str]) -> Sample:
    """Runs a program to its end, output to nowhere."""
    environment = {**os.environ, "LC_ALL": "C"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True
    )
    message = process.stderr.read() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        last = message.strip().splitlines()[-1] if message.strip() else "no message"
        raise subprocess.CalledProcessError(process.returncode, command[-2], stderr=last)
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}


def count_lines(command: list[str]) -> int:
    """How many lines a program writes."""
    environment = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        lines = 0
        while block := process.stdout.read(1 << 20):
            lines += block.count(b"\n")
    return lines


def iter_blocks(path: Path) -> Any:
    """The file in blocks; brings it into the page cache."""
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            yield block


def _report(
    result: Result, settings: dict[str, Any], instance: dict[str, int], answers: dict[str, Any]
) -> None:
    rows = []
    size = instance["bytes"] / 1e6
    for name, answer in answers.items():
        if "failed" in answer:
            result.notes.append(f"{name}: {answer['failed']}")
            continue
        seconds = [s["seconds"] for s in answer["samples"]]
        peak = max(s["peak"] for s in answer["samples"]) / 1e6
        speed = Figure(size / clock.median(seconds), "MB/s", f"{name}, {size:,.0f} MB", size / min(seconds))
        result.figures[f"{name}/mb_s"] = speed
        if name.endswith("--memory"):
            label = f"{peak:,.0f} MB of {settings['asked_mb']} MB requested"
            result.figures[f"{name}/memory"] = Figure(peak / settings["asked_mb"], "x", label)
        missing = instance["distinct"] - answer["written"]
        cpu = clock.median([s["cpu"] for s in answer["samples"]])
        cells = [
            f"{number(speed.value)} ({number(size / min(seconds))})",
            f"{cpu:.2f}",
            f"{peak:,.0f}",
            f"{missing:,}",
        ]
        rows.append([name, *cells])
        say("  ".join(rows[-1]))
    columns = ["program", "MB/s: median (best)", "CPU, s", "peak memory, MB", "distinct lines missing"]
    title = f"{size:,.0f} MB, {instance['lines']:,} lines, {instance['distinct']:,} distinct"
    result.tables.append(Table(title, columns, rows))
    result.raw = answers
