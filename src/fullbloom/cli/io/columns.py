"""Parquet and Arrow IPC as input: rows whose key is a column, a field of a struct, or a tuple of them."""

from __future__ import annotations

from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Interrupted, Refusal
from fullbloom.cli.io.arrow import import_arrow
from fullbloom.cli.io.blocks import Batch
from fullbloom.cli.io.column_keys import Keys
from fullbloom.cli.io.column_output import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fullbloom import _core
    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.options import RecordOptions
    from fullbloom.cli.stops import Stops

#: Rows that are read at a time: a thousand calls for 64M rows, and 8 MB where a row has 128 bytes.
_ROWS = 1 << 16
#: How an Arrow IPC file begins; a stream does not.
_FILE = b"ARROW1"


class Columns:
    """One input. ``rows`` is their number, None if only reading shows it."""

    def __init__(self, path: str, kind: str) -> None:
        """Read the schema; raise `Refusal` for any other file, or a part of one."""
        self.name = "standard input" if path == "-" else path
        self.kind, self._arrow = kind, import_arrow()
        self.rows: int | None = None
        if path == "-" and kind == "parquet":
            raise Refusal("standard input: Parquet is read from its end; give a file")
        try:
            self._open(path)
        except (self._arrow.ArrowException, OSError) as error:
            raise self._describe_damage(error) from None

    def _open(self, path: str) -> None:
        if self.kind == "parquet":
            self._file = self._arrow.parquet.ParquetFile(path)
            self.schema, self.rows = self._file.schema_arrow, self._file.metadata.num_rows
            return
        if path != "-":
            with Path(path).open("rb") as file:
                whole = file.read(len(_FILE)) == _FILE
            if whole:
                self.kind = "arrow file"
                self._file = self._arrow.ipc.open_file(self._arrow.memory_map(path))
                self.schema = self._file.schema
                return
        self.kind = "arrow stream"
        source: Any = path
        if path == "-":
            source = self._arrow.PythonFile(BufferedReader(FileIO(0, "rb", closefd=False)), "r")
        self._file = self._arrow.ipc.open_stream(source)
        self.schema = self._file.schema

    def batches(self, names: Sequence[str] | None, *, threads: bool = False) -> Iterator[Any]:
        """Yield the rows, of Parquet only the columns of ``names`` where they are given."""
        try:
            if self.kind == "parquet":
                yield from self._file.iter_batches(_ROWS, columns=names, use_threads=threads)
            elif self.kind == "arrow file":
                for number in range(self._file.num_record_batches):
                    yield from self._parts(self._file.get_batch(number))
            else:
                for batch in self._file:
                    yield from self._parts(batch)
        except (self._arrow.ArrowException, OSError) as error:
            raise self._describe_damage(error) from None

    def _parts(self, batch: Any) -> Iterator[Any]:
        for start in range(0, batch.num_rows, _ROWS):
            yield batch.slice(start, _ROWS)

    def _describe_damage(self, error: Exception) -> Refusal:
        what = "Parquet file" if self.kind == "parquet" else "Arrow file or stream"
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return Refusal(f"{self.name}: is not a complete {what}; was it cut short? ({why})")


class _Rows(Batch):
    """Rows of a table: their records are numbers of rows."""

    def __init__(
        self, records: _core.KeyedRecords, table: Any, writers: Sequence[Writer], *, last: bool
    ) -> None:
        """Keep ``table`` until its rows are written; the ``last`` one ends the files."""
        super().__init__(records)
        self._table, self._writers, self._last = table, writers, last

    def join_kept(self, part: bytes | None) -> bytes:
        return self._write(0, part)

    def join_dropped(self, part: bytes | None) -> bytes:
        return self._write(1, part)

    def count_record_bytes(self, written: int) -> int:  # noqa: ARG002 - a truncated file has no row
        return 0

    def _write(self, which: int, part: bytes | None) -> bytes:
        if part is None or not self._writers:
            return b""
        return self._writers[which].write(self._table, part, last=self._last)


class ColumnRecords:
    """Batches of all inputs, which have the columns of the first."""

    def __init__(self, options: RecordOptions, inputs: Sequence[Source], stops: Stops, seen: Filter) -> None:
        """Read ``inputs`` in order."""
        self._options, self._inputs, self._stops, self._seen = options, inputs, stops, seen

    def batches(self, kind: str, *, keys_only: bool) -> Iterator[Batch]:
        """Yield the rows; after an interrupt, the end of the output comes before it is raised."""
        files = [Columns(source.path, kind) for source in self._inputs]
        for file in files:
            if not keys_only and not file.schema.equals(files[0].schema):
                raise Refusal(
                    f"{file.name}: has other columns than {files[0].name}; give files of one schema"
                )
        selects = self._options.select or []
        keys = [Keys(selects, self._options.key_type, file.schema, file.name) for file in files]
        writers = [] if keys_only else [Writer(files[0].kind, files[0].schema) for _ in range(2)]
        interrupted: Interrupted | None = None
        try:
            for source, file, wanted in zip(self._inputs, files, keys, strict=True):
                done = 0
                for table in self._watch_stops(
                    file.batches(wanted.columns if keys_only else None, threads=self._options.threads > 1)
                ):
                    yield _Rows(wanted.records(self._seen, table), table, writers, last=False)
                    done += table.num_rows
                    source.taken = int((source.size or 0) * done / max(file.rows or done, 1))
                source.taken = source.size or 0
        except Interrupted as error:
            interrupted = error
        end = import_arrow().RecordBatch.from_pylist([], schema=files[0].schema)
        yield _Rows(keys[0].records(self._seen, end), end, writers, last=True)
        if interrupted is not None:
            raise interrupted

    def _watch_stops(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            self._stops.wait()
            try:
                table = next(batches, None)
            finally:
                self._stops.go()
            if table is None:
                return
            yield table


def count_rows(paths: Sequence[str], kind: str) -> int:
    """Return how many rows the files have."""
    files = [Columns(path, kind) for path in paths]
    return sum(
        file.rows if file.rows is not None else sum(b.num_rows for b in file.batches(None)) for file in files
    )
