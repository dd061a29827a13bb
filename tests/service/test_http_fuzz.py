"""Any bytes on the HTTP port and any bodies: an answer or a closed connection, and nobody else waits.

Requests are drawn from a seed and changed as a fuzzer does: bits flipped, parts cut, doubled, put in. What
the service did not foresee is answered 500 or stands in its log; neither may be.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import select
import socket
import struct
import threading
import zlib
from pathlib import Path

import httpx
import pytest

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


def packed(draw, data, encoding):
    if encoding is None or draw.random() < 0.2:
        return data
    if "zip" in encoding.lower():
        return gzip.compress(data * draw.choice([1, 1, 1, 3000]), mtime=0)
    return zlib.compress(data)


def changed(draw, data):
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
    data = packed(draw, data, encoding)
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
    """What the service says to bytes that come in pieces; nothing where it closes while they still come."""
    parts = []
    try:
        with socket.create_connection(address, timeout=30) as one:
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
        with httpx.Client(base_url=service.url, timeout=20) as client:
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
    client.join(30)
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


@pytest.mark.parametrize("seed", range(4 if LONG else 1))
def test_requests_with_changes(beside, seed):
    _, address = beside
    draw = random.Random(seed)
    seen = set()
    for turn in range(ROUNDS):
        data = b"".join(changed(draw, request(draw)) for _ in range(draw.choice([1, 1, 1, 2, 3])))
        said = heard(address, data, draw.choice([1, 1, 2, 5]))
        assert said == b"" or said.startswith(b"HTTP/1.1 "), (seed, turn, data[:300], said[:300])
        found = statuses(said)
        assert b"500" not in found, (seed, turn, data[:600], said[-600:])
        seen.update(found)
    assert {b"200", b"400"} <= seen, seen


def test_bodies_of_every_type_and_encoding(beside):
    service, _ = beside
    draw = random.Random(7)
    cells = [(route, kind, how) for route in ROUTES for kind in TYPES for how in ENCODINGS]
    if not LONG:
        cells = draw.sample(cells, ROUNDS)
    refused = {400, 404, 405, 406, 408, 409, 411, 412, 413, 415, 422, 507}
    for (method, path), kind, encoding in cells:
        for _ in range(10 if LONG else 1):
            headers = {"content-type": kind}
            if encoding is not None:
                headers["content-encoding"] = encoding
            data = changed(draw, packed(draw, body(draw), encoding))
            if path == "/v1/tokens":
                data = data[:50]  # no token comes of it, by which nobody else would be answered
            answer = service.http.request(method, path, content=data, headers=headers)
            assert answer.status_code in {200, 201, 204, *refused}, (method, path, kind, encoding, data[:300])
            if answer.status_code in refused:
                assert answer.headers["content-type"] == "application/problem+json"
