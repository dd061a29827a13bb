"""The dashboard reports bad responses and outages of the service, and recovers."""

from __future__ import annotations

import json
import random

import pytest
from engines.servers import free_port
from web.dashboard import HOSTILE, NO_ANSWER, confirm, encode_json, expect, find_tile, retry_now
from web.faulty_proxy import reset, respond, send


@pytest.mark.long
def test_hostile_names_from_another_server_are_shown_as_inert_text(new_tab, proxy):
    """The service has no such names; another program at its port may."""
    tab = new_tab(proxy.url)
    names = [*HOSTILE.values(), "z" * (1 << 20), "../../v1/tokens", "%2e%2e"]
    info = {"id": 1, "kind": HOSTILE["markup"], "capacity": 10, "target_fpr": 0.1, "num_added": 1, "fpr": 0.1}
    info |= {"over_capacity": True, "nbytes": 8, "created": 0}
    info |= dict.fromkeys(("hits", "misses", "adds", "new", "removed"), 0)
    filters = [{**info, "name": one} for one in names]
    body = json.dumps({"filters": filters, "total": len(names), "next": None}).encode()
    with proxy.answering(respond("200 OK", body, "content-type: application/json")):
        page = tab.open()
        page.on("dialog", lambda dialog: tab.errors.append(f"dialog {dialog.message}"))
        links = page.locator("tbody th bdi")
        expect(links).to_have_count(len(names))
        for number, one in enumerate(names):
            # HTML replaces NUL.
            assert links.nth(number).text_content() in {one[:128], one[:128].replace("\0", "\ufffd")}
            assert links.nth(number).evaluate("element => element.childElementCount") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert page.locator("img, script[src=x]").count() == 0


GARBAGE = "not an answer of this service"
ANSWERS = {
    "429": (respond("429 Too Many Requests", b"slow down", "retry-after: 1"), "answered 429"),
    "500": (respond("500 Oops", b"<h1>oops</h1>", "content-type: text/html"), "answered 500"),
    "503": (
        respond("503 Busy", *encode_json({"code": "overloaded", "detail": "too many requests are at work"})),
        "Too many requests are at work.",
    ),
    "no JSON": (respond("200 OK", b"\x00\x01{]"), GARBAGE),
    "another form": (respond("200 OK", *encode_json({"filters": [{"name": 5}]})), GARBAGE),
    "an empty body": (respond("200 OK"), GARBAGE),
    "hostile reason": (
        respond("400 Bad Request", *encode_json({"code": "invalid", "detail": HOSTILE["markup"]})),
        "<img src=x onerror=alert(1)>",
    ),
    "nothing": (send(b""), NO_ANSWER),
    "reset": (reset, NO_ANSWER),
    "noise": (send(random.Random(5).randbytes(4096)), NO_ANSWER),
    "another protocol": (send(b"SSH-2.0-OpenSSH_9.2\r\n"), NO_ANSWER),
    "half a body": (
        send(b'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"filters":['),
        "The response of the service was cut off.",
    ),
    "endless headers": (send(b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 100_000), NO_ANSWER),
    "a redirect": (respond("302 Found", b"", "location: http://localhost:1/"), NO_ANSWER),
}


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("fragment", ["#/", "#/filter/ANY"])
def test_the_page_reports_a_bad_response_and_recovers(new_tab, proxy, name, case, fragment):
    answer, sentence = ANSWERS[case]
    page = new_tab(proxy.url)
    with proxy.answering(answer):
        page = page.open(fragment.replace("ANY", name))
        expect(page.locator(".notice").first).to_contain_text(sentence)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    retry_now(page)
    expect(page.locator("main").get_by_text(name).first).to_be_visible()
    expect(page.locator(".notice", has_text=sentence)).to_have_count(0)


@pytest.mark.timed
def test_retry_after_is_respected(new_tab, proxy):
    with proxy.answering(respond("429 Too Many Requests", b"", "retry-after: 4")):
        page = new_tab(proxy.url).open()
        expect(page.locator(".notice")).to_contain_text("Next attempt in")
        page.wait_for_timeout(6000)
    assert len(proxy.faults) == 2
    assert 4.0 <= proxy.faults[1] - proxy.faults[0] < 6.0


def test_the_last_figures_stay_visible_during_an_outage_and_update_after_it(start, new_tab):
    address = f"127.0.0.1:{free_port()}"
    one = start("--http", address)
    one.create("kept")
    tab = new_tab(one.url)
    page = tab.open()
    expect(page.get_by_role("row", name="kept")).to_be_visible()
    one.stop()
    expect(page.locator(".notice").first).to_contain_text("The service does not answer.")
    expect(page.locator(".notice").first).to_contain_text("The figures are from")
    expect(page.get_by_role("row", name="kept")).to_be_visible()
    expect(page.locator(".stale").first).to_be_visible()
    one.start()
    one.create("later")
    expect(page.get_by_role("row", name="later")).to_be_visible()
    expect(page.locator(".stale .filters")).to_have_count(0)


def test_the_page_requests_a_token_rejects_a_wrong_one_and_never_stores_it(start, new_tab):
    one = start()
    one.create("guarded")
    scopes = ["read", "write", "admin"]
    token = one.http.post("/v1/tokens", json={"name": "root", "scopes": scopes}).json()["token"]
    tab = new_tab(one.url)
    page = tab.open()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The service needs a token")
    dialog.get_by_label("Token").fill("fullbloom_wrong")
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog).to_contain_text("does not accept this token")
    dialog.get_by_label("Token").fill(token)
    dialog.get_by_role("button", name="Use it").click()
    expect(page.get_by_role("row", name="guarded")).to_be_visible()
    expect(page.locator(".notice")).to_have_count(0)
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert token not in kept
    assert all(token not in url for _, url in tab.sent)
    # A reader's token: the page shows which scope it lacks.
    page.reload()
    expect(dialog).to_contain_text("The service needs a token")
    key = {"authorization": f"Bearer {token}"}
    body = {"name": "reader", "scopes": ["read"], "patterns": ["guard*"]}
    reader = one.http.post("/v1/tokens", json=body, headers=key).json()["token"]
    dialog.get_by_label("Token").fill(reader)
    dialog.get_by_role("button", name="Use it").click()
    expect(page.get_by_role("row", name="guarded")).to_be_visible()
    page.get_by_role("link", name="Tokens").click()
    expect(page.locator(".notice")).to_contain_text("The token has no scope admin.")
    # Revoked while it is in use.
    one.http.delete("/v1/tokens/reader", headers=key)
    page.get_by_role("link", name="Filters").click()
    expect(dialog).to_contain_text("does not accept this token")


def test_clearing_a_filter_that_changed_meanwhile_needs_a_second_confirmation(tab, service, name):
    service.http.post(f"/v1/filters/{name}/add", json={"key": "a"}).raise_for_status()
    page = tab.open(f"#/filter/{name}")
    page.get_by_role("button", name="Clear …").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    service.http.post(f"/v1/filters/{name}/add", json={"key": "b"}).raise_for_status()
    confirm(page, name, "Clear")
    expect(page.get_by_role("dialog")).to_contain_text("The filter was changed since")
    assert service.http.post(f"/v1/filters/{name}/check", json={"key": "b"}).json() == {"found": True}
    page.get_by_label("Go on, whatever was changed meanwhile").check()
    page.get_by_role("dialog").get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_text(f"{name} was cleared.")).to_be_visible()
    assert service.http.post(f"/v1/filters/{name}/check", json={"key": "b"}).json() == {"found": False}


def test_a_filter_dropped_in_one_tab_is_reported_as_gone_in_both(new_tab, service, name):
    one, other = new_tab(service.url), new_tab(service.url)
    pages = [tab.open(f"#/filter/{name}") for tab in (one, other)]
    for page in pages:
        expect(find_tile(page, "Keys")).to_be_visible()
    pages[0].get_by_role("button", name="Drop …").click()
    confirm(pages[0], name, "Drop")
    expect(pages[1].locator(".notice").first).to_contain_text("was dropped or renamed")
    expect(find_tile(pages[1], "Keys")).to_be_visible()
    page = one.open(f"#/filter/{name}")
    expect(page.locator(".notice").first).to_contain_text("ot found")
