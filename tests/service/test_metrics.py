"""Each metric and statistic is the figure that its name and text promise, for every kind."""

from __future__ import annotations

import json
import re

import pytest
import redis
from service.forks import run
from tests.support import eventually

import fullbloom
from fullbloom import registry
from fullbloom.service.metrics import COUNTED, GAUGES
from fullbloom.service.registry import Registry

#: What a metric of a filter is, by the filter in the process that its dump opens as.
MEANS = {
    "fullbloom_filter_num_added": lambda local, _: local.num_added,
    "fullbloom_filter_fpr": lambda local, _: local.fpr(),
    "fullbloom_filter_target_fpr": lambda local, _: local.target_fpr,
    "fullbloom_filter_bytes": lambda local, _: local.nbytes,
    "fullbloom_filter_capacity": lambda local, _: local.capacity,
    "fullbloom_filter_over_capacity": lambda local, _: is_over(local),
    "fullbloom_filter_keys_total": lambda _, traffic: traffic,
}
#: What is not of one filter.
OTHERS = {
    "fullbloom_filters",
    "fullbloom_store_bytes",
    "fullbloom_read_only",
    "fullbloom_memory_held_bytes",
    "fullbloom_memory_limit_bytes",
    "fullbloom_memory_refused_total",
    "fullbloom_http_requests_total",
    "fullbloom_http_requests_created",
    "fullbloom_http_seconds_bucket",
    "fullbloom_http_seconds_count",
    "fullbloom_http_seconds_sum",
    "fullbloom_http_seconds_created",
}
KINDS = [
    row["name"]
    for row in fullbloom.variants()
    if registry.is_open(row, "key") and any(name == "capacity" for name, *_ in row["parameters"])
]
CAPACITY = 400
ROW = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def is_over(local):
    return local.num_added > local.capacity and local.fpr() > local.target_fpr


def figures(service, **headers):
    """Value by metric, filter and what."""
    found = {}
    for name, labels, value in ROW.findall(service.http.get("/metrics", headers=headers).text):
        said = dict(re.findall(r'(\w+)="(.*?)"', labels))
        found.setdefault(name, {})[said.get("filter"), said.get("what")] = float(value)
    return {name: values for name, values in found.items() if name.startswith("fullbloom_")}


def ask(service, name, action, keys):
    answer = service.http.post(f"/v1/filters/{name}/{action}", json={"keys": keys})
    return answer, (answer.json() if answer.status_code == 200 else {})


@pytest.fixture(scope="module")
def filled(service):
    """Every kind twice, once within its capacity and once beyond, with the traffic of each."""
    traffic = {}
    for kind in KINDS:
        for name, count in ((f"{kind}:in", CAPACITY // 2), (f"{kind}:over", 3 * CAPACITY)):
            service.create(name, kind=kind, capacity=CAPACITY, fpr=0.01, keyed=False)
            result = dict.fromkeys(COUNTED, 0)
            for start in range(0, count, 100):
                keys = [f"{name}-{i}" for i in range(start, start + 100)]
                answer, added = ask(service, name, "add", keys)
                if answer.status_code != 200:
                    assert added.get("code", "full") in {"full", "limit"}, answer.text
                    break
                result["adds"] += len(keys)
                result["new"] += added["yes"]
                before = service.http.get(f"/v1/filters/{name}").json()
                assert added.get("over_capacity", False) == before["over_capacity"]
                header = answer.headers.get("x-fullbloom-over-capacity")
                assert header == ("true" if before["over_capacity"] else None)
            _, checked = ask(service, name, "check", [f"{name}-{i}" for i in range(50)] + ["absent"] * 50)
            result["hits"] += checked["yes"]
            result["misses"] += 100 - checked["yes"]
            if name.endswith(":in") and "remove" in fullbloom_row(kind)["capabilities"]:
                _, removed = ask(service, name, "remove", [f"{name}-0", f"{name}-1"])
                result["removed"] += removed["yes"]
            traffic[name] = result
    return traffic


def fullbloom_row(kind):
    return next(row for row in fullbloom.variants() if row["name"] == kind)


@pytest.mark.usefixtures("filled")
def test_every_metric_is_tested(service):
    assert set(figures(service)) == set(MEANS) | OTHERS
    assert {f"fullbloom_filter_{name}" for name, *_ in GAUGES} | {"fullbloom_filter_keys_total"} == set(MEANS)


@pytest.mark.parametrize("metric", MEANS)
def test_metrics_of_a_filter_match_its_file(service, filled, metric):
    found = figures(service)[metric]
    assert {name for name, _ in found} == set(filled)
    overs = 0
    for name, traffic in filled.items():
        local = fullbloom.loads(service.http.get(f"/v1/filters/{name}/dump").content)
        overs += is_over(local)
        expected = MEANS[metric](local, traffic)
        expected = expected if isinstance(expected, dict) else {None: expected}
        for what, value in expected.items():
            assert found[name, what] == pytest.approx(float(value), rel=1e-12), (metric, name, what)
    # The plain kinds at least take keys beyond their capacity: the flag is seen on both sides.
    assert 0 < overs < len(filled)


def test_metrics_of_the_service_match_its_state(service, filled):
    before = service.http.get("/v1/service").json()
    found = {name: sum(values.values()) for name, values in figures(service).items() if name in OTHERS}
    assert found["fullbloom_filters"] == before["filters"] == len(filled)
    assert found["fullbloom_store_bytes"] == before["nbytes"]
    assert found["fullbloom_read_only"] == 0
    assert found["fullbloom_memory_refused_total"] == 0
    assert found["fullbloom_memory_held_bytes"] == 0
    assert found["fullbloom_memory_limit_bytes"] > 1 << 30
    assert found["fullbloom_http_requests_total"] == found["fullbloom_http_seconds_count"]


def test_a_token_sees_metrics_of_its_own_filters_only(start):
    service = start()

    def token(name, *options):
        said = run("token", "create", "--data", service.folder / "data", name, *options)
        return {"authorization": f"Bearer {said.strip()}"}

    for name in ("a:one", "b:two"):
        service.create(name)
    admin, tenant = token("root", "--scope", "read"), token("a", "--scope", "read", "--pattern", "a:*")
    eventually(lambda: service.http.get("/metrics").status_code == 401)
    eventually(lambda: service.http.get("/metrics", headers=tenant).status_code == 200)
    names = {name for name, _ in figures(service, **admin)["fullbloom_filter_fpr"]}
    assert names == {"a:one", "b:two"}
    assert "b:two" not in service.http.get("/metrics", headers=tenant).text
    assert {name for name, _ in figures(service, **tenant)["fullbloom_filter_fpr"]} == {"a:one"}
    assert [one["name"] for one in service.http.get("/v1/filters", headers=tenant).json()["filters"]] == [
        "a:one"
    ]


def samples(service, name):
    return len(service.http.get(f"/v1/filters/{name}/history").json()["samples"])


def test_a_filter_beyond_its_capacity_is_named_in_the_log_once(start):
    """Whichever port it was filled by."""
    service = start(FULLBLOOM_HISTORY__EVERY="0.2", FULLBLOOM_LOG_LEVEL="warning")
    for name in ("full", "fine"):
        service.create(name, capacity=200)
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port)) as client:
        for start_ in range(0, 600, 100):
            client.execute_command("BF.MADD", "full", *range(start_, start_ + 100))
        client.execute_command("BF.MADD", "fine", *range(100))

    def warned():
        lines = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if "is over capacity" in line["message"]]

    assert eventually(warned)[0]["filter"] == "full"
    for i in range(5):
        service.http.post("/v1/filters/full/add", json={"key": f"more-{i}"})
        service.http.post("/v1/filters/fine/add", json={"key": f"more-{i}"})
        eventually(lambda more=i: samples(service, "full") > more)
    assert len(warned()) == 1
    assert service.http.post("/v1/filters/full/check", json={"key": "x"}).json()["over_capacity"] is True


HOUR, DAY = 3_600_000, 86_400_000


def info(name, number):
    numbers = ("capacity", "hits", "misses", "adds", "new", "removed", "nbytes", "created", "seed", "fpr")
    flags = {"keyed": False, "strict": False, "expires": None, "estimated": None, "fill": None}
    named = {"name": name, "id": number, "kind": "bloom", "target_fpr": 0.01, "options": [], "details": {}}
    return {**dict.fromkeys(numbers, 0), **flags, **named}


def test_thinning_keeps_the_last_statistic_of_each_span(tmp_path):
    registry = Registry(f"sqlite:///{tmp_path / 'r.db'}")
    registry.nodes.register("n", "http://x", "", 0)
    registry.filters.record("n", info("a", 1))
    registry.filters.record("n", info("b", 2))
    rows = {name: row for row, name in registry.filters.load("n").values()}
    now = 100 * DAY
    for row in rows.values():
        for at in range(now - 3 * DAY, now, HOUR // 4):
            registry.snapshots.add([(row, info("a", 1))], at)
    registry.snapshots.thin(now, full=DAY / 1000, hourly=2 * DAY / 1000)
    registry.snapshots.thin(now, full=DAY / 1000, hourly=2 * DAY / 1000)
    for name in rows:
        times = [
            sample["sampled_at"] for sample in registry.snapshots.load(name, since=0, until=now, most=10_000)
        ]
        young = [at for at in times if at >= now - DAY]
        middle = [at for at in times if now - 2 * DAY <= at < now - DAY]
        old = [at for at in times if at < now - 2 * DAY]
        assert (len(young), len(middle), len(old)) == (96, 24, 1)
        assert old == [now - 2 * DAY - HOUR // 4]
    registry.close()
