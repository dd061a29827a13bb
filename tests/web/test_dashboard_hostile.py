"""The dashboard shows an error and stays usable when another program answers at the service's port."""

from __future__ import annotations

import json
import re
import time

import pytest
from web.dashboard import HOSTILE, NO_ANSWER, VIEWS, build_path, encode_json, expect, retry_now
from web.faulty_proxy import reset, respond, send

GARBAGE = "not an answer of this service"
SURROGATES = "a\ud800b\udc00"
INFO = {
    "id": 1,
    "name": "x",
    "kind": "bloom",
    "capacity": 10,
    "target_fpr": 0.1,
    "num_added": 1,
    "fpr": 0.1,
    "over_capacity": False,
    "nbytes": 8,
    "created": 0,
    **dict.fromkeys(("hits", "misses", "adds", "new", "removed"), 0),
}
SAMPLE = {"sampled_at": 1, "estimated_items": 1, "fpr_estimate": 0.1, "fill": 0.5}
SAMPLE |= dict.fromkeys(("hits", "misses", "adds", "new", "removed", "bytes"), 0)


def build_listing(names, **more):
    return {"filters": [{**INFO, **more, "name": name} for name in names], "total": len(names), "next": None}


def respond_json(body):
    return respond("200 OK", *encode_json(body))


def is_alive(page):
    """Return whether the page runs a script within a second."""
    begun = time.monotonic()
    page.evaluate("new Promise((resume) => requestAnimationFrame(() => setTimeout(resume)))")
    return time.monotonic() - begun < 1


def test_names_with_lone_surrogates_are_listed(new_tab, proxy):
    with proxy.answering(respond_json(build_listing([SURROGATES, "\udfff", "plain"])), "/v1/filters?"):
        page = new_tab(proxy.url).open()
        expect(page.locator("tbody tr")).to_have_count(3)
        expect(page.locator("tbody th").first).to_have_text("a\ufffdb\ufffd")
        page.locator("tbody a").first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("a\ufffdb\ufffd")
        expect(page.locator(".notice").first).to_be_visible()


def test_typed_lone_surrogates_get_an_error_message(tab, name):
    """Playwright cannot type lone surrogates, so scripts put them into the fields."""
    typed = "field.dispatchEvent(new InputEvent('input', {bubbles: true}))"
    put = f"(field) => {{ field.value = 'a\\ud800'; {typed}; }}"
    page = tab.open(f"#/filter/{name}")
    page.get_by_label("Key", exact=True).evaluate(put)
    page.get_by_role("button", name="Look it up").click()
    expect(page.locator(".card [role=alert] .notice").first).to_be_visible()
    page = tab.open("#/create")
    page.get_by_label("static", exact=False).first.check()
    page.get_by_label("Name").evaluate(put)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert").locator(".notice")).to_be_visible()
    expect(page.get_by_role("alert").locator(".notice")).not_to_contain_text("The page failed")
    page = tab.open("#/")
    page.get_by_role("searchbox").evaluate(put)
    expect(page.get_by_text("No filter that you may see")).to_be_visible()


@pytest.mark.parametrize("view", ["tokens", "nodes"])
def test_rows_with_lone_surrogates_can_be_removed(new_tab, proxy, view):
    rows = {
        "tokens": {
            "tokens": [{"name": SURROGATES, "scopes": [SURROGATES], "patterns": [SURROGATES], "created": 0}]
        },
        "nodes": {
            "nodes": [
                {
                    "id": SURROGATES,
                    "http": SURROGATES,
                    "resp": "",
                    "started": 0,
                    "seen": 0,
                    "own": False,
                    "silent": 9,
                }
            ]
        },
    }
    with proxy.answering(respond_json(rows[view]), f"/v1/{view}"):
        page = new_tab(proxy.url).open(VIEWS[view])
        page.get_by_role("button", name="…").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("to confirm").fill("a\ufffdb\ufffd")
        dialog.locator(".danger").click()
        # The program at the port accepts the request, because the page could encode its address.
        expect(page.locator(".done")).to_contain_text("a\ufffdb\ufffd was re")


#: The view, the beginning of the path that is overridden, and its response.
LONG = {
    "filters beyond a page": ("filters", "/v1/filters", lambda: build_listing([f"f{n}" for n in range(51)])),
    "a hundred thousand filters": ("filters", "/v1/filters", lambda: build_listing(["f"] * 100_000)),
    "a hundred thousand tokens": (
        "tokens",
        "/v1/tokens",
        lambda: {"tokens": [{"name": "t", "scopes": [], "patterns": [], "created": 0}] * 100_000},
    ),
    "a hundred thousand samples": (
        "filter",
        "/v1/filters/shown/history",
        lambda: {"samples": [SAMPLE] * 100_000},
    ),
    "a hundred thousand choices": ("create", "/v1/plan", lambda: {"choices": [{}] * 100_000, "needs": []}),
    "a million needs": ("create", "/v1/plan", lambda: {"choices": [], "needs": ["need"] * 1_000_000}),
}


@pytest.mark.parametrize("case", LONG)
@pytest.mark.timed
def test_an_overlong_response_is_rejected_and_the_tab_stays_responsive(new_tab, proxy, service, case):
    view, path, make = LONG[case]
    if view == "filter":
        service.http.post("/v1/filters", json={"name": "shown", "capacity": 100})
    body = make()
    answer = (
        respond("200 OK", body, "content-type: application/json")
        if isinstance(body, bytes)
        else respond_json(body)
    )
    with proxy.answering(answer, path):
        page = new_tab(proxy.url).open(VIEWS[view])
        expect(page.locator(".notice").first).to_contain_text(re.compile(f"{GARBAGE}|longer than 8 MB"))
        assert is_alive(page)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.locator("tr").count() < 200


@pytest.mark.timed
def test_a_deeply_nested_parameter_is_truncated(new_tab, proxy, service):
    service.create("deep")
    deep = b"[" * 100_000 + b"]" * 100_000
    info = (
        json.dumps({**INFO, "name": "deep", "details": {"x": 0}})
        .encode()
        .replace(b'{"x": 0}', b'{"x":%b}' % deep)
    )
    with proxy.answering(respond("200 OK", info, "content-type: application/json"), "/v1/filters/deep?"):
        page = new_tab(proxy.url).open("#/filter/deep")
        expect(page.locator(".facts")).to_be_visible()
        assert is_alive(page)
    assert page.locator("main").inner_text().count("[") < 1000


@pytest.mark.timed
def test_reading_an_endless_body_stops_at_a_limit(new_tab, proxy):
    def stream(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b'{"filters":[')
        while True:
            connection.sendall(b" " * (1 << 16))

    with proxy.answering(stream, "/v1/filters?"):
        page = new_tab(proxy.url).open()
        expect(page.locator(".notice").first).to_contain_text("longer than 8 MB")
        assert is_alive(page)
        assert page.evaluate("performance.memory.usedJSHeapSize") < 100e6


NUMBERS = {
    "infinite figures": (build_listing(["x"]), '"num_added": 1', '"num_added": 1e999'),
    "an infinite total": (build_listing(["x"]), '"total": 1', '"total": 1e999'),
    "a rate beyond 1": (build_listing(["x"]), '"fpr": 0.1', '"fpr": 5'),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_invalid_numbers_are_rejected(new_tab, proxy, case):
    body, old, new = NUMBERS[case]
    text = json.dumps(body)
    assert old in text
    answer = respond("200 OK", text.replace(old, new).encode(), "content-type: application/json")
    with proxy.answering(answer, "/v1/filters?"):
        page = new_tab(proxy.url).open()
        expect(page.locator(".notice").first).to_contain_text(GARBAGE)


#: Values of samples that JSON allows and a plot may not expect.
SAMPLES = {
    "infinite times": ([{"sampled_at": "1e999"}], GARBAGE),
    "times after all dates": ([{"sampled_at": "1e300"}], GARBAGE),
    "infinite counts": ([{"adds": "1e999"}], GARBAGE),
    "the last date and huge counts": (
        [
            {"sampled_at": "0"},
            {"sampled_at": "8.64e15", "adds": "1e30", "hits": "1e30", "estimated_items": "1e30"},
        ],
        None,
    ),
    "times in no order": ([{"sampled_at": str(t)} for t in (5e12, 1e12, 3e12, 3e12, 0)], None),
    "the smallest rates": (
        [{"sampled_at": "1000", "fpr_estimate": "5e-324"}, {"sampled_at": "900000", "fpr_estimate": "1"}],
        None,
    ),
}


@pytest.mark.parametrize("case", SAMPLES)
@pytest.mark.timed
def test_extreme_samples_do_not_freeze_a_plot(new_tab, proxy, name, case):
    members, sentence = SAMPLES[case]
    rows = []
    for changed in members:
        text = json.dumps({**SAMPLE, **dict.fromkeys(changed, "HERE")})
        for value in changed.values():
            text = text.replace('"HERE"', value, 1)
        rows.append(text)
    body = f'{{"samples": [{",".join(rows)}]}}'.encode()
    with proxy.answering(
        respond("200 OK", body, "content-type: application/json"), build_path(name, "history")
    ):
        page = new_tab(proxy.url).open(f"#/filter/{name}")
        history = page.locator(".card", has_text="History")
        if sentence is None:
            expect(history.locator(".plot canvas")).to_have_count(3)
            page.get_by_role("button", name="30 days").click()
        else:
            expect(history.locator(".notice")).to_contain_text(sentence)
        page.wait_for_timeout(500)
        assert is_alive(page)
        assert page.locator(".fatal").count() == 0


ANSWERS = {
    "429": (respond("429 Too Many Requests", b"slow down", "retry-after: 1"), "answered 429"),
    "500": (respond("500 Oops", b"<h1>oops</h1>", "content-type: text/html"), "answered 500"),
    "no JSON": (respond("200 OK", b"\x00\x01{]"), GARBAGE),
    "another form": (respond_json({"filters": 5, "tokens": [5], "nodes": {}, "choices": None}), GARBAGE),
    "null": (respond_json(None), GARBAGE),
    "hostile reason": (
        respond(
            "400 Bad Request", *encode_json({"code": "invalid", "detail": HOSTILE["markup"] + SURROGATES})
        ),
        "<img src=x onerror=alert(1)>",
    ),
    "an endless reason": (
        respond("400 Bad Request", *encode_json({"code": "x", "detail": "y" * 5_000_000})),
        "answered 400",
    ),
    "reset": (reset, NO_ANSWER),
    "noise": (send(bytes(range(256)) * 16), NO_ANSWER),
    "half a body": (send(b'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"'), "was cut off"),
}
#: The view that reads each path, and a text that it shows after a valid response.
PATHS = {
    "/v1/plan": ("create", "Create it"),
    "/v1/tokens": ("tokens", "Create the first token"),
    "/v1/nodes": ("nodes", "this one"),
}


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("path", PATHS)
def test_a_view_reports_a_bad_response_and_recovers(new_tab, proxy, case, path):
    answer, sentence = ANSWERS[case]
    view, shown = PATHS[path]
    tab = new_tab(proxy.url)
    with proxy.answering(answer, path):
        page = tab.open(VIEWS[view])
        page.on("dialog", lambda dialog: tab.errors.append(f"dialog {dialog.message}"))
        expect(page.locator("main .notice").first).to_contain_text(sentence)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    retry_now(page)
    expect(page.get_by_text(shown).first).to_be_visible()
    expect(page.locator("main .notice", has_text=sentence)).to_have_count(0)


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("path", ["/v1/service", "/v1/kinds"])
def test_a_bad_response_to_the_page_frame_does_not_affect_the_views(new_tab, proxy, name, case, path):
    answer, _ = ANSWERS[case]
    with proxy.answering(answer, path):
        page = new_tab(proxy.url).open(f"#/?search={name}")
        expect(page.get_by_role("row", name=name)).to_be_visible()
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        page.get_by_label("Key", exact=True).fill("ada")
        page.get_by_role("button", name="Look it up").click()
        expect(page.locator(".outcome")).to_contain_text("is certainly not in the filter")
    # The page reads the kinds again later.
    expect(page.get_by_role("button", name="Add it")).to_be_visible()
    expect(page.locator("footer")).to_contain_text("durability everysec")


def test_a_script_error_stops_one_view_and_others_still_work(new_tab, service, name):
    tab = new_tab(service.url)
    page = tab.open(f"#/?search={name}")
    expect(page.get_by_role("row", name=name)).to_be_visible()
    page.evaluate(
        "window.format = Number.prototype.toPrecision;"
        "Number.prototype.toPrecision = () => { throw new Error('toy'); }; 0"
    )
    expect(page.get_by_role("alert").filter(has_text="This view stopped")).to_contain_text("toy")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    page.get_by_role("link", name="Nodes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nodes")
    page.evaluate("Number.prototype.toPrecision = window.format; 0")
    page.go_back()
    expect(page.get_by_role("row", name=name)).to_be_visible()


@pytest.mark.timed
def test_a_long_token_list_shows_its_first_rows_and_the_total(new_tab, proxy):
    rows = [
        {"name": f"t{number}", "scopes": ["read"], "patterns": [], "created": 0} for number in range(3000)
    ]
    with proxy.answering(respond_json({"tokens": rows}), "/v1/tokens"):
        page = new_tab(proxy.url).open("#/tokens")
        expect(page.get_by_text("The first 500 of 3,000 are shown")).to_be_visible()
        assert page.locator("tbody tr").count() == 500
        assert is_alive(page)
