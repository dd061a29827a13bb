"""Every HTTP row of the table of caps holds while many clients do their worst: RSS stays near the budget."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import socket
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

import fullbloom

LONG = int(os.environ.get("FULLBLOOM_LONG", "0") or "0")
CLIENTS = 100 if LONG else 16
SECONDS = 20 if LONG else 2
#: Clients that wait for bytes or for room go on for so many seconds more.
AFTER = 10 if LONG else 1
MIB = 1 << 20
#: The budget, and what may be beyond it: buffers of connections, small requests, what allocators keep.
BUDGET, BEYOND = 96 * MIB, 64 * MIB
REQUEST = 24 * MIB
LIMITS = {
    "FULLBLOOM_LIMITS__MEMORY_BYTES": str(BUDGET),
    "FULLBLOOM_LIMITS__REQUEST_BYTES": str(REQUEST),
    "FULLBLOOM_LIMITS__FILE_BYTES": str(REQUEST),
    "FULLBLOOM_LIMITS__TOTAL_BYTES": str(64 * MIB),
    "FULLBLOOM_LIMITS__RECEIVE": "5",
    "FULLBLOOM_LOG_LEVEL": "error",
}
FILTER = 16 * MIB
TEXT, JSON = "text/plain", "application/json"
ARROW = "application/vnd.apache.arrow.stream"


def stream(column):
    batch = pa.record_batch([column], names=["key"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def zeros(nbytes):
    return pa.array(memoryview(bytes(nbytes)).cast("q"))


def filled(piece, head=b"", tail=b"", nbytes=REQUEST - MIB):
    return head + piece * ((nbytes - len(head) - len(tail)) // len(piece)) + tail


def post(path, body, kind=JSON, method=b"POST", **headers):
    lines = [b"%b %b HTTP/1.1" % (method, path), b"Host: localhost", b"Content-Type: " + kind.encode()]
    lines += [f"{name.replace('_', '-')}: {value}".encode() for name, value in headers.items()]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""]) + body


def endless(path, method=b"POST"):
    head = b"%b %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (method, path)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + (b"%x\r\n" % MIB + b" " * MIB + b"\r\n") * 48


def rows():
    """Requests by the row of the table that they press."""
    add, check = b"/v1/filters/big/add", b"/v1/filters/big/check"
    texts = filled(b'"' + b"0123456789" * 6 + b'",', b'{"keys":[', b"1]}")
    numbers = filled(b"1,", b'{"keys":[', b"1]}", 2 * 10**6)
    lines = filled(b"x\n", nbytes=200 * MIB)
    freeze = b"/v1/filters/frozen/freeze?kind=ribbon&replace=true"
    window = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=23, enable_ldm=True)
    )
    return {
        "json": [post(add, texts), post(check, numbers), post(check, numbers, accept="application/x-ndjson")],
        "lines": [post(add, filled(b"\n"), TEXT), post(check, filled(b"key\n", nbytes=4 * 10**6), TEXT)],
        "ndjson": [post(check, filled(b"1\n", nbytes=2 * 10**6), "application/x-ndjson")],
        "other routes": [
            endless(b"/v1/filters"),
            endless(b"/v1/tokens"),
            endless(b"/v1/filters/big", b"PATCH"),
        ],
        "gzip": [post(add, gzip.compress(lines, 1), TEXT, content_encoding="gzip")],
        "zstd": [
            post(add, window.compress(filled(b"x" * 1000 + b"\n")), TEXT, content_encoding="zstd"),
            post(add, zstandard.compress(bytes(200 * MIB)), TEXT, content_encoding="zstd"),
        ],
        "arrow": [
            post(check, stream(zeros(8 * 10**6)), ARROW),
            post(check, stream(zeros(REQUEST)), ARROW),
            post(add, stream(zeros(400 * MIB)), ARROW),
        ],
        "put": [post(b"/v1/filters/put/dump?replace=true", filled(b"x"), method=b"PUT"), DUMP],
        "freeze": [post(freeze, filled(b"12345678\n", nbytes=9 * 10**6), TEXT)],
        "dump": [b"GET /v1/filters/big/dump HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        "repeats": [
            post(add, json.dumps({"keys": list(range(9000))}).encode(), idempotency_key=key)
            for key in range(64)
        ],
    }


DUMP = post(b"/v1/filters/put/dump?replace=true", fullbloom.BloomFilter(10_000_000).to_bytes(), method=b"PUT")
ROWS = rows()


def rss(service, what="VmRSS"):
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) << 10


@pytest.fixture(scope="module")
def bounded(new_service):
    service = new_service(**LIMITS)
    service.create("big", capacity=FILTER * 8 // 10, fpr=0.01)
    # What each route loads is there before anything is measured.
    warm = {"content-type": TEXT}
    service.http.post("/v1/filters/big/check", content=b"a\nb", headers=warm)
    service.http.post("/v1/filters/big/check", content=stream(zeros(800)), headers={"content-type": ARROW})
    service.http.post("/v1/filters/warm/freeze?kind=ribbon", content=b"a\nb", headers=warm)
    for path in ("/metrics", "/v1/filters", "/v1/filters/big"):
        service.http.get(path)
    return service


def worst(service, requests, seconds, statuses):
    """Send one request after the other from many clients; half of them never read what comes."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    end = time.monotonic() + seconds

    def work(number):
        draw = random.Random(number)
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.socket() as one:
                one.settimeout(end + AFTER - time.monotonic())
                # A small buffer: what is not read stays with the service.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect((host, int(port)))
                one.sendall(draw.choice(requests))
                if number % 2:
                    statuses.add(one.recv(12))
                    while one.recv(1 << 20):
                        if time.monotonic() > end:
                            break
                else:
                    time.sleep(min(1.0, seconds / 2))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("row", [*ROWS, "all at once"])
def test_a_row_of_the_table_holds(bounded, row):
    requests = ROWS[row] if row in ROWS else [one for some in ROWS.values() for one in some]
    before, statuses = rss(bounded), set()
    Path(f"/proc/{bounded.process.pid}/clear_refs").write_text("5")
    worst(bounded, requests, SECONDS, statuses)
    highest = rss(bounded, "VmHWM")
    print(f"{row}: {(highest - before) >> 20} MiB beyond {before >> 20}; {sorted(statuses)}")
    assert highest < before + BUDGET + BEYOND, (row, (highest - before) >> 20)
    assert bounded.process.poll() is None
    assert not any(status.startswith(b"HTTP/1.1 500") for status in statuses), statuses
    held = "fullbloom_memory_held_bytes 0.0"
    deadline = time.monotonic() + 30
    while held not in bounded.http.get("/metrics").text:
        assert time.monotonic() < deadline, "what clients held did not come back"
        time.sleep(0.1)
    assert bounded.http.post("/v1/filters/big/check", json={"key": "a"}).status_code == 200
