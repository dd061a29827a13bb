"""`bloomery build` of a static filter, in memory and under a bound."""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolate import isolated
from benchmarks.measure import dedup, say
from benchmarks.model import WORK, Definition, Figure, Result, Table, count_name, number

FILE = WORK / "keys.txt"
LINE = 17


def run(definition: Definition, quick: bool) -> Result:
    """Makes the file, builds twice; held small, since a child's peak memory starts at its parent's."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    WORK.mkdir(exist_ok=True)
    made = {name: WORK / f"large.{name}" for name in ("bounded", "memory")}
    try:
        isolated("benchmarks.measure.large_build:build", {"path": str(FILE), "lines": settings["lines"]})
        script = shutil.which("bloomery", path=str(Path(sys.executable).parent))
        ours = [script] if script else [sys.executable, "-m", "bloomery"]
        ours += ["build", "--quiet", "--kind", settings["kind"]]
        commands = {
            "memory": [*ours, str(made["memory"]), str(FILE)],
            "bounded": [*ours, "--memory", settings["memory"], str(made["bounded"]), str(FILE)],
        }
        order = {"commands": commands, "cpu": clock.one_cpu()}
        samples = isolated("benchmarks.measure.large_build:worker", order)
        if not filecmp.cmp(made["memory"], made["bounded"], shallow=False):
            raise RuntimeError("the two files differ")
        size = made["memory"].stat().st_size
    finally:
        for path in (FILE, *made.values()):
            path.unlink(missing_ok=True)
    _report(result, settings, samples, size)
    return result


def build(path: str, lines: int) -> None:
    """Writes so many distinct lines, each 16 hexadecimal digits."""
    import numpy as np

    hexadecimal = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    with Path(path).open("wb") as out:
        for start in range(0, lines, 1 << 20):
            part = np.arange(start, min(start + (1 << 20), lines), dtype=np.uint64)
            part *= np.uint64(0x9E3779B97F4A7C15)
            block = np.full((len(part), LINE), ord("\n"), dtype=np.uint8)
            for digit in range(16):
                block[:, digit] = hexadecimal[(part >> np.uint64(4 * digit)) & np.uint64(15)]
            out.write(block.tobytes())


def worker(commands: dict[str, list[str]], cpu: int) -> dict[str, dict[str, float]]:
    """Seconds, CPU seconds and peak memory of each, run once."""
    pin = ["taskset", "-c", str(cpu)] if shutil.which("taskset") else []
    for block in dedup.iter_blocks(FILE):
        del block
    answers = {}
    for name, command in commands.items():
        os.sync()
        answers[name] = dedup.timed(pin + command)
        say(f"{name}: {answers[name]['seconds']:.1f} s, {answers[name]['peak'] / 1e6:,.0f} MB")
    return answers


def _report(
    result: Result, settings: dict[str, Any], samples: dict[str, dict[str, float]], size: int
) -> None:
    lines, rows = settings["lines"], []
    label = f"{count_name(lines)} lines"
    titles = {"memory": "in memory", "bounded": f"--memory {settings['memory']}"}
    for name, sample in samples.items():
        peak, seconds = sample["peak"] / 1e6, sample["seconds"]
        speed = lines / seconds / 1e6
        rows.append([titles[name], f"{seconds:.1f}", f"{sample['cpu']:.1f}", number(speed), f"{peak:,.0f}"])
    bounded, free = samples["bounded"], samples["memory"]
    result.figures[f"{lines}/memory"] = Figure(round(bounded["peak"] / 1e6), "MB", label)
    result.figures[f"{lines}/time"] = Figure(round(bounded["seconds"] / free["seconds"], 3), "x", label)
    columns = ["build", "seconds", "CPU, s", "million keys a second", "peak memory, MB"]
    note = f"The filter has {size / 1e6:,.0f} MB; each ran once."
    result.tables.append(Table(f"{label}, `--kind {settings['kind']}`", columns, rows, note))
    result.raw = samples
