"""Arrow IPC streams, by the extra ``fullbloom[arrow]``."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from fullbloom.service.engine import pack_flags
from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.service.settings import Limits

try:
    import pyarrow as pa
    from pyarrow import ipc
except ImportError:
    raise Refused("media-type", "Arrow needs the extra arrow on the service's side; send text") from None

# Its own pool keeps the memory of unpacked streams; the system's allocator returns it.
pa.set_memory_pool(pa.system_memory_pool())

#: Types of messages, and places of fields in their tables (Message.fbs of Arrow's format).
_DICTIONARY, _BATCH = 2, 3
_TYPE, _HEADER = 1, 2
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
_DATA, _IS_DELTA = 1, 2
_PAIR = 16
#: 0 for each byte but 0, and 1 for 0.
_FLIPPED = bytes(number == 0 for number in range(256))
_WORD = 8
#: Why a stream with fewer columns is refused, by the number of columns wanted.
_MISSING = {
    1: "the stream has no column; the first holds the keys",
    2: "the stream of a bank has two columns: owners and keys",
}
#: Bytes that a row takes during its request: its hash, in three places, and its result.
_ROW = 48


def read_columns(body: bytes, limits: Limits, budget: Any, width: int = 1) -> Iterator[list[Any]]:
    """Yield the first ``width`` columns of each batch; nulls are refused.

    What the stream states is added up before anything is unpacked: rows are compared with ``batch_keys``,
    bytes with ``request_bytes``, and ``budget`` grows by them.
    """
    try:
        unpacked, rows = _sum_stated(body, limits)
        if len(body) + unpacked > limits.request_bytes:
            raise Refused(
                "large",
                f"a request may have {limits.request_bytes} bytes, unpacked; the stream states {unpacked}, "
                f"send it in several",
            )
        budget.grow(unpacked + _ROW * width * rows)
        options = ipc.IpcReadOptions(included_fields=[*range(width)], use_threads=False)
        with ipc.open_stream(pa.py_buffer(body), options=options) as stream:
            if len(stream.schema) < width:
                raise Refused("invalid", _MISSING[width])
            for batch in stream:
                batch.validate(full=True)
                columns = [batch.column(at) for at in range(width)]
                if any(column.null_count for column in columns):
                    raise Refused("invalid", "the column holds nulls, which are not keys")
                yield columns
    except (pa.ArrowException, OSError) as error:
        raise Refused("invalid", f"the body is not an Arrow stream: {error}") from None
    except (struct.error, IndexError, ValueError):  # the last: names that are not UTF-8
        raise Refused("invalid", "the body is not an Arrow stream: a message is malformed") from None


def _sum_stated(body: bytes, limits: Limits) -> tuple[int, int]:
    """Return the bytes that the stream's compressed buffers state for what they unpack to, and its rows."""
    total = rows = 0
    most = 8 * limits.request_bytes
    for message in ipc.MessageReader.open_stream(pa.py_buffer(body)):
        header = _Table.root(memoryview(message.metadata))
        kind = header.number(_TYPE, "B")
        if kind not in {_DICTIONARY, _BATCH}:
            continue
        batch = header.table(_HEADER)
        if kind == _DICTIONARY:
            if batch.number(_IS_DELTA, "B"):
                raise Refused("invalid", "delta dictionaries are not read; send whole ones")
            batch = batch.table(_DATA)
        else:
            length = batch.number(_LENGTH, "q")
            rows += length
            if length < 0 or rows > limits.batch_keys:
                text = f"a request may hold {limits.batch_keys} keys; send them in several"
                raise Refused("limit", text)
        # A column without buffers may state any length.
        if any(not 0 <= length <= most for length, _ in batch.pairs(_NODES)):
            raise Refused("limit", "a column states more values than a request may hold")
        if batch.has(_COMPRESSION):
            total += _sum_unpacked(batch, memoryview(message.body))
    return total, rows


def _sum_unpacked(batch: _Table, data: memoryview) -> int:
    """Add up what a compressed batch's buffers state: each begins with its length, -1 for one as it is."""
    total = 0
    for start, length in batch.pairs(_BUFFERS):
        if length == 0:
            continue
        if start < 0 or length < _WORD or start + length > len(data):
            raise Refused("invalid", "the body is not an Arrow stream: a buffer lies outside of it")
        (stated,) = struct.unpack_from("<q", data, start)
        if stated < -1:
            raise Refused("invalid", "the body is not an Arrow stream: a buffer states a negative length")
        total += length if stated == -1 else stated
    return total


class _Table:
    """A table of a flatbuffer: offsets are read with bounds, by ``struct``."""

    __slots__ = ("_at", "_data", "_fields")

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        (back,) = struct.unpack_from("<i", data, at)
        start = at - back
        if start < 0:
            raise IndexError
        (size,) = struct.unpack_from("<H", data, start)
        self._fields = struct.unpack_from(f"<{max(0, size - 4) // 2}H", data, start + 4)

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def has(self, field: int) -> bool:
        return field < len(self._fields) and self._fields[field] != 0

    def number(self, field: int, form: str) -> int:
        if not self.has(field):
            return 0
        (number,) = struct.unpack_from(f"<{form}", self._data, self._at + self._fields[field])
        return int(number)

    def _target(self, field: int) -> int:
        if not self.has(field):
            raise IndexError
        at = self._at + self._fields[field]
        return int(at + struct.unpack_from("<I", self._data, at)[0])

    def table(self, field: int) -> _Table:
        return _Table(self._data, self._target(field))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield the structs of two 64-bit numbers in a vector."""
        if not self.has(field):
            return
        at = self._target(field)
        (count,) = struct.unpack_from("<I", self._data, at)
        if count * _PAIR > len(self._data) - at - 4:
            raise IndexError
        yield from struct.iter_unpack("<qq", self._data[at + 4 : at + 4 + count * _PAIR])


def extract_words(column: Any) -> bytes:
    """Return the bytes of a column of 64-bit words."""
    whole = pa.array(column)
    if len(whole) == 0:
        return b""
    start = whole.offset * _WORD
    return bytes(memoryview(whole.buffers()[1])[start : start + _WORD * len(whole)])


def interleave_words(first: bytes, second: bytes) -> bytes:
    r"""Return the 64-bit words of two equally long columns by turns.

    >>> interleave_words(bytes(8) + b"\x01" * 8, b"\x02" * 8 + b"\x03" * 8).hex("-", 8)
    '0000000000000000-0202020202020202-0101010101010101-0303030303030303'
    """
    words = bytearray(2 * len(first))
    view = memoryview(words).cast("Q")
    view[::2], view[1::2] = memoryview(first).cast("Q"), memoryview(second).cast("Q")
    return bytes(words)


def write_flags(bits: bytes, count: int) -> bytes:
    """Return a stream of one column of booleans, from a bit per key."""
    return _write_stream(pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bits)]), "answer")


def write_numbers(name: str, values: bytes, nulls: bytes = b"") -> bytes:
    """Return a stream of one column of numbers, from 8 bytes each; null where a byte of ``nulls`` is 1."""
    valid = pa.py_buffer(pack_flags(nulls.translate(_FLIPPED))) if nulls else None
    column = pa.Array.from_buffers(pa.uint64(), len(values) // _WORD, [valid, pa.py_buffer(values)])
    return _write_stream(column, name)


def _write_stream(column: Any, name: str) -> bytes:
    batch = pa.record_batch([column], names=[name])
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
