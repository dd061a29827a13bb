"""The explorer reports load failures and recovers; large files take bounded memory."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import eventually
from web.explorer_page import drop, read_fact, show, wait_for_all

import fullbloom

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytest_plugins = ["web.explorer_page"]

MODULE = "**/*.wasm"
#: Bytes of file parts that the browser has not collected yet, and of the page itself.
PARTS = 150e6
#: Scenes that measure, and the name of a measurement.
MEASURING = {"rate": "measured", "curves": "measured", "blocked": "blocked, measured"}
#: True once all measurements of the scene have stopped: it has one or two.
HAVE_STOPPED = """() => [...document.querySelectorAll("[data-fact$='measured']")]
  .every((fact) => fact.innerText === "not measured")"""
HAS_RATE = "name => document.querySelector(`[data-fact='${name}']`).innerText.endsWith('%')"


@pytest.fixture
def frugal(context: BrowserContext, page: Page) -> Page:
    """A page that loads each file on demand and caches nothing."""
    session = context.new_cdp_session(page)
    session.send("Emulation.setDataSaverOverride", {"dataSaverEnabled": True})
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    return page


def switch_scene(page: Page, scene: str) -> None:
    """Open another scene in an open page."""
    page.evaluate("scene => { location.hash = scene; }", scene)
    page.wait_for_selector(f'main[data-scene="{scene}"][data-ready="true"] .attempt')


@pytest.mark.parametrize("scene", MEASURING)
@pytest.mark.parametrize("what", [MODULE, "**/measure.worker*.js"], ids=["module", "worker"])
def test_a_measurement_reports_a_load_failure_and_can_be_retried(
    context: BrowserContext, frugal: Page, address: str, scene: str, what: str
) -> None:
    """The page has loaded its module; the worker loads the module again."""
    name = MEASURING[scene]
    show(frugal, address, "words")
    failed: list[str] = []
    context.route(what, lambda route: (failed.append(route.request.url), route.abort()))
    switch_scene(frugal, scene)
    trouble = frugal.locator(".trouble[role=alert]")
    for _ in range(2):
        frugal.wait_for_function(HAVE_STOPPED)
        assert "The measurement stopped" in trouble.inner_text()
        assert "when the connection is back" in trouble.inner_text()
        assert read_fact(frugal, name) == "not measured"
        before = len(failed)
        frugal.get_by_role("button", name="Try again").click()
        # Until then the page shows what it showed before; afterwards the next worker fails, too.
        eventually(lambda: frugal.wait_for_timeout(700) or len(failed) > before)  # noqa: B023 - called here
    frugal.wait_for_function(HAVE_STOPPED)
    context.unroute(what)
    frugal.get_by_role("button", name="Try again").click()
    frugal.wait_for_function(HAS_RATE, arg=name)
    assert trouble.count() == 0


def test_a_measurement_restarts_when_the_network_returns(
    context: BrowserContext, frugal: Page, address: str
) -> None:
    show(frugal, address, "words")
    context.route(MODULE, lambda route: route.abort())
    switch_scene(frugal, "rate")
    frugal.locator(".trouble[role=alert]").wait_for()
    context.unroute(MODULE)
    # The page listens from the next frame on.
    frugal.evaluate("""() => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume)))
        .then(() => { window.dispatchEvent(new Event("online")); })""")
    frugal.wait_for_function(HAS_RATE, arg="measured")


@pytest.mark.parametrize("what", [MODULE, "**/file.worker*.js"], ids=["module", "worker"])
def test_a_file_dropped_while_offline_can_be_opened_later(
    context: BrowserContext, frugal: Page, address: str, tmp_path: Path, what: str
) -> None:
    fullbloom.BloomFilter(100).save(tmp_path / "words.bloom")
    show(frugal, address, "file")
    context.route(what, lambda route: route.abort())
    for _ in range(2):
        drop(frugal, tmp_path / "words.bloom")
        frugal.wait_for_timeout(200)  # until the message about the previous file is gone
        frugal.wait_for_selector(".trouble")
        assert "did not load" in frugal.locator(".trouble").inner_text()
    context.unroute(what)
    drop(frugal, tmp_path / "words.bloom")
    frugal.wait_for_selector('.answer.yes:has-text("BloomFilter")')


@pytest.mark.parametrize(
    ("scene", "what"),
    [("cuckoo", "**/cuckoo-*.js"), ("cuckoo", MODULE), ("words", MODULE), ("words", "**/words-*.js")],
)
def test_a_scene_reports_a_load_failure_and_can_be_retried(
    context: BrowserContext, page: Page, address: str, scene: str, what: str
) -> None:
    context.route(what, lambda route: route.abort())
    page.goto(f"{address}#{scene}")
    trouble = page.locator(".trouble[role=alert]")
    trouble.wait_for()
    assert "The scene did not load" in trouble.inner_text()
    context.unroute(what)
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(f'main[data-scene="{scene}"][data-ready="true"] .attempt')
    assert trouble.count() == 0


def measure_peak_memory() -> int:
    """Return the peak resident memory of the largest renderer of this process's browser, in bytes."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # the process has ended
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    peak, waiting = 0, [os.getpid()]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        waiting += children.get(int(process.name), [])
        try:
            if b"--type=renderer" in (process / "cmdline").read_bytes():
                found = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
                peak = max(peak, 1024 * int(found[1]) if found else 0)
        except OSError:
            continue
    return peak


@pytest.mark.timed
def test_a_file_of_250_mb_opens_in_bounded_memory(page: Page, address: str, tmp_path: Path) -> None:
    """The module's memory holds the bytes of the file, and the cells of the filter as a second copy."""
    filter_ = fullbloom.BloomFilter.with_shape(2_000_000_000, 7)
    filter_.update(["ada", "grace"])
    filter_.save(tmp_path / "large.bloom")
    size = (tmp_path / "large.bloom").stat().st_size
    assert 240e6 < size < 256 << 20
    show(page, address, "file")
    wait_for_all(page)
    before, longest = measure_peak_memory(), []
    # The first file's memory is fragmented; from the second file on, memory is reused.
    for copies in (2, 3, 3):
        page.evaluate("tasks.length = 0")
        drop(page, tmp_path / "large.bloom")
        page.wait_for_selector('.answer:has-text("Reading")')
        page.wait_for_selector('.answer.yes:has-text("BloomFilter")')
        page.get_by_label("Keys to look up").fill("ada\nnobody")
        page.get_by_role("button", name="Look up", exact=True).click()
        page.wait_for_selector("tbody tr:nth-child(2)")
        answers = page.locator("tbody td:nth-child(2)").all_inner_texts()
        assert answers == ["probably", "no"]
        grown = measure_peak_memory() - before
        longest.append(page.evaluate("() => Math.max(0, ...tasks.map(([, length]) => length))"))
        print(f"{size / 1e6:.0f} MB opened with {grown / 1e6:.0f} MB, longest task {longest[-1]:.0f} ms")
        assert grown < copies * size + PARTS
    # What else runs on the machine stops a page now and then. What the page does itself comes each time.
    assert min(longest) < 200, longest


def test_a_file_above_the_size_limit_shows_its_header_only(page: Page, address: str, tmp_path: Path) -> None:
    fullbloom.BloomFilter.with_shape(2_200_000_000, 7).save(tmp_path / "larger.bloom")
    show(page, address, "file")
    wait_for_all(page)
    before = measure_peak_memory()
    drop(page, tmp_path / "larger.bloom")
    page.wait_for_selector('.trouble:has-text("this page opens files up to 268 MB")')
    assert read_fact(page, "num added") == "0"
    assert measure_peak_memory() - before < 50e6
