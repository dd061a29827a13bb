"""``If-Match`` is compared with the version that is changed: two clients never change one version."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

CLIENTS, ROUNDS = 8, 40


@pytest.mark.long
@pytest.mark.parametrize("action", ["add", "remove", "clear", "expire", "merge"])
def test_one_of_several_clients_with_the_same_version_changes_it(start, action):
    service = start("--durability", "off")
    for name in ("one", "other"):
        service.create(name, kind="counting", seed=7, keyed=False)
    path = "/v1/filters/one"
    together = threading.Barrier(CLIENTS)

    def change(client, headers, key):
        if action == "expire":  # the catalogue's own, so a key comes after it
            answer = client.patch(path, json={"expire": 1000}, headers=headers)
            return answer.status_code == 200 and change_of("add", client, headers, key)
        return change_of(action, client, headers, key)

    def change_of(action, client, headers, key):
        body = {"source": "other"} if action == "merge" else {"key": key}
        given = {} if action == "clear" else {"json": body}
        return client.post(f"{path}/{action}", headers=headers, **given).status_code in {200, 204}

    def work(number):
        changed = []
        with httpx.Client(base_url=service.url, timeout=60) as client:
            for turn in range(ROUNDS):
                together.wait(60)
                tag = client.get(path).headers["etag"]
                together.wait(60)
                if change(client, {"if-match": tag}, f"{number}:{turn}"):
                    changed.append(tag)
        return changed

    with ThreadPoolExecutor(CLIENTS) as clients:
        tags = [tag for changed in clients.map(work, range(CLIENTS)) for tag in changed]
    assert len(tags) == len(set(tags)) == ROUNDS


def test_every_route_that_changes_a_filter_checks_if_match(service):
    for name in ("a", "b"):
        service.create(name)
    first = {"if-match": service.http.get("/v1/filters/a").headers["etag"]}
    assert service.http.post("/v1/filters/a/add", json={"key": "ada"}, headers=first).status_code == 200
    dump = service.http.get("/v1/filters/b/dump").content
    for method, path, body in (
        ("PATCH", "/v1/filters/a", {"name": "c"}),
        ("PATCH", "/v1/filters/a", {"expire": 10}),
        ("POST", "/v1/filters/a/clone", {"name": "c"}),
        ("POST", "/v1/filters/a/advance", {}),
        ("DELETE", "/v1/filters/a", None),
    ):
        answer = service.http.request(method, path, json=body, headers=first)
        assert (answer.status_code, answer.json()["code"]) == (412, "changed"), (method, path, body)
    replaced = service.http.put("/v1/filters/a/dump?replace=true", content=dump, headers=first)
    assert replaced.status_code == 412
    fresh = {"if-match": service.http.get("/v1/filters/a").headers["etag"] + ', "1-1"'}
    assert service.http.patch("/v1/filters/a", json={"name": "c"}, headers=fresh).status_code == 200
    assert service.http.post("/v1/filters/c/clear", headers={"if-match": "*"}).status_code == 204
