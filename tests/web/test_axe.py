"""The quick way to apply axe-core finds the faults that its own way finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from web.axe import Axe
from web.browser import AXE, Tab, find_missing_axe, find_missing_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if (_MISSING := find_missing_tool() or find_missing_axe()) is not None:
    pytest.skip(_MISSING, allow_module_level=True)

#: What the second page has and the first has not, and the rule that it breaks.
FAULTS = {
    "text in the style of other text": ("<p>read</p><p style='color: #eee'>this</p>", "color-contrast"),
    "a word in a long text": ("<p>much longer text <b style='color: #ddd'>here</b></p>", "color-contrast"),
    "what lies behind it": ("<p>read</p><div style='background: #444'><p>this</p></div>", "color-contrast"),
    "text faded by what it is in": (
        "<p>read</p><div style='opacity: 0.3'><p>this</p></div>",
        "color-contrast",
    ),
    "the dark theme": (
        "<style>@media (prefers-color-scheme: dark) { p { color: #ccc } }</style><p>read</p>",
        "color-contrast",
    ),
    "a link in a text": (
        "<p>go <a href='#a' style='color: #333; text-decoration: none'>there</a> now</p>",
        "link-in-text-block",
    ),
    "the menu of a phone": (
        "<style>@media (width > 500px) { nav { display: none } }</style><nav><button></button></nav>",
        "button-name",
    ),
    "text of a phone": (
        "<style>@media (width > 500px) { i { display: none } }</style><i><button></button></i>",
        "button-name",
    ),
    "what scrolls on a phone": (
        "<div style='overflow: auto; height: 1em'><div style='width: 900px'>wide<br>high</div></div>",
        "scrollable-region-focusable",
    ),
}
PAGE = """<!doctype html><html lang=en><title>A page</title><meta name=viewport content='width=device-width'>
<style>body {{ background: #fff; color: #000 }}</style><main><article><h1>Page</h1>{}</article></main>"""


@pytest.fixture
def tab(browser) -> Iterator[Tab]:
    """A tab with axe-core in each page."""
    one = Tab(browser, "")
    one.context.add_init_script(path=AXE)
    yield one
    one.close()


@pytest.fixture(scope="module")
def passed(browser, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The styles of a page without a fault."""
    path = tmp_path_factory.mktemp("good") / "good.html"
    path.write_text(PAGE.format("<p>read</p><p>go <a href='#a'>there</a> now</p>"))
    axe, one = Axe(), Tab(browser, "")
    one.page.goto(path.as_uri())
    assert axe.find_violations(one.page) == []
    one.close()
    return axe.passed


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_after_a_page_without_it(
    tab: Tab, passed: list[str], tmp_path: Path, fault: str
) -> None:
    text, rule = FAULTS[fault]
    (tmp_path / "bad.html").write_text(PAGE.format(text))
    axe = Axe()
    axe.passed = [*passed]
    tab.page.goto((tmp_path / "bad.html").as_uri())
    found = axe.find_violations(tab.page)
    assert {line.partition(":")[0] for line in found} == {rule}, found


def test_a_style_that_failed_fails_on_the_next_page_as_well(tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text(PAGE.format("<p style='color: #eee'>this</p>"))
    axe = Axe()
    for _ in range(2):
        tab.page.goto((tmp_path / "bad.html").as_uri())
        assert len(axe.find_colours(tab.page)) == 1
