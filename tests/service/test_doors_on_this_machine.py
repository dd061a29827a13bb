"""Behind a proxy everybody is of this machine, so tokens may be asked for; idle clients are asked after."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from service.forks import create_token


def ping(address):
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as one:
        one.sendall(b"PING\r\n")
        return one.recv(100)


def test_a_token_may_be_asked_for_on_this_machine(start, tmp_path):
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
    raise AssertionError("no such connection")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel tells of no connections")
def test_idle_clients_are_asked_whether_they_live(service):
    http = int(service.url.rpartition(":")[2])
    resp = int(service.resp.rpartition(":")[2])
    for port, greeting in ((http, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), (resp, b"PING\r\n")):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            one.sendall(greeting)
            assert one.recv(4096)
            assert timers(port, one.getsockname()[1]) == 2


def test_the_secret_is_whole_or_not_there(start, tmp_path):
    """What a crash leaves of its making harms nothing."""
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


def test_no_port_answers_before_the_tokens_are_read(start, tmp_path):
    """Something holds the registry while the service starts; clients wait at both ports."""
    data = tmp_path / "one" / "data"
    create_token(data)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        http, resp = (f"127.0.0.1:{free.getsockname()[1]}" for free in (one, other))
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
    held = sqlite3.connect(data / "registry.db", timeout=20, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    threading.Timer(1.5, held.rollback).start()
    service = start("--http", http, "--resp", resp)
    assert ping(service.resp).startswith(b"-NOAUTH")
    assert service.http.get("/v1/filters").status_code == 401
    end.set()
    for thread in threads:
        thread.join()
    held.close()
    assert {b"-NOAUTH Auth", b"HTTP/1.1 401"} <= said
    assert {answer[:4] for answer in said if answer} <= {b"-NOA", b"HTTP"}
    assert b"HTTP/1.1 200" not in said
