"""The dashboard with real servers that fail: a full disk, low limits, an outage of Redis, a silent node."""

from __future__ import annotations

import re

import pytest
from durability.small_disk import fill, mount
from engines.servers import needs_redis
from service.redis_backend import make, url_of
from support import eventually
from web.dashboard import confirm, expect, find_tile


@pytest.fixture
def disk(tmp_path):
    with mount(tmp_path / "disk", 48 << 20) as folder:
        yield folder


def press(page, verb):
    page.get_by_role("button", name=verb, exact=True).click()


def test_a_full_disk_is_reported_until_space_is_free(start, new_tab, disk):
    one = start("--data", str(disk / "data"), "--durability", "always")
    one.create("kept", capacity=3_000_000)
    page = new_tab(one.url).open("#/filter/kept")
    expect(find_tile(page, "Keys")).to_have_text("0")
    page.get_by_label("Key", exact=True).fill("ada")
    fill(disk, 0)
    many = [{"keys": [f"{part}-{key}" for key in range(50_000)]} for part in range(40)]
    assert any(one.http.post("/v1/filters/kept/add", json=body).status_code == 503 for body in many)
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".card [role=alert] .notice").first).to_contain_text("No space left on device")
    expect(page.get_by_text("Changes are refused:")).to_be_visible()
    press(page, "Look it up")
    expect(page.locator(".outcome")).to_be_visible()
    (disk / "filler").unlink()
    eventually(lambda: one.http.get("/readyz").status_code == 200)
    page.get_by_label("Key", exact=True).fill("alan")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".outcome")).to_contain_text("was new")
    expect(page.get_by_text("Changes are refused:")).to_have_count(0)


def test_exceeding_a_service_limit_shows_an_error_message(start, new_tab):
    limits = {"FILTER_BYTES": "1000000", "KEY_BYTES": "100", "FILE_BYTES": "500"}
    one = start(**{f"FULLBLOOM_LIMITS__{name}": value for name, value in limits.items()})
    tab = new_tab(one.url)
    page = tab.open("#/create")
    page.get_by_label("Different keys").fill("100 million")
    expect(page.locator(".notice, .tag").first).to_be_visible()
    page.get_by_label("Different keys").fill("1000")
    expect(page.get_by_text("for 1,000 keys")).to_be_visible()
    page.get_by_label("Name").fill("x" * (1 << 20))
    press(page, "Create")
    expect(page.get_by_role("alert").locator(".notice")).to_contain_text("A request may have 65536 bytes")
    page.get_by_label("Name").fill("first")
    press(page, "Create")
    expect(page.get_by_role("heading", level=1)).to_have_text("first")
    page.get_by_label("Key", exact=True).fill("x" * 101)
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".card [role=alert] .notice").first).to_contain_text("longer than 100")


@needs_redis
def test_a_filter_in_redis_works_and_its_loss_and_outages_are_reported(
    new_service, own_server, new_tab, tmp_path
):
    server = own_server()
    options = ("--registry", f"sqlite:///{tmp_path / 'registry.db'}", "--redis", url_of(server))
    first, second = (new_service(*options) for _ in range(2))
    make(first, "shared")
    make(first, "lost")
    tab = new_tab(first.url)
    page = tab.open()
    expect(page.get_by_role("row", name="shared")).to_contain_text("Redis")
    page = tab.open("#/filter/shared")
    expect(page.locator(".facts")).to_contain_text("in Redis")
    second.http.post("/v1/filters/shared/add", json={"key": "ada"}).raise_for_status()
    page.get_by_label("Key", exact=True).fill("ada")
    press(page, "Look it up")
    expect(page.locator(".outcome")).to_contain_text("is probably in the filter")
    page.get_by_label("Key", exact=True).fill("alan")
    page.get_by_role("button", name="Add it").click()
    expect(page.locator(".outcome")).to_contain_text("was new")
    assert second.http.post("/v1/filters/shared/check", json={"key": "alan"}).json() == {"found": True}
    expect(find_tile(page, "Keys")).not_to_have_text("0")

    # Redis loses the cells of a filter: the service answers 500.
    with server.client() as client:
        client.delete(*client.keys("*lost*"))
    answer = first.http.post("/v1/filters/lost/check", json={"key": "ada"})
    assert (answer.status_code, answer.json()["code"]) == (500, "lost")
    page = tab.open("#/filter/lost")
    expect(page.locator(".notice").first).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("lost")

    # The Redis server stops and restarts.
    page = tab.open("#/filter/shared")
    expect(find_tile(page, "Keys")).not_to_have_text("0")
    with server.client() as client:
        saved = {key: client.dump(key) for key in client.keys("*")}
    server.kill()
    page.get_by_label("Key", exact=True).fill("ada")
    press(page, "Look it up")
    expect(page.locator(".card [role=alert] .notice").first).to_be_visible()
    server.start()
    with server.client() as client:
        for key, cells in saved.items():
            client.restore(key, 0, cells, replace=True)
    expect(page.locator(".stale")).to_have_count(0)
    press(page, "Look it up")
    expect(page.locator(".outcome")).to_contain_text("is probably in the filter")


def test_nodes_are_listed_and_only_a_silent_one_can_be_removed(start, new_tab, database):
    options = ("--registry", database)
    first, second = (start(*options, folder=folder, FULLBLOOM_SILENCE="10") for folder in ("a", "b"))
    first.create("elsewhere")
    page = new_tab(second.url).open("#/nodes")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("row", name=second.node)).to_contain_text("this one")
    expect(page.get_by_role("row", name=first.node)).to_contain_text("alive")
    expect(page.get_by_role("row", name=first.node)).to_contain_text(first.url)
    # A live node cannot be removed.
    page.get_by_role("button", name=f"Remove {first.node}").click()
    confirm(page, first.node, "Remove")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("can be removed after 10 s")
    page.keyboard.press("Escape")
    first.kill()
    beyond = re.compile(r"silent for ((1[1-9]|[2-5]\d) seconds|\d+ minute)")
    expect(page.get_by_role("row", name=first.node)).to_contain_text(beyond)
    page.get_by_role("button", name=f"Remove {first.node}").click()
    confirm(page, first.node, "Remove")
    expect(page.get_by_text(f"The node {first.node} was removed.")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)
    body = {"name": "elsewhere", "capacity": 9}
    eventually(lambda: second.http.post("/v1/filters", json=body).status_code == 201)
