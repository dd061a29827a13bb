"""The script of screenshots covers every view, and reports pages that fail."""

from __future__ import annotations

import struct

import pytest
from scripts import screenshots
from web.dashboard import VIEWS


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """The pages of these tests read no data."""
    monkeypatch.setattr(screenshots, "WAITS", (50, 50))


def read_size(path):
    """Return width and height of a PNG."""
    return struct.unpack_from(">II", path.read_bytes(), 16)


def test_every_view_of_the_dashboard_has_a_screenshot():
    views = {address.partition("/filter/")[0] for address in VIEWS.values()}
    assert views <= {one.address.partition("/filter/")[0] for one in screenshots.DASHBOARD}


def test_screenshots_cover_both_themes_and_widths(browser, tmp_path):
    (tmp_path / "page.html").write_text(
        "<!doctype html><style>:root { color-scheme: light dark }</style><p>text"
    )
    with screenshots.serve(tmp_path) as base:
        page = screenshots.Picture("page", "page.html")
        assert screenshots.take(browser, base, [page], tmp_path / "out") == []
    files = {path.stem: path for path in (tmp_path / "out").iterdir()}
    assert {name: read_size(path)[0] for name, path in files.items()} == {
        f"page-{theme}-{width}": width for theme in ("light", "dark") for width in (360, 1440)
    }
    for width in (360, 1440):
        assert files[f"page-light-{width}"].read_bytes() != files[f"page-dark-{width}"].read_bytes()


@pytest.mark.parametrize(
    ("address", "text", "trouble"),
    [
        ("missing.html", "", "the status 404"),
        ("page.html", "<script>throw new Error('toy')</script>", "toy"),
        ("page.html", "<div style='width: 1500px'>wide</div>", "scrolls sideways"),
    ],
)
def test_a_page_that_fails_is_reported_in_every_theme_and_width(browser, tmp_path, address, text, trouble):
    (tmp_path / "page.html").write_text(
        f"<!doctype html><meta name=viewport content='width=device-width'>{text}"
    )
    with screenshots.serve(tmp_path) as base:
        troubles = screenshots.take(browser, base, [screenshots.Picture("page", address)], tmp_path / "out")
    assert len(troubles) == 4
    assert all(trouble in one for one in troubles)


def test_an_action_that_fails_is_reported(browser, tmp_path):
    def fail(page):
        page.get_by_role("button").click(timeout=100)

    (tmp_path / "page.html").write_text("<!doctype html>no button")
    with screenshots.serve(tmp_path) as base:
        picture = screenshots.Picture("page", "page.html", fail)
        assert len(screenshots.take(browser, base, [picture], tmp_path / "out")) == 4
