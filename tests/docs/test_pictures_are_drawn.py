"""Guarantee: the pictures of the pages show positions and rates of this version of the library."""

from __future__ import annotations

import pytest
from scripts.docsite import pictures


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_picture_is_what_the_script_draws(name: str) -> None:
    drawn = pictures.PICTURES[name]()
    assert (pictures.IMAGES / f"{name}.svg").read_text(encoding="utf-8") == drawn, (
        "run python -m scripts.docsite.pictures"
    )
