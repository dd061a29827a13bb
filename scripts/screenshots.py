"""Take pictures of all pages in both themes and two widths: build/screenshots/GROUP/NAME-THEME-WIDTH.png.

python -m scripts.screenshots [WORD...]
python -m scripts.screenshots --images

With words, only the pages whose names contain one of them. ``--images`` takes the pictures of docs/images
instead. Needs the built pages (make web, make docs), Chromium and Playwright. The exit code is 1 if a page
does not load, fails, or scrolls sideways; a person looks at the rest.
"""

from __future__ import annotations

import functools
import http.server
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page, Route

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "screenshots"
EXPLORER, SITE = ROOT / "web" / "explorer" / "dist", ROOT / "build" / "docs" / "html"
THEMES, WIDTHS = ("light", "dark"), (1440, 360)
#: Pages of the documentation that people land on.
DOCS = [
    "index",
    "tutorial",
    "explorer",
    "how-to/index",
    "how-to/database",
    "filters/bloom",
    "reference/index",
    "reference/api",
    "reference/api/BloomFilter",
    "reference/api/fullbloom.errors",
    "reference/javascript",
    "reference/http",
    "explanation/choosing",
    "benchmarks",
]
#: Views of the explorer's first scene; the scenes are read from the page.
EXPLORER_VIEWS = ["words?view=removal", "words?view=pets", "words?view=fruit", "words?view=figure"]
IMAGES = ROOT / "docs" / "images"
#: Milliseconds until a page has read its data, and until it has drawn the result of an action.
WAITS = (1500, 1200)
#: Bytes that a picture in the documentation may have.
IMAGE_BYTES = 150_000


class Picture(NamedTuple):
    """A page, in one state."""

    name: str
    address: str
    #: Brings the page into that state.
    act: Callable[[Page], None] = lambda _: None


def _press(verb: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=verb).first.click()


def _try_key(page: Page) -> None:
    page.locator(".plot canvas").nth(2).wait_for()
    page.get_by_label("Key", exact=True).fill("user-42")
    _press("Look it up")(page)


def _try_owner(page: Page) -> None:
    page.get_by_label("Name of an owner", exact=True).fill("user-1")
    _press("Look the owner up")(page)


def _create_token(page: Page) -> None:
    def answer(route: Route) -> None:
        if route.request.method == "POST":
            route.fulfill(json={"name": "dashboard", "token": f"fullbloom_{'x' * 43}"})
        else:
            route.continue_()

    page.route("**/v1/tokens", answer)
    page.get_by_label("Name").fill("dashboard")
    page.get_by_role("button", name="Create", exact=True).click()


def _list_tokens(page: Page) -> None:
    tokens = [
        {"name": "dashboard", "scopes": ["read"], "patterns": [], "created": 1.79e12},
        {
            "name": "ingest",
            "scopes": ["read", "write"],
            "patterns": ["logs:*", "users:*"],
            "created": 1.79e12,
        },
    ]
    page.route("**/v1/tokens", lambda route: route.fulfill(json={"tokens": tokens}))
    page.reload()
    page.locator("tbody tr").first.wait_for()


def _revoke(page: Page) -> None:
    _list_tokens(page)
    _press("Revoke ingest")(page)


def _choose_bank(page: Page) -> None:
    page.get_by_label("A filter for each of many owners").check()


def _choose_static(page: Page) -> None:
    page.get_by_label("static", exact=False).first.check()


DASHBOARD = [
    Picture("filters", "#/"),
    Picture("filters-empty", "#/?search=nothing"),
    Picture("filter", "#/filter/users:seen", _try_key),
    Picture("filter-over", "#/filter/logs:today"),
    Picture("filter-bank", "#/filter/articles:read", _try_owner),
    Picture("filter-labels", "#/filter/areas:city"),
    Picture("filter-static", "#/filter/passwords:leaked"),
    Picture("filter-missing", "#/filter/nothing"),
    Picture("rename", "#/filter/users:seen", _press("Rename or swap")),
    Picture("freeze", "#/filter/users:seen", _press("Freeze")),
    Picture("drop", "#/filter/users:seen", _press("Drop")),
    Picture("create", "#/create"),
    Picture("create-bank", "#/create", _choose_bank),
    Picture("create-static", "#/create", _choose_static),
    Picture("tokens", "#/tokens"),
    Picture("tokens-list", "#/tokens", _list_tokens),
    Picture("token-new", "#/tokens", _create_token),
    Picture("token-revoke", "#/tokens", _revoke),
    Picture("nodes", "#/nodes"),
]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Sends files and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder at a local port; yield its address."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Service:
    """A service with filters of several kinds and 11 seconds of history."""

    def __init__(self, folder: Path) -> None:
        """Start the service and fill its filters."""
        ready = folder / "ready.json"
        command = [
            sys.executable,
            "-m",
            "fullbloom",
            "serve",
            "--data",
            str(folder / "data"),
            "--http",
            "127.0.0.1:0",
        ]
        command += ["--resp", "127.0.0.1:0", "--ready-file", str(ready)]
        environment = {**os.environ, "FULLBLOOM_HISTORY__EVERY": "0.5", "FULLBLOOM_LOG_LEVEL": "error"}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while not ready.exists():
            if self.process.poll() is not None:
                raise SystemExit("the service does not start; run: make build")
            time.sleep(0.05)
        self.url: str = json.loads(ready.read_text(encoding="utf-8"))["http"]
        self._fill()

    def send(self, path: str, body: dict[str, Any]) -> None:
        """Send a request."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/filters{path}", json.dumps(body).encode(), headers)  # noqa: S310 - this machine
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 - as above

    def _fill(self) -> None:
        filters: dict[str, dict[str, Any]] = {
            "users:seen": {"capacity": 400_000, "fpr": 0.001},
            "urls:crawled": {"capacity": 1_000_000, "kind": "scalable"},
            "logs:today": {"capacity": 5000},
            "sessions:recent": {"capacity": 20_000, "kind": "rolling"},
            "carts:open": {"capacity": 50_000, "kind": "cuckoo"},
            "votes:counted": {"capacity": 30_000, "kind": "counting"},
            "articles:read": {"capacity": 200, "kind": "bank"},
            "areas:city": {"capacity": 1000, "kind": "spatial"},
        }
        for name, more in filters.items():
            self.send("", {"name": name, **more})
        self.send("/passwords:leaked/freeze?kind=ribbon", {"keys": [f"password-{i}" for i in range(20_000)]})
        self.send("/articles:read/add", {"keys": [[f"user-{i % 70}", i] for i in range(9000)]})
        self.send(
            "/areas:city/add",
            {"keys": [f"street-{i}" for i in range(300)], "values": [1 + i % 9 for i in range(300)]},
        )
        self.send("/logs:today/add", {"keys": [f"line-{i}" for i in range(9000)]})
        self.send("/carts:open/add", {"keys": [f"cart-{i}" for i in range(21_000)]})
        self.send("/votes:counted/add", {"keys": [f"vote-{i % 9000}" for i in range(15_000)]})
        self.send("/sessions:recent/add", {"keys": [f"session-{i}" for i in range(26_000)]})
        for step in range(24):
            self.send(
                "/users:seen/add", {"keys": [f"user-{step}-{i}" for i in range(6000 + 500 * (step % 5))]}
            )
            self.send("/users:seen/check", {"keys": [f"user-{step // 2}-{i}" for i in range(9000)]})
            self.send("/urls:crawled/add", {"keys": [f"url-{step}-{i}" for i in range(9000)]})
            time.sleep(0.45)
        self.send("/users:seen/add", {"key": "user-42"})

    def stop(self) -> None:
        """Stop the service."""
        self.process.terminate()
        self.process.wait(30)


def list_explorer(browser: Browser, base: str) -> list[Picture]:
    """Return the scenes that the explorer links to, and the views of its first scene."""
    page = browser.new_page()
    page.goto(f"{base}/")
    links = page.locator(".rail a")
    links.first.wait_for()
    fragments = [str(link.get_attribute("href")).removeprefix("#") for link in links.all()]
    page.close()
    return [Picture(name.replace("?view=", "-"), f"#{name}") for name in fragments + EXPLORER_VIEWS]


def _open(page: Page, address: str, picture: Picture) -> list[str]:
    """Open a page and bring it into its state; return what went wrong."""
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    response = page.goto(address)
    if response is not None and not response.ok:
        return [f"{address} has the status {response.status}"]
    page.wait_for_timeout(WAITS[0])
    try:
        picture.act(page)
    except Exception as error:  # noqa: BLE001 - the other pictures are taken all the same
        troubles.append(str(error))
    page.wait_for_timeout(WAITS[1])
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return troubles + ([f"scrolls sideways by {width} pixels"] if width > 0 else [])


def take(browser: Browser, base: str, pictures: list[Picture], folder: Path) -> list[str]:
    """Take the pictures of one group in all themes and widths; return what went wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    troubles: list[str] = []
    for theme, width in itertools.product(THEMES, WIDTHS):
        options: Any = {"viewport": {"width": width, "height": 800}, "color_scheme": theme}
        context = browser.new_context(**options, reduced_motion="reduce")
        for picture in pictures:
            page = context.new_page()
            name = f"{picture.name}-{theme}-{width}"
            troubles += [
                f"{folder.name}/{name}: {one}" for one in _open(page, f"{base}/{picture.address}", picture)
            ]
            # The backdrop of a dialog is as high as the window.
            is_whole = page.locator("dialog[open]").count() == 0
            page.screenshot(path=folder / f"{name}.png", full_page=is_whole)
            page.close()
        context.close()
    return troubles


def take_image(browser: Browser, base: str, picture: Picture, size: tuple[int, int]) -> list[str]:
    """Take a picture of docs/images, as large as a window; return what went wrong."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    troubles = _open(page, f"{base}/{picture.address}", picture)
    path = IMAGES / f"{picture.name}.png"
    page.screenshot(path=path)
    page.close()
    if path.stat().st_size > IMAGE_BYTES:
        troubles.append(f"has {path.stat().st_size} bytes, more than {IMAGE_BYTES}")
    return [f"{path.relative_to(ROOT)}: {one}" for one in troubles]


def take_images(browser: Browser, explorer: str, service: str) -> list[str]:
    """Take the two pictures of docs/images; return what went wrong."""
    filter_ = Picture("dashboard", "#/filter/users:seen", _try_key)
    return [
        *take_image(browser, explorer, Picture("explorer", "#words"), (1280, 940)),
        *take_image(browser, service, filter_, (1120, 860)),
    ]


def take_groups(browser: Browser, bases: dict[str, str], words: list[str]) -> list[str]:
    """Take the pictures whose names contain a word, or all; return what went wrong."""
    # The dashboard is first: its service has just taken its samples.
    groups = {
        "dashboard": DASHBOARD,
        "explorer": list_explorer(browser, bases["explorer"]),
        "docs": [Picture(name.replace("/", "-"), f"{name}.html") for name in DOCS],
    }
    troubles: list[str] = []
    for group, pictures in groups.items():
        wanted = [
            one for one in pictures if not words or any(word in f"{group}/{one.name}" for word in words)
        ]
        troubles += take(browser, bases[group], wanted, OUT / group)
    return troubles


def main() -> int:
    """Take the pictures of pages or, with ``--images``, of docs/images; return 1 if anything went wrong."""
    from playwright.sync_api import sync_playwright

    words = sys.argv[1:]
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is missing; as root on Debian: apt-get install chromium")
    for folder, target in ((EXPLORER, "web"), (SITE, "docs")):
        if not (folder / "index.html").is_file():
            raise SystemExit(f"{folder.relative_to(ROOT)} is missing; run: make {target}")
    with ExitStack() as stack:
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        stack.callback(browser.close)
        bases = {
            name: stack.enter_context(serve(at)) for name, at in (("explorer", EXPLORER), ("docs", SITE))
        }
        service = Service(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(service.stop)
        if words == ["--images"]:
            troubles, where = take_images(browser, bases["explorer"], service.url), IMAGES
        else:
            troubles, where = take_groups(browser, {**bases, "dashboard": service.url}, words), OUT
    print("\n".join(troubles) or f"pictures are in {where.relative_to(ROOT)}")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
