"""A browser for tests of built pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

WEB = Path(__file__).parents[2] / "web"
#: The program: Debian's, or another that Playwright drives.
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
#: True where the pages have just been built, as by `make test-all`: then it is an error if they are missing.
ARE_BUILT = os.environ.get("FULLBLOOM_PAGES") == "built"
_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-precise-memory-info",
)  # fmt: skip
#: Runs in each page before its own scripts: records violations of the content security policy.
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI}`);
});
"""


def find_obstacle(page: str, file: str = "index.html") -> str | None:
    """Return why the tests of a page cannot run here; None if they can.

    ``file`` is a file that the build of the page writes.
    """
    return find_missing_build(page, file) or find_missing_tool()


def find_missing_build(page: str, file: str = "index.html") -> str | None:
    """Return which file of a built page, or of axe-core, is missing; None if none is missing."""
    return _find_missing(WEB / page / "dist" / file) or find_missing_axe()


def find_missing_axe() -> str | None:
    """Return why pages cannot be tested for accessibility; None if they can."""
    return _find_missing(AXE)


def _find_missing(path: Path) -> str | None:
    if path.is_file():
        return None
    reason = f"{path.relative_to(WEB.parent)} is missing; run: make web, which needs Node 20.19 or newer"
    if ARE_BUILT:
        raise RuntimeError(f"{reason}, which FULLBLOOM_PAGES says has been run")
    return reason


def find_missing_tool() -> str | None:
    """Return which program or package a browser test lacks; None if it lacks nothing."""
    if CHROMIUM is None:
        return "chromium is missing; as root on Debian: apt-get install chromium"
    try:
        import playwright.sync_api  # noqa: F401 - whether it is installed
    except ImportError:
        return "playwright is missing; run: pip install -r requirements/browser.txt"
    return None


def describe_skips() -> str:
    """Return one sentence that says which pages are tested here, and why the others are not."""
    by_obstacle: dict[str | None, list[str]] = {}
    for page in ("dashboard", "explorer"):
        by_obstacle.setdefault(find_obstacle(page), []).append(f"the {page}")
    tested = " and ".join(by_obstacle.pop(None, ["no page"]))
    skipped = (f"; {' and '.join(names)} skipped, because {why}" for why, names in by_obstacle.items())
    return f"Tested in a browser: {tested}{''.join(skipped)}."


@contextlib.contextmanager
def launch():
    """Run a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*_FLAGS])
        yield browser
        browser.close()


class Tab:
    """A page in its own context that records its script errors and its requests."""

    def __init__(self, browser: Any, url: str, *, width: int = 1280, theme: str = "light"):
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=viewport, color_scheme=theme, accept_downloads=True)
        self.context.add_init_script(_WATCH)
        self.context.set_default_timeout(60_000)  # a busy machine
        self.page = self.context.new_page()
        self.url, self.errors, self.sent = url, [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.sent.append((request.method, request.url)))

    def open(self, fragment: str = "#/"):
        self.page.goto(f"{self.url}/{fragment}")
        return self.page

    def close(self):
        """Close the tab; fail if a script failed or the policy blocked anything."""
        violations = self.page.evaluate("window.violations")
        self.context.close()
        assert not self.errors, self.errors
        assert not violations, violations


#: Options of axe-core: all rules; all but that of contrast, which takes most of its time; that one alone.
ALL, STRUCTURE, CONTRAST = (
    {},
    {"rules": {"color-contrast": {"enabled": False}}},
    {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
)


def find_axe_violations(page: Any, options: dict[str, Any] = ALL) -> list[str]:
    """Return the rules of axe-core that a page breaks, with the elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    result = page.evaluate(
        "options => axe.run(document, options)", {"resultTypes": ["violations"], **options}
    )
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


if __name__ == "__main__":
    print(describe_skips())
