"""Every route of the OpenAPI description with every scope, and with none."""

from __future__ import annotations

import pytest

SCOPES = {"none": [], "read": ["read"], "write": ["write"], "admin": ["admin"]}
OPEN = {"/healthz", "/readyz"}
READING = {"check", "count"}


def needed(path, method):
    action = path.rpartition("}")[2].strip("/")
    if path.startswith(("/v1/tokens", "/v1/backup", "/v1/checkpoint", "/v1/nodes")) or action == "secret":
        return "admin"
    return "read" if method == "get" or action in READING else "write"


@pytest.fixture(scope="module")
def guarded(new_service):
    service = new_service()
    service.create("a:1")
    admin = {"name": "root", "scopes": ["read", "write", "admin"]}
    root = {"authorization": f"Bearer {service.http.post('/v1/tokens', json=admin).json()['token']}"}
    tokens = {"none": None, "wrong": "bloomery_wrong"}
    for scope in ("read", "write", "admin"):
        for patterns in ([], ["a:*"]):
            body = {"name": f"{scope}{len(patterns)}", "scopes": [scope], "patterns": patterns}
            made = service.http.post("/v1/tokens", json=body, headers=root)
            tokens[f"{scope}{len(patterns)}"] = made.json()["token"]
    return service, tokens, service.http.get("/openapi.json").json()


def test_each_cell_of_routes_and_scopes(guarded):  # noqa: C901 - a table
    service, tokens, api = guarded
    cells = 0
    for path, methods in api["paths"].items():
        for method in methods:
            for name, token in tokens.items():
                for target in ("a:1", "b:1"):
                    url = path.replace("{name}", target)
                    if url == path and target == "b:1":
                        continue
                    headers = {} if token is None else {"authorization": f"Bearer {token}"}
                    # A body that no route takes: what may be asked is refused as invalid, nothing is changed.
                    body = None if method in {"get", "delete"} else b"\x00"
                    if method == "delete":
                        headers["if-match"] = '"0-0"'
                        url = url.replace("/v1/tokens/", "/v1/tokens/none-")
                    headers["content-type"] = "application/json"
                    if url.endswith(("/clear", "/checkpoint")):
                        headers["if-match"] = '"0-0"'
                    status = service.http.request(method, url, headers=headers, content=body).status_code
                    if path in OPEN:
                        assert status == 200
                    elif name in {"none", "wrong"}:
                        assert status == 401, (path, method, name)
                    elif name[:-1] != needed(path, method) or (
                        name[-1] == "1" and "/filters/{" in path and target == "b:1"
                    ):
                        assert status == 403, (path, method, name, target)
                    else:
                        assert status not in {401, 403, 500}, (path, method, name, target)
                    cells += 1
    assert cells > 200


def test_patterns_hide_what_they_do_not_cover(guarded):
    service, tokens, _ = guarded
    headers = {"authorization": f"Bearer {tokens['read1']}"}
    assert [f["name"] for f in service.http.get("/v1/filters", headers=headers).json()["filters"]] == ["a:1"]
    headers = {"authorization": f"Bearer {tokens['write1']}"}
    answer = service.http.post("/v1/filters", json={"name": "b:2", "capacity": 10}, headers=headers)
    assert answer.status_code == 403
    answer = service.http.patch("/v1/filters/a:1", json={"name": "b:2"}, headers=headers)
    assert answer.status_code == 403
