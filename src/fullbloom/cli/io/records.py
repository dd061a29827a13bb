"""Records with a chosen key: columns of CSV or TSV, dotted names of JSON lines, or whole lines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fullbloom import _core
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.ahead import Ahead
from fullbloom.cli.io.blocks import Batch, Blocks
from fullbloom.cli.io.tables import LONGEST_CONTINUED, columns, first_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.options import RecordOptions
    from fullbloom.cli.stops import Stops

#: Half of a usual L2 cache, as for lines.
_BLOCK = 1 << 18
_BOM = b"\xef\xbb\xbf"
#: Byte order marks of UTF-16, in either order, and UTF-32.
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def _require_text(options: RecordOptions, kind: str) -> None:
    """Refuse options that apply to text only."""
    reasons = (
        ("--verify", options.exact, "compares the text of keys"),
        ("--mark", options.mark, "puts a word in front of lines"),
        ("--memory", options.memory, "does not limit pyarrow's memory: give --expected"),
        ("--no-header", options.no_header, "is for CSV and TSV"),
        ("--delimiter", options.delimiter, "is for CSV and TSV"),
    )
    for option, given, why in reasons:
        if given:
            raise Refusal(f"{option} {why}, and {kind} is not text; drop it")
    if options.needs_output_file:
        raise Refusal(f"{kind} is useless until it is complete, so --state needs --output FILE with it")


class Records:
    """Batches of records from all inputs, whose keys are hashed for ``seen``.

    Records come out unchanged, byte for byte. ``faults`` counts those that cannot be read, with --skip-bad.
    """

    def __init__(
        self,
        options: RecordOptions,
        inputs: Sequence[Source],
        stops: Stops,
        seen: Filter,
        *,
        longest: int,
        size: int = _BLOCK,
        tick: float | None = None,
        keys_only: bool = False,
    ) -> None:
        """Read ``inputs``, whose lines have at most ``longest`` bytes, in blocks of ``size``.

        With ``tick``, an empty batch comes after so many idle seconds. ``keys_only``: no record is written.
        """
        self.options, self.stops, self.seen = options, stops, seen
        self._inputs = inputs
        self.longest, self.size, self.tick = longest, size, tick
        self._columnar, self._keys_only = options.columnar_format, keys_only
        if self._columnar:
            _require_text(options, self._columnar)
        self._header: bytes | None = None
        self.faults = 0
        self.first_fault = ""

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches; raise `Refusal` with file and line for a record that cannot be read."""
        if self._columnar:
            from fullbloom.cli.io.columns import ColumnRecords

            read = ColumnRecords(self.options, self._inputs, self.stops, self.seen)
            yield from read.batches(self._columnar, keys_only=self._keys_only)
            return
        for index, source in enumerate(self._inputs):
            last = index == len(self._inputs) - 1
            yield from _Input(self, source, last=last).batches()

    def take_header(self, raw: bytes) -> bytes:
        """Return the bytes to write before the first records: ``raw`` for the first input only."""
        first, self._header = self._header is None, raw
        return raw if first else b""

    def count_faults(self, records: _core.KeyedRecords, name: str, before: int) -> None:
        """Refuse records that cannot be read, or with --skip-bad count them."""
        fault = f"{name}: {records.fault(before)}"
        if not self.options.skip_bad:
            raise Refusal(fault)
        self.faults += records.faults
        self.first_fault = self.first_fault or fault


class _Input:
    """The records of one input."""

    def __init__(self, records: Records, source: Source, *, last: bool) -> None:
        self._all, self._source, self._last = records, source, last
        self._options = records.options
        self._kind = self._options.find_format(source.name)
        self._delimiter = self._options.delimiter or _DELIMITERS.get(self._kind, "")
        self._lines = 0

    def batches(self) -> Iterator[Batch]:
        everything = self._all
        blocks = Blocks(
            [self._source],
            everything.stops,
            size=everything.size,
            longest=everything.longest,
            tick=everything.tick,
        )
        chunks = map(bytes, blocks)
        first = next(filter(None, chunks), b"")
        mark = _BOM if self._kind != "lines" and first.startswith(_BOM) else b""
        if self._options.select and first.startswith(_WIDE):
            raise Refusal(
                f"{self._source.name}: line 1: the text is UTF-16 or UTF-32; convert it to UTF-8, "
                "such as by iconv -t UTF-8"
            )
        names = None
        if self._has_header and first:
            names, header, first = self._first_row(first, chunks)
        else:
            header, first = mark, first.removeprefix(mark)
        header = self._all.take_header(header) if header or first else b""
        selection = self._selection(names)
        work = partial(selection.read, skip=self._options.skip_bad)
        pieces = self._pieces(selection, first, chunks)
        for records in Ahead(work, self._options.threads, self._is_idle)(pieces):
            if records.faults:
                self._all.count_faults(records, self._source.name, self._lines)
            self._lines += records.lines
            yield Batch(records, header)
            header = b""
        if header:
            yield Batch(selection.read(b""), header)

    def _is_idle(self) -> bool:
        """Return whether the next bytes may take long; for a compressed stream that is unknown."""
        source = self._source
        return source.size is None and (source.is_packed or not source.is_ready(0))

    @property
    def _has_header(self) -> bool:
        return self._kind in _DELIMITERS and not self._options.no_header

    def _first_row(self, first: bytes, chunks: Iterator[bytes]) -> tuple[list[str], bytes, bytes]:
        """Return the names, the bytes of the row, and the bytes read after it."""
        name, quotes = self._source.name, self._kind == "csv"
        while (found := first_row(first, name, delimiter=self._delimiter, quotes=quotes)) is None:
            more = next(filter(None, chunks), b"")
            if not more and not first.endswith(b"\n"):
                first += b"\n"  # of a last row: it is written unchanged
                found = first_row(first, name, delimiter=self._delimiter, quotes=quotes)
                if found is not None:
                    break
            if not more or len(first) > LONGEST_CONTINUED + self._all.longest:
                raise Refusal(
                    f"{name}: line 1: a quoted field is not closed within 1 MiB of further lines or "
                    "before the end; close it, or double a quote that is text"
                )
            first += more
        names, end = found
        self._lines = first.count(b"\n", 0, end)
        return names, first[:end], first[end:]

    def _selection(self, names: list[str] | None) -> _core.Selection:
        options, seen = self._options, self._all.seen
        if self._kind == "lines":
            return _core.Selection.lines(seen, options.line_type)
        types = options.key_type or ["auto"]
        if self._kind == "jsonl":
            return _core.Selection.objects(seen, options.select or [], types)
        places = columns(options.select or [], names, self._source.name)
        quotes = self._kind == "csv"
        return _core.Selection.rows(seen, places, types, delimiter=self._delimiter, quotes=quotes)

    def _pieces(self, selection: _core.Selection, rest: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield blocks of whole records."""
        if rest:
            cut = selection.cut(rest)
            if cut:
                yield rest[:cut]
            rest = rest[cut:]
        for chunk in chunks:
            if not chunk:
                yield chunk  # an idle second
                continue
            data = rest + chunk if rest else chunk
            cut = selection.cut(data)
            if cut:
                yield data[:cut]
            rest = data[cut:]
            while len(rest) - (line := rest.find(b"\n") + 1) > LONGEST_CONTINUED and line:
                yield rest[:line]  # its quote is not closed: a fault
                cut = line + selection.cut(rest[line:])
                if cut > line:
                    yield rest[line:cut]
                rest = rest[cut:]
        if rest:
            yield rest if self._last or rest.endswith(b"\n") else rest + b"\n"
