"""``POST .../freeze``: a static filter of the keys of one request."""

from __future__ import annotations

import json

import pytest

import fullbloom
from fullbloom.service.http.static_filters import KINDS

TEXTS = [f"key:{i}" for i in range(2_000)]
ABSENT = [f"absent:{i}" for i in range(2_000)]
BODIES = {
    "application/json": json.dumps({"keys": TEXTS}),
    "text/plain": "\r\n".join(TEXTS),
    "application/x-ndjson": "".join(json.dumps(text) + "\n" for text in TEXTS),
}


def check_keys(service, name, keys):
    return service.http.post(f"/v1/filters/{name}/check", json={"keys": keys}).json()["found"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", BODIES)
def test_freeze_builds_each_kind_from_each_body_type(service, kind, form):
    name = f"{kind}:{form.rpartition('/')[2]}"
    url = f"/v1/filters/{name}/freeze"
    instance = service.http.post(
        url, params={"kind": kind, "fpr": 0.01}, content=BODIES[form], headers={"content-type": form}
    )
    assert instance.status_code == 201, instance.text
    result = instance.json()
    assert (result["kind"], result["keyed"]) == (kind, True)
    assert 0.98 * len(TEXTS) < result["num_added"] <= len(TEXTS)  # a Golomb set counts different codes
    assert all(check_keys(service, name, TEXTS))
    assert sum(check_keys(service, name, ABSENT)) < 60  # 20 expected, 4.4 the deviation
    assert service.http.post(f"/v1/filters/{name}/add", json={"key": "x"}).status_code == 422
    again = service.http.post(
        url, params={"kind": kind}, content=BODIES[form], headers={"content-type": form}
    )
    assert again.status_code == 409
    fewer = {"kind": kind, "replace": True}
    assert service.http.post(url, params=fewer, json={"keys": ["only"]}).status_code == 201
    assert check_keys(service, name, ["only", *TEXTS[:50]]).count(True) < 10


def test_freeze_accepts_numbers_and_tuples_and_the_dump_opens(service, tmp_path):
    keys = [1, 2.5, True, ["a", 1], "text", -(1 << 70)]
    url = "/v1/filters/mixed/freeze"
    assert service.http.post(url, params={"kind": "ribbon"}, json={"keys": keys}).status_code == 201
    assert all(check_keys(service, "mixed", keys))
    path = tmp_path / "mixed.bloom"
    path.write_bytes(service.http.get("/v1/filters/mixed/dump").content)
    secret = bytes.fromhex(service.http.get("/v1/filters/mixed/secret").json()["secret"])
    opened = fullbloom.open(path, secret=secret)
    assert all(key in opened for key in [1, 2.5, True, ("a", 1), "text", -(1 << 70)])
    assert service.restart().http.post("/v1/filters/mixed/check", json={"key": "text"}).json()["found"]


def test_invalid_freeze_requests_are_refused(start):
    service = start(FULLBLOOM_LIMITS__BATCH_KEYS="10")
    cases = [
        ({"kind": "bloom"}, {"keys": ["a"]}, 400, "invalid"),
        ({"kind": "nonsense"}, {"keys": ["a"]}, 400, "invalid"),
        ({}, {"keys": ["a"]}, 400, "invalid"),
        ({"kind": "ribbon", "fpr": "2"}, {"keys": ["a"]}, 400, "invalid"),
        ({"kind": "ribbon", "fpr": "nan"}, {"keys": ["a"]}, 400, "invalid"),
        ({"kind": "ribbon"}, {"keys": "a"}, 400, "invalid"),
        ({"kind": "ribbon"}, {"keys": [None]}, 400, "invalid"),
        ({"kind": "ribbon"}, ["a"], 400, "invalid"),
        ({"kind": "ribbon"}, {"keys": ["a"] * 11}, 413, "limit"),
    ]
    for params, body, status, code in cases:
        answer = service.http.post("/v1/filters/x/freeze", params=params, json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (params, body, answer.text)
    answer = service.http.post(
        "/v1/filters/x/freeze?kind=ribbon", content=b"\x00", headers={"content-type": "image/png"}
    )
    assert answer.status_code == 415
    assert service.http.get("/v1/filters/x").status_code == 404
