"""`fullbloom build` of a static filter, in memory and under a bound."""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import dedup, say
from benchmarks.model import WORK, Definition, Figure, Result, Table, count_name, number

FILE = WORK / "keys.txt"
LINE = 17


def run(definition: Definition, quick: bool) -> Result:
    """Makes the file, builds each way; held small, since a child's peak memory starts at its parent's."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    WORK.mkdir(exist_ok=True)
    bounds = ["", *settings["memories"]]
    instance = {bound: WORK / f"large{bound}" for bound in bounds}
    try:
        isolated("benchmarks.measure.large_build:build", {"path": str(FILE), "lines": settings["lines"]})
        script = shutil.which("fullbloom", path=str(Path(sys.executable).parent))
        ours = [script] if script else [sys.executable, "-m", "fullbloom"]
        ours += ["build", "--quiet", "--kind", settings["kind"]]
        limits = {bound: ["--memory", bound] if bound else [] for bound in bounds}
        commands = {bound: [*ours, *limits[bound], str(instance[bound]), str(FILE)] for bound in bounds}
        order = {"commands": commands, "cpu": clock.one_cpu()}
        samples = isolated("benchmarks.measure.large_build:worker", order)
        if not all(filecmp.cmp(instance[""], path, shallow=False) for path in instance.values()):
            raise RuntimeError("the files differ")
        size = instance[""].stat().st_size
    finally:
        for path in (FILE, *instance.values()):
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
        say(f"{name or 'in memory'}: {answers[name]['seconds']:.1f} s, {answers[name]['peak'] / 1e6:,.0f} MB")
    return answers


def _report(
    result: Result, settings: dict[str, Any], samples: dict[str, dict[str, float]], size: int
) -> None:
    lines, rows = settings["lines"], []
    free = samples[""]["seconds"]
    for bound, sample in samples.items():
        peak, seconds, label = sample["peak"] / 1e6, sample["seconds"], f"{count_name(lines)} lines, {bound}"
        name = f"--memory {bound}" if bound else "in memory"
        speed = lines / seconds / 1e6
        rows.append([name, f"{seconds:.1f}", f"{sample['cpu']:.1f}", number(speed), f"{peak:,.0f}"])
        if bound:
            result.figures[f"{lines}/{bound}/memory"] = Figure(round(peak), "MB", label)
            result.figures[f"{lines}/{bound}/time"] = Figure(round(seconds / free, 3), "x", label)
    columns = ["build", "seconds", "CPU, s", "million keys per second", "peak memory, MB"]
    note = f"The filter has {size / 1e6:,.0f} MB; each ran once."
    title = f"{count_name(lines)} lines, `--kind {settings['kind']}`"
    result.tables.append(Table(title, columns, rows, note))
    result.raw = samples
