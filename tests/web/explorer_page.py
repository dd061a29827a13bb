"""The built explorer in Chromium: fixtures, and what a test reads off the page.

The page (``make web``) is served from a subfolder with the strict policy of the service. Without it, without
Playwright or without Chromium the tests are skipped.

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

    from playwright.sync_api import Browser, BrowserContext, Page

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
#: Runs in each page before its own scripts: notes breaches of the policy, long tasks and the first picture.
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


class Served(http.server.SimpleHTTPRequestHandler):
    """The built page in a subfolder; every requested path is recorded."""

    extensions_map: ClassVar = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
    }
    asked: ClassVar[list[str]] = []

    def translate_path(self, path: str) -> str:
        """Map the subfolder to the built page, and everything else to nothing."""
        self.asked.append(path)
        inside = path.removeprefix(FOLDER) if path.startswith(FOLDER) else "nothing-is-here"
        return super().translate_path("/" + inside)

    def end_headers(self) -> None:
        """Send the policy of the service."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file; pages that are closed meanwhile are not an error."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the built page."""
    if (missing := find_missing_build("explorer")) is not None:
        pytest.skip(missing)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Served, directory=str(DIST)))
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
    context.set_default_timeout(10_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page."""
    return context.new_page()


def show(page: Page, address: str, scene: str, **values: object) -> None:
    """Open a scene with these values, and wait until it is drawn."""
    page.goto(f"{address}#{scene}" + (f"?{urlencode(values)}" if values else ""))
    page.wait_for_selector(f'main[data-scene="{scene}"][data-ready="true"] .attempt')


def wait_for_all(page: Page) -> None:
    """Wait until the page has loaded everything it will ever need."""
    page.wait_for_selector('html[data-loaded="all"]', timeout=60_000, state="attached")


def fact(page: Page, name: str) -> str:
    """The text of a number that the scene shows."""
    return page.locator(f'[data-fact="{name}"]').inner_text()


def rate(text: str) -> float:
    """A percentage or a power of ten as a number."""
    found = re.fullmatch(r"([\d.,]+) (?:%|\u00d7 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))", text)
    assert found, text
    digits = float(found[1].replace(",", ""))
    if found[2] is None:
        return digits / 100
    return digits * 10 ** int(found[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))


def whole(text: str) -> int:
    """A whole number with separators."""
    return int(text.replace(",", ""))


def wait_for_hash(page: Page, part: str) -> str:
    """The fragment, once it contains `part`."""
    page.wait_for_function("part => location.hash.includes(part)", arg=part)
    fragment: str = page.evaluate("location.hash")
    return fragment


def drop(page: Page, path: Path) -> None:
    """Choose a file."""
    page.locator('input[type="file"]').set_input_files(path)
