"""Filters in queries of DuckDB: the function ``bloom_contains(name, key)``, builds and semi-joins.

>>> import duckdb
>>> from fullbloom.engines.duckdb import build, register
>>> connection = duckdb.connect()
>>> customers = build(connection.sql("select range as id from range(1000)"), "id", capacity=1000)
>>> register(connection, customers=customers)
>>> connection.sql("select bloom_contains('customers', 5), bloom_contains('customers', null)").fetchall()
[(True, None)]

Import this module before the database is opened: then the function is compiled (Linux and macOS), and a
column takes at most twice the time of one batch. In a database that was open before, the function is written
in Python, which takes 5 to 20 times as long. `keep_candidates` is fast in any database, and returns a
relation:

>>> from fullbloom.engines.duckdb import keep_candidates
>>> visits = connection.sql("select range as id from range(998, 3000)")
>>> candidates = keep_candidates(connection, visits, "id", customers)
>>> 2 <= candidates.aggregate("count(*)").fetchall()[0][0] < 200
True

Needs duckdb and pyarrow (``pip install 'fullbloom[duckdb]'``).
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
import weakref
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.engines.kinds import FilterGroups, create_filter
from fullbloom.errors import EngineUnavailable, ParameterError, ParameterTypeError
from fullbloom.extras import require_extra

with require_extra("duckdb"):
    import _duckdb
    import duckdb
    import pyarrow as pa
    import pyarrow.compute as pc
    from duckdb.func import FunctionNullHandling, PythonUDFType

    from fullbloom.engines import arrow
    from fullbloom.engines.arrow import check_filter, look_up_by_name, split_by_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fullbloom.protocols import Filter

__all__ = ["build", "build_groups", "keep_candidates", "register", "semi_join", "unregister"]

FUNCTION = "bloom_contains"
#: Rows of a batch that `build` reads.
_BATCH_ROWS = 1 << 18
#: Characters of names that messages show.
_SHOWN = 200
#: Types whose equal values are equal keys.
_INTEGERS = frozenset(
    f"{sign}{name}" for sign in ("", "U") for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)

#: Texts that collations without case, without accents, of normal forms, and of a language make equal.
_COLLATED = (("A", "a"), ("\u00e9", "e"), ("\u00e9", "e\u0301"), ("a\u200b", "a"))

#: Types of the compiled function's keys, and their types in Arrow; booleans come as bytes.
_ARROW_TYPES = {
    "BOOLEAN": pa.uint8(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.large_string(),
    "BLOB": pa.large_binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}


class _Filters(dict[str, "Filter"]):
    """The filters of a database by name. Queries of the compiled function learn of each change."""

    #: The database's number, if it has the compiled function.
    database: int | None = None

    def add(self, filters: dict[str, Filter]) -> None:
        self.update(filters)
        self._report()

    def release(self, name: str) -> None:
        self.pop(name, None)
        self._report()

    def _report(self) -> None:
        if self.database is not None:
            _core.refresh_duckdb(self.database)


# The function holds the same dictionary, so it lives as long as the database needs it.
_registered: weakref.WeakKeyDictionary[Any, _Filters] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def register(connection: Any, /, **filters: Filter) -> None:
    """Make filters available to the queries of ``connection``, as ``bloom_contains('NAME', key)``.

    A name that is registered already gets the new filter. The function is compiled if the database was opened
    after this module was imported. It takes a key of every type that a filter takes, also ``row(a, b)`` for
    the tuple of two columns, and a null key gives null. Cursors of the connection share it. Nothing is
    written, so a read-only database will do. The filters stay in memory until `unregister` is called or the
    connection is gone.

    Raises ParameterTypeError for a value that is not a filter and for anything but a connection,
    EngineUnavailable if the connection is closed, and ParameterError if another connection of the same
    database has registered filters: use that connection, of which this one may be a cursor. In a query, an
    unknown name is an error that lists the known ones.
    """
    for filter_ in filters.values():
        check_filter(filter_)
    with _lock:
        _get_filters(connection).add(filters)


def unregister(connection: Any, /, *names: str) -> None:
    """Release filters; raise ParameterError for a name that is not registered, then none is released."""
    with _lock:
        filters = _registered.get(connection, _Filters())
        for name in names:
            _find(filters, name)
        for name in names:
            filters.release(name)


def build(
    source: Any, column: str, *, capacity: int, fpr: float = 0.01, kind: str = "bloom", **parameters: Any
) -> Any:
    """Return a filter of the values in one column of a query; nulls are skipped.

    ``source`` is a relation, ``connection.sql("select ...")``, or a connection whose query was just executed,
    which allows parameters: ``connection.execute("select ... where day = ?", [day])``. Batches of up to
    262,144 rows are added as they arrive. ``kind`` is the name of a kind that takes a ``capacity`` and
    ``fpr``, and ``parameters`` are further ones of its class, ``seed=`` for example. Raises ParameterError if
    the column or the kind does not exist, KeyTypeError if the column holds no keys, EngineUnavailable if the
    connection is closed. There is no filter unless the whole column was added.
    """
    result = create_filter(kind, capacity, fpr, **parameters)
    for batch in _read_batches(source, [column]):
        result.update(batch.column(column))
    return result


def build_groups(
    source: Any,
    by: str,
    column: str,
    *,
    capacity: int,
    fpr: float = 0.01,
    kind: str = "bloom",
    **parameters: Any,
) -> dict[Any, Any]:
    """Return a filter of ``column`` for each value of the column ``by``, as a dictionary.

    All filters have the same ``capacity``, so they can be merged. The source is read as in `build`: memory
    holds the filters and one batch. Rows whose group is null are under the key None, and those whose group is
    NaN under ``math.nan``. Raises ParameterTypeError if the groups are lists or structs, and the errors of
    `build`.

    >>> import duckdb
    >>> visits = duckdb.sql("select * from (values ('mon', 1), ('mon', 2), ('tue', 3)) visits(day, person)")
    >>> days = build_groups(visits, "day", "person", capacity=100)
    >>> sorted(days), 2 in days["mon"], 2 in days["tue"]
    (['mon', 'tue'], True, False)
    """
    groups = FilterGroups(kind, capacity, fpr, **parameters)
    for batch in _read_batches(source, [by, column]):
        for group, keys in split_by_group(batch.column(by), batch.column(column)):
            groups.update(group, keys)
    return groups.filters


def keep_candidates(connection: Any, source: Any, column: str, filter_: Filter) -> Any:
    """Return a relation of those rows of ``source`` whose key ``filter_`` may contain.

    ``source`` is a relation of ``connection``. Each query of the result reads it again, in batches of up to
    262,144 rows, which takes at most twice the time of one batch in memory. Rows with a null key are dropped.
    The result belongs to a cursor of ``connection``, because both are read at the same time: join it with
    tables by name (``query``), and create a table of it if one query reads it twice. Raises
    ParameterTypeError if ``filter_`` is not a filter, ParameterError if the column does not exist,
    KeyTypeError if it holds no keys, EngineUnavailable if the connection is closed.
    """
    check_filter(filter_)
    with _TranslateErrors():
        if not isinstance(connection, duckdb.DuckDBPyConnection) or not hasattr(source, "columns"):
            raise ParameterTypeError(
                f"a connection and a relation of it are needed, got {type(connection).__name__} and "
                f"{type(source).__name__}"
            )
        _find_type(source, column)
        return connection.cursor().from_arrow(_Candidates(source, column, filter_))


class _Candidates:
    """A stream of Arrow that starts again each time that DuckDB reads it."""

    def __init__(self, source: Any, column: str, filter_: Filter) -> None:
        self._source, self._column, self._filter = source, column, filter_
        self._schema = source.limit(0).to_arrow_table().schema
        filter_.contains_many(self._schema.empty_table()[column])  # refuses a type that holds no keys

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = self._source.to_arrow_reader(_BATCH_ROWS)
        kept = arrow.keep_candidates(reader, self._column, self._filter)
        return kept.__arrow_c_stream__(requested_schema)


def _read_batches(source: Any, columns: list[str]) -> Iterator[Any]:
    """Yield some columns of a relation, or of the query that a connection has executed, batch by batch."""
    with _TranslateErrors():
        if hasattr(source, "columns"):
            for column in columns:
                _find_type(source, column)
            source = source.select(*(duckdb.ColumnExpression(column) for column in dict.fromkeys(columns)))
        elif not isinstance(source, duckdb.DuckDBPyConnection):
            raise ParameterTypeError(f"a relation or connection is needed, got {type(source).__name__}")
        reader = source.to_arrow_reader(_BATCH_ROWS)
        for column in columns:
            if column not in reader.schema.names:
                raise ParameterError(_describe_missing(column, reader.schema.names))
        yield from reader


def semi_join(connection: Any, big: Any, small: Any, *, on: str | Sequence[str], fpr: float = 0.01) -> Any:
    """Return a relation of the rows of ``big`` that have a partner in ``small``: exactly, each at most once.

    ``big`` and ``small`` are relations of ``connection``, and ``on`` names the columns that both have. The
    keys of the small side are read now, for a filter, and again with the result, for the join: it must give
    the same rows each time, so materialize a sample or a limit without an order, and call this again after a
    change. The large side is read once, with the result. The plan of the result applies the filter to ``big``
    below the join. It pays if what lies between the two is expensive; the ``semi`` join of tables in memory
    is faster. A null has no partner.

    The filter is released with the returned relation, so keep it while a relation derived from it is in use.
    Raises ParameterError if a column does not exist, has different types on the two sides, or a collation in
    which different texts are equal, and the errors of `register`.
    """
    columns = [on] if isinstance(on, str) else [*on]
    if not columns:
        raise ParameterError("on must name at least one column")
    for column in columns:
        _check_types(column, _find_type(big, column), _find_type(small, column))
    quoted = [_quote(column) for column in columns]
    key = quoted[0] if len(quoted) == 1 else f"row({', '.join(quoted)})"
    name = f"semi_join_{secrets.token_hex(8)}"
    with _TranslateErrors():
        for column in columns:
            _check_collation(column, big)
            _check_collation(column, small)
        ((rows,),) = small.aggregate("count(*)").fetchall()
        known = build(small.project(f"{key} as key"), "key", capacity=max(1, rows), fpr=fpr)
        register(connection, **{name: known})
        release = functools.partial(_registered[connection].release, name)
        try:
            # A struct with a null field is not a key, but DuckDB joins it with an equal one.
            present = " and ".join(f"{column} is not null" for column in quoted)
            candidates = big.filter(f"{present} and {FUNCTION}('{name}', {key}) is not false")
            candidates = candidates.set_alias("candidates")
            condition = " and ".join(f"candidates.{column} = partners.{column}" for column in quoted)
            joined = candidates.join(small.set_alias("partners"), condition, how="semi")
            weakref.finalize(joined, release)
        except BaseException:
            release()
            raise
    return joined


class _TranslateErrors:
    """Translates the error of a closed connection; others are DuckDB's own."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, duckdb.ConnectionException):
            raise EngineUnavailable("the connection to DuckDB is closed; open another") from None


def _get_filters(connection: Any) -> _Filters:
    """Return the filters of a connection; the first call creates the function.

    A database with the compiled function has an overload of it for each simple type. The Python function is
    added for all other types.
    """
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        raise ParameterTypeError(f"a connection of DuckDB is needed, got {type(connection).__name__}")
    filters = _registered.get(connection)
    with _TranslateErrors():
        if filters is not None:
            connection.query_progress()  # raises if the connection is closed
            return filters
        filters = _Filters()
        with contextlib.suppress(duckdb.CatalogException):  # the database was open before
            ((filters.database,),) = connection.cursor().execute("select fullbloom_database()").fetchall()
        try:
            connection.create_function(
                FUNCTION,
                _create_lookup(filters),
                None,  # parameters without annotations take keys of every type
                "BOOLEAN",
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )
        except (duckdb.CatalogException, duckdb.NotImplementedException):
            raise ParameterError(
                f"the database already has a function {FUNCTION}; register filters with the connection that "
                "created it"
            ) from None
        if filters.database is not None:
            _core.bind_duckdb(filters.database, functools.partial(_find_in, weakref.ref(filters)))
    _registered[connection] = filters
    return filters


def _create_lookup(filters: dict[str, Filter]) -> Callable[[Any, Any], Any]:
    def look_up(name, key):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - DuckDB reads the annotations
        return look_up_by_name(lambda one: _find(filters, one), name, key)

    return look_up


def _find(filters: dict[str, Filter], name: str) -> Filter:
    found = filters.get(name)
    if found is None:
        known = ", ".join(sorted(filters)) or "none"
        raise ParameterError(f"no filter is registered as {name[:_SHOWN]!r}; the names are: {known[:_SHOWN]}")
    return found


def _look_up_vector(filter_: Filter, key_type: str, rows: int, buffers: list[bytes]) -> bytes:
    """Return 0, 1 or 2 (for null) per key of a vector, for the compiled function: what it cannot look up."""
    arrow_type = _ARROW_TYPES[key_type]
    keys = pa.Array.from_buffers(arrow_type, rows, [pa.py_buffer(buffer) for buffer in buffers])
    keys = keys.cast(pa.bool_()) if key_type == "BOOLEAN" else keys
    found = filter_.contains_many(pa.chunked_array([keys]))
    if not isinstance(found, pa.Array | pa.ChunkedArray):
        found = pa.array(found, pa.bool_())
    return bytes(pc.fill_null(found.cast(pa.uint8()), 2).to_pylist())


def _find_in(filters: weakref.ref[_Filters], name: str) -> Filter:
    return _find(filters() or {}, name)


def _find_type(relation: Any, column: str) -> str:
    """Return the name of a column's type."""
    types = dict(zip(relation.columns, relation.types, strict=True))
    if column not in types:
        raise ParameterError(_describe_missing(column, relation.columns))
    return str(types[column])


def _describe_missing(column: str, columns: Sequence[str]) -> str:
    return f"column {str(column)[:_SHOWN]!r} does not exist; the columns are {', '.join(columns)[:_SHOWN]}"


def _check_types(column: str, big: str, small: str) -> None:
    """Raise ParameterError unless equal values of the two types are equal keys."""
    if big != small and not {big, small} <= _INTEGERS:
        raise ParameterError(
            f"column {column[:_SHOWN]!r} has the type {big} on the big side and {small} on the small side; "
            "cast one, because equal values of these types are different keys"
        )


def _check_collation(column: str, relation: Any) -> None:
    """Raise ParameterError if a column calls different texts equal, which are different keys.

    The type of a column does not tell its collation, so texts are compared that only a collation makes equal:
    as values of that column in a result without rows. Texts in structs, and JSON, have the default collation.
    """
    kind = _find_type(relation, column)
    if "VARCHAR" not in kind and "JSON" not in kind:
        return
    text = _quote(column) if kind == "VARCHAR" else "null::varchar"
    value = f"coalesce(any_value({text}), '%s')"
    compared = ", ".join(f"{value % one} = {value % other}" for one, other in _COLLATED)
    (found,) = relation.limit(0).aggregate(compared).fetchall()
    if any(found):
        raise ParameterError(
            f"column {column[:_SHOWN]!r} has a collation in which different texts are equal; join it without "
            "a filter, because these texts are different keys"
        )


def _quote(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


# Every database that is opened from now on has the compiled function.
_core.load_duckdb(_duckdb.__file__, functools.partial(_find, {}), _look_up_vector)
