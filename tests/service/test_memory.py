"""Memory of the service stays within its caps, whatever clients send and however many filters it has."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import fullbloom_server as native
import pyarrow as pa
import pytest
import zstandard
from support import eventually

import fullbloom
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import arrow
from fullbloom.service.settings import Limits

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
#: Filters whose page takes 8 MiB while it is built.
FILTERS_OF_A_PAGE = 999
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


def fill_body(piece, head=b"", tail=b"", nbytes=REQUEST - MIB):
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
    texts = fill_body(b'"' + b"0123456789" * 6 + b'",', b'{"keys":[', b"1]}")
    numbers = fill_body(b"1,", b'{"keys":[', b"1]}", 2 * 10**6)
    lines = fill_body(b"x\n", nbytes=200 * MIB)
    freeze = b"/v1/filters/frozen/freeze?kind=ribbon&replace=true"
    window = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=23, enable_ldm=True)
    )
    return {
        "json": [post(add, texts), post(check, numbers), post(check, numbers, accept="application/x-ndjson")],
        "lines": [
            post(add, fill_body(b"\n"), TEXT),
            post(check, fill_body(b"key\n", nbytes=4 * 10**6), TEXT),
        ],
        "ndjson": [post(check, fill_body(b"1\n", nbytes=2 * 10**6), "application/x-ndjson")],
        "other routes": [
            endless(b"/v1/filters"),
            endless(b"/v1/tokens"),
            endless(b"/v1/filters/big", b"PATCH"),
        ],
        "gzip": [post(add, gzip.compress(lines, 1), TEXT, content_encoding="gzip")],
        "zstd": [
            post(add, window.compress(fill_body(b"x" * 1000 + b"\n")), TEXT, content_encoding="zstd"),
            post(add, zstandard.compress(bytes(200 * MIB)), TEXT, content_encoding="zstd"),
        ],
        "arrow": [
            post(check, stream(zeros(8 * 10**6)), ARROW),
            post(check, stream(zeros(REQUEST)), ARROW),
            post(add, stream(zeros(400 * MIB)), ARROW),
        ],
        "put": [post(b"/v1/filters/put/dump?replace=true", fill_body(b"x"), method=b"PUT"), DUMP],
        "freeze": [post(freeze, fill_body(b"12345678\n", nbytes=9 * 10**6), TEXT)],
        "page": [b"GET /v1/filters?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        "history": [b"GET /v1/filters/big/history?limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
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


def fill_history(service, name, count):
    """Insert samples, as they would be after a week."""
    with contextlib.closing(sqlite3.connect(service.folder / "data" / "registry.db", timeout=60)) as registry:
        (row,) = registry.execute("SELECT id FROM filters WHERE name = ?", (name,)).fetchone()
        columns = "filter_id, sampled_at, estimated_items, fpr_estimate, fill, bytes, hits, misses, adds"
        columns += ", new, removed"
        samples = ((row, at, 1e6, 0.01, 0.5, *[10**6 + at] * 6) for at in range(count))
        registry.executemany(f"INSERT INTO snapshots ({columns}) VALUES (?,?,?,?,?,?,?,?,?,?,?)", samples)
        registry.commit()


@pytest.fixture(scope="module")
def bounded(new_service):
    service = new_service(**LIMITS)
    service.create("big", capacity=FILTER * 8 // 10, fpr=0.01)
    for number in range(FILTERS_OF_A_PAGE):
        service.create(f"small:{number}", capacity=10)
    fill_history(service, "big", 10_000)
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
                one.settimeout(max(0.0, end + AFTER - time.monotonic()))
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
def test_every_memory_limit_of_the_table_holds(bounded, row):
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
    deadline = time.monotonic() + 60
    while held not in bounded.http.get("/metrics").text:
        assert time.monotonic() < deadline, "what clients held did not come back"
        time.sleep(0.1)
    assert bounded.http.post("/v1/filters/big/check", json={"key": "a"}).status_code == 200


def test_records_that_wait_for_a_slow_disk_come_from_the_budget(start, slow_disk):
    limits = {"FULLBLOOM_LIMITS__MEMORY_BYTES": str(BUDGET), "FULLBLOOM_LIMITS__RECEIVE": "60"}
    service = start("--durability", "everysec", **limits, **slow_disk.environment)
    service.create("big", capacity=FILTER * 8 // 10, fpr=0.01)
    hashes = {"content-type": "application/x-fullbloom-hashes"}
    batch = bytes(8 * 900_000)
    assert service.http.post("/v1/filters/big/add", content=batch, headers=hashes).status_code == 200
    before, path = rss(service), "/v1/filters/big/add"
    with slow_disk.paused("writes"):
        answers = [service.http.post(path, content=batch, headers=hashes) for _ in range(40)]
        assert rss(service, "VmHWM") < before + BUDGET + BEYOND
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {answer.status_code for answer in refused} == {503}
    assert any("limits.memory_bytes" in answer.json()["detail"] for answer in refused)
    assert 4 < len(answers) - len(refused) < 20
    deadline = time.monotonic() + 60
    while service.http.post("/v1/filters/big/add", content=batch, headers=hashes).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    while "fullbloom_memory_held_bytes 0.0" not in service.http.get("/metrics").text:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_memory_held_for_clients_comes_from_one_budget():
    service = native.Service(None, limits={"memory_bytes": 1000})
    with service.hold(600) as held:
        held.grow(300)
        assert service.memory()[:2] == (900, 1000)
        with pytest.raises(native.Fault, match=r"limits\.memory_bytes") as refused:
            held.grow(101)
        assert refused.value.code == "overloaded"
        with pytest.raises(native.Fault) as refused:
            service.hold(1001)
        assert refused.value.code == "limit"
        held.resize(1000)
        assert held.nbytes == 1000
    assert service.memory() == (0, 1000, 1000, 2)


def test_without_a_setting_the_largest_filter_can_be_copied():
    service = native.Service(None, limits={"filter_bytes": 1 << 20, "request_bytes": 1000})
    assert service.memory()[1] == (1 << 20) + 16_000


FILTERS = 4_000
#: 1.4 kB measured; 3.7 kB before filters that are alike shared what they have in common.
MOST = 1_700
MAKE = """
import sys
from pathlib import Path
import fullbloom_server
service = fullbloom_server.Service(Path(sys.argv[1]), durability="off")
for i in range(int(sys.argv[2])):
    options = [("initial_capacity", "1000"), ("growth", "2"), ("fpr", "1e-2")]
    service.create(f"filter:{i}", "scalable", options, seed=i, keyed=True)
service.stop()
"""
OPEN = """
import sys
from pathlib import Path
import fullbloom_server
from fullbloom.service.resources import release_memory
def held():
    release_memory()
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))
# The pages of the library's code, 2 MB, are not part of a filter's overhead.
fullbloom_server.Service(Path(sys.argv[3])).stop()
before = held()
service = fullbloom_server.Service(Path(sys.argv[1]))
assert len(service) == int(sys.argv[2])
print((held() - before - service.nbytes) // len(service))
"""


def test_a_small_filter_has_little_overhead(tmp_path):
    words = [tmp_path / "data", str(FILTERS), tmp_path / "one"]
    for folder, filters in ((tmp_path / "data", FILTERS), (tmp_path / "one", 1)):
        subprocess.run([sys.executable, "-c", MAKE, folder, str(filters)], check=True)
    result = subprocess.run(
        [sys.executable, "-c", OPEN, *words], check=True, capture_output=True, text=True
    ).stdout
    assert int(result) < MOST


def test_sampling_continues_from_the_previous_sample(start):
    """A sample covers all filters changed or queried since the previous one, however many there are."""
    service = start(FULLBLOOM_HISTORY__EVERY="0.2")
    names = [f"many:{i}" for i in range(450)]  # more than are sampled at once
    for name in names:
        service.create(name, capacity=10)

    def samples(name):
        return service.http.get(f"/v1/filters/{name}/history").json()["samples"]

    for name in (names[0], names[-1]):
        eventually(lambda name=name: samples(name))
    known = len(samples(names[0]))
    service.http.post(f"/v1/filters/{names[-1]}/add", json={"key": "ada"})
    eventually(lambda: samples(names[-1])[0]["adds"] == 1)
    assert len(samples(names[0])) == known


STREAM = {"content-type": "application/vnd.apache.arrow.stream"}
STREAM_LIMITS = Limits(request_bytes=1 << 20, batch_keys=100_000)


class Held:
    """The memory of a request, without a service."""

    nbytes = 0

    def grow(self, nbytes):
        self.nbytes += nbytes


def encode(*columns, codec="zstd"):
    names = [f"c{at}" for at in range(len(columns))]
    batch = pa.record_batch(list(columns), names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def weighed(body, limits=STREAM_LIMITS):
    held = Held()
    columns = [column.to_pylist() for [column] in arrow.read_columns(body, limits, held)]
    return columns, held.nbytes


TEXTS = pa.array([f"key-{i}" for i in range(1000)])
SHAPES = {
    "texts": TEXTS,
    "numbers": pa.array(range(1000)),
    "large texts": TEXTS.cast(pa.large_utf8()),
    "views": TEXTS.cast(pa.string_view()),
    "dictionary": TEXTS.dictionary_encode(),
    "struct": pa.StructArray.from_arrays([TEXTS, pa.array(range(1000))], ["a", "b"]),
    "list": pa.array([[i, i + 1] for i in range(1000)]),
}


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("shape", SHAPES)
def test_streams_within_the_limits_are_read(shape, codec):
    read, held = weighed(encode(SHAPES[shape], codec=codec))
    assert read == [SHAPES[shape].to_pylist()]
    assert (held > arrow._ROW * 1000) == (codec is not None)


@pytest.mark.parametrize("place", ["first", "second", "struct", "list", "dictionary"])
def test_buffers_that_decompress_to_more_than_the_limit_are_refused(place):
    large = zeros(4 << 20)
    small = pa.array(range(len(large)))
    shapes = {
        "first": lambda: [large],
        "second": lambda: [
            pa.array([1]),
            pa.ListArray.from_arrays(pa.array([0, len(large)], pa.int32()), large),
        ],
        "struct": lambda: [pa.StructArray.from_arrays([small, large], ["a", "b"])],
        "list": lambda: [pa.ListArray.from_arrays(pa.array([0, len(large)], pa.int32()), large)],
        "dictionary": lambda: [pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), large)],
    }
    body = encode(*shapes[place]())
    with pytest.raises(Refused) as refused:
        weighed(body, Limits(request_bytes=4 << 20, batch_keys=1 << 24))
    assert refused.value.code == "large"


def test_the_stated_size_of_a_buffer_is_not_trusted():
    body = encode(zeros(80_000))
    stated = struct.pack("<q", 80_000)
    assert body.count(stated) == 1
    for lie in (1 << 62, 1 << 40, 2 << 20, 80_001, 79_999, 0, -1, -2, -(1 << 63)):
        try:
            weighed(body.replace(stated, struct.pack("<q", lie)))
        except Refused as refused:
            assert refused.code in {"invalid", "large"}
        else:
            assert lie == 80_000


def test_rows_without_bytes_are_counted():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([(1 << 31) - 1], pa.int64()), pa.array([7]))
    for column in (pa.Array.from_buffers(pa.null(), (1 << 31) - 1, [None]), runs):
        with pytest.raises(Refused) as refused:
            weighed(encode(column, codec=None))
        assert refused.value.code == "limit"
    inside = pa.StructArray.from_arrays([pa.nulls(10), pa.array(range(10))], ["a", "b"])
    weighed(encode(inside))


def test_any_changed_byte_gives_a_result_or_a_refusal():
    body = encode(SHAPES["dictionary"].slice(0, 30), pa.array(range(30)))
    for at in range(0, len(body), max(1, len(body) // 700)):
        for changed in (body[:at], body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]):
            try:
                weighed(changed)
            except Refused as refused:
                assert refused.code in {"invalid", "large", "limit"}
            except Fault:  # pragma: no cover - the held bytes are not the service's here
                raise


def test_a_small_body_cannot_allocate_gigabytes(service):
    service.create("arrow")
    ordinary = service.http.post("/v1/filters/arrow/check", content=encode(pa.array([1, 2])), headers=STREAM)
    assert ordinary.status_code == 200, ordinary.text
    before = peak_rss(service)  # with what the first body of Arrow imports, 40 MB
    bomb = encode(zeros(512 << 20))
    assert len(bomb) < 1 << 20
    for path in ("add", "check", "freeze?kind=ribbon"):
        name = "arrow" if "freeze" not in path else "frozen"
        answer = service.http.post(f"/v1/filters/{name}/{path}", content=bomb, headers=STREAM)
        assert answer.status_code == 413, answer.text
        assert answer.json()["code"] in {"large", "limit"}
    grown = peak_rss(service) - before
    print(f"grown by {grown / 1e6:.1f} MB from {before / 1e6:.1f} MB")
    assert grown < 64 << 20


def peak_rss(service):
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
