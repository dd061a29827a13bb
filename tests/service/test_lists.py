"""Lists of filters are searched, sorted and paged by the service, with figures on request."""

from __future__ import annotations

import random
import time

import pytest
from service.test_routes import problem
from support import eventually

KINDS = ["bloom", "counting", "cuckoo"]


@pytest.fixture(scope="module")
def filled(new_service):
    service = new_service()
    draw = random.Random(5)
    names = [f"{draw.choice(['Logs', 'users', 'urls'])}:{number:02d}" for number in range(40)]
    for number, name in enumerate(names):
        service.create(name, capacity=draw.randrange(100, 5000), kind=KINDS[number % 3])
        keys = [f"{name}-{key}" for key in range(draw.randrange(1, 120))]
        service.http.post(f"/v1/filters/{name}/add", json={"keys": keys}).raise_for_status()
        service.http.post(f"/v1/filters/{name}/check", json={"keys": keys[: number + 1]}).raise_for_status()
    return service, names


def list_filters(service, **query):
    answer = service.http.get("/v1/filters", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


FIGURES = {
    "keys": lambda info: info["num_added"],
    "load": lambda info: info["num_added"] / info["capacity"],
    "fill": lambda info: info["fill"],
    "fpr": lambda info: info["fpr"],
    "target_fpr": lambda info: info["target_fpr"],
    "bytes": lambda info: info["nbytes"],
    "hits": lambda info: info["hits"],
    "created": lambda info: info["created"],
    "kind": lambda info: info["kind"],
    "name": lambda info: info["name"],
}


@pytest.mark.parametrize("sort", FIGURES)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_are_in_the_order_of_a_figure(filled, sort, order):
    service, names = filled
    found = []
    for page in range(1, 7):
        answer = list_filters(service, sort=sort, order=order, page=page, limit=7, figures="true")
        assert (answer["total"], answer["next"]) == (40, None)
        found += answer["filters"]
    assert sorted(info["name"] for info in found) == sorted(names)
    figures = [FIGURES[sort](info) for info in found]
    assert figures == sorted(figures, reverse=order == "desc")


@pytest.mark.parametrize(
    "search", ["logs", "LOGS", "s:1", "l*:*3", "*", "**", "", "o?s", "[", "x" * 128, "é", "*" * 128]
)
def test_a_search_finds_the_names_with_its_parts_in_order(filled, search):
    service, names = filled
    parts = [part.lower() for part in search.split("*")]

    def has(name):
        at = 0
        for part in parts:
            at = name.lower().find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True

    expected = sorted(name for name in names if has(name))
    answer = list_filters(service, search=search, page=1, limit=1000)
    assert [info["name"] for info in answer["filters"]] == expected
    assert answer["total"] == len(expected)
    by_name = list_filters(service, search=search, limit=1000)
    assert [info["name"] for info in by_name["filters"]] == expected
    assert by_name["total"] is None


def test_a_search_goes_on_after_a_name(filled):
    service, names = filled
    expected = sorted(name for name in names if "1" in name)
    found, after = [], ""
    while after is not None:
        answer = list_filters(service, search="1", after=after, limit=3)
        found += [info["name"] for info in answer["filters"]]
        after = answer["next"]
    assert found == expected


def test_figures_have_the_fill_and_the_operations_a_second(filled):
    service, _ = filled
    plain = list_filters(service, limit=1)["filters"][0]
    assert (plain["fill"], plain["operations"]) == (None, None)
    name = plain["name"]
    query = {"search": name, "page": 1, "figures": "true"}
    counted = service.http.get(f"/v1/filters/{name}").json()
    first = list_filters(service, **query)["filters"][0]
    assert first["fill"] == counted["fill"] > 0
    assert first["estimated"] == counted["estimated"]
    begun = time.monotonic()
    service.http.post(f"/v1/filters/{name}/check", json={"keys": list(range(5000))}).raise_for_status()
    time.sleep(1.1)
    rate = list_filters(service, **query)["filters"][0]["operations"]
    assert 0 < rate <= 5000 / 1.0
    assert rate >= 5000 / (time.monotonic() - begun + 60)


def test_the_fill_of_a_large_filter_is_that_of_its_last_sample(start):
    service = start(FULLBLOOM_HISTORY__EVERY="0.2", FULLBLOOM_LOG_LEVEL="warning")
    service.create("large", capacity=2_000_000)
    query = {"page": 1, "figures": "true"}
    service.http.post("/v1/filters/large/add", json={"keys": list(range(50_000))}).raise_for_status()
    # A sample may be taken before the keys are added, or between some of them; the last one has all.
    fill = service.http.get("/v1/filters/large").json()["fill"]
    assert fill > 0
    eventually(lambda: list_filters(service, **query)["filters"][0]["fill"] == fill)


def test_an_info_may_leave_the_cells_uncounted(filled):
    service, names = filled
    answer = service.http.get(f"/v1/filters/{names[0]}", params={"counted": "false"})
    assert answer.json()["fill"] is None
    assert answer.headers["etag"] == service.http.get(f"/v1/filters/{names[0]}").headers["etag"]


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "secret"},
        {"order": "up", "page": 1},
        {"page": 0},
        {"page": 100_001},
        {"page": "x"},
        {"limit": 1001},
        {"search": "x" * 129},
        {"page": 1, "after": "a"},
        {"sort": "keys"},
        {"order": "desc"},
    ],
    ids=str,
)
def test_queries_out_of_range_are_refused(filled, query):
    problem(filled[0].http.get("/v1/filters", params=query), 400, "invalid")


def test_pages_beyond_the_last_are_empty(filled):
    for sort in ("name", "keys"):
        answer = list_filters(filled[0], page=100_000, limit=1000, sort=sort)
        assert answer == {"filters": [], "next": None, "total": 40}


def test_a_token_with_patterns_lists_counts_and_sorts_its_own_filters_only(start):
    service = start()
    for name in ("mine:a", "mine:b", "yours:a"):
        service.create(name)
    root = {"name": "root", "scopes": ["read", "admin"]}
    own = {"name": "own", "scopes": ["read"], "patterns": ["mine:*"]}
    token = service.http.post("/v1/tokens", json=root).json()["token"]
    headers = {"authorization": f"Bearer {token}"}
    token = service.http.post("/v1/tokens", json=own, headers=headers).json()["token"]
    headers = {"authorization": f"Bearer {token}"}
    for sort in ("name", "bytes", "fill", "operations"):
        query = {"search": "a", "sort": sort, "page": 1, "figures": "true"}
        answer = service.http.get("/v1/filters", params=query, headers=headers).json()
        assert ([info["name"] for info in answer["filters"]], answer["total"]) == (["mine:a"], 1)
