"""Tokens: every route with every scope, names and patterns, on both ports and behind a proxy."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import stat
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from engines.servers import free_port
from service.forks import create_token, run
from tests.support import eventually

from fullbloom.service.node import Node

OPEN = {"/healthz", "/readyz"}
READING = {"check", "count", "values", "owners/info", "owners/export"}


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
            instance = service.http.post("/v1/tokens", json=body, headers=root)
            tokens[f"{scope}{len(patterns)}"] = instance.json()["token"]
    return service, tokens, service.http.get("/openapi.json").json()


def test_every_route_requires_its_scope(guarded):  # noqa: C901 - a table
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


def test_a_token_with_patterns_sees_only_matching_filters(guarded):
    service, tokens, _ = guarded
    headers = {"authorization": f"Bearer {tokens['read1']}"}
    assert [f["name"] for f in service.http.get("/v1/filters", headers=headers).json()["filters"]] == ["a:1"]
    headers = {"authorization": f"Bearer {tokens['write1']}"}
    answer = service.http.post("/v1/filters", json={"name": "b:2", "capacity": 10}, headers=headers)
    assert answer.status_code == 403
    answer = service.http.patch("/v1/filters/a:1", json={"name": "b:2"}, headers=headers)
    assert answer.status_code == 403


def pinged(address, *before):
    """The reply of the RESP port at `address` to PING, from this machine."""
    port = int(address.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as client,
        client.makefile("rb") as answers,
    ):
        for line in (*before, b"PING"):
            client.sendall(line + b"\r\n")
            heard = answers.readline()
        return heard


@pytest.mark.long
@pytest.mark.parametrize(
    "beyond",
    [("--http", "0.0.0.0:0"), ("--resp", "0.0.0.0:0")],
    ids=["http", "resp"],
)
@pytest.mark.parametrize("by", ["request", "command"])
def test_the_expiry_of_the_last_token_opens_no_remote_access(start, tmp_path, beyond, by):
    """Ports that others reach do not open to everybody once no token is left."""
    data = tmp_path / "one" / "data"
    token = create_token(data)
    service = start(*beyond)
    headers = {"authorization": f"Bearer {token}"}
    assert service.http.get("/v1/tokens", headers=headers).status_code == 200
    assert pinged(service.resp, b"AUTH " + token.encode()) == b"+PONG\r\n"
    if by == "request":
        assert service.http.delete("/v1/tokens/root", headers=headers).status_code == 204
    else:
        run("token", "revoke", "root", "--data", data)
        deadline = time.monotonic() + 60
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
    fresh = {"authorization": f"Bearer {create_token(data)}"}
    deadline = time.monotonic() + 60
    while service.http.get("/v1/tokens", headers=fresh).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_expiry_of_the_last_token_opens_no_access(start):
    service = start()
    instance = service.http.post("/v1/tokens", json={"name": "root", "scopes": ["admin"]}).json()
    headers = {"authorization": f"Bearer {instance['token']}"}
    assert service.http.get("/v1/filters").status_code == 401
    assert pinged(service.resp).startswith(b"-NOAUTH")
    assert service.http.delete("/v1/tokens/root", headers=headers).status_code == 204
    for _ in range(3):
        assert service.http.get("/v1/filters").status_code == 401
        assert pinged(service.resp).startswith(b"-NOAUTH")
    assert "make one with: fullbloom token create" in service.log.read_text()
    data = service.folder / "data"
    headers = {"authorization": f"Bearer {run('token', 'create', 'next', '--data', data).strip()}"}
    eventually(lambda: service.http.get("/v1/filters", headers=headers).status_code == 200)
    said = run("token", "revoke", "next", "--data", data)
    assert "that was the last token" in said
    assert "fullbloom token create NAME --scope admin" in said
    eventually(lambda: service.http.get("/v1/filters", headers=headers).status_code == 401)
    assert service.http.get("/v1/filters").status_code == 401


@pytest.fixture(scope="module")
def limited(new_service):
    service = new_service()
    for name in ("mine:a", "mine:b", "yours:a", "yours:b"):
        service.create(name, seed=7, keyed=False)
    everything = {"name": "root", "scopes": ["read", "write", "admin"]}
    root = {"authorization": f"Bearer {service.http.post('/v1/tokens', json=everything).json()['token']}"}
    some = {"name": "some", "scopes": ["read", "write"], "patterns": ["mine:*"]}
    token = service.http.post("/v1/tokens", json=some, headers=root).json()["token"]
    return service, token, root


def names(service, root):
    return sorted(one["name"] for one in service.http.get("/v1/filters", headers=root).json()["filters"])


REFUSED = [
    ("PATCH", "/v1/filters/mine:a", {"name": "yours:c"}),
    ("PATCH", "/v1/filters/mine:a", {"name": "yours:b", "replace": True}),
    ("PATCH", "/v1/filters/mine:a", {"name": "yours:c", "expire": 1000}),
    ("PATCH", "/v1/filters/yours:a", {"name": "mine:c"}),
    ("PATCH", "/v1/filters/yours:a", {"expire": 1000}),
    ("POST", "/v1/filters/mine:a/clone", {"name": "yours:c"}),
    ("POST", "/v1/filters/mine:a/clone", {"name": "yours:b", "replace": True}),
    ("POST", "/v1/filters/yours:a/clone", {"name": "mine:c"}),
    ("POST", "/v1/filters/mine:a/merge", {"source": "yours:a"}),
    ("POST", "/v1/filters/yours:a/merge", {"source": "mine:a"}),
    ("POST", "/v1/filters", {"name": "yours:c", "capacity": 10}),
    ("POST", "/v1/filters/yours:c/freeze?kind=ribbon", {"keys": ["a"]}),
    ("PUT", "/v1/filters/yours:c/dump", None),
]


@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
def test_http_checks_both_names_of_a_request(limited, method, path, body):
    service, token, root = limited
    before = names(service, root)
    headers = {"authorization": f"Bearer {token}"}
    answer = service.http.request(method, path, json=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "denied")
    assert names(service, root) == before
    expires = [one["expires"] for one in service.http.get("/v1/filters", headers=root).json()["filters"]]
    assert expires == [None] * len(before), "nothing is half done"


COMMANDS = [
    "RENAME mine:a yours:c", "RENAME yours:a mine:c", "RENAME mine:a yours:b",
    "RENAMENX mine:a yours:c", "RENAMENX yours:a mine:c",
    "DEL mine:a yours:a", "UNLINK yours:a mine:a", "EXISTS mine:a yours:a",
    "BLOOM.MERGE mine:a yours:a", "BLOOM.MERGE yours:a mine:a", "BLOOM.MERGE mine:a mine:b yours:a",
    "EXPIRE yours:a 10", "BLOOM.CREATE yours:c KIND bloom capacity 10", "BF.ADD yours:c x",
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in MULTI"])
def test_resp_checks_every_name_of_a_command(limited, words, inside):
    service, token, root = limited
    before = names(service, root)
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port), password=token) as client, client.pipeline(transaction=inside) as many:
        many.execute_command(*words.split())
        with pytest.raises(redis.RedisError, match=r"NOPERM|No permissions|EXECABORT"):
            many.execute()
    assert names(service, root) == before


def test_a_token_may_change_names_that_match_its_patterns(limited):
    service, token, _ = limited
    headers = {"authorization": f"Bearer {token}"}
    changes = [
        ("PATCH", "/v1/filters/mine:a", {"name": "mine:c"}, 200),
        ("POST", "/v1/filters/mine:c/clone", {"name": "mine:a"}, 201),
        ("POST", "/v1/filters/mine:a/merge", {"source": "mine:b"}, 200),
        ("DELETE", "/v1/filters/mine:c", None, 204),
    ]
    for method, path, body, status in changes:
        assert service.http.request(method, path, json=body, headers=headers).status_code == status
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port), password=token) as client:
        assert client.execute_command("RENAME", "mine:a", "mine:d")
        assert client.execute_command("RENAME", "mine:d", "mine:a")


def ping(address):
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as one:
        one.sendall(b"PING\r\n")
        return one.recv(100)


def test_local_clients_may_be_required_to_authenticate(start, tmp_path):
    with pytest.raises(RuntimeError, match=r"--require-token needs a token, .*: fullbloom token create"):
        start("--require-token")
    key = {"authorization": f"Bearer {create_token(tmp_path / 'one' / 'data')}"}
    service = start("--require-token")
    assert service.http.get("/v1/filters").status_code == 401
    # As a proxy hands on: any host is asked for, and a token opens.
    elsewhere = {"host": "filters.example"}
    assert service.http.get("/v1/filters", headers=elsewhere).status_code == 401
    assert service.http.get("/v1/filters", headers={**elsewhere, **key}).status_code == 200
    assert ping(service.resp).startswith(b"-NOAUTH")
    assert service.http.delete("/v1/tokens/root", headers=key).status_code == 204
    assert service.http.get("/v1/filters").status_code == 401
    assert ping(service.resp).startswith(b"-NOAUTH")


def timers(port, other):
    """The timer of the service's end of a connection, by the kernel's table: 2 is that of keepalive."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, _, timer, *_ = line.split()
        if int(local[9:], 16) == port and int(remote[9:], 16) == other:
            return int(timer[:2], 16)
    return None


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel lists no connections")
def test_idle_connections_use_keepalive(service):
    http = int(service.url.rpartition(":")[2])
    resp = int(service.resp.rpartition(":")[2])
    for port, greeting in ((http, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), (resp, b"PING\r\n")):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            one.sendall(greeting)
            assert one.recv(4096)
            # Until this end has acknowledged the answer, the timer is that of sending it again.
            eventually(lambda port=port, one=one: timers(port, one.getsockname()[1]) == 2)


def test_a_half_written_secret_of_a_crash_is_ignored(start, tmp_path):
    """A file left by a crash during its creation does no harm."""
    data = tmp_path / "one" / "data"
    data.mkdir(parents=True)
    (data / "secret.key.new").write_bytes(b"half")
    (data / "node.new").write_bytes(b"ha")
    service = start()
    service.create("a")
    path = data / "secret.key"
    assert len(path.read_bytes()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not (data / "secret.key.new").exists()
    assert not (data / "node.new").exists()
    secret = path.read_bytes()
    service.restart()
    assert path.read_bytes() == secret
    assert service.stop() == 0
    path.write_bytes(secret[:31])
    with pytest.raises(RuntimeError, match="a secret has 32 bytes"):
        service.start()


def test_no_port_responds_before_the_tokens_are_loaded(start, tmp_path):
    """Something holds the registry while the service starts; clients wait at both ports."""
    data = tmp_path / "one" / "data"
    create_token(data)
    port = free_port(1)
    http, resp = f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"
    said, end = set(), threading.Event()

    def knock():
        get = b"GET /v1/filters HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        while not end.is_set():
            for address, question in ((resp, b"PING\r\n"), (http, get)):
                with contextlib.suppress(OSError):
                    host, _, port = address.rpartition(":")
                    with socket.create_connection((host, int(port)), timeout=0.2) as client:
                        client.sendall(question)
                        said.add(client.recv(12))

    threads = [threading.Thread(target=knock) for _ in range(4)]
    for thread in threads:
        thread.start()
    held = sqlite3.connect(data / "registry.db", timeout=60, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    threading.Timer(1.5, held.rollback).start()
    service = start("--http", http, "--resp", resp)
    assert ping(service.resp).startswith(b"-NOAUTH")
    assert service.http.get("/v1/filters").status_code == 401
    eventually(lambda: {b"-NOAUTH Auth", b"HTTP/1.1 401"} <= said)
    end.set()
    for thread in threads:
        thread.join()
    held.close()
    assert {answer[:4] for answer in said if answer} <= {b"-NOA", b"HTTP"}
    assert b"HTTP/1.1 200" not in said


def test_tokens_that_were_read_earlier_do_not_replace_later_ones(tmp_path):
    """The clock reads the tokens, one is revoked meanwhile, and the clock sets what it has read."""
    has_read, is_revoked = threading.Event(), threading.Event()
    stored, used = ["token"], []

    def load():
        found = list(stored)
        if threading.current_thread() is clock:
            has_read.set()
            is_revoked.wait(0.5)
        return found

    node = Node.__new__(Node)
    node.settings, node._announcing = SimpleNamespace(data=tmp_path), threading.Lock()
    node.registry = SimpleNamespace(tokens=SimpleNamespace(load=load))
    node.service = SimpleNamespace(set_tokens=used.append)
    clock = threading.Thread(target=node.load_tokens)
    clock.start()
    assert has_read.wait(60)
    stored.clear()
    assert node.load_tokens() == 0
    is_revoked.set()
    clock.join()
    assert used[-1] == []
