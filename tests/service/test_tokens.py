"""Every route of the OpenAPI description with every scope, and with none."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import pytest
from tests.support import eventually

SCOPES = {"none": [], "read": ["read"], "write": ["write"], "admin": ["admin"]}
OPEN = {"/healthz", "/readyz"}
READING = {"check", "count", "values"}


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
    tokens = {"none": None, "wrong": "fullbloom_wrong"}
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


def made_token(data):
    """An admin's token, made in a data folder that nothing serves yet."""
    words = [sys.executable, "-m", "fullbloom", "token", "create", "root", "--scope", "admin", "--data", data]
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout.strip()


def pinged(address, *before):
    """What the RESP port at `address` says to PING, from this machine."""
    port = int(address.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as client,
        client.makefile("rb") as answers,
    ):
        for line in (*before, b"PING"):
            client.sendall(line + b"\r\n")
            heard = answers.readline()
        return heard


@pytest.mark.parametrize(
    "beyond",
    [("--http", "0.0.0.0:0"), ("--resp", "0.0.0.0:0"), ("--http", "0.0.0.0:0", "--resp", "0.0.0.0:0")],
    ids=["http", "resp", "both"],
)
@pytest.mark.parametrize("by", ["request", "command"])
def test_beyond_this_machine_the_last_token_opens_nothing_by_its_end(start, tmp_path, beyond, by):
    """Ports that others reach do not open to everybody once no token is left."""
    data = tmp_path / "one" / "data"
    token = made_token(data)
    service = start(*beyond)
    headers = {"authorization": f"Bearer {token}"}
    assert service.http.get("/v1/tokens", headers=headers).status_code == 200
    assert pinged(service.resp, b"AUTH " + token.encode()) == b"+PONG\r\n"
    if by == "request":
        assert service.http.delete("/v1/tokens/root", headers=headers).status_code == 204
    else:
        words = [sys.executable, "-m", "fullbloom", "token", "revoke", "root", "--data", str(data)]
        subprocess.run(words, check=True, capture_output=True)
        deadline = time.monotonic() + 30
        while service.http.get("/v1/tokens", headers=headers).status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    for host in ("localhost", "127.0.0.1:8080", "elsewhere.example"):
        for sent in ({}, headers, {"authorization": "Bearer"}):
            answer = service.http.get("/v1/filters", headers={**sent, "host": host})
            assert answer.status_code == 401, (host, sent)
            answer = service.http.post("/v1/tokens", json={"name": "x"}, headers={**sent, "host": host})
            assert answer.status_code == 401, (host, sent)
    refused = b"-NOAUTH Authentication required.\r\n"
    assert pinged(service.resp) == refused
    for before in (b"AUTH " + token.encode(), b'AUTH ""', b"RESET", b"HELLO 3"):
        assert pinged(service.resp, before) == refused
    # The remedy: a token made in the folder is known within a second.
    fresh = {"authorization": f"Bearer {made_token(data)}"}
    deadline = time.monotonic() + 30
    while service.http.get("/v1/tokens", headers=fresh).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_end_of_the_last_token_opens_nothing(start):
    service = start()
    made = service.http.post("/v1/tokens", json={"name": "root", "scopes": ["admin"]}).json()
    headers = {"authorization": f"Bearer {made['token']}"}
    assert service.http.get("/v1/filters").status_code == 401
    assert pinged(service.resp).startswith(b"-NOAUTH")
    assert service.http.delete("/v1/tokens/root", headers=headers).status_code == 204
    for _ in range(3):
        assert service.http.get("/v1/filters").status_code == 401
        assert pinged(service.resp).startswith(b"-NOAUTH")
    assert "make one with: fullbloom token create" in service.log.read_text()
    data = str(service.folder / "data")
    words = [sys.executable, "-m", "fullbloom", "token"]
    made = subprocess.run(
        [*words, "create", "next", "--data", data], capture_output=True, text=True, check=True
    )
    headers = {"authorization": f"Bearer {made.stdout.strip()}"}
    eventually(lambda: service.http.get("/v1/filters", headers=headers).status_code == 200)
    done = subprocess.run(
        [*words, "revoke", "next", "--data", data], capture_output=True, text=True, check=True
    )
    assert "that was the last token" in done.stdout
    assert "fullbloom token create NAME --scope admin" in done.stdout
    eventually(lambda: service.http.get("/v1/filters", headers=headers).status_code == 401)
    assert service.http.get("/v1/filters").status_code == 401
