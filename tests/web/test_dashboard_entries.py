"""The dashboard's forms take the entries of every kind and report each outcome correctly."""

from __future__ import annotations

import re
import threading

import pytest
from web.dashboard import build_path, confirm, encode_json, expect, find_tile
from web.faulty_proxy import FaultyProxy, respond


def press(page, verb):
    page.get_by_role("button", name=verb, exact=True).click()


def test_a_bank_can_be_created_and_takes_keys_with_owners(tab, service):
    page = tab.open("#/create")
    page.get_by_label("A filter for each of many owners").check()
    page.get_by_label("Different keys of an owner").fill("1k")
    page.get_by_label("False-positive rate").fill("2 %")
    page.get_by_label("Name").fill("read:articles")
    press(page, "Create")
    expect(page.get_by_role("heading", level=1)).to_have_text("read:articles")
    info = service.http.get("/v1/filters/read:articles").json()
    assert (info["kind"], info["capacity"], info["target_fpr"]) == ("bank", 1000, 0.02)
    outcome = page.locator(".outcome")
    owner, key = page.get_by_label("Owner", exact=True), page.get_by_label("Key", exact=True)
    for who, kind, what in (("ada", "text", "x"), ("7", "integer", "x"), ("ada", "text", "<b>y</b>")):
        owner.fill(who)
        page.get_by_label("Type of the owner").select_option(kind)
        key.fill(what)
        for verb, sentence in (
            ("Look it up", "is certainly not in the filter"),
            ("Add it", "was new"),
            ("Look it up", "is probably in the filter"),
        ):
            press(page, verb)
            expect(outcome).to_contain_text(sentence)
    pairs = {"keys": [["ada", "x"], [7, "x"], ["ada", "<b>y</b>"], ["7", "x"]]}
    found = service.http.post("/v1/filters/read:articles/check", json=pairs).json()["found"]
    assert found == [True, True, True, False]
    expect(find_tile(page, "Keys")).to_have_text("3")
    expect(page.locator(".tile", has_text="Keys").first).to_contain_text("of 2,000, of all its owners")
    expect(page.get_by_text("2 owners, each with a filter sized for 1,000 keys")).to_be_visible()
    expect(page.get_by_text("Each of its owners grows alone")).to_be_visible()
    expect(page.get_by_role("button", name="Freeze …")).to_have_count(0)
    page = tab.open("#/?search=read:articles")
    expect(page.get_by_role("row", name="read:articles")).to_contain_text("bank")


def test_an_owner_can_be_inspected_cleared_and_removed(tab, service):
    service.create("owned", kind="bank", capacity=50)
    pairs = [["ada", number] for number in range(20)] + [["alan", 1]]
    service.http.post("/v1/filters/owned/add", json={"keys": pairs}).raise_for_status()
    page = tab.open("#/filter/owned")
    card = page.locator(".card", has=page.get_by_role("heading", name="Owners"))
    card.get_by_label("Name of an owner", exact=True).fill("nobody")
    press(card, "Look the owner up")
    expect(card).to_contain_text("The bank has no owner nobody.")
    card.get_by_label("Name of an owner", exact=True).fill("ada")
    press(card, "Look the owner up")
    info = service.http.post("/v1/filters/owned/owners/info", json={"owner": "ada"}).json()
    expect(card).to_contain_text(f"ada has {info['num_added']} of 50 keys in 1 filter of {info['nbytes']} B")
    press(card, "Clear the owner …")
    confirm(page, "ada", "Clear")
    expect(page.get_by_text("The owner ada was cleared.")).to_be_visible()
    check = {"keys": [["ada", 3], ["alan", 1]]}
    assert service.http.post("/v1/filters/owned/check", json=check).json()["found"] == [False, True]
    press(card, "Look the owner up")
    expect(card).to_contain_text("ada has 0 of 50 keys")
    press(card, "Remove the owner …")
    confirm(page, "ada", "Remove")
    expect(page.get_by_text("The owner ada was removed.")).to_be_visible()
    assert service.http.get("/v1/filters/owned/owners").json()["total"] == 1


@pytest.mark.parametrize(
    ("kind", "label", "hint"), [("spatial", "Label", "from 1"), ("compact", "Value", "whole number")]
)
def test_labels_and_values_can_be_added_and_are_shown(tab, service, kind, label, hint):
    service.create(f"valued:{kind}", kind=kind)
    page = tab.open(f"#/filter/valued:{kind}")
    expect(page.get_by_text(hint).first).to_be_visible()
    page.get_by_label("Key", exact=True).fill("ada")
    press(page, "Add it")
    expect(page.locator(".card [role=alert]").first).to_contain_text("A label or value is a whole number")
    page.get_by_label(label, exact=True).fill("3")
    press(page, "Add it")
    expect(page.locator(".outcome")).to_contain_text("is in the filter with this label or value")
    expect(page.locator(".outcome")).to_contain_text("Label or value: 3")
    assert service.http.post(f"/v1/filters/valued:{kind}/values", json={"key": "ada"}).json() == {"value": 3}
    # The kind's own error message is shown.
    page.get_by_label(label, exact=True).fill("100000")
    press(page, "Add it")
    expect(page.locator(".card [role=alert]").first).to_contain_text("255")
    press(page, "Look it up")
    expect(page.locator(".outcome")).to_contain_text("is probably in the filter")


@pytest.mark.parametrize("kind", ["bit-set", "zone"])
def test_integer_kinds_take_integers_only(tab, service, kind):
    service.create(f"whole:{kind}", kind=kind, capacity=100)
    page = tab.open(f"#/filter/whole:{kind}")
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    expect(page.get_by_label("Type of the key")).to_have_count(0)
    page.get_by_label("Key", exact=True).fill("17")
    press(page, "Add it")
    expect(page.locator(".outcome")).to_contain_text("was new")
    assert service.http.post(f"/v1/filters/whole:{kind}/check", json={"key": 17}).json() == {"found": True}
    page.get_by_label("Key", exact=True).fill("ada")
    press(page, "Add it")
    expect(page.locator(".card [role=alert]").first).to_contain_text("digits only")


@pytest.mark.parametrize("action", ["count", "positions"])
def test_an_added_key_is_reported_even_if_a_later_request_fails(new_tab, proxy, service, action):
    name = f"added.{action}"
    service.create(name, kind="counting")
    page = new_tab(proxy.url).open(f"#/filter/{name}")
    page.get_by_label("Key", exact=True).fill("ada")
    with proxy.answering(
        respond("503 Busy", *encode_json({"code": "x", "detail": "no"})), f"/v1/filters/{name}/{action}"
    ):
        press(page, "Add it")
        expect(page.locator(".outcome")).to_contain_text("was new and is in the filter now.")
        expect(page.locator(".outcome .notice")).to_contain_text("cannot be shown")
        expect(page.locator(".card > [role=alert] .notice")).to_have_count(0)
    assert service.http.post(f"/v1/filters/{name}/count", json={"key": "ada"}).json()["count"] == 1


def test_text_typed_while_kinds_load_is_kept(new_tab, proxy, service, name):
    gate = threading.Event()

    def wait(connection):
        gate.wait(60)
        answer = service.http.get("/v1/plan?items=1&fpr=0.01&needs=static").content
        respond("200 OK", answer, "content-type: application/json")(connection)

    page = new_tab(proxy.url).open(f"#/filter/{name}")
    expect(find_tile(page, "Keys")).to_be_visible()
    with proxy.answering(wait, "/v1/plan"):
        press(page, "Freeze …")
        text = page.get_by_label("Keys, one per line")
        text.fill("ada")
        text.press_sequentially("\nalan")
        gate.set()
        expect(page.get_by_label("Kind, at a rate")).not_to_have_value("")
        expect(text).to_have_value("ada\nalan")


def test_a_file_chosen_while_kinds_load_is_kept(new_tab, proxy, service, name, tmp_path):
    gate = threading.Event()
    (tmp_path / "keys.txt").write_text("ada\nalan\n")

    def wait(connection):
        gate.wait(60)
        answer = service.http.get("/v1/plan?items=1&fpr=0.01&needs=static").content
        respond("200 OK", answer, "content-type: application/json")(connection)

    page = new_tab(proxy.url).open(f"#/filter/{name}")
    expect(find_tile(page, "Keys")).to_be_visible()
    with proxy.answering(wait, "/v1/plan"):
        press(page, "Freeze …")
        page.locator("input[type=file]").set_input_files(tmp_path / "keys.txt")
        gate.set()
        expect(page.get_by_label("Kind, at a rate")).not_to_have_value("")
    confirm(page, name, "Build the static filter")
    expect(page.get_by_text(f"{name} is a static filter now.")).to_be_visible()
    assert service.http.post(f"/v1/filters/{name}/check", json={"keys": ["ada", "alan"]}).json()["yes"] == 2


@pytest.mark.parametrize("has_clipboard", [False, True])
def test_a_token_can_be_copied_with_and_without_a_clipboard_api(start, new_tab, has_clipboard):
    """Browsers offer no clipboard API to a page that another machine serves over plain HTTP."""
    one = start()
    tab = new_tab(one.url)
    text = "{ writeText: (text) => { window.copied = text; return Promise.resolve(); } }"
    there = text if has_clipboard else "undefined"
    tab.context.add_init_script(f"Object.defineProperty(navigator, 'clipboard', {{ value: {there} }})")
    page = tab.open("#/tokens")
    page.get_by_label("Name").fill("first")
    press(page, "Create")
    token = page.locator(".secret").text_content()
    press(page, "Copy")
    if has_clipboard:
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("window.copied") == token
    else:
        expect(page.get_by_role("button", name="Selected: copy it by hand")).to_be_visible()
        assert page.evaluate("getSelection().toString().trim()") == token


def test_a_download_sends_the_token_and_shows_progress(start, new_tab, tmp_path, request):
    one = start()
    one.create("large", capacity=60_000_000)
    scopes = ["read", "write", "admin"]
    token = one.http.post("/v1/tokens", json={"name": "root", "scopes": scopes}).json()["token"]
    proxy = FaultyProxy(one.url)
    request.addfinalizer(proxy.stop)
    page = new_tab(proxy.url).open("#/filter/large")
    page.get_by_role("dialog").get_by_label("Token").fill(token)
    press(page, "Use it")
    expect(find_tile(page, "Keys")).to_be_visible()
    tools = page.context.new_cdp_session(page)
    with page.expect_download() as download, proxy.pausing_after(40 << 20):
        press(page, "Download the file")
        expect(page.get_by_text(re.compile(r"Downloading: 40(\.\d+)?\sM"))).to_be_visible()
        tools.send("HeapProfiler.collectGarbage")
        heap = tools.send("Runtime.getHeapUsage")
    download.value.save_as(tmp_path / "file")
    expect(page.get_by_text("The file of large was downloaded")).to_be_visible()
    key = {"authorization": f"Bearer {token}"}
    assert (tmp_path / "file").read_bytes() == one.http.get("/v1/filters/large/dump", headers=key).content
    held, size = heap["usedSize"] + heap["backingStorageSize"], (tmp_path / "file").stat().st_size
    print(f"file of {size / 1e6:.0f} MB; with half of it, the page holds {held / 1e6:.0f} MB")
    assert size > 50e6
    assert held < 30e6


def test_downloading_a_dropped_filter_shows_an_error(tab, service, name):
    page = tab.open(f"#/filter/{name}")
    expect(find_tile(page, "Keys")).to_be_visible()
    service.http.delete(f"/v1/filters/{name}")
    press(page, "Download the file")
    expect(page.locator(".card [role=alert] .notice").first).to_contain_text("ot found")


def test_an_unanswered_upload_is_reported_as_possibly_applied(new_tab, proxy, name):
    """The page does not call it a failure of its own."""
    page = new_tab(proxy.url).open(f"#/filter/{name}")
    press(page, "Freeze …")
    page.get_by_label("Keys, one per line").fill("ada\nalan")
    expect(page.get_by_label("Kind, at a rate")).not_to_have_value("")
    gate = threading.Event()
    with proxy.answering(lambda _: gate.wait(60), build_path(name, "freeze")):
        confirm(page, name, "Build the static filter")
        expect(page.get_by_role("dialog")).to_contain_text("The service is at work")
        gate.set()
        alert = page.get_by_role("dialog").get_by_role("alert")
        expect(alert).to_contain_text(
            "The change may have been made all the same: look before you repeat it."
        )


def test_a_failure_is_announced_after_its_dialog_was_closed(new_tab, proxy, name):
    page = new_tab(proxy.url).open(f"#/filter/{name}")
    gate = threading.Event()

    def refuse(connection):
        gate.wait(60)
        respond("503 Busy", *encode_json({"code": "x", "detail": "the disk is full"}))(connection)

    press(page, "Clear …")
    with proxy.answering(refuse, build_path(name, "clear")):
        confirm(page, name, "Clear")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        gate.set()
        expect(page.locator(".done")).to_contain_text("The disk is full.")
