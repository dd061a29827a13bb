"""Arrow IPC streams, by the extra ``bloomery[arrow]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import pyarrow as pa
    from pyarrow import ipc
except ImportError:
    raise Refused("media-type", "Arrow needs the extra arrow on the service's side; send text") from None


def columns(body: bytes) -> Iterator[Any]:
    """Yield the first column of each batch; nulls are refused."""
    try:
        with ipc.open_stream(body) as stream:
            if len(stream.schema) == 0:
                raise Refused("invalid", "the stream has no column; the first holds the keys")
            for batch in stream:
                batch.validate(full=True)
                column = batch.column(0)
                if column.null_count:
                    raise Refused("invalid", "the column holds nulls, which are no keys")
                yield column
    except (pa.ArrowException, OSError) as error:
        raise Refused("invalid", f"the body is no Arrow stream: {error}") from None


def words(column: Any) -> bytes:
    """Return the bytes of a column of 64-bit words."""
    whole = pa.array(column)
    if len(whole) == 0:
        return b""
    start = whole.offset * 8
    return bytes(memoryview(whole.buffers()[1])[start : start + 8 * len(whole)])


def answers(flags: bytes) -> bytes:
    """Return a stream of one column of booleans, from a byte a key."""
    values = pa.array([byte == 1 for byte in flags], type=pa.bool_())
    return _stream(values, "answer")


def numbers(values: list[int]) -> bytes:
    """Return a stream of one column of numbers."""
    return _stream(pa.array(values, type=pa.uint64()), "count")


def _stream(column: Any, name: str) -> bytes:
    batch = pa.record_batch([column], names=[name])
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
