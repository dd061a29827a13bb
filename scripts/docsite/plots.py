"""Draw the plots of the page about seeing a filter into docs/images, by ``fullbloom.viz`` itself.

python -m scripts.docsite.plots
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import matplotlib as mpl
from scripts.docsite.pictures import IMAGES

from fullbloom import BloomFilter, viz

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_rate() -> Axes:
    """Draw the rate of a filter that is nearly full."""
    seen = BloomFilter(20_000, fpr=0.01, seed=1)
    seen.update(range(15_000))
    return viz.rate_by_load(seen)


def draw_bits() -> Axes:
    """Draw the bits of all structures."""
    return viz.rate_by_bits()


def draw_cells() -> Axes:
    """Draw the cells of a small filter, with those of two keys."""
    small = BloomFilter(200, fpr=0.01, seed=1)
    small.update(["cat", "dog", *range(100)])
    return viz.cells(small, keys=["cat", "dog"])


PLOTS: dict[str, tuple[Callable[[], Axes], tuple[float, float]]] = {
    "plot-rate": (draw_rate, (7, 4)),
    "plot-bits": (draw_bits, (7, 4.6)),
    "plot-cells": (draw_cells, (7, 4)),
}


def render(name: str) -> Figure:
    """Return the figure of a plot, in the size of the page."""
    mpl.use("Agg")
    draw, size = PLOTS[name]
    figure = draw().get_figure(root=True)
    assert figure is not None
    figure.set_size_inches(*size)
    return figure


def main() -> int:
    """Write the plots."""
    for name in PLOTS:
        render(name).savefig(IMAGES / f"{name}.png", dpi=100, metadata={"Software": None})
        print(f"docs/images/{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
