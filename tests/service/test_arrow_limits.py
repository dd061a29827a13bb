"""What an Arrow stream states is held against the caps before anything is unpacked."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest

from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import arrow
from fullbloom.service.settings import Limits

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
LIMITS = Limits(request_bytes=1 << 20, batch_keys=100_000)


class Held:
    """What a request holds, without a service."""

    nbytes = 0

    def grow(self, nbytes):
        self.nbytes += nbytes


def stream(*columns, codec="zstd"):
    names = [f"c{at}" for at in range(len(columns))]
    batch = pa.record_batch(list(columns), names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def weighed(body, limits=LIMITS):
    held = Held()
    return [column.to_pylist() for column in arrow.read_columns(body, limits, held)], held.nbytes


def zeros(nbytes):
    return pa.array(memoryview(bytes(nbytes)).cast("q"))


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
def test_streams_within_the_caps_are_read(shape, codec):
    read, held = weighed(stream(SHAPES[shape], codec=codec))
    assert read == [SHAPES[shape].to_pylist()]
    assert (held > arrow._ROW * 1000) == (codec is not None)


@pytest.mark.parametrize("place", ["first", "second", "struct", "list", "dictionary"])
def test_buffers_that_unpack_to_more_are_refused(place):
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
    body = stream(*shapes[place]())
    with pytest.raises(Refused) as refused:
        weighed(body, Limits(request_bytes=4 << 20, batch_keys=1 << 24))
    assert refused.value.code == "large"


def test_what_a_buffer_states_is_not_believed():
    body = stream(zeros(80_000))
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
            weighed(stream(column, codec=None))
        assert refused.value.code == "limit"
    inside = pa.StructArray.from_arrays([pa.nulls(10), pa.array(range(10))], ["a", "b"])
    weighed(stream(inside))


def test_any_change_of_a_byte_is_an_answer_or_a_refusal():
    body = stream(SHAPES["dictionary"].slice(0, 30), pa.array(range(30)))
    for at in range(0, len(body), max(1, len(body) // 700)):
        for changed in (body[:at], body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]):
            try:
                weighed(changed)
            except Refused as refused:
                assert refused.code in {"invalid", "large", "limit"}
            except Fault:  # pragma: no cover - the held bytes are not the service's here
                raise


def test_a_small_body_cannot_ask_for_gigabytes(service):
    service.create("arrow")
    before = rss(service)
    bomb = stream(zeros(512 << 20))
    assert len(bomb) < 1 << 20
    for path in ("add", "check", "freeze?kind=ribbon"):
        name = "arrow" if "freeze" not in path else "frozen"
        answer = service.http.post(f"/v1/filters/{name}/{path}", content=bomb, headers=ARROW)
        assert answer.status_code == 413, answer.text
        assert answer.json()["code"] in {"large", "limit"}
    assert rss(service) < before + (64 << 20)


def rss(service):
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
