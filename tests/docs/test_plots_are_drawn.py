"""Guarantee: the plots of the pages are those that the library draws today."""

from __future__ import annotations

import io

import pytest

plots = pytest.importorskip("scripts.docsite.plots", reason="matplotlib is not installed")
np = pytest.importorskip("numpy")

#: Of 255: letters may differ by a shade from one machine to another.
MOST_DIFFERENT = 4.0


@pytest.mark.parametrize("name", plots.PLOTS)
def test_the_plot_is_what_the_script_draws(name: str) -> None:
    from matplotlib import image
    from matplotlib import pyplot as plt

    file = plots.IMAGES / f"{name}.png"
    drawn = io.BytesIO()
    plots.render(name).savefig(drawn, dpi=100)
    drawn.seek(0)
    fresh, committed = (255 * image.imread(source) for source in (drawn, file))
    plt.close("all")
    assert fresh.shape == committed.shape
    assert np.abs(fresh - committed).mean() < MOST_DIFFERENT, "run python -m scripts.docsite.plots"
    assert file.stat().st_size < 150_000
