"""Drop repeated lines of an access log: 5 million lines, a fifth of them repeats, in random order."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.jobs.shown import Figures, Shown
from benchmarks.measure.dedup import count_lines, iter_blocks, time_command
from benchmarks.model import HERE
from benchmarks.units import write_bytes, write_seconds

PAGE = "docs/how-to/deduplicate.md"
LINES = 5_000_000
OURS, NAIVE = "fullbloom dedup", "Python set"
RUNS = 3


def measure() -> Figures:
    """Run the programs on the file by turns; the least time of each, and its largest memory."""
    with tempfile.TemporaryDirectory(prefix="fullbloom-job-") as folder:
        file = Path(folder) / "access.log"
        made = isolated("benchmarks.measure.dedup:build", {"path": str(file), "lines": LINES})
        programs = {
            OURS: [str(Path(sys.executable).with_name("fullbloom")), "dedup", "--quiet", str(file)],
            NAIVE: [sys.executable, str(HERE / "rivals" / "dedup_set.py"), str(file)],
            "sort -u": ["sort", "-u", str(file)],
        }
        for block in iter_blocks(file):  # into the page cache
            del block
        samples: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
        for turn in range(RUNS):
            for name, command in clock.rotated([*programs.items()], turn):
                samples[name].append(time_command(command))
        runs: Figures = {
            name: {
                "seconds": min(one["seconds"] for one in samples[name]),
                "memory": max(one["peak"] for one in samples[name]),
                "lost": made["distinct"] - count_lines(command),
            }
            for name, command in programs.items()
        }
    return {**made, "runs": runs}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    runs, size = figures["runs"], write_bytes(figures["bytes"])
    ours, naive = runs[OURS], runs[NAIVE]
    return Shown(
        f"{naive['memory'] / ours['memory']:.0f} times less memory than a Python `set`",
        f"A log of {figures['lines'] // 1_000_000} million lines, {size}, of which a fifth are repeats: "
        f"{naive['memory'] / ours['memory']:.0f} times less memory than a Python `set`, and "
        f"{naive['seconds'] / ours['seconds']:.0f} times faster.",
        ["", "peak memory", "time", "distinct lines lost", "order kept"],
        [
            [
                f"`{name}`" if name != NAIVE else name,
                write_bytes(one["memory"]),
                write_seconds(one["seconds"]),
                str(one["lost"]),
                "no" if name == "sort -u" else "yes",
            ]
            for name, one in runs.items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    return draw_bars(
        "Peak memory of three programs that drop repeated lines; fullbloom dedup needs least",
        "peak memory",
        [
            (name, one["memory"] / 1e6, write_bytes(one["memory"]), GREEN if name == OURS else GREY)
            for name, one in figures["runs"].items()
        ],
    )
