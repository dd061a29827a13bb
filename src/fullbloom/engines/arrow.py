"""Filters as compute functions of PyArrow, for arrays, expressions and datasets.

>>> import pyarrow as pa
>>> import pyarrow.compute as pc
>>> from fullbloom import BloomFilter
>>> from fullbloom.engines.arrow import register
>>> customers = BloomFilter(1000, fpr=0.001)
>>> customers.update([1, 2, 3])
>>> register(customers, "fullbloom_contains", "int64")
>>> pc.call_function("fullbloom_contains", [pa.array([3, 4, None])]).to_pylist()
[True, False, None]

Needs pyarrow (``pip install 'fullbloom[arrow]'``).
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fullbloom.engines.kinds import create_group_error
from fullbloom.errors import KeyTypeError, ParameterError, ParameterTypeError
from fullbloom.extras import require_extra

with require_extra("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fullbloom.protocols import Filter

__all__ = ["contains", "filter_dataset", "keep_candidates", "register", "unregister"]

#: Characters of a name; PyArrow keeps the name for the life of the process.
_NAME_LENGTH = 200
#: Rows of a batch that `keep_candidates` reads, unless its source already has batches.
_BATCH_ROWS = 1 << 20
#: Rows that DuckDB passes to a function at once.
_CONSTANT_ROWS = 2048


class _Registration:
    """The type of a function's keys, which PyArrow never changes, and its filter, which can be replaced."""

    def __init__(self, key_type: Any, filter_: Filter) -> None:
        self.key_type = key_type
        self.filter: Filter | None = filter_


_registrations: dict[str, _Registration] = {}
_lock = threading.Lock()


def register(filter_: Filter, name: str = "fullbloom_contains", key_type: Any = "int64") -> None:
    """Register a compute function ``name(keys)`` that looks up keys of ``key_type`` in ``filter_``.

    ``key_type`` is an Arrow type or its name, ``"string"`` for example. A null gives null. PyArrow cannot
    remove a function or give it another type, so a name keeps its type for the life of the process:
    registering it again with the same type replaces the filter, and `unregister` releases the filter. Raises
    ParameterError if the name is empty, too long, taken by another function, or registered with another type;
    ParameterTypeError if
    ``filter_`` is not a filter or ``key_type`` is not a type.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from fullbloom import BloomFilter
    >>> register(BloomFilter(100), "is_listed", pa.string())
    >>> pc.call_function("is_listed", [pa.array(["ada"])]).to_pylist()
    [False]
    >>> unregister("is_listed")
    """
    check_filter(filter_)
    if not 0 < len(name) <= _NAME_LENGTH:
        raise ParameterError(f"the name of a function has 1 to {_NAME_LENGTH} characters")
    found = _read_type(key_type)
    filter_.contains_many(pa.array([], found))  # refuses a type that holds no keys before the name is taken
    with _lock:
        known = _registrations.get(name)
        if known is None:
            _create_function(name, found, registration := _Registration(found, filter_))
            _registrations[name] = registration
        elif known.key_type != found:
            raise ParameterError(
                f"the function {name!r} takes {known.key_type}, which PyArrow cannot change to {found}; "
                "choose another name"
            )
        else:
            known.filter = filter_


def unregister(name: str) -> None:
    """Release the filter of a function; calling the function is an error until the name is registered again.

    Raises ParameterError if no filter is registered under ``name``.
    """
    with _lock:
        _get_registration(name).filter = None


def contains(column: Any, name: str = "fullbloom_contains") -> Any:
    """Return an expression that calls the function ``name`` on a column: a name, or an expression.

    Its type must be the function's: cast the expression if it is not (`filter_dataset` casts by itself).

    >>> import pyarrow as pa
    >>> from fullbloom import BloomFilter
    >>> orders = pa.table({"customer": pa.array([1, 5], "int64")})
    >>> customers = BloomFilter(100)
    >>> customers.add(5)
    True
    >>> register(customers, "is_customer")
    >>> orders.filter(contains("customer", "is_customer")).to_pylist()
    [{'customer': 5}]
    """
    _get_registration(name)
    expression = pc.field(column) if isinstance(column, str) else column
    return pc.Expression._call(name, [expression])  # noqa: SLF001 - the documented way to call such a function


def filter_dataset(dataset: Any, column: str, name: str = "fullbloom_contains") -> Any:
    """Return a dataset with only those rows of ``dataset`` whose key the filter ``name`` may contain.

    Nothing is read yet. Rows with a null key are dropped, as a join would drop them. Integers of other widths
    are cast to the function's type, and so are the forms of text. Raises ParameterError if the column does
    not exist, and KeyTypeError if its type cannot be cast without a loss.

    >>> import pyarrow as pa, pyarrow.dataset
    >>> from fullbloom import BloomFilter
    >>> known = BloomFilter(100)
    >>> known.update([1, 2])
    >>> register(known, "is_known")
    >>> orders = pyarrow.dataset.dataset(pa.table({"customer": pa.array([2, 7], "int32")}))
    >>> filter_dataset(orders, "customer", "is_known").count_rows()
    1
    """
    registration = _get_registration(name)
    found = _find_type(dataset.schema, column)
    field = pc.field(column)
    if found != registration.key_type:
        if not _is_castable(found, registration.key_type):
            raise KeyTypeError(
                f"column {column!r} has the type {found}, but the function {name!r} takes "
                f"{registration.key_type}; register a filter for that type under another name"
            )
        field = field.cast(registration.key_type)
    return dataset.filter(contains(field, name))


def keep_candidates(source: Any, column: str, filter_: Filter) -> Any:
    """Return a ``RecordBatchReader`` of those rows of ``source`` whose key ``filter_`` may contain.

    ``source`` is a reader, table or dataset, or anything with the Arrow stream interface, such as a Polars
    frame or a query of DuckDB. Rows are read and filtered one batch at a time, as the result is read. Rows
    with a null key are dropped. Raises ParameterError if the column does not exist, KeyTypeError if it holds
    no keys.

    >>> import pyarrow as pa
    >>> from fullbloom import BloomFilter
    >>> known = BloomFilter(100)
    >>> known.update(["ada"])
    >>> keep_candidates(pa.table({"name": ["ada", "alan", None]}), "name", known).read_all().to_pylist()
    [{'name': 'ada'}]
    """
    check_filter(filter_)
    schema, batches = _read_batches(source)
    filter_.contains_many(pa.array([], _find_type(schema, column)))

    def keep() -> Iterator[Any]:
        for batch in batches:
            yield batch.filter(filter_.contains_many(batch.column(column)))

    return pa.RecordBatchReader.from_batches(schema, keep())


def look_up_by_name(find: Callable[[str], Filter], names: Any, keys: Any) -> Any:
    """Return the results of ``keys``, each in the filter that ``find`` returns for its name; chunked arrays.

    All names are equal as a rule, because a query has the name as a constant. A null name gives null.
    """
    if not len(keys):
        return pa.chunked_array([], pa.bool_())
    first = names[0].as_py()
    if first is not None and _is_constant(names, first):
        return find(first).contains_many(keys)
    results = pa.nulls(len(keys), pa.bool_())
    for name in names.unique().drop_null():
        has_name = pc.fill_null(pc.equal(names, name), fill_value=False)
        results = pc.if_else(has_name, find(name.as_py()).contains_many(keys), results)
    return results


def _is_constant(names: Any, first: str) -> bool:
    """Return whether all names are ``first``; comparing arrays takes a fifth of the time of ``pc.equal``."""
    if names.num_chunks == 1 and len(names) <= _CONSTANT_ROWS and names.type == pa.string():
        return bool(names.chunk(0).equals(_repeat(first).slice(0, len(names))))
    return not names.null_count and bool(pc.all(pc.equal(names, first)).as_py())


@lru_cache(maxsize=16)
def _repeat(name: str) -> Any:
    return pa.array([name] * _CONSTANT_ROWS, pa.string())


def split_by_group(groups: Any, keys: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each value of the array ``groups`` with the keys that are in its rows."""
    if pa.types.is_nested(groups.type):
        raise create_group_error(str(groups.type))
    is_encoded = pa.types.is_dictionary(groups.type)
    encoded = groups if is_encoded else groups.dictionary_encode(null_encoding="encode")
    order = pc.array_sort_indices(encoded.indices)
    runs, ordered, start = pc.run_end_encode(encoded.indices.take(order)), keys.take(order), 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        # The null of a column that came with a dictionary is not among its values.
        group = None if number is None else encoded.dictionary[number].as_py()
        yield group, ordered.slice(start, end - start)
        start = end


def check_filter(value: object) -> None:
    """Raise ParameterTypeError unless ``value`` is a filter that looks up batches."""
    if not callable(getattr(value, "contains_many", None)) or isinstance(value, type):
        raise ParameterTypeError(f"a filter is needed, such as BloomFilter(1000), got {type(value).__name__}")


def _get_registration(name: str) -> _Registration:
    found = _registrations.get(name)
    if found is None or found.filter is None:
        raise ParameterError(
            f"no filter is registered under the name {str(name)[:_NAME_LENGTH]!r}; call register first"
        )
    return found


def _read_type(key_type: Any) -> Any:
    """Return an Arrow type for itself or its name."""
    if isinstance(key_type, pa.DataType):
        return key_type
    try:
        return pa.type_for_alias(key_type)
    except (TypeError, ValueError):
        message = f"key_type must be an Arrow type or its name, got {str(key_type)[:40]!r}"
        raise ParameterTypeError(message) from None


def _create_function(name: str, key_type: Any, registration: _Registration) -> None:
    def look_up(_context: Any, keys: Any) -> Any:
        current = registration.filter
        if current is None:
            raise ParameterError(f"the filter of the function {name!r} was released; register it again")
        return current.contains_many(keys)

    summary = {"summary": "Look up keys in a filter", "description": "False is certain; a null gives null."}
    try:
        pc.register_scalar_function(look_up, name, summary, {"key": key_type}, pa.bool_())
    except KeyError:
        raise ParameterError(f"PyArrow already has a function {name!r}; choose another name") from None


def _find_type(schema: Any, column: str) -> Any:
    places = schema.get_all_field_indices(column)
    if len(places) != 1:
        known = ", ".join(schema.names)[:_NAME_LENGTH]
        problem = "is ambiguous" if places else "does not exist"
        raise ParameterError(f"column {str(column)[:_NAME_LENGTH]!r} {problem}; the columns are {known}")
    return schema.field(places[0]).type


def _is_castable(found: Any, wanted: Any) -> bool:
    """Return whether a cast changes no key: between integers, checked for overflow, and between texts."""
    types = pa.types
    if types.is_dictionary(found):
        found = found.value_type
    return (types.is_integer(found) and types.is_integer(wanted)) or (_is_text(found) and _is_text(wanted))


def _is_text(found: Any) -> bool:
    types = pa.types
    return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))


def _read_batches(source: Any) -> tuple[Any, Iterable[Any]]:
    """Return the schema of a source and its batches."""
    if hasattr(source, "scanner"):
        source = source.scanner(batch_size=_BATCH_ROWS)
        return source.projected_schema, source.to_batches()
    if not hasattr(source, "__arrow_c_stream__"):
        message = f"a reader, table, dataset or Arrow stream is needed, got {type(source).__name__}"
        raise ParameterTypeError(message)
    reader = pa.RecordBatchReader.from_stream(source)
    return reader.schema, reader
