"""Tests of pages are skipped with a reason where they cannot run."""

from __future__ import annotations

import pytest
from web import browser


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A folder with a built dashboard and no explorer."""
    for name in ("dashboard/dist/index.html", "axe.min.js"):
        (tmp_path / "web" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "web" / name).touch()
    monkeypatch.setattr(browser, "WEB", tmp_path / "web")
    monkeypatch.setattr(browser, "AXE", tmp_path / "web" / "axe.min.js")
    monkeypatch.setattr(browser, "ARE_BUILT", False)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("has_tools", [True, False])
def test_the_summary_names_each_skipped_page_and_the_reason(monkeypatch, has_tools):
    monkeypatch.setattr(browser, "find_missing_tool", lambda: None if has_tools else "chromium is missing")
    missing = "web/explorer/dist/index.html is missing; run: make web, which needs Node 20.19 or newer"
    wanted = f"Tested in a browser: the dashboard; the explorer skipped, because {missing}."
    if not has_tools:
        dashboard = "the dashboard skipped, because chromium is missing"
        wanted = f"Tested in a browser: no page; {dashboard}; the explorer skipped, because {missing}."
    assert browser.describe_skips() == wanted


@pytest.mark.usefixtures("built")
def test_a_missing_page_is_an_error_where_it_was_just_built(monkeypatch):
    monkeypatch.setattr(browser, "ARE_BUILT", True)
    with pytest.raises(RuntimeError, match=r"web/explorer/dist/index\.html is missing"):
        browser.find_missing_build("explorer")
