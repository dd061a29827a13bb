"""Any bytes on the HTTP port: an answer or a closed connection, never a hang, a crash, a file or memory."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import time
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

POST = b"POST /v1/filters HTTP/1.1\r\nHost: localhost\r\n"
NAMES = [
    "..", ".", "../../etc/passwd", "..%2f..%2fetc", "%2e%2e", "a/b", "a\\b",
    "a\0b", "", " ", "a b", "é", "\u202e",
    "x" * 129, "x" * 100_000, "CON", "NUL", "aux.txt:stream",
    "C:\\x", "\\\\host\\share", "~root", "$(id)", "`id`",
    "a;b", "a|b", "a\nb", "a\r\nSet-Cookie: x", "{{7*7}}", "<script>", "'--", "%00", "....//", "file:///etc/passwd",
]  # fmt: skip


def raw(service, data, seconds=5.0):
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as one:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        parts = []
        while part := one.recv(65536):
            parts.append(part)
    return b"".join(parts)


def memory(service):
    with Path(f"/proc/{service.process.pid}/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) << 10


def lives(service):
    return service.http.get("/healthz").status_code == 200


def test_names_are_data(service):
    def files():
        return {path for path in service.folder.rglob("*") if "data/log" not in str(path)}

    before = files()
    for name in NAMES:
        made = service.http.post("/v1/filters", json={"name": name, "capacity": 10})
        expected = {201} if name in {"..", ".", "CON", "NUL", "....", "aux.txt:stream"} else {400, 413}
        assert made.status_code in expected, (name, made.text)
        if len(name) < 1000:
            for suffix in ("", "/add", "/dump", "/history"):
                answer = service.http.get(f"/v1/filters/{quote(name, safe='')}{suffix}")
                assert answer.status_code < 500, (name, suffix, answer.text)
    service.http.post("/v1/checkpoint")
    new = {path.name for path in files() - before}
    assert all(name.endswith((".bloom", ".bundle", "-wal", "-shm")) or name == "manifest" for name in new), (
        new
    )


@pytest.mark.parametrize("head", [
    b"\0" * 100, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"*1\r\n$4\r\nPING\r\n", b"\x16\x03\x01\x02\x00\x01",
    POST + b"Content-Length: -5\r\n\r\n",
    POST + b"Content-Length: 99999999999999999999\r\n\r\n",
    POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"y" * 200_000,
    b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
])  # fmt: skip
def test_bytes_that_are_no_request(service, head):
    try:
        answer = raw(service, head)
    except OSError:  # the service closed while this end still sent
        answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
    assert not answer.startswith(b"HTTP/1.1 5")
    assert lives(service)


def test_giant_bodies_are_refused_in_bounded_memory(start):
    service = start(FULLBLOOM_LIMITS__REQUEST_BYTES=str(1 << 20), FULLBLOOM_LIMITS__BATCH_KEYS="1000")
    service.create("big")
    url = "/v1/filters/big/add"
    text = {"content-type": "text/plain"}
    lives(service)
    before = memory(service)

    def endless():
        for _ in range(200):
            yield b"x" * (1 << 20)

    for _ in range(3):
        # The service may close while the client still sends.
        with contextlib.suppress(httpx.TransportError):
            assert service.http.post(url, content=endless(), headers=text).status_code == 413
    bomb = gzip.compress(b"\n" * (1 << 28))
    packed = {**text, "content-encoding": "gzip"}
    assert service.http.post(url, content=bomb, headers=packed).status_code == 413
    assert service.http.post(url, content=b"a\n" * 1001, headers=text).json()["code"] == "limit"
    assert service.http.post(url, content=b"a" * 70_000, headers=text).json()["code"] == "limit"
    deep = b'{"key":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert service.http.post(url, content=deep).status_code == 400
    assert service.http.post("/v1/filters", content=deep).status_code == 413
    assert lives(service)
    assert memory(service) < before + (64 << 20)


def test_slow_clients_are_let_go_and_hinder_nobody(start):
    service = start(FULLBLOOM_LIMITS__RECEIVE="1.5")
    service.create("slow")
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    heads = [
        b"",
        b"GET / HTT",
        b"GET /v1/filters HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /v1/filters/slow/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc",
        b"POST /v1/filters HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc",
    ]
    slow = [socket.create_connection((host, int(port))) for _ in range(100)]
    for at, one in enumerate(slow):
        one.sendall(heads[at % len(heads)])
        one.settimeout(10)
    begun = time.monotonic()
    while time.monotonic() < begun + 1:
        assert service.http.post("/v1/filters/slow/check", json={"key": "a"}).status_code == 200
        for one in slow[1:]:
            with contextlib.suppress(OSError):
                one.send(b"x")
    for one in slow:
        try:
            while one.recv(65536):
                pass
        except ConnectionResetError:
            pass
        one.close()
    assert time.monotonic() < begun + 8
    assert lives(service)


def test_other_sites_pages_are_not_answered(service):
    assert service.http.get("/v1/filters", headers={"origin": "http://evil.example"}).status_code == 403
    for host in ("evil.example", "testserver", "localhost.evil.example"):
        assert service.http.get("/v1/filters", headers={"host": host}).status_code == 403
    # What a page has loaded, as a picture or a download, comes without Origin.
    for path in ("/v1/backup", "/v1/filters", "/v1/filters/one/dump", "/metrics"):
        for site in ("cross-site", "same-site", "unknown"):
            answer = service.http.get(path, headers={"sec-fetch-site": site})
            assert answer.json()["code"] == "denied", (path, site)
    for site in ("none", "same-origin"):
        assert service.http.get("/v1/filters", headers={"sec-fetch-site": site}).status_code == 200
    assert service.http.get("/docs", headers={"sec-fetch-site": "cross-site"}).status_code == 200
    assert service.http.get("/v1/filters", headers={"host": "localhost:1"}).status_code == 200


def test_keys_stand_in_no_log_and_no_metric(start):
    service = start(FULLBLOOM_LOG_LEVEL="debug")
    service.create("secret")
    canary = "canary-7f3a9b"
    url = "/v1/filters/secret"
    for action in ("add", "check", "count", "remove", "nonsense"):
        service.http.post(f"{url}/{action}", json={"key": canary})
        service.http.post(f"{url}/{action}", content=canary, headers={"content-type": "text/plain"})
        service.http.post(f"{url}/{action}", content=f'{{"key": "{canary}'.encode())
    service.http.get(f"{url}/positions", params={"key": canary})
    assert canary not in service.http.get("/metrics").text
    assert service.stop() == 0
    files = [path for path in service.folder.rglob("*") if path.is_file()]
    found = [path for path in files if canary.encode() in path.read_bytes()]
    assert found == []


def test_metrics_stay_small_with_many_filters(service):
    for i in range(300):
        service.create(f"many:{i}", capacity=10)
    for i in range(50):
        service.http.request(f"M{i}", "/v1/filters")
        service.http.get(f"/v1/{os.urandom(4).hex()}")
    assert len(service.http.get("/metrics").content) < 300_000
