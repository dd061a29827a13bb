"""The plots of docs/figures.md, drawn from the record."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks.model import ROOT
from fullbloom import theory

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from benchmarks.figures.record import Record

IMAGES = ROOT / "docs" / "images"
#: Without a date and with fixed names, equal records give equal files; text stays text.
STYLE = {"svg.hashsalt": "fullbloom", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
RATES_SHOWN = (4, 6, 8, 10, 12, 16)


def draw_deviations(record: Record) -> Figure:
    """A histogram of the deviations, and the normal curve."""
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    width = 0.5
    edges = [width * step for step in range(-8, 9)]
    ax.hist(
        [min(max(value, -4), 4) for value in record.chances],
        edges,
        color="#c7d2fe",
        edgecolor="#4f46e5",
        label="rows",
    )
    xs = [step / 20 for step in range(-80, 81)]
    scale = len(record.chances) * width / math.sqrt(2 * math.pi)
    ax.plot(xs, [scale * math.exp(-x * x / 2) for x in xs], color="#6b7280", label="normal curve")
    ax.set(xlabel="deviation in standard errors", ylabel="rows", title=f"{len(record.chances)} measured rows")
    ax.legend()
    return figure


def draw_rates(record: Record) -> Figure:
    """The rate by k for some m/n."""
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for number, per_key in enumerate(RATES_SHOWN):
        points = [point for point in record.rates if point.num_bits // point.items == per_key]
        ks = range(1, 13)
        law = [theory.classic_fpr(points[0].items, points[0].num_bits, k) for k in ks]
        ax.plot(ks, law, color=f"C{number}", linewidth=1, label=f"m/n = {per_key}")
        ax.plot(
            [p.num_hashes for p in points],
            [p.measured for p in points],
            "o",
            color=f"C{number}",
            markersize=4,
        )
    ax.set_yscale("log")
    ax.set(xlabel="hashes k", ylabel="false-positive rate", title="Curves: law. Points: measured.")
    ax.legend(fontsize="small", ncols=2)
    return figure


def draw_sizes(record: Record) -> Figure:
    """The rate by n for some m."""
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for number, bits in enumerate(sorted({point.num_bits for point in record.sizes})):
        points = [point for point in record.sizes if point.num_bits == bits]
        loads = [bits / 20 * 1.15**step for step in range(25)]
        ax.plot(
            loads,
            [0.6185 ** (bits / items) for items in loads],
            color=f"C{number}",
            linewidth=1,
            label=f"m = 2^{bits.bit_length() - 1}",
        )
        ax.plot(
            [p.items for p in points], [p.measured for p in points], "o", color=f"C{number}", markersize=4
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(1e-5, 1.2)
    ax.set(xlabel="keys n", ylabel="false-positive rate p", title="Curves: 0.6185^(m/n). Points: measured.")
    ax.legend(fontsize="small")
    return figure


PLOTS: dict[str, Callable[[Record], Figure]] = {
    "figures-deviations": draw_deviations,
    "figures-rates": draw_rates,
    "figures-sizes": draw_sizes,
}


def render(name: str, record: Record) -> str:
    """A plot as SVG."""
    import io

    with mpl.rc_context(STYLE):
        mpl.use("Agg")
        figure, out = PLOTS[name](record), io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return re.sub(r"[ \t]+\n", "\n", out.getvalue())
