"""Guarantee: the pictures and plots of the pages show this version of the library."""

from __future__ import annotations

import io

import pytest
from scripts.docsite import pictures

#: Of 255: text may differ by a shade from one machine to another.
MOST_DIFFERENT = 4.0


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_picture_is_what_the_script_draws(name: str) -> None:
    drawn = pictures.PICTURES[name]()
    assert (pictures.IMAGES / f"{name}.svg").read_text(encoding="utf-8") == drawn, (
        "run python -m scripts.docsite.pictures"
    )


def test_plots_are_what_the_script_draws() -> None:
    plots = pytest.importorskip("scripts.docsite.plots", reason="matplotlib is not installed")
    np = pytest.importorskip("numpy")
    from matplotlib import image
    from matplotlib import pyplot as plt

    for name in plots.PLOTS:
        file, drawn = plots.IMAGES / f"{name}.png", io.BytesIO()
        plots.render(name).savefig(drawn, dpi=100)
        drawn.seek(0)
        fresh, committed = (255 * image.imread(source) for source in (drawn, file))
        plt.close("all")
        assert fresh.shape == committed.shape, name
        assert np.abs(fresh - committed).mean() < MOST_DIFFERENT, (
            f"{name}: run python -m scripts.docsite.plots"
        )
        assert file.stat().st_size < 150_000, name


def test_no_image_is_larger_than_150_kb() -> None:
    images = sorted(path for path in pictures.IMAGES.iterdir() if path.is_file())
    assert {"dashboard.png", "explorer.png"} <= {path.name for path in images}
    assert [path.name for path in images if path.stat().st_size > 150_000] == []
