"""Records with a chosen key: a column of CSV or TSV, a dotted key of JSON lines."""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from bloomery.cli.failures import Refusal
from bloomery.cli.io.blocks import Blocks

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bloomery.cli.io.sources import Source
    from bloomery.cli.stops import Stops

    #: The bytes of a record, and its cells.
    Row = tuple[bytes, list[bytes]]

_BATCH = 4096
#: A batch ends at so many bytes as well: whoever gives --memory may have long records.
_BATCH_BYTES = 1 << 20
_FIELD_LIMIT = 1 << 30
#: A CSV record goes on over further lines for at most so many bytes: more is a quote never closed.
_LONGEST_CONTINUED = 1 << 20
#: More digits are the name of a column: no table has so many.
_MOST_DIGITS = 18
_BOM = b"\xef\xbb\xbf"
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@dataclass(slots=True)
class Batch:
    """Raw records with their keys; a key of None is a record without one."""

    raws: list[bytes] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    #: A header belongs in front of the first batch.
    header: bytes = b""


def format_of(args: argparse.Namespace, name: str) -> str:
    """Return csv, tsv or jsonl: as asked, else by the file's name."""
    if args.format:
        return str(args.format)
    bare = name.removesuffix(".gz").removesuffix(".zst").lower()
    for suffix, known in _SUFFIXES.items():
        if bare.endswith(suffix):
            return known
    raise Refusal(f"{name}: cannot tell the format from the name; give --format csv, tsv or jsonl")


class Records:
    """Batches of records from all inputs. Records come out unchanged, byte for byte."""

    def __init__(
        self, args: argparse.Namespace, inputs: Sequence[Source], stops: Stops, *, longest: int
    ) -> None:
        """Read ``inputs``, whose lines have ``longest`` bytes at most."""
        self._args, self._inputs, self._stops, self._longest = args, inputs, stops, longest
        self._header: bytes | None = None

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches; raises `Refusal` that names file and record where one cannot be read."""
        for index, source in enumerate(self._inputs):
            lines = _lines(Blocks([source], self._stops, longest=self._longest))
            kind = format_of(self._args, source.name)
            if kind == "jsonl":
                pairs = _json_pairs(lines, self._args.select, source.name)
            else:
                rows = _tsv_rows(lines) if kind == "tsv" else _csv_rows(lines, source.name)
                pairs = self._table_pairs(rows, source.name)
            last = index == len(self._inputs) - 1
            yield from self._batches(pairs, last=last)

    def _batches(self, pairs: Iterator[tuple[bytes, Any]], *, last: bool) -> Iterator[Batch]:
        batch, size = Batch(), 0
        for raw, key in pairs:
            batch.raws.append(raw if last or raw.endswith(b"\n") else raw + b"\n")
            batch.keys.append(key)
            size += len(raw)
            if len(batch.raws) == _BATCH or size >= _BATCH_BYTES:
                batch.header = self._take_header()
                yield batch
                batch, size = Batch(), 0
        batch.header = self._take_header()
        if batch.raws or batch.header:
            yield batch

    def _take_header(self) -> bytes:
        header, self._header = self._header or b"", b"" if self._header is not None else None
        return header

    def _table_pairs(self, rows: Iterator[Row], name: str) -> Iterator[tuple[bytes, Any]]:
        column = _number(self._args.select)
        named = not self._args.no_header
        if column is None and not named:
            raise Refusal("--select by name needs a header; give the column's number with --no-header")
        for raw, cells in rows:
            if named:
                column, named = self._columns(cells, raw, name), False
                continue
            position = -1 if column is None else column
            yield raw, cells[position] if 0 <= position < len(cells) else None

    def _columns(self, cells: list[bytes], raw: bytes, name: str) -> int:
        if self._header is None:
            self._header = raw if raw.endswith(b"\n") else raw + b"\n"
        names = [cell.decode("utf-8", "replace") for cell in cells]
        if self._args.select in names:
            return names.index(self._args.select)
        column = _number(self._args.select)
        if column is None or column >= len(names):
            raise Refusal(
                f"{name}: --select {self._args.select!r} is not in the header; it has {', '.join(names)}"
            )
        return column


def _number(select: str) -> int | None:
    if not select.isdecimal() or len(select) > _MOST_DIGITS:
        return None
    if int(select) < 1:
        raise Refusal(f"--select counts columns from 1, got {select}")  # noqa: S608 - no SQL
    return int(select) - 1


def _lines(blocks: Blocks) -> Iterator[bytes]:
    for block in blocks:
        yield from BytesIO(block)


def _tsv_rows(lines: Iterator[bytes]) -> Iterator[Row]:
    """Yield records of TSV, which knows no quotes: a line is a record, a tab ends a cell."""
    for number, line in enumerate(lines):
        text = (line if number else line.removeprefix(_BOM)).removesuffix(b"\n").removesuffix(b"\r")
        yield line, text.split(b"\t") if text else []


def _csv_rows(lines: Iterator[bytes], name: str) -> Iterator[Row]:
    """Yield records of CSV; a quoted field that never ends is refused, not taken for one record."""
    csv.field_size_limit(_FIELD_LIMIT)
    taken: list[bytes] = []
    ended = False
    begin = continued = 0

    def text() -> Iterator[str]:
        # Latin-1 maps every byte to a character and back, so any encoding passes through unchanged.
        nonlocal ended, continued
        for line in lines:
            continued += len(line) if taken else 0
            if continued > _LONGEST_CONTINUED:
                raise Refusal(
                    f"{name}: line {begin}: a quoted field is not closed within 1 MiB of further lines; "
                    "close it, or double a quote that is text"
                )
            first = begin == 1 and not taken
            taken.append(line)
            yield (line.removeprefix(_BOM) if first else line).decode("latin-1")
        ended = True

    reader = csv.reader(text())
    while True:
        taken.clear()
        begin, continued = reader.line_num + 1, 0
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise Refusal(f"{name}: line {reader.line_num}: {_reason(error)}") from None
        if row is None:
            return
        if ended:  # the reader wanted more of this record
            raise Refusal(
                f"{name}: line {begin}: a quoted field is not closed before the end; "
                "close it, or double a quote that is text"
            )
        yield b"".join(taken), [cell.encode("latin-1") for cell in row]


def _reason(error: csv.Error) -> str:
    """Say it to whoever has the file; Python's words are for whoever opens it."""
    if "new-line" in str(error):
        return "a carriage return within a field that is not quoted; quote the field, or remove it"
    return str(error)


def _json_pairs(lines: Iterator[bytes], select: str, name: str) -> Iterator[tuple[bytes, Any]]:
    path = select.split(".")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            yield line, None
            continue
        try:
            value = json.loads(line)
        except UnicodeDecodeError as error:
            raise Refusal(
                f"{name}: line {number} is not JSON: {error.reason} at byte {error.start}"
            ) from None
        except json.JSONDecodeError as error:
            raise Refusal(f"{name}: line {number} is not JSON: {error}") from None
        except ValueError:
            most = sys.get_int_max_str_digits()
            raise Refusal(f"{name}: line {number} has a whole number of more than {most:,} digits") from None
        except RecursionError:
            raise Refusal(f"{name}: line {number} is nested too deeply") from None
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str) and (half := _HALF_PAIR.search(value)):
            raise Refusal(
                f"{name}: line {number}: the key has half of a surrogate pair, \\u{ord(half[0]):x}, "
                "which is no text; write the whole character"
            )
        yield line, None if value is None else _json_key(value)


def _json_key(value: Any) -> Any:
    """Return the key of a JSON value that is not null, unlike that of any value of another type.

    Texts and numbers are keys themselves. Of the rest, the JSON text within a tuple is: the order of
    an object's keys does not count, and a bare ``True`` would be the key 1.
    """
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value
    return (json.dumps(value, sort_keys=True),)
