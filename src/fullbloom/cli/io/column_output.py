"""Rows written in the format of the input."""

from __future__ import annotations

import io
from typing import Any

from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.arrow import import_arrow

#: Rows of a row group of Parquet; larger ones compress little better, and use memory until they are written.
_GROUP = 1 << 18


class _Sink(io.RawIOBase):
    """A file that pyarrow writes and `take` empties."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._at += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class Writer:
    """One output."""

    def __init__(self, kind: str, schema: Any) -> None:
        """Open nothing before the first rows: a file that is not begun needs no end."""
        self._kind, self._schema = kind, schema
        self._sink = _Sink()
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._rows = 0

    def write(self, table: Any, numbers: bytes, *, last: bool) -> bytes:
        """Write the rows of ``table`` with these ``numbers``; return the bytes that are ready."""
        arrow = import_arrow()
        try:
            if self._writer is None:
                self._writer = self._open(arrow)
            rows = arrow.Array.from_buffers(
                arrow.uint32(), len(numbers) // 4, [None, arrow.py_buffer(numbers)]
            )
            self._waiting.append(table if len(rows) == table.num_rows else table.take(rows))
            self._rows += len(rows)
            if last or self._rows >= _GROUP:
                self._writer.write_table(
                    arrow.Table.from_batches(self._waiting, self._schema).combine_chunks()
                )
                self._waiting, self._rows = [], 0
            if last:
                self._writer.close()
        except arrow.ArrowException as error:
            raise Refusal(
                f"the rows cannot be written as {self._kind}: {str(error).splitlines()[0]}"
            ) from None
        return self._sink.take()

    def _open(self, arrow: Any) -> Any:
        if self._kind == "parquet":
            return arrow.parquet.ParquetWriter(self._sink, self._schema)
        new = arrow.ipc.new_file if self._kind == "arrow file" else arrow.ipc.new_stream
        return new(self._sink, self._schema)
