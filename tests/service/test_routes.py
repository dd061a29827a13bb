"""Every route of the HTTP port, walked."""

from __future__ import annotations

import array
import collections
import gzip
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pyarrow as pa
import pytest
import redis
import zstandard
from support import eventually

import fullbloom
from fullbloom import registry

KEYS = [f"key-{i}" for i in range(20)]
TEXT = {"content-type": "text/plain"}


def problem(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code
    assert answer.json()["request"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("kind", [row["name"] for row in fullbloom.variants()])
def test_every_kind_is_created_by_name_or_refused_with_a_reason(service, kind):
    name = f"kind:{kind}"
    row = next(row for row in fullbloom.variants() if row["name"] == kind)
    known = {parameter for parameter, *_ in row["parameters"]}
    needed = {
        "capacity": 1000,
        "universe": 1000,
        "max_items": 4,
        "num_labels": 2,
        "labels": 2,
        "num_bits": 1000,
    }
    options = {k: v for k, v in needed.items() if k in known and k != "capacity"}
    for parameter, default_kind, default in row["parameters"]:
        if default is None and parameter not in needed:
            options[parameter] = 16 if "int" in default_kind else "x"
    body = {"name": name, "kind": kind, "options": options}
    if "capacity" in known:
        body["capacity"] = 1000
    answer = service.http.post("/v1/filters", json=body)
    if answer.status_code != 201:
        problem(answer, answer.status_code, answer.json()["code"])
        assert answer.json()["code"] in {"unsupported", "invalid"}
        return
    info = service.http.get(f"/v1/filters/{name}").json()
    assert (info["kind"], info["name"]) == (kind, name)
    url = f"/v1/filters/{name}"
    for action in ("add", "check", "count", "remove"):
        done = service.http.post(f"{url}/{action}", json={"keys": KEYS})
        assert done.status_code in {200, 400, 422}, (action, done.text)
        if action == "check" and registry.is_open(row, "key") and row["false_negatives"] == "never":
            assert done.json()["found"] == [True] * len(KEYS)
    assert service.http.delete(url).status_code == 204


def test_keys_are_accepted_in_every_format(service):
    service.create("forms", keyed=False, seed=3)
    url = "/v1/filters/forms"
    text = "\n".join(KEYS).encode()
    assert service.http.post(f"{url}/add", content=text, headers=TEXT).headers["x-fullbloom-yes"] == "20"
    arrow = io.BytesIO()
    table = pa.table({"key": KEYS})
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table, max_chunksize=7)
    hashes = array.array("Q", fullbloom.hash_many(KEYS, seed=3)).tobytes()
    lines = "\n".join(map(json.dumps, KEYS)).encode()
    forms = {
        "text/plain": text,
        "application/x-ndjson": lines,
        "application/vnd.apache.arrow.stream": arrow.getvalue(),
        "application/x-fullbloom-hashes": hashes,
        "application/json": json.dumps({"keys": KEYS}).encode(),
    }
    packed = {
        "identity": lambda body: body,
        "gzip": gzip.compress,
        "zstd": zstandard.ZstdCompressor().compress,
    }
    for kind, body in forms.items():
        for encoding, pack in packed.items():
            headers = {
                "content-type": kind,
                "content-encoding": encoding,
                "accept": "application/octet-stream",
            }
            answer = service.http.post(f"{url}/check", content=pack(body), headers=headers)
            assert answer.status_code == 200, (kind, encoding, answer.text)
            assert answer.content == b"\xff\xff\x0f"
    headers = {**TEXT, "accept": "application/vnd.apache.arrow.stream"}
    answer = service.http.post(f"{url}/check", content=text + b"\nabsent", headers=headers)
    assert pa.ipc.open_stream(answer.content).read_all().column(0).to_pylist() == [True] * 20 + [False]
    answer = service.http.post(
        f"{url}/check", content=b"key-1\r\nabsent\n", headers={**TEXT, "accept": "application/x-ndjson"}
    )
    assert answer.text == "true\nfalse\n"
    problem(
        service.http.post(f"{url}/check", content=b"x", headers={"content-type": "image/png"}),
        415,
        "media-type",
    )
    problem(
        service.http.post(f"{url}/check", content=text, headers={**TEXT, "accept": "image/png"}),
        406,
        "not-acceptable",
    )
    for encoding in ("gzip", "zstd", "br"):
        answer = service.http.post(
            f"{url}/check", content=b"nonsense", headers={**TEXT, "content-encoding": encoding}
        )
        assert answer.status_code in {400, 415}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{",
        "null",
        '{"key":null}',
        '{"keys":[{}]}',
        '{"key":"\\ud800"}',
        "[" * 5000,
        '{"keys":1}',
        '{"key":NaN}',
    ],
)
def test_invalid_bodies_are_refused(service, body):
    if "bodies" not in [f["name"] for f in service.http.get("/v1/filters?prefix=bodies").json()["filters"]]:
        service.create("bodies")
    answer = service.http.post(
        "/v1/filters/bodies/add", content=body, headers={"content-type": "application/json"}
    )
    if "NaN" not in body:
        problem(answer, 400, "invalid")


def test_conditional_and_idempotent_requests_are_honoured(service):
    service.create("cond", kind="counting")
    url = "/v1/filters/cond"
    first = service.http.get(url)
    assert service.http.get(url, headers={"if-none-match": first.headers["etag"]}).status_code == 304
    once = {"idempotency-key": "one"}
    assert service.http.post(f"{url}/add", json={"key": "a"}, headers=once).json() == {"new": True}
    again = service.http.post(f"{url}/add", json={"key": "a"}, headers=once)
    assert again.json() == {"new": True}
    assert again.headers["idempotent-replayed"] == "true"
    assert service.http.post(f"{url}/count", json={"key": "a"}).json() == {"count": 1}
    problem(service.http.post(f"{url}/add", json={"key": "b"}, headers=once), 422, "unprocessable")
    stale = {"if-match": first.headers["etag"]}
    problem(service.http.post(f"{url}/add", json={"key": "b"}, headers=stale), 412, "changed")
    problem(service.http.delete(url, headers=stale), 412, "changed")
    fresh = {"if-match": service.http.get(url).headers["etag"]}
    assert service.http.delete(url, headers=fresh).status_code == 204


def test_a_repeated_change_gets_the_response_of_the_first(service):
    data = fullbloom.BloomFilter(100, seed=3).to_bytes()
    send = service.http.request
    service.create("once:source")
    changes = [
        ("POST", "/v1/filters", {"json": {"name": "once", "capacity": 100, "kind": "counting"}}, 201),
        ("POST", "/v1/filters/once/add", {"json": {"keys": ["a", "b"]}}, 200),
        ("POST", "/v1/filters/once/remove", {"json": {"key": "a"}}, 200),
        ("POST", "/v1/filters/once:source/clone", {"json": {"name": "once:copy"}}, 201),
        ("PATCH", "/v1/filters/once:copy", {"json": {"name": "once:renamed"}}, 200),
        ("POST", "/v1/filters/once/clear", {}, 204),
        ("PUT", "/v1/filters/once:put/dump", {"content": data}, 201),
        ("POST", "/v1/filters/once:frozen/freeze?kind=xor", {"json": {"keys": ["a"]}}, 201),
        ("DELETE", "/v1/filters/once", {}, 204),
    ]
    for number, (method, path, body, status) in enumerate(changes):
        once = {"idempotency-key": f"change-{number}"}
        first = send(method, path, headers=once, **body)
        assert first.status_code == status, (method, path, first.text)
        again = send(method, path, headers=once, **body)
        assert (again.status_code, again.content) == (first.status_code, first.content), (method, path)
        assert again.headers.get("content-type") == first.headers.get("content-type")
        assert again.headers["idempotent-replayed"] == "true"
        other = {"content": b"other"} if "content" in body else {"json": {"name": "other", "key": 1}}
        problem(send(method, path, headers=once, **other), 422, "unprocessable")


def test_a_repeated_conditional_change_gets_the_response_of_the_first(service):
    service.create("once:cond", kind="counting")
    url = "/v1/filters/once:cond"
    once = {"if-match": service.http.get(url).headers["etag"], "idempotency-key": "cond"}
    answers = [service.http.post(f"{url}/add", json={"key": "a"}, headers=once) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert service.http.post(f"{url}/count", json={"key": "a"}).json() == {"count": 1}


def test_changes_that_fail_are_executed_again(service):
    once = {"idempotency-key": "fails"}
    add = partial(service.http.post, "/v1/filters/once:late/add", json={"key": "a"}, headers=once)
    problem(add(), 404, "missing")
    service.create("once:late")
    assert add().json() == {"new": True}
    assert add().json() == {"new": True}


def test_changes_repeated_at_the_same_time_are_executed_once(service):
    # At 1 %, one of the keys would count as twice there in every eighth run.
    service.create("once:together", kind="counting", capacity=1000, fpr=1e-9)
    keys = [f"key-{number}" for number in range(500)]

    def add(_number):
        headers = {"idempotency-key": "together"}
        return httpx.post(
            f"{service.url}/v1/filters/once:together/add", json={"keys": keys}, headers=headers, timeout=60
        )

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(add, range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    counts = service.http.post("/v1/filters/once:together/count", json={"keys": keys}).json()["counts"]
    assert max(counts) == 1


def test_filters_are_listed_a_page_at_a_time(service):
    names = [f"page:{i:03d}" for i in range(25)]
    for name in names:
        service.create(name, capacity=10)
    found, after = [], ""
    while after is not None:
        page = service.http.get("/v1/filters", params={"prefix": "page:", "after": after, "limit": 10}).json()
        assert len(page["filters"]) <= 10
        found += [one["name"] for one in page["filters"]]
        after = page["next"]
    assert found == names


def test_filters_are_cloned_renamed_merged_and_deleted(service):
    service.create("work", fpr=0.001)
    http = service.http
    problem(http.post("/v1/filters", json={"name": "work", "capacity": 5}), 409, "exists")
    http.post("/v1/filters/work/add", json={"keys": KEYS})
    assert http.post("/v1/filters/work/clone", json={"name": "copy"}).status_code == 201
    assert http.patch("/v1/filters/copy", json={"name": "renamed", "expire": 1000}).json()["expires"] > 0
    problem(http.patch("/v1/filters/renamed", json={"name": "work"}), 409, "exists")
    assert http.patch("/v1/filters/renamed", json={"expire": None}).json()["expires"] is None
    assert http.post("/v1/filters/renamed/clear").status_code == 204
    assert http.post("/v1/filters/renamed/check", json={"key": KEYS[0]}).json() == {"found": False}
    assert http.post("/v1/filters/renamed/merge", json={"source": "work"}).status_code == 200
    assert http.post("/v1/filters/renamed/check", json={"key": KEYS[0]}).json() == {"found": True}
    secret = http.get("/v1/filters/work/secret").json()
    local = fullbloom.loads(http.get("/v1/filters/work/dump").content, secret=bytes.fromhex(secret["secret"]))
    assert KEYS[3] in local
    assert http.get("/v1/filters/work/positions", params={"key": "a"}).json()["positions"]
    assert http.put("/v1/filters/back/dump", content=local.to_bytes()).status_code == 201
    problem(http.put("/v1/filters/back/dump", content=local.to_bytes()), 409, "exists")
    assert http.put("/v1/filters/back/dump?replace=true", content=local.to_bytes()).status_code == 201
    problem(http.put("/v1/filters/bad/dump", content=b"nonsense"), 422, "format")
    assert http.get("/v1/filters/bad").status_code == 404
    foreign = fullbloom.BloomFilter(100, secret=b"0123456789abcdef").to_bytes()
    assert http.put("/v1/filters/bad/dump", content=foreign).json()["code"] in {
        "format",
        "invalid",
        "incompatible",
    }
    problem(http.post("/v1/filters", json={"name": "big", "capacity": 10**13}), 413, "limit")
    assert http.post("/v1/checkpoint").status_code == 200
    assert http.get("/v1/nodes").json()["nodes"][0]["id"] == service.node
    kinds = [row["kind"] for row in http.get("/v1/kinds").json()["kinds"]]
    assert kinds == [*(row["name"] for row in fullbloom.variants()), "bank"]
    assert http.get("/readyz").json() == {"status": "ok"}
    assert "POST" in http.get("/docs").text
    assert "fullbloom_filter_fpr" in http.get("/metrics").text


def test_requests_are_counted_by_route_and_status(start):
    """Refusals, too: by the gateway, by the routes, and of methods that a route has not."""
    service = start()
    service.create("told")
    expected = collections.Counter({("api", "POST", "201"): 1})
    table = [
        ("PUT", "/v1/filters", "api", 405),
        ("PUT", "/v1/filters/told", "api", 405),
        ("DELETE", "/metrics", "api", 405),
        ("PUT", "/v1/filters/told/add", "add", 405),
        ("PATCH", "/v1/filters/told/dump", "dump", 405),
        ("PUT", "/v1/filters/told/history", "history", 405),
        ("PUT", "/nowhere", "api", 404),
        ("GET", "/v1/filters/none", "api", 404),
        ("POST", "/v1/filters/none/check", "check", 404),
        ("POST", "/v1/filters/told/add", "add", 400),
        ("GET", "/v1/filters/told/strange", "other", 404),
        ("PROPFIND", "/v1/filters", "api", 405),
    ]
    for method, path, action, status in table:
        assert service.http.request(method, path).status_code == status, (method, path)
        expected[action, method if method != "PROPFIND" else "other", str(status)] += 1
    text = service.http.get("/metrics").text
    row = r'fullbloom_http_requests_total{action="(.+?)",method="(.+?)",status="(.+?)"} (\d+)'
    rows = re.findall(row, text)
    assert {(action, method, status): int(number) for action, method, status, number in rows} == expected


STATIC = {
    row["name"]: getattr(fullbloom, row["class"])
    for row in fullbloom.variants()
    if registry.is_built(row, "key")
}


@pytest.mark.parametrize("kind", STATIC)
def test_a_static_filter_is_uploaded_and_served_on_both_ports(service, kind):
    """It is made of all its keys at once, in a process; the service takes it as bytes."""
    name = f"static:{kind}"
    static = STATIC[kind].build(KEYS, fpr=0.001)
    instance = service.http.put(f"/v1/filters/{name}/dump", content=static.to_bytes())
    assert instance.status_code == 201, instance.text
    assert instance.json()["kind"] == kind
    absent = [f"absent-{i}" for i in range(20)]
    found = service.http.post(f"/v1/filters/{name}/check", json={"keys": [*KEYS, *absent]}).json()["found"]
    assert found == static.contains_many([*KEYS, *absent])
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port)) as client:
        result = client.execute_command("BLOOM.CHECK", name, *KEYS, *absent)
    assert list(map(bool, result)) == found
    assert found[: len(KEYS)] == [True] * len(KEYS)
    assert fullbloom.loads(service.http.get(f"/v1/filters/{name}/dump").content) == static
    refused = service.http.post(f"/v1/filters/{name}/add", json={"key": "more"})
    assert refused.json()["code"] == "unsupported"


def read_samples(service, name, count):
    """The samples of a filter; none while there are fewer."""
    samples = service.http.get(f"/v1/filters/{name}/history").json()["samples"]
    return samples if len(samples) >= count else []


def test_statistics_are_kept_and_thinned(start):
    service = start(FULLBLOOM_HISTORY__EVERY="0.2", FULLBLOOM_LOG_LEVEL="warning")
    service.create("seen")
    for i in range(4):
        service.http.post("/v1/filters/seen/add", json={"key": f"a{i}"})
        samples = eventually(lambda count=i: read_samples(service, "seen", count))
    assert len(samples) >= 3
    times = [sample["sampled_at"] for sample in samples]
    assert times == sorted(times, reverse=True)
    assert samples[0]["estimated_items"] >= samples[-1]["estimated_items"]
    assert len(service.http.get("/v1/filters/seen/history", params={"limit": 1}).json()["samples"]) == 1
    assert (
        service.http.get("/v1/filters/seen/history", params={"until": times[0]}).json()["samples"]
        == samples[1:]
    )
