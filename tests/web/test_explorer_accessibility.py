"""Every scene of the explorer passes the rules of axe-core, in both themes, on a screen and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import SECRET
from web.axe import Axe
from web.explorer_page import SCENES, drop

import fullbloom

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest_plugins = ["web.explorer_page"]

VIEWS = [
    *SCENES,
    "words?view=removal",
    "words?view=pets",
    "words?view=fruit",
    "words?view=figure",
    "words?ask=bird",
    "words?words=",
    "window?kind=aging",
    "cuckoo?n=60",
    "cuckoo?n=38",
    "curves?m=10",
]


@pytest.fixture(params=[1280, 360])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def axe() -> Axe:
    """The scenes share their styles."""
    return Axe()


@pytest.fixture
def view(browser: Browser, width: int) -> Page:
    """A page whose policy lets axe-core run."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        reduced_motion="reduce",
        bypass_csp=True,
    )
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def test_every_scene_passes_all_accessibility_rules(view: Page, address: str, axe: Axe) -> None:
    found = []
    for scene in VIEWS:
        name = scene.partition("?")[0]
        view.goto(f"{address}#{scene}")
        view.wait_for_selector(f'main[data-scene="{name}"][data-ready="true"] .attempt')
        found += [(scene, line) for line in axe.find_violations_in_themes(view)]
    assert not found, "\n".join(map(str, found))


def test_every_state_of_an_opened_file_passes_all_accessibility_rules(
    view: Page, address: str, axe: Axe, tmp_path: Path
) -> None:
    fullbloom.CountingBloomFilter(100).save(tmp_path / "good.bloom")
    fullbloom.BloomFilter(100, secret=SECRET).save(tmp_path / "keyed.bloom")
    (tmp_path / "no filter.txt").write_text("hello")
    view.goto(f"{address}#file")
    found = []

    def check(state: str) -> None:
        found.extend((state, line) for line in axe.find_violations_in_themes(view))

    drop(view, tmp_path / "no filter.txt")
    view.wait_for_selector(".trouble")
    check("refused")
    drop(view, tmp_path / "keyed.bloom")
    view.get_by_label("Secret").wait_for()
    check("keyed")
    view.get_by_label("Secret").fill("beef")
    view.get_by_role("button", name="Open").click()
    view.wait_for_selector(".trouble:has-text('32 hexadecimal digits')")
    check("wrong secret")
    drop(view, tmp_path / "good.bloom")
    view.wait_for_selector(".answer.yes")
    view.get_by_label("Keys to look up").fill("ada\nalan")
    view.get_by_role("button", name="Look up", exact=True).click()
    view.wait_for_selector("tbody tr")
    check("answers")
    view.get_by_role("radio", name="whole numbers").check()
    view.get_by_role("button", name="Look up", exact=True).click()
    view.wait_for_selector(".trouble")
    check("no number")
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("scene", ["rate", "words"])
def test_load_failures_pass_all_accessibility_rules(view: Page, address: str, axe: Axe, scene: str) -> None:
    what = "**/measure.worker*.js" if scene == "rate" else "**/*.wasm"
    view.context.route(what, lambda route: route.abort())
    view.goto(f"{address}#{scene}")
    view.wait_for_selector(".trouble[role=alert]")
    assert axe.find_violations_in_themes(view) == []
