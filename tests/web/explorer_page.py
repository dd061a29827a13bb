"""The built explorer in Chromium: fixtures, and helpers that read values from the page.

The page (``make web``) is served from a subfolder with the strict policy of the service. The tests
are skipped where the page, Playwright or Chromium is missing.

Tests import this plugin for its functions before pytest does: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

import pytest
from web.browser import find_missing_build, find_missing_tool, launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Locator, Page

ROOT = Path(__file__).parents[2]
DIST = ROOT / "web" / "explorer" / "dist"
FOLDER = "/site/explorer/"
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
SCENES = [
    "words",
    "fill",
    "rate",
    "curves",
    "blocked",
    "counting",
    "growth",
    "window",
    "cuckoo",
    "quotient",
    "golomb",
    "cascade",
    "duplicates",
    "file",
]
#: Runs in each page before its own scripts: records policy violations, long tasks and the first picture.
WATCH = """
window.broken = []; window.tasks = [];
document.addEventListener("securitypolicyviolation", (event) => {
  broken.push(event.violatedDirective + event.blockedURI);
});
window.addEventListener("error", (event) => broken.push(String(event.message)));
window.addEventListener("unhandledrejection", (event) => broken.push(String(event.reason)));
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) tasks.push([task.startTime, task.duration]);
}).observe({ type: "longtask", buffered: true });
new MutationObserver((_, observer) => {
  if (document.querySelector(".wires svg path.wire") === null) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.picture = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
#: Records how many absent keys the worker has looked up, before the page hears of it.
COUNT_TRIALS = """
window.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => { if (data.trials) window.trials = data.trials; });
  }
};
"""


class PageHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the built page from a subfolder and records every requested path."""

    extensions_map: ClassVar = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
    }
    requested: ClassVar[list[str]] = []

    def translate_path(self, path: str) -> str:
        """Map the subfolder to the built page; every other path is not found."""
        self.requested.append(path)
        inside = path.removeprefix(FOLDER) if path.startswith(FOLDER) else "nothing-is-here"
        return super().translate_path("/" + inside)

    def end_headers(self) -> None:
        """Send the content security policy of the service."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file; a page may close the connection early."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the built page."""
    if (missing := find_missing_build("explorer")) is not None:
        pytest.skip(missing)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(PageHandler, directory=str(DIST))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{FOLDER}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium."""
    if (missing := find_missing_tool()) is not None:
        pytest.skip(missing)
    with launch() as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A profile with an empty cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.add_init_script(WATCH)
    context.set_default_timeout(60_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page of that profile."""
    return context.new_page()


def show(page: Page, address: str, scene: str, **values: object) -> None:
    """Open a scene with these values, and wait until it is drawn."""
    if page.url.startswith(address):
        page.goto("about:blank")  # else the drawing of the last values would count as that of the new ones
    page.goto(f"{address}#{scene}" + (f"?{urlencode(values)}" if values else ""))
    page.wait_for_selector(f'main[data-scene="{scene}"][data-ready="true"] .attempt')


def wait_for_all(page: Page) -> None:
    """Wait until the page has loaded all of its files."""
    # Seventeen files, for each of which it may wait 2 seconds until it is idle.
    page.wait_for_selector('html[data-loaded="all"]', timeout=300_000, state="attached")


def read_fact(page: Page, name: str) -> str:
    """Return the text of a number that the scene shows."""
    return page.locator(f'[data-fact="{name}"]').inner_text()


def parse_rate(text: str) -> float:
    """Convert a percentage or a power of ten to a number."""
    found = re.fullmatch(r"([\d.,]+) (?:%|\u00d7 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))", text)
    assert found, text
    digits = float(found[1].replace(",", ""))
    if found[2] is None:
        return digits / 100
    return digits * 10 ** int(found[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))


def parse_int(text: str) -> int:
    """Convert a whole number with separators."""
    return int(text.replace(",", ""))


def wait_for_hash(page: Page, part: str) -> str:
    """Wait until the fragment of the address contains `part`; return the fragment."""
    page.wait_for_function("part => location.hash.includes(part)", arg=part)
    fragment: str = page.evaluate("location.hash")
    return fragment


def find_knob(page: Page, at: int = 0) -> Locator:
    """Return the point number `at` of the scene's plots once it is where its values are."""
    page.wait_for_function("at => document.querySelectorAll('.knob')[at]?.style.transform", arg=at)
    return page.locator(".knob").nth(at)


def wait_for_value(page: Page, knob: Locator, name: str) -> float:
    """Return the value of a point that was dragged once the address has it, as `name`."""
    value = float(knob.get_attribute("aria-valuenow") or "nan")
    page.wait_for_function(
        "([name, value]) => Number(new URLSearchParams(location.hash.split('?')[1]).get(name)) === value",
        arg=[name, value],
    )
    return value


def drop(page: Page, path: Path) -> None:
    """Give the page a file, as dropping it does."""
    page.locator('input[type="file"]').set_input_files(path)
