"""The advisor over HTTP, the rates of a filter under more load, and the cells of integers."""

from __future__ import annotations

import pytest
from service.test_routes import problem

import fullbloom
from fullbloom.plan import PARQUET, choices


@pytest.mark.parametrize(
    "needs", [[], ["remove"], ["expire"], ["grow"], ["static"], ["label"], ["remove", "count", "merge"]]
)
def test_a_plan_is_that_of_the_library(service, needs):
    answer = service.http.get("/v1/plan", params={"items": 100_000, "fpr": 0.001, "needs": needs})
    assert answer.status_code == 200, answer.text
    expected = choices(100_000, 0.001, needs=needs)
    found = answer.json()["choices"]
    assert [(one["kind"], one["nbytes"], one["fpr"]) for one in found] == [
        (one.structure, one.nbytes, one.fpr) for one in expected
    ]
    assert [one["recommended"] for one in found].count(True) == 1
    assert answer.json()["needs"] == [*fullbloom.registry.capabilities(), PARQUET]


@pytest.mark.parametrize("need", [None, "remove", "count", "expire", "grow", "merge", "label", "static"])
def test_every_choice_can_be_created_as_it_says(service, need):
    needs = [] if need is None else [need]
    found = service.http.get("/v1/plan", params={"items": 1000, "fpr": 0.01, "needs": needs}).json()[
        "choices"
    ]
    created = 0
    for number, choice in enumerate(found):
        name = f"plan:{need}:{number}"
        if choice["create"] is not None:
            answer = service.http.post("/v1/filters", json={"name": name, **choice["create"]})
            if "label" in choice["capabilities"] and answer.status_code != 201:
                continue  # how many labels there are is not part of a plan
        elif choice["built"]:
            answer = service.http.post(
                f"/v1/filters/{name}/freeze", params={"kind": choice["kind"]}, json={"keys": [1, 2]}
            )
        else:
            continue
        assert answer.status_code == 201, (choice, answer.text)
        assert answer.json()["kind"] == choice["kind"]
        if choice["layout"] is not None:
            assert answer.json()["details"]["layout"] == choice["layout"]
        created += 1
    assert created > 0


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"fpr": 0.1},
        {"items": 0},
        {"items": -1},
        {"items": "many"},
        {"items": 1 << 51},
        {"items": 10, "fpr": 0},
        {"items": 10, "fpr": 1},
        {"items": 10, "fpr": "nan"},
        {"items": 10, "memory": 0},
        {"items": 10, "needs": "fly"},
        {"items": 10, "needs": "x" * 33},
        {"items": 10, "needs": ["remove"] * 17},
        {"items": 10, "fpr": 1e-300},
        {"items": 1 << 50, "fpr": 1e-9, "needs": ["expire", "static"]},
        {"items": 1 << 50, "memory": 1},
    ],
    ids=str,
)
def test_plans_out_of_range_are_refused_with_a_sentence(service, query):
    problem(service.http.get("/v1/plan", params=query), 400, "invalid")


@pytest.mark.parametrize(
    "kind", ["bloom", "counting", "scalable", "cuckoo", "quotient", "spectral", "rolling", "deletable"]
)
def test_the_rates_of_a_filter_under_more_load_are_those_it_comes_to_have(service, kind):
    name = f"rates:{kind}"
    known = {parameter for parameter, *_ in fullbloom.registry.get_row(kind)["parameters"]}
    service.create(name, kind=kind, capacity=20_000, fpr=0.01)
    keys = [f"{kind}-{number}" for number in range(40_000)]
    url = f"/v1/filters/{name}"
    service.http.post(f"{url}/add", json={"keys": keys[:10_000]}).raise_for_status()
    rates = service.http.get(f"{url}/rates").json()["rates"]
    info = service.http.get(url).json()
    assert [rate["load"] for rate in rates] == [1, 2, 4]
    assert [rate["keys"] for rate in rates] == [info["num_added"] * load for load in (1, 2, 4)]
    assert rates[0]["fpr"] == pytest.approx(info["fpr"], rel=0.15)
    assert "capacity" in known or "initial_capacity" in known
    for rate, (first, last) in zip(rates[1:], ((10_000, 20_000), (20_000, 40_000)), strict=True):
        added = service.http.post(f"{url}/add", json={"keys": keys[first:last]})
        if rate["fpr"] is None:
            assert added.status_code == 507, "it says that so many keys do not fit"
            return
        assert added.status_code == 200, added.text
        assert rate["fpr"] == pytest.approx(service.http.get(url).json()["fpr"], rel=0.2)


def test_every_kind_answers_what_its_rates_are(service):
    """Kinds without such a law have no rate at more load."""
    static = fullbloom.RibbonFilter.build([1, 2, 3], fpr=0.01)
    service.http.put("/v1/filters/rates:static/dump", content=static.to_bytes()).raise_for_status()
    rates = service.http.get("/v1/filters/rates:static/rates").json()["rates"]
    assert [rate["fpr"] for rate in rates][1:] == [None, None]
    problem(service.http.get("/v1/filters/rates:none/rates"), 404, "missing")


@pytest.mark.parametrize("key", [0, -1, 5, 2**63, -(2**70)])
def test_the_cells_of_an_integer_are_those_of_the_library(service, key):
    if service.http.get("/v1/filters/cells").status_code == 404:
        service.create("cells", capacity=1000)
    secret = service.http.get("/v1/filters/cells/secret").json()["secret"]
    local = fullbloom.loads(service.http.get("/v1/filters/cells/dump").content, secret=bytes.fromhex(secret))
    for word, value in (("integer", key), ("text", str(key))):
        answer = service.http.get("/v1/filters/cells/positions", params={"key": str(key), "type": word})
        assert answer.json() == {"positions": local.positions(value)}


def test_cells_of_other_integers_filters_and_sizes_are_refused(service):
    service.create("cells:large", capacity=20_000_000)
    service.create("cells:none", kind="cuckoo")
    service.create("cells:one")
    path = "/v1/filters/cells:{}/positions"
    problem(
        service.http.get(path.format("large"), params={"key": "5", "type": "integer"}), 422, "unsupported"
    )
    assert service.http.get(path.format("large"), params={"key": "5"}).status_code == 200
    problem(service.http.get(path.format("none"), params={"key": "5", "type": "integer"}), 422, "unsupported")
    for key in ("", "x", "1.5", "1" * 301, "--1", "٣", " 1"):
        problem(service.http.get(path.format("one"), params={"key": key, "type": "integer"}), 400, "invalid")
    problem(service.http.get(path.format("one"), params={"key": "5", "type": "float"}), 400, "invalid")
