"""What `import fullbloom` and the command cost before they do anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import ROOT, WORK, Definition, Figure, Result, Table, number

BARE, IMPORT, VERSION = "python -c pass", "python -c 'import fullbloom'", "fullbloom --version"


def run(definition: Definition, quick: bool) -> Result:
    """Times the processes, looks at the modules, builds the wheel when asked."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    samples = isolated("benchmarks.measure.imports:worker", {"rounds": settings["rounds"]}, {clock.one_cpu()})
    bare, rows = samples[BARE], []
    for name, times in samples.items():
        if not times:
            result.notes.append(f"{name}: does not run, so it has no figure")
            continue
        mid, low = clock.median(times), min(times)
        paired = clock.median([t - b for t, b in zip(times, bare, strict=True)])
        over = "" if name == BARE else f"{number(paired)} ({number(low - min(bare))})"
        rows.append([name, f"{number(mid)} ({number(low)})", over])
        say("  ".join(rows[-1]))
        if name == IMPORT:
            result.figures["import/ms"] = Figure(paired, "ms", "import fullbloom", low - min(bare))
        if name == VERSION:
            result.figures["version/ms"] = Figure(mid, "ms", "whole process", low)
    columns = ["process", "ms: median (minimum)", "over bare Python: median of pairs (of minima)"]
    result.tables.append(Table("Start-up", columns, rows))
    foreign = isolated("benchmarks.measure.imports:foreign", {})
    result.figures["foreign/count"] = Figure(len(foreign), "modules", ", ".join(foreign) or "none")
    if settings["wheel"]:
        _wheel(result)
    result.raw = samples
    return result


def worker(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each process; no samples for one that fails."""
    script = shutil.which("fullbloom", path=str(Path(sys.executable).parent))
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        IMPORT: [sys.executable, "-c", "import fullbloom"],
        VERSION: [script, "--version"] if script else [sys.executable, "-m", "fullbloom", "--version"],
    }
    samples: dict[str, list[float]] = {name: [] for name in commands}
    works = {
        n: subprocess.run(c, capture_output=True, check=False).returncode == 0 for n, c in commands.items()
    }
    for round_ in range(rounds):
        for name, command in clock.rotated(list(commands.items()), round_):
            if works[name]:
                start = time.perf_counter_ns()
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
                samples[name].append((time.perf_counter_ns() - start) / 1e6)
    return samples


def foreign() -> list[str]:
    """Top-level modules that `import fullbloom` brings in and that are neither ours nor Python's."""
    code = (
        "import sys; before = set(sys.modules); import fullbloom; "
        "print(*sorted({n.partition('.')[0] for n in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [n for n in done.stdout.split() if n not in sys.stdlib_module_names and n != "fullbloom"]


def _wheel(result: Result) -> None:
    target = WORK / "wheel"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "maturin", "build", "--release", "--quiet", "--out", str(target)]
    command += ["--compression-level", "9"]
    stripped = os.environ | {"CARGO_PROFILE_RELEASE_STRIP": "symbols"}  # as scripts/wheels.sh
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, env=stripped)
    wheels = list(Path(target).glob("*.whl"))
    if done.returncode != 0 or not wheels:
        result.notes.append("wheel: `maturin build --release` failed")
        return
    size = wheels[0].stat().st_size / 1e6
    result.figures["wheel/mb"] = Figure(size, "MB", wheels[0].name)
    say(f"{wheels[0].name}: {size:.2f} MB")
    shutil.rmtree(target, ignore_errors=True)
