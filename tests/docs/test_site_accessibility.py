"""Guarantee: the site's pages break no rule of accessibility and fit a phone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from docs.site import HTML, build_site, list_pages
from web.axe import Axe
from web.browser import AXE, Tab, find_missing_axe, find_missing_tool, launch

pytestmark = pytest.mark.long  # two minutes of processor time
#: Browsers at work, each with its part of the pages.
PARTS = 2


def find_violations(pages: list[Path]) -> list[str]:
    """Return what breaks a rule, and what is wider than a phone; the explorer has tests of its own."""
    axe, found = Axe(), []
    with launch() as browser:
        tab = Tab(browser, "")
        tab.context.add_init_script(path=AXE)
        for path in pages:
            name, page = path.relative_to(HTML), tab.page
            page.set_viewport_size({"width": 360, "height": 900})
            page.goto(path.as_uri())
            if (width := page.evaluate("document.documentElement.scrollWidth")) > 360:
                found.append(f"{name}: {width} pixels wide on a phone of 360")
            if "explorer" not in name.parts:
                found += [f"{name}: {line}" for line in axe.find_violations(page)]
        tab.close()
    return found


def test_no_page_breaks_a_rule_of_accessibility_or_is_wider_than_a_phone() -> None:
    """By axe-core: light, dark and on a phone, whose menus differ."""
    if (missing := find_missing_tool() or find_missing_axe()) is not None:
        pytest.skip(missing)
    build_site()
    pages = list_pages()
    with ThreadPoolExecutor(PARTS) as threads:
        parts = list(threads.map(find_violations, (pages[part::PARTS] for part in range(PARTS))))
    assert [line for part in parts for line in part] == []
