"""Any bytes on the HTTP port get a response or a closed connection, and other clients do not wait.

Requests are drawn from a seed and changed as a fuzzer does: bits flipped, parts cut, doubled, inserted. An
input that the service did not foresee is answered 500 or logged as an error; neither may happen.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import select
import socket
import struct
import threading
import time
import zlib
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from fullbloom.service.failures import Refused
from fullbloom.service.http import unpacking

LONG = bool(os.environ.get("FULLBLOOM_LONG"))
ROUNDS = 20_000 if LONG else 400
LIMITS = {
    "FULLBLOOM_LIMITS__REQUEST_BYTES": str(1 << 18),
    "FULLBLOOM_LIMITS__FILE_BYTES": str(1 << 18),
    "FULLBLOOM_LIMITS__FILTER_BYTES": str(1 << 20),
    "FULLBLOOM_LIMITS__BATCH_KEYS": "2000",
    "FULLBLOOM_LIMITS__RECEIVE": "1",
}
#: Beyond what the process held before: requests at work, their bodies unpacked, and what the allocator keeps.
MEMORY = 96 << 20

TYPES = [
    "application/json", "text/plain", "application/x-ndjson", "application/vnd.apache.arrow.stream",
    "application/x-fullbloom-hashes", "application/octet-stream", "application/x-www-form-urlencoded",
    "text/plain; charset=utf-16", "", "x", "application/json;;", "APPLICATION/JSON",
]  # fmt: skip
ENCODINGS = [None, "gzip", "zstd", "identity", "br", "gzip, gzip", "", "GZIP"]
ACCEPTS = [None, "*/*", "application/octet-stream", "application/x-ndjson", "text/html", ",,;q=", "\xff"]
ROUTES = [
    ("POST", "/v1/filters"), ("GET", "/v1/filters"), ("PATCH", "/v1/filters/any"), ("GET", "/v1/filters/any"),
    ("POST", "/v1/filters/any/add"), ("POST", "/v1/filters/any/check"), ("POST", "/v1/filters/any/count"),
    ("POST", "/v1/filters/any/remove"), ("POST", "/v1/filters/any/merge"), ("POST", "/v1/filters/any/clone"),
    ("POST", "/v1/filters/any/advance"), ("PUT", "/v1/filters/new/dump?replace=true"),
    ("POST", "/v1/filters/new/freeze?kind=ribbon&replace=true"), ("GET", "/v1/filters/any/history"),
    ("GET", "/v1/filters/any/positions?key=a"), ("POST", "/v1/tokens"), ("DELETE", "/v1/nodes/x"),
]  # fmt: skip
PIECES = [
    b"\r\n", b"\r\n\r\n", b"\n", b"\0", b"Content-Length: 3\r\n", b"Content-Length: -1\r\n", b"chunked",
    b"Transfer-Encoding: chunked\r\n", b"ffffffff\r\n", b"0\r\n\r\n", b"Expect: 100-continue\r\n",
    b"HTTP/1.0", b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"{", b"[" * 3000, b'{"key":', b"NaN",
    b'"\\ud800"', b"1e999", b"null", b"\xff\xfe", b"\xed\xa0\x80", b"-" * 300, b"9" * 5000, b"Host: x\r\n",
    b"%00", b"/../", b'If-Match: "1-1"\r\n', b"Idempotency-Key: k\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]  # fmt: skip
TEXTS = ["", "a", "key:1", "\u00e9", "\U0001f600", "\x00", "bloom", "cuckoo", "rolling", "ribbon", "any"]
NUMBERS = [0, 1, -1, 1 << 63, 1 << 64, -(1 << 63), 10**400, 0.0, -0.0, 1.5, 1e308, 5e-324, True, False, None]
NAMES = ["key", "keys", "values", "name", "kind", "capacity", "fpr", "options", "window", "expire", "source"]


def value(draw, depth=0):
    """Any JSON value."""
    kind = draw.randrange(4 if depth < 4 else 2)
    if kind == 0:
        return draw.choice(TEXTS) * draw.choice([1, 1, 1, 1000])
    if kind == 1:
        return draw.choice(NUMBERS)
    if kind == 2:
        return [value(draw, depth + 1) for _ in range(draw.randrange(5))]
    return {draw.choice(NAMES): value(draw, depth + 1) for _ in range(draw.randrange(5))}


def body(draw):
    kind = draw.randrange(6)
    if kind == 0:
        return draw.randbytes(draw.randrange(200))
    if kind == 1:
        return b"\n".join(json.dumps(value(draw)).encode() for _ in range(draw.randrange(20)))
    if kind == 2:
        return b"\n".join(draw.randbytes(draw.randrange(20)) for _ in range(draw.randrange(3000)))
    if kind == 3:
        return struct.pack("<I", 0xFFFFFFFF) + draw.randbytes(
            draw.randrange(300)
        )  # as an Arrow stream begins
    if kind == 4:
        return b"\x89BLOOM\r\n" + draw.randbytes(draw.randrange(500))
    return json.dumps(value(draw)).encode()


def pack(draw, data, encoding):
    if encoding is None or draw.random() < 0.2:
        return data
    if "zip" in encoding.lower():
        return gzip.compress(data * draw.choice([1, 1, 1, 3000]), mtime=0)
    return zlib.compress(data)


def change(draw, data):
    """The bytes with a few changes of a fuzzer's kinds."""
    out = bytearray(data)
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(out) + 1)
        kind = draw.randrange(4)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            out[at:at] = draw.choice(PIECES)
        elif kind == 2:
            del out[at : at + draw.randrange(1, 60)]
        else:
            out[at:at] = out[at : at + draw.randrange(1, 60)]
    return bytes(out)


def request(draw):
    """The bytes of a request that is mostly one."""
    method, path = draw.choice(ROUTES)
    data, encoding = body(draw), draw.choice(ENCODINGS)
    data = pack(draw, data, encoding)
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {draw.choice(TYPES)}"]
    if encoding is not None:
        lines.append(f"Content-Encoding: {encoding}")
    if (accept := draw.choice(ACCEPTS)) is not None:
        lines.append(f"Accept: {accept}")
    if draw.random() < 0.5:
        size = len(data) + draw.choice([0, 0, 0, 0, 1, -1, 1000])
        return "\r\n".join([*lines, f"Content-Length: {max(size, 0)}", "", ""]).encode("latin-1") + data
    head = "\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode("latin-1")
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


def heard(address, data, pieces):
    """The reply to bytes sent in pieces; empty if the service closes before all are sent."""
    parts = []
    try:
        with socket.create_connection(address, timeout=60) as one:
            step = len(data) // pieces + 1
            for start in range(0, len(data), step):
                one.sendall(data[start : start + step])
            # An end of the bytes ends what is being answered, too: whole requests get a moment.
            select.select([one], [], [], 0.05)
            one.shutdown(socket.SHUT_WR)
            while part := one.recv(1 << 16):
                parts.append(part)
    except TimeoutError:
        raise
    except OSError:
        pass
    return b"".join(parts)


@pytest.fixture
def beside(start):
    """A service, its address, and another client that must be answered all the while."""
    service = start(**LIMITS)
    service.create("any", kind="counting", capacity=1000)
    service.create("calm")
    held = memory(service)
    stop, failures, asked = threading.Event(), [], [0]

    def ask():
        with httpx.Client(base_url=service.url, timeout=60) as client:
            while not stop.is_set():
                try:
                    answer = client.post("/v1/filters/calm/check", json={"key": "ada"})
                    if answer.json() != {"found": False}:
                        failures.append(answer.text)
                except httpx.HTTPError as error:
                    failures.append(repr(error))
                asked[0] += 1
                stop.wait(0.02)

    client = threading.Thread(target=ask)
    client.start()
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    yield service, (host, int(port))
    stop.set()
    client.join(60)
    assert failures == []
    assert asked[0] > 5
    assert service.process.poll() is None
    assert memory(service) < held + MEMORY
    log = service.log.read_text()
    unforeseen = [line for line in log.splitlines() if '"level": "error"' in line]
    assert unforeseen == [], unforeseen[:5]


def memory(service):
    with Path(f"/proc/{service.process.pid}/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) << 10


def statuses(answers):
    """The status of each answer of those that came one behind the other."""
    return [line.split(b" ")[1] for line in answers.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4 if LONG else 1))
def test_mutated_requests_get_a_response_or_a_closed_connection(beside, seed):
    _, address = beside
    draw = random.Random(seed)
    seen = set()
    for turn in range(ROUNDS):
        data = b"".join(change(draw, request(draw)) for _ in range(draw.choice([1, 1, 1, 2, 3])))
        said = heard(address, data, draw.choice([1, 1, 2, 5]))
        assert said == b"" or said.startswith(b"HTTP/1.1 "), (seed, turn, data[:300], said[:300])
        found = statuses(said)
        assert b"500" not in found, (seed, turn, data[:600], said[-600:])
        seen.update(found)
    assert {b"200", b"400"} <= seen, seen


@pytest.mark.long
def test_bodies_of_every_type_and_encoding_are_processed_or_refused(beside):
    service, _ = beside
    draw = random.Random(7)
    cells = [(route, kind, how) for route in ROUTES for kind in TYPES for how in ENCODINGS]
    if not LONG:
        cells = draw.sample(cells, ROUNDS // 2)
    refused = {400, 404, 405, 406, 408, 409, 411, 412, 413, 415, 422, 507}
    for (method, path), kind, encoding in cells:
        for _ in range(10 if LONG else 1):
            headers = {"content-type": kind}
            if encoding is not None:
                headers["content-encoding"] = encoding
            data = change(draw, pack(draw, body(draw), encoding))
            if path == "/v1/tokens":
                data = data[:50]  # no token comes of it, by which nobody else would be answered
            answer = service.http.request(method, path, content=data, headers=headers)
            assert answer.status_code in {200, 201, 204, *refused}, (method, path, kind, encoding, data[:300])
            if answer.status_code in refused:
                assert answer.headers["content-type"] == "application/problem+json"


POST = b"POST /v1/filters HTTP/1.1\r\nHost: localhost\r\n"
HOSTILE_NAMES = [
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


def lives(service):
    return service.http.get("/healthz").status_code == 200


def test_hostile_names_are_never_paths(service):
    def files():
        return {path for path in service.folder.rglob("*") if "data/log" not in str(path)}

    before = files()
    for name in HOSTILE_NAMES:
        instance = service.http.post("/v1/filters", json={"name": name, "capacity": 10})
        expected = {201} if name in {"..", ".", "CON", "NUL", "....", "aux.txt:stream"} else {400, 413}
        assert instance.status_code in expected, (name, instance.text)
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
def test_bytes_that_are_not_a_request_are_refused(service, head):
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


class Pieces:
    """A budget that records by how much it grows."""

    nbytes = 0

    def __init__(self):
        self.pieces = []

    def grow(self, nbytes):
        self.nbytes += nbytes
        self.pieces.append(nbytes)

    def resize(self, nbytes):
        self.nbytes = nbytes


@pytest.mark.parametrize("content", [b"", b"a"])
def test_a_body_of_countless_gzip_members_is_refused(content):
    member = gzip.compress(content, mtime=0)
    most, budget = unpacking.MAX_MEMBERS, Pieces()
    assert unpacking.unpack(b"gzip", member * most, 1 << 20, budget) == content * most
    assert 0 not in budget.pieces[:-1], "an empty piece takes memory that the budget does not count"
    before = time.process_time()
    with pytest.raises(Refused, match=f"{most} members") as error:
        unpacking.unpack(b"gzip", member * (most + 1), 1 << 20, Pieces())
    assert error.value.code == "invalid"
    with pytest.raises(Refused, match=f"{most} members"):
        unpacking.unpack(b"gzip", member * ((64 << 20) // len(member)), 64 << 20, Pieces())
    # 3.4 million members took 11 s.
    assert time.process_time() - before < 1


def test_blocked_gzip_is_unpacked():
    """Block gzip (BGZF) has a member for every 64 KiB, and an empty one at the end."""
    block = bytes(range(256)) * 255
    body = gzip.compress(block) * 200 + gzip.compress(b"")
    assert unpacking.unpack(b"gzip", body, 1 << 24, Pieces()) == block * 200


@pytest.mark.timed
def test_slow_clients_are_disconnected_and_block_no_other(start):
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
        one.settimeout(60)
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


def test_requests_of_other_sites_are_refused(service):
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


def test_keys_appear_in_no_log_and_no_metric(start):
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


@pytest.mark.long
def test_metrics_stay_small_with_many_filters(service):
    for i in range(300):
        service.create(f"many:{i}", capacity=10)
    for i in range(50):
        service.http.request(f"M{i}", "/v1/filters")
        service.http.get(f"/v1/{os.urandom(4).hex()}")
    assert len(service.http.get("/metrics").content) < 300_000
