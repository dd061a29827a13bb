"""Every view, dialog and failure of the dashboard passes the rules of axe-core, in both themes and widths."""

from __future__ import annotations

import pytest
from web.axe import Axe
from web.dashboard import VIEWS, encode_json, expect, find_tile
from web.faulty_proxy import FaultyProxy, respond


@pytest.fixture
def filled_proxy(filled_service):
    """A proxy in front of the service with filters of all categories."""
    one = FaultyProxy(filled_service.url)
    yield one
    one.stop()


def respond_json(body):
    return respond("200 OK", *encode_json(body))


TOKENS = [
    {"name": "reader", "scopes": ["read"], "patterns": ["logs:*", "users:*"], "created": 1.7e12},
    {"name": "root", "scopes": ["read", "write", "admin"], "patterns": [], "created": 1.7e12},
]
NODES = [
    {
        "id": "a1b2",
        "http": "http://10.0.0.1:8080",
        "resp": "",
        "started": 1.7e12,
        "seen": 1.7e12,
        "own": True,
    },
    {
        "id": "c3d4",
        "http": "http://10.0.0.2:8080",
        "resp": "10.0.0.2:6380",
        "started": 1.7e12,
        "seen": 1.7e12,
        "own": False,
        "silent": 99,
    },
]


def open_filter(page):
    expect(page.locator(".plot canvas")).to_have_count(3)
    page.get_by_text("Parameters").click()
    page.get_by_label("Key", exact=True).fill("5")
    page.get_by_role("button", name="Look it up").click()
    expect(page.locator(".outcome")).to_be_visible()


def press(verb):
    def act(page):
        page.get_by_role("button", name=verb).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        page.wait_for_timeout(300)

    return act


def open_bank(page):
    page.get_by_label("Name of an owner", exact=True).fill("user-1")
    page.get_by_role("button", name="Look the owner up").click()
    expect(page.get_by_role("button", name="Remove the owner …")).to_be_visible()


def open_owner_dialog(page):
    open_bank(page)
    press("Remove the owner …")(page)


def fail_to_clear(page):
    press("Clear …")(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("shown")
    dialog.get_by_role("button", name="Clear", exact=True).click()
    expect(dialog.locator(".notice")).to_be_visible()


def show_token(page):
    page.get_by_label("Name").fill("new")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator(".secret")).to_be_visible()


def choose_bank(page):
    page.get_by_label("A filter for each of many owners").check()
    page.get_by_label("Name").fill("a b")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert").locator(".notice")).to_be_visible()


def choose_static(page):
    page.get_by_label("static", exact=False).first.check()
    expect(page.get_by_label("Keys, one per line")).to_be_visible()
    page.get_by_text("More", exact=True).click()


def stop_view(page):
    page.evaluate("Number.prototype.toPrecision = () => { throw new Error('toy'); }; 0")
    expect(page.get_by_text("This view stopped")).to_be_visible()


def wait_for_notice(page):
    expect(page.locator(".notice").first).to_be_visible()


def wait_for_dialog(page):
    expect(page.get_by_role("dialog")).to_be_visible()


def wait_for_rows(page):
    expect(page.locator("tbody tr").first).to_be_visible()


#: Address; the path and response that the proxy overrides (or None); the action on the page (or None).
STATES = {
    "filters": ("#/", None, wait_for_rows),
    "no filter of a name": ("#/?search=nothing", None, None),
    "no filter at all": ("#/", ("/v1/filters?", respond_json({"filters": [], "total": 0})), None),
    "a filter": ("#/filter/shown", None, open_filter),
    "rename": ("#/filter/shown", None, press("Rename or swap …")),
    "freeze": ("#/filter/shown", None, press("Freeze …")),
    "clear": ("#/filter/shown", None, press("Clear …")),
    "drop": ("#/filter/shown", None, press("Drop …")),
    "over capacity": (
        "#/filter/over:capacity",
        None,
        lambda page: expect(find_tile(page, "Keys")).to_be_visible(),
    ),
    "a bank": ("#/filter/read:articles", None, open_bank),
    "an owner's end": ("#/filter/read:articles", None, open_owner_dialog),
    "labels": ("#/filter/areas", None, lambda page: expect(page.get_by_label("Label")).to_be_visible()),
    "static": (
        "#/filter/static",
        None,
        lambda page: expect(page.get_by_text("It is static")).to_be_visible(),
    ),
    "no such filter": ("#/filter/nothing", None, wait_for_notice),
    "create": ("#/create", None, wait_for_rows),
    "create a bank": ("#/create", None, choose_bank),
    "create a static filter": ("#/create", None, choose_static),
    "no token": ("#/tokens", None, None),
    "tokens": ("#/tokens", ("/v1/tokens", respond_json({"tokens": TOKENS})), wait_for_rows),
    "revoke": ("#/tokens", ("/v1/tokens", respond_json({"tokens": TOKENS})), press("Revoke reader")),
    "clear refused": (
        "#/filter/shown",
        (
            "/v1/filters/shown/clear",
            respond("412 No", *encode_json({"code": "changed", "detail": "it changed"})),
        ),
        fail_to_clear,
    ),
    "a new token": (
        "#/tokens",
        ("/v1/tokens", respond_json({"tokens": [], "name": "new", "token": "x" * 50})),
        show_token,
    ),
    "nodes": ("#/nodes", ("/v1/nodes", respond_json({"nodes": NODES})), wait_for_rows),
    "remove a node": ("#/nodes", ("/v1/nodes", respond_json({"nodes": NODES})), press("Remove c3d4")),
    "a token is needed": (
        "#/",
        (
            "/v1/filters",
            respond("401 Unauthorized", *encode_json({"code": "unauthorized", "detail": "no token"})),
        ),
        wait_for_dialog,
    ),
    "the service is busy": (
        "#/",
        ("/v1/filters", respond("429 Too Many", b"", "retry-after: 9")),
        wait_for_notice,
    ),
    "garbage": ("#/", ("/v1/filters", respond("200 OK", b"{]")), wait_for_notice),
    "changes are refused": (
        "#/",
        (
            "/v1/service",
            respond_json(
                {
                    "version": "1",
                    "node": "a1",
                    "durability": "always",
                    "filters": 1,
                    "nbytes": 1,
                    "trouble": "the disk is full",
                    "pages": ["/", "/explore/"],
                }
            ),
        ),
        wait_for_notice,
    ),
    "an error of the page": ("#/", None, stop_view),
}


@pytest.fixture(scope="module")
def axe():
    """The states share their styles."""
    return Axe()


@pytest.mark.parametrize("state", STATES)
def test_every_state_passes_all_accessibility_rules(new_tab, filled_proxy, axe, state):
    address, fault, act = STATES[state]
    tab = new_tab(filled_proxy.url)
    filled_proxy.fault = fault
    page = tab.open(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    if act is not None:
        act(page)
    found = []
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 900})
        found += [(width, line) for line in axe.find_violations_in_themes(page)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append((width, "the page scrolls sideways"))
    assert found == []


def test_the_accessibility_states_cover_every_view():
    assert {address.replace("ANY", "shown") for address in VIEWS.values()} <= {
        entry[0] for entry in STATES.values()
    }
