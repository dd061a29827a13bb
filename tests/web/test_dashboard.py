"""The dashboard does a user's tasks in a browser, against a running service."""

from __future__ import annotations

import datetime as dt
import json
import re
import time

import pytest
from web.dashboard import HOSTILE, VIEWS, confirm, expect, find_tile


def test_the_form_advises_on_a_kind_creates_the_filter_and_its_numbers_update(tab, service):
    page = tab.open("#/create")
    page.get_by_label("Different keys").fill("20k")
    page.get_by_label("False-positive rate").fill("1 in 100")
    page.get_by_label("remove", exact=False).first.check()
    expect(page.get_by_role("radio", name="cuckoo").first).to_be_checked()
    page.get_by_role("radio", name="counting").check()
    page.get_by_label("Name").fill("created:here")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("created:here")
    info = service.http.get("/v1/filters/created:here").json()
    assert (info["kind"], info["capacity"], info["target_fpr"]) == ("counting", 20_000, 0.01)
    expect(find_tile(page, "Keys")).to_have_text("0")
    for count in (100, 350):
        keys = [f"key-{number}" for number in range(count)]
        service.http.post("/v1/filters/created:here/add", json={"keys": keys}).raise_for_status()
        num_added = service.http.get("/v1/filters/created:here").json()["num_added"]
        expect(find_tile(page, "Keys")).to_have_text(str(num_added))
    service.http.post("/v1/filters/created:here/check", json={"keys": keys}).raise_for_status()
    expect(find_tile(page, "Hits")).to_have_text("350")
    page.goto(f"{service.url}/#/?search=created*here")
    expect(page.get_by_role("row", name="created:here")).to_contain_text("counting")


def test_the_form_shows_why_the_service_rejects_a_filter(tab, name):
    page = tab.open("#/create")
    page.get_by_label("Different keys").fill("lots of")
    expect(page.locator(".notice")).to_contain_text("Items: Input should be a valid integer")
    page.get_by_label("Different keys").fill("1000")
    expect(page.locator(".notice")).to_have_count(0)
    for text, sentence in ((name, f"There is a filter {name}"), ("a b", "String should match pattern")):
        page.get_by_label("Name").fill(text)
        page.get_by_role("button", name="Create", exact=True).click()
        expect(page.get_by_role("alert").locator(".notice")).to_contain_text(sentence)


def test_a_static_filter_can_be_built_from_typed_keys(tab, service):
    page = tab.open("#/create")
    page.get_by_label("static", exact=False).first.check()
    page.get_by_label("Name").fill("created:static")
    page.get_by_label("Keys, one per line").fill("ada\nalan\n")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("created:static")
    found = service.http.post("/v1/filters/created:static/check", json={"keys": ["ada", "alan"]}).json()[
        "found"
    ]
    assert found == [True, True]
    expect(page.get_by_text("It is static")).to_be_visible()
    expect(page.get_by_role("button", name="Add it")).to_have_count(0)


def test_keys_can_be_added_and_looked_up_as_text_and_as_integers(tab, service, name):
    page = tab.open(f"#/filter/{name}")
    outcome = page.locator(".outcome")
    for key, kind in (("5", "text"), ("5", "integer"), ("-12345678901234567890", "integer")):
        page.get_by_label("Key", exact=True).fill(key)
        page.get_by_label("Type of the key").select_option(kind)
        for verb, sentence in (
            ("Look it up", "is certainly not in the filter"),
            ("Add it", "was new"),
            ("Look it up", "is probably in the filter"),
        ):
            page.get_by_role("button", name=verb).click()
            expect(outcome).to_contain_text(sentence)
        query = {"key": key, "type": kind}
        positions = service.http.get(f"/v1/filters/{name}/positions", params=query).json()["positions"]
        # They come after the sentence.
        expect(outcome.locator("code")).to_have_text([f"{cell:,}" for cell in positions])
    page.get_by_label("Key", exact=True).fill("5.5")
    page.get_by_role("button", name="Look it up").click()
    expect(page.get_by_role("alert")).to_contain_text("An integer key has digits only")


def test_counts_values_and_removal_appear_for_kinds_that_support_them(tab, service):
    service.create("has:counts", kind="counting")
    page = tab.open("#/filter/has:counts")
    page.get_by_label("Key", exact=True).fill("ada")
    for _ in range(2):
        page.get_by_role("button", name="Add it").click()
        expect(page.locator(".outcome")).to_be_visible()
        expect(page.get_by_role("button", name="Add it")).to_be_enabled()
    expect(page.locator(".outcome")).to_contain_text("Count: 2")
    page.get_by_role("button", name="Remove it").click()
    expect(page.locator(".outcome")).to_contain_text("was removed")
    expect(page.locator(".outcome")).to_contain_text("Count: 1")
    service.create("has:labels", kind="compact")
    body = {"keys": ["ada"], "values": [2]}
    service.http.post("/v1/filters/has:labels/add", json=body).raise_for_status()
    page = tab.open("#/filter/has:labels")
    page.get_by_label("Key", exact=True).fill("ada")
    page.get_by_role("button", name="Look it up").click()
    expect(page.locator(".outcome")).to_contain_text("Label or value: 2")


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_keys_are_shown_as_inert_text(tab, name, kind):
    text = HOSTILE[kind].replace("\t", " ")  # a field of one line has no other
    page = tab.open(f"#/filter/{name}")
    page.on("dialog", lambda dialog: tab.errors.append(f"dialog {dialog.message}"))
    page.get_by_label("Key", exact=True).fill(text)
    page.get_by_role("button", name="Add it").click()
    shown = page.locator(".outcome bdi").first
    expect(shown).to_be_visible()
    assert shown.evaluate("element => element.textContent") == text.replace("\n", "")
    assert shown.evaluate("element => element.childElementCount") == 0
    expect(page.locator(".outcome strong").first).to_have_text("was new and is in the filter now.")


def test_a_key_of_a_megabyte_is_rejected_and_a_long_key_is_shortened_until_expanded(tab, service, name):
    page = tab.open(f"#/filter/{name}")
    key = page.get_by_label("Key", exact=True)
    key.fill("x" * (1 << 20))
    page.get_by_role("button", name="Look it up").click()
    expect(page.locator(".card [role=alert]").first).to_contain_text("key")
    long = "y" * 60_000
    key.fill(long)
    page.get_by_role("button", name="Add it").click()
    shown = page.locator(".outcome bdi").first
    expect(shown).to_have_text("y" * 60)
    expect(page.locator(".outcome")).to_contain_text("too long to show its cells")
    page.get_by_role("button", name="show all 60,000 characters").click()
    expect(shown).to_have_text(long)
    assert service.http.post(f"/v1/filters/{name}/check", json={"key": long}).json() == {"found": True}


def test_tokens_can_be_created_and_revoked_and_are_shown_once(start, new_tab):
    one = start()
    page = new_tab(one.url).open("#/tokens")
    expect(page.get_by_text("No token exists")).to_be_visible()
    page.get_by_label("Name").fill("first")
    page.get_by_role("button", name="Create", exact=True).click()
    shown = page.locator(".secret")
    expect(shown).to_be_visible()
    key = {"authorization": f"Bearer {shown.text_content()}"}
    assert one.http.get("/v1/tokens", headers=key).json()["tokens"][0]["scopes"] == ["read", "write", "admin"]
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("row", name="first")).to_be_visible()
    expect(shown).to_have_count(0)
    page.get_by_label("Name").fill("second")
    page.get_by_label("Filters", exact=True).fill("logs:* users:*")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("row", name="second")).to_contain_text("logs:*, users:*")
    page.get_by_role("button", name="Revoke second").click()
    confirm(page, "second", "Revoke")
    expect(page.get_by_role("row", name="second")).to_have_count(0)
    assert [row["name"] for row in one.http.get("/v1/tokens", headers=key).json()["tokens"]] == ["first"]


def test_dropping_a_filter_requires_typing_its_name(tab, service, name):
    page = tab.open(f"#/filter/{name}")
    page.get_by_role("button", name="Drop …").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Drop …")).to_be_focused()
    page.get_by_role("button", name="Drop …").click()
    confirm(page, name, "Drop")
    expect(page.get_by_text(f"{name} was dropped.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Filters")
    assert service.http.get(f"/v1/filters/{name}").status_code == 404


def test_renaming_can_replace_another_filter_in_one_step(tab, service, name):
    service.create(f"{name}.new")
    service.http.post(f"/v1/filters/{name}.new/add", json={"key": "new"}).raise_for_status()
    page = tab.open(f"#/filter/{name}.new")
    page.get_by_role("button", name="Rename or swap …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New name").fill(name)
    confirm(page, f"{name}.new", "Rename")
    expect(dialog).to_contain_text(f"There is a filter {name}")
    dialog.get_by_label("Replace the filter that has this name").check()
    dialog.get_by_role("button", name="Replace the other").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert service.http.post(f"/v1/filters/{name}/check", json={"key": "new"}).json() == {"found": True}
    assert service.http.get(f"/v1/filters/{name}.new").status_code == 404


def test_a_filter_can_be_frozen_and_downloaded(tab, service, name, tmp_path):
    page = tab.open(f"#/filter/{name}")
    page.get_by_role("button", name="Freeze …").click()
    page.get_by_label("Keys, one per line").fill("ada\nalan")
    expect(page.get_by_label("Kind, at a rate")).not_to_have_value("")
    confirm(page, name, "Build the static filter")
    expect(page.get_by_text(f"{name} is a static filter now.")).to_be_visible()
    assert service.http.post(f"/v1/filters/{name}/check", json={"keys": ["ada", "alan"]}).json()["yes"] == 2
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the file").click()
    download.value.save_as(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == service.http.get(f"/v1/filters/{name}/dump").content


def test_reloading_a_view_keeps_its_search_order_and_page(tab, service):
    for number in range(60):
        service.create(f"many:{number:02d}", capacity=100 + number)
    page = tab.open("#/")
    page.get_by_role("searchbox").fill("many:*")
    expect(page.get_by_text("1 to 50 of 60 filters")).to_be_visible()
    page.get_by_role("button", name="Bytes").click()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("51 to 60 of 60 filters")).to_be_visible()
    before = page.locator("tbody th").all_inner_texts()
    page.reload()
    expect(page.get_by_text("51 to 60 of 60 filters")).to_be_visible()
    assert page.locator("tbody th").all_inner_texts() == before
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Bytes")
    page.get_by_role("button", name="Bytes").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Bytes")


def test_opening_views_sends_only_get_requests_and_changes_nothing(new_tab, service, name):
    state = json.dumps(service.http.get("/v1/filters?limit=1000").json()["filters"])
    tab = new_tab(service.url)
    for fragment in [*VIEWS.values(), f"#/filter/{name}"]:
        tab.open(fragment.replace("shown", name))
        tab.page.wait_for_timeout(700)
    assert {method for method, _ in tab.sent} <= {"GET", "HEAD"}
    assert json.dumps(service.http.get("/v1/filters?limit=1000").json()["filters"]) == state
    assert {url.split("/")[2] for _, url in tab.sent} == {service.url.split("/")[2]}


def read_rate(text):
    """Convert a rate as the page writes it to a number."""
    digits = text.replace("\u00a0", " ").removesuffix(" %")
    return float(digits) / (100 if text.endswith("%") else 1)


def test_rates_at_higher_load_match_the_service_and_exceeded_targets_are_marked(tab, service):
    service.create("loaded", capacity=1000, fpr=0.01, keyed=False, seed=1)
    page = tab.open("#/filter/loaded")
    expect(page.get_by_text("The filter holds no key yet")).to_be_visible()
    body = {"keys": [f"key-{number}" for number in range(800)]}
    service.http.post("/v1/filters/loaded/add", json=body).raise_for_status()
    rows = page.get_by_role("table", name="False-positive rate by load").locator("tbody tr")
    expect(rows).to_have_count(3)
    rates = service.http.get("/v1/filters/loaded/rates").json()["rates"]
    assert [rate["load"] for rate in rates] == [1, 2, 4]
    expect(rows.first.locator("td").first).to_have_text(f"{rates[0]['keys']:,}")
    for row, rate in zip(rows.all(), rates, strict=True):
        cells = row.locator("th, td").all_inner_texts()
        assert cells[0] == f"{rate['load']}\u00d7"
        assert cells[1] == f"{rate['keys']:,}"
        assert read_rate(cells[2]) == pytest.approx(rate["fpr"], rel=0.01)
        assert float(cells[3].replace(",", "")) == pytest.approx(1 / rate["fpr"], rel=0.03)
        assert ("over" in row.get_attribute("class")) == (rate["fpr"] > 0.0101)
    assert rates[0]["fpr"] < 0.01 < rates[1]["fpr"]


def read_moment(text, near):
    """Return a moment that the page shows, and its unit in seconds: it shows a day that is not today, too."""
    if " " in text:
        return dt.datetime.fromisoformat(text).replace(tzinfo=near.tzinfo), 60
    shown = dt.datetime.combine(near.date(), dt.time.fromisoformat(text), tzinfo=near.tzinfo)
    return min((shown + dt.timedelta(days=days) for days in (-1, 0, 1)), key=lambda one: abs(one - near)), 1


@pytest.mark.timed
def test_the_predicted_time_until_full_matches_the_pace_of_the_samples(new_service, new_tab):
    one = new_service(FULLBLOOM_HISTORY__EVERY="0.3")
    one.create("paced", capacity=20_000)
    for start in range(0, 4000, 200):
        keys = list(range(start, start + 200))
        one.http.post("/v1/filters/paced/add", json={"keys": keys}).raise_for_status()
        time.sleep(0.4)
    page = new_tab(one.url).open("#/filter/paced")
    sentence = page.get_by_text("At the pace of the last hour").inner_text().replace("\u00a0", " ")
    info = one.http.get("/v1/filters/paced").json()
    samples = one.http.get("/v1/filters/paced/history").json()["samples"]
    first = min(samples, key=lambda sample: sample["sampled_at"])
    pace = 1000 * (info["new"] - first["new"]) / (time.time() * 1000 - first["sampled_at"])
    left = (info["capacity"] - info["num_added"]) / pace
    found = re.search(
        r"hour, ([\d.]+) keys per second, it is full in (\d+) (second|minute)s?, at ([-\d: ]+)\.", sentence
    )
    print(f"{sentence} By hand: {pace:.0f} keys per second, {left:.0f} s")
    assert float(found[1]) == pytest.approx(pace, rel=0.15)
    seconds = int(found[2]) * {"second": 1, "minute": 60}[found[3]]
    assert abs(seconds - left) <= 0.15 * left + 30  # whole minutes
    at = dt.datetime.now(dt.UTC).astimezone() + dt.timedelta(seconds=left)
    shown, unit = read_moment(found[4], at)
    assert abs((shown - at).total_seconds()) <= 0.15 * left + 10 + unit
    # A full filter, and kinds that never fill up.
    for number in range(4, 40):
        keys = [f"{number}-{key}" for key in range(500)]
        one.http.post("/v1/filters/paced/add", json={"keys": keys}).raise_for_status()
    expect(page.get_by_text("it is full. Build a larger one")).to_be_visible()
    one.create("forgets", kind="rolling")
    page.goto(f"{one.url}/#/filter/forgets")
    expect(page.get_by_text("It forgets its oldest keys")).to_be_visible()
    one.create("grows", kind="scalable")
    page.goto(f"{one.url}/#/filter/grows")
    expect(page.get_by_text("It grows beyond its first size")).to_be_visible()
