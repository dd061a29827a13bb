"""What tests of the dashboard share; importing it skips them where the dashboard cannot run."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from web.browser import find_obstacle

if (_OBSTACLE := find_obstacle("dashboard")) is not None:
    pytest.skip(_OBSTACLE, allow_module_level=True)

from playwright.sync_api import expect

expect.set_options(timeout=20_000)  # a busy machine

__all__ = ["HOSTILE", "NO_ANSWER", "VIEWS", "confirm", "expect", "json_of", "path_of", "tile", "try_now"]

NO_ANSWER = "The service does not answer."
VIEWS = {
    "filters": "#/",
    "filter": "#/filter/shown",
    "create": "#/create",
    "tokens": "#/tokens",
    "nodes": "#/nodes",
}
HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "right to left": "abc\u202edlrow\u2066",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "controls": "a\tb\u0000c\u2028d",
    "quotes": "\"'`&amp;</q>",
}


def json_of(body):
    """The body of a response and its header."""
    return json.dumps(body).encode(), "content-type: application/json"


def path_of(name, action):
    """The path of a request about a filter, as a browser spells it."""
    return f"/v1/filters/{quote(name, safe='')}/{action}"


def try_now(page):
    """Press the button that asks again, unless the page has just done so."""
    page.evaluate("document.querySelector('.notice button')?.click()")


def tile(page, label):
    return page.locator(".tile", has_text=label).locator("b").first


def confirm(page, text, verb):
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name=verb, exact=True)
    expect(button).to_be_disabled()
    dialog.get_by_label("to confirm").fill(text[:-1])
    expect(button).to_be_disabled()
    dialog.get_by_label("to confirm").fill(text)
    button.click()
