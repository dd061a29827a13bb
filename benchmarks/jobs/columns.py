"""Look up a column of 10 million rows in Polars, PyArrow and DuckDB, beside one batch of NumPy."""

from __future__ import annotations

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, RED

from benchmarks.jobs.shown import Figures, Shown
from benchmarks.units import write_seconds

PAGE = "docs/how-to/columns.md"
BAR = 2.0


def measure() -> Figures:
    """All by turns; the median of the ratios of each turn."""
    from benchmarks.engines import columns

    return {"rows": columns.ROWS, "base": columns.RAW, "runs": columns.measure_contains()}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    return Shown(
        "the cost of a column",
        f"Looking up {figures['rows'] // 1_000_000} million integers in a filter of a million keys, "
        "all in memory, as a multiple of one batch of NumPy on one core:",
        ["", "time", "times the NumPy batch"],
        [
            [name, write_seconds(one["seconds"]), f"{one['ratio']:.1f}"]
            for name, one in figures["runs"].items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    shown = {
        name: one
        for name, one in figures["runs"].items()
        if "nothing" not in name and name != figures["base"]
    }
    return draw_bars(
        "Time to look up ten million rows, as a multiple of one batch of NumPy",
        "time, as a multiple of the NumPy batch",
        [
            (name, one["ratio"], f"{one['ratio']:.1f}x", _choose_colour(one["ratio"]))
            for name, one in shown.items()
        ],
    )


def _choose_colour(ratio: float) -> str:
    return GREEN if ratio <= BAR else RED
