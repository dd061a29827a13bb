"""The split-block filters of Parquet files: where they are, what they hold, and which keys they exclude.

Only footers and the filters themselves are read. A filter excludes a key for certain; a key that it does not
exclude may be in the row group. A row group without a filter excludes nothing.

>>> for probe in probe_filters("data/*.parquet", "user_id", [17, 23]):  # doctest: +SKIP
...     print(probe.place.file, probe.place.row_group, probe.found)
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom import _core
from fullbloom.errors import FormatError, IncompatibleFilters, ParameterError, ParameterTypeError
from fullbloom.formats.sources import RangedFile, expand, open_ranged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from fullbloom._core import ForeignFilter

__all__ = [
    "FilterPlace",
    "Probe",
    "list_filters",
    "list_matches",
    "probe_filters",
    "probe_table",
    "read_filters",
    "unite_filters",
]

_T = TypeVar("_T")
_R = TypeVar("_R")

#: The format of the filters, as the table names it.
FORMAT = "parquet"
#: Bytes behind the footer, and the most bytes of a filter's header.
_TAIL, _HEAD = 8, 32
#: Columns that the error for another one names.
_NAMED = 20
#: How the values of a column are hashed, by their physical type.
_KEY_TYPES = {
    "INT32": "int",
    "INT64": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BYTE_ARRAY": "bytes",
    "FIXED_LEN_BYTE_ARRAY": "bytes",
}


@dataclass(frozen=True)
class FilterPlace:
    """A column of a row group, and where its filter is."""

    #: As it was given, or found by a pattern.
    file: str
    row_group: int
    num_rows: int
    #: Names from the root to the column, joined by dots.
    column: str
    physical_type: str
    #: First byte of the filter; None without one.
    offset: int | None
    #: Its bytes with its header; None where the writer did not state them.
    length: int | None
    encrypted: bool

    @property
    def key_type(self) -> str:
        """The type of its keys, as ForeignFilter names it; FormatError for values without filters."""
        if self.physical_type not in _KEY_TYPES:
            raise FormatError(f"{self}: values of type {self.physical_type} have no filter")
        return _KEY_TYPES[self.physical_type]

    def __str__(self) -> str:
        """Name it in messages."""
        return f"{self.file}: column {self.column!r} of row group {self.row_group}"


@dataclass(frozen=True)
class Probe:
    """What the filter of one row group says about keys."""

    place: FilterPlace
    #: One mark per key, in the container type of the keys: whether the row group may hold it. None without a
    #: filter.
    found: Any


def list_filters(
    sources: Any, column: str | None = None, *, row_groups: Collection[int] | None = None, threads: int = 1
) -> Iterator[FilterPlace]:
    """Yield the columns of all row groups, or those of the name ``column``, in order; read footers only.

    sources: a path, a pattern such as ``data/**/*.parquet``, a URL (with fsspec), or several of them.
    row_groups: numbers of row groups in their file, from 0; all by default. threads: files that are read at a
    time; results come in the same order, and the columns of the files under way are in memory.

    Raises FormatError for a file whose footer is damaged, encrypted or points outside of the file, and
    OSError.
    """
    wanted = _check_row_groups(row_groups)
    if _check_threads(threads) == 1:
        for name in expand(sources):
            with open_ranged(name) as file:
                yield from _Footer(file, column, wanted)
        return

    def read(name: str) -> list[FilterPlace]:
        with open_ranged(name) as file:
            return list(_Footer(file, column, wanted))

    for places in _map_ahead(read, expand(sources), threads):
        yield from places


def read_filters(
    sources: Any, column: str, *, row_groups: Collection[int] | None = None, threads: int = 1
) -> Iterator[tuple[FilterPlace, ForeignFilter | None]]:
    """Yield the filters of ``column``, one per row group; None for one without a filter.

    row_groups, threads: as for :func:`list_filters`; the filters of the files under way are in memory. Raises
    FormatError as :func:`list_filters`, for a filter that is not of the specification, and for an encrypted
    column; ParameterError if a file has no such column.
    """
    wanted = _check_row_groups(row_groups)
    if _check_threads(threads) == 1:
        for name in expand(sources):
            yield from _read_file(name, column, wanted)
        return

    def read(name: str) -> list[tuple[FilterPlace, ForeignFilter | None]]:
        return list(_read_file(name, column, wanted))

    for filters in _map_ahead(read, expand(sources), threads):
        yield from filters


def probe_filters(
    sources: Any, column: str, keys: Any, *, row_groups: Collection[int] | None = None, threads: int = 1
) -> Iterator[Probe]:
    """Yield what the filter of each row group says about ``keys``.

    keys: as ``contains_many`` takes them; int for integer columns, float for floating-point ones, str or
    bytes for byte arrays. row_groups: as for :func:`list_filters`. threads: files that are read at a time,
    and threads that look up columns and arrays of keys. Raises KeyTypeError for keys of another type than the
    column's, and as :func:`read_filters`.
    """
    if not hasattr(keys, "__len__"):
        keys = list(keys)
    for place, bloom in read_filters(sources, column, row_groups=row_groups, threads=threads):
        yield Probe(place, None if bloom is None else bloom.contains_many(keys, threads=threads))


def probe_table(
    sources: Any, column: str, keys: Any, *, row_groups: Collection[int] | None = None, threads: int = 1
) -> Any:
    """Return what :func:`probe_filters` yields as an Arrow table: a row per key that a row group may hold.

    Its columns: file, row_group, key (its number, from 0) and has_filter; row groups without a filter have
    all keys. Needs pyarrow: ImportError without it.
    """
    from fullbloom.formats.arrow import import_arrow

    pa = import_arrow()
    known = keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(list(keys))
    everything = pa.array(range(len(known)), pa.int64())
    parts = []
    for probe in probe_filters(sources, column, known, row_groups=row_groups, threads=threads):
        found = (
            everything if probe.found is None else pa.compute.indices_nonzero(probe.found).cast(pa.int64())
        )
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        count = len(found)
        parts.append(
            pa.record_batch(
                {
                    "file": pa.repeat(pa.scalar(probe.place.file), count),
                    "row_group": pa.repeat(pa.scalar(probe.place.row_group, pa.int32()), count),
                    "key": found,
                    "has_filter": pa.repeat(pa.scalar(probe.found is not None), count),
                }
            )
        )
    schema = pa.schema(
        [("file", pa.string()), ("row_group", pa.int32()), ("key", pa.int64()), ("has_filter", pa.bool_())]
    )
    return pa.Table.from_batches(parts, schema)


def unite_filters(
    sources: Any, column: str, *, row_groups: Collection[int] | None = None, threads: int = 1
) -> ForeignFilter:
    """Return one filter that finds every key that any of the row groups may hold.

    Filters of different sizes are folded to the smallest, which must divide the others: so do powers of two,
    which most writers use. Raises IncompatibleFilters if it does not or a row group has no filter, and as
    :func:`read_filters`.
    """
    union: ForeignFilter | None = None
    for place, bloom in read_filters(sources, column, row_groups=row_groups, threads=threads):
        if bloom is None:
            raise IncompatibleFilters(f"{place} has no filter, so a union would exclude its keys")
        if union is None:
            union = bloom
            continue
        try:
            size = min(union.num_bits, bloom.num_bits)
            if union.num_bits != size:
                union = union.fold(size)
            union.merge(bloom if bloom.num_bits == size else bloom.fold(size))
        except IncompatibleFilters as error:
            raise IncompatibleFilters(f"{place}: {error}") from None
    if union is None:
        raise ParameterError("sources must name a file with a row group, got none")
    return union


def list_matches(probe: Probe, keys: Sequence[Any]) -> list[Any]:
    """Return those of ``keys``, a list, that the row group of ``probe`` may hold."""
    return list(keys) if probe.found is None else list(compress(keys, probe.found))


class _Footer:
    """The columns of a file, each created as the iterator reaches it: hostile footers have millions."""

    def __init__(self, file: RangedFile, column: str | None, row_groups: Collection[int] | None) -> None:
        """Read the footer, and check it as a whole."""
        self._file, self._row_groups = file, row_groups
        self._has_columns = False
        try:
            tail = file.read(max(file.size - _TAIL, 0), min(file.size, _TAIL))
            length = _core.parquet_footer_len(tail, file.size)
            self.data = file.read(file.size - _TAIL - length, length)
            self._chunks = _core.ParquetChunks(self.data, file.size, column)
        except FormatError as error:
            raise FormatError(f"{file.name}: {error}") from None
        #: The first byte behind all filters.
        self.end = self._chunks.end

    def __iter__(self) -> Iterator[FilterPlace]:
        """Yield the columns, once."""
        for chunk in self._chunks:
            self._has_columns = True
            if self._row_groups is None or chunk[0] in self._row_groups:
                yield FilterPlace(self._file.name, *chunk)

    def require_column(self, column: str) -> None:
        """Refuse a column that no row group has, once all are read; a file without row groups has any."""
        if self._has_columns:
            return
        chunks = _core.ParquetChunks(self.data, self._file.size)
        names = list(dict.fromkeys(chunk[2] for chunk in islice(chunks, _NAMED)))
        if names:
            raise ParameterError(f"{self._file.name}: has no column {column!r}; it has {', '.join(names)}")


def _read_file(
    name: str, column: str, row_groups: Collection[int] | None
) -> Iterator[tuple[FilterPlace, ForeignFilter | None]]:
    with open_ranged(name) as file:
        footer, is_empty = _Footer(file, column, row_groups), True
        left = footer.end
        for place in footer:
            is_empty = False
            bloom, length = _read_filter(file, place, footer.end, left)
            left -= length
            yield place, bloom
        if is_empty:
            footer.require_column(column)


def _read_filter(
    file: RangedFile, place: FilterPlace, end: int, left: int
) -> tuple[ForeignFilter | None, int]:
    """Return the filter of a column, which ends before byte ``end``, and its bytes, at most ``left``."""
    if place.encrypted:
        raise FormatError(f"{place}: is encrypted, which is not supported")
    if place.offset is None:
        return None, 0
    try:
        length, data = place.length, b""
        if length is None:
            data = file.read(place.offset, min(_HEAD, end - place.offset))
            length = _core.parquet_filter_len(data)
        # One that reaches into the footer is cut short, which its length contradicts.
        length = min(length, end - place.offset)
        _require_left(length, left, end)
        data = data[:length] + file.read(place.offset + len(data), max(length - len(data), 0))
        return _core.ForeignFilter.from_foreign(data, FORMAT, key_type=place.key_type), length
    except FormatError as error:
        raise FormatError(f"{place}: {error}") from None


def _require_left(length: int, left: int, end: int) -> None:
    """Refuse more bytes than are left: a small file could name one large filter for many row groups."""
    if length > left:
        text = f"with the {length} bytes of this filter, the filters take more bytes"
        raise FormatError(f"{text} than the {end} before the footer")


def _map_ahead(work: Callable[[_T], _R], items: Iterable[_T], threads: int) -> Iterator[_R]:
    """Yield the results of ``work`` in order, ``threads`` of them under way at a time."""
    under_way: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                under_way.append(pool.submit(work, item))
                if len(under_way) > threads:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def _check_threads(threads: int) -> int:
    if not isinstance(threads, int):
        raise ParameterTypeError(f"threads must be an int, got {type(threads).__name__}")
    if threads < 1:
        raise ParameterError(f"threads must be at least 1, got {threads}")
    return threads


def _check_row_groups(row_groups: Collection[int] | None) -> Collection[int] | None:
    if row_groups is None:
        return None
    if isinstance(row_groups, (str, bytes)) or not hasattr(row_groups, "__iter__"):
        raise ParameterTypeError(f"row_groups must be numbers, got {type(row_groups).__name__}")
    numbers = list(row_groups)
    for number in numbers:
        if not isinstance(number, int):
            raise ParameterTypeError(f"row_groups must be numbers, got {type(number).__name__}")
        if number < 0:
            raise ParameterError(f"row_groups are counted from 0, got {number}")
    return frozenset(numbers)
