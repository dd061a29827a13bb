"""Guarantee: the site builds without a warning, needs no network, and its search finds every public name."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs.site import BUILT, HTML, build_site, list_pages
from web.browser import Tab, find_missing_tool, launch

import fullbloom

CLICKS = 3
#: Pages that Sphinx adds; no text leads to them.
ADDED = {"genindex.html", "py-modindex.html", "search.html"}

pytestmark = pytest.mark.long  # half a minute


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Sends files and prints nothing."""

    def log_message(self, *_: object) -> None:
        pass


class Page(HTMLParser):
    """The links of a page's text, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.links, self.loaded = 0, [], []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.depth += tag == "article"
        if tag == "a" and self.depth and known.get("href"):
            self.links.append(unquote(known["href"]))
        if tag in {"script", "img", "iframe"} and known.get("src"):
            self.loaded.append(known["src"])
        if tag == "link" and known.get("rel") in {"stylesheet", "preload", "icon"}:
            self.loaded.append(known["href"])

    def handle_endtag(self, tag):
        self.depth -= tag == "article"


@pytest.fixture(scope="module", autouse=True)
def site():
    """The site, built again where a page changed."""
    build_site()


@cache
def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def index() -> dict:
    text = (HTML / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def test_the_search_finds_every_public_name() -> None:
    found = index()
    objects = {entry[4] for entries in found["objects"].values() for entry in entries}
    words = found["terms"].keys() | found["titleterms"].keys()
    missing = [name for name in fullbloom.__all__ if name not in objects and name.lower() not in words]
    assert missing == []


def test_every_page_is_reached_in_three_clicks() -> None:
    reached = now = {HTML / "index.html"}
    for _ in range(CLICKS):
        hrefs = {
            (page.parent / link.partition("#")[0]).resolve()
            for page in now
            for link in read(page).links
            if "://" not in link
        }
        now = {path for path in hrefs if path.suffix == ".html" and path.exists()} - reached
        reached = reached | now
    missing = {path.relative_to(HTML).as_posix() for path in set(list_pages()) - reached} - ADDED
    assert missing == set()


def is_place(target: Path, anchor: str) -> bool:
    if not target.exists() or not anchor or target.suffix != ".html":
        return target.exists()
    return f'id="{anchor}"' in target.read_text(encoding="utf-8")


def test_every_link_leads_to_a_page_and_a_place_on_it() -> None:
    wrong = []
    for page in list_pages():
        for link in read(page).links:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not re.match(r"[a-z]+:", link) and not is_place(target, anchor):
                wrong.append((page.name, link))
    assert wrong == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    loaded = {(page.name, address) for page in list_pages() for address in read(page).loaded}
    assert [entry for entry in loaded if re.match(r"(?:[a-z]+:)?//", entry[1])] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in HTML.rglob("*.css"))
    assert not re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", styles)


@pytest.fixture(scope="module")
def browser():
    """A browser."""
    if (missing := find_missing_tool()) is not None:
        pytest.skip(missing)
    with launch() as running:
        yield running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site on a port of this machine."""
    handler = partial(QuietHandler, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


#: What the page does with each query; it shows no excerpts, for which it would load all pages that it finds.
SEARCH = """
async (names) => {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  const found = [], results = document.getElementById("search-results");
  for (const name of names) {
    results.replaceChildren();
    Search.performSearch(name);
    while (!/found|Search finished/.test(Search.status.innerText))
      await new Promise((next) => setTimeout(next, 5));
    found.push([...results.querySelectorAll("ul.search a")].map((one) => one.getAttribute("href")));
  }
  return found;
}
"""


def test_every_public_name_is_found_by_who_types_it(browser, address: str) -> None:
    """In the built search, in a browser that reaches no other host.

    Two names are typed, on the first page and on that of the results; the others are given to the function to
    which the page of results gives what was typed.
    """
    tab, outside, names = Tab(browser, address), [], list(fullbloom.__all__)
    tab.context.route(
        lambda url: not url.startswith(address),
        lambda route: (outside.append(route.request.url), route.abort()),
    )
    page, found = tab.open("index.html"), []
    for name in names[:2]:
        page.locator("input[name=q]").first.fill(name)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(rf"q={re.escape(name)}(?:&|$)"))
        page.wait_for_function(
            "() => /found|Search finished/.test(document.querySelector('.search-summary')?.innerText)"
        )
        found.append(
            page.locator("ul.search a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
        )
    found += page.evaluate(SEARCH, names[2:])
    tab.close()
    missing = [
        (name, links[:3])
        for name, links in zip(names, found, strict=True)
        if not any(link.startswith("reference/api/") for link in links)
    ]
    assert missing == []
    assert outside == []


def test_no_comment_for_the_site_is_left() -> None:
    left = [
        path.name
        for path in (BUILT / "source").rglob("*.md")
        if re.search(r"<!-- (?:toctree|generate):", path.read_text(encoding="utf-8"))
    ]
    assert left == []
