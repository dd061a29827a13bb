"""Helpers of the dashboard's tests; importing them skips a module where the dashboard cannot run."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from web.browser import find_obstacle

if (_OBSTACLE := find_obstacle("dashboard")) is not None:
    pytest.skip(_OBSTACLE, allow_module_level=True)

from playwright.sync_api import expect

expect.set_options(timeout=60_000)  # a busy machine

__all__ = [
    "HOSTILE",
    "NO_ANSWER",
    "VIEWS",
    "build_path",
    "confirm",
    "encode_json",
    "expect",
    "find_tile",
    "retry_now",
]

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


def encode_json(body):
    """Return the body of a response and its header."""
    return json.dumps(body).encode(), "content-type: application/json"


def build_path(name, action):
    """Return the path of a request about a filter, encoded as a browser encodes it."""
    return f"/v1/filters/{quote(name, safe='')}/{action}"


def retry_now(page):
    """Press the retry button, unless the page has just retried."""
    page.evaluate("document.querySelector('.notice button')?.click()")


def find_tile(page, label):
    return page.locator(".tile", has_text=label).locator("b").first


def confirm(page, text, verb):
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name=verb, exact=True)
    expect(button).to_be_disabled()
    dialog.get_by_label("to confirm").fill(text[:-1])
    expect(button).to_be_disabled()
    dialog.get_by_label("to confirm").fill(text)
    button.click()
