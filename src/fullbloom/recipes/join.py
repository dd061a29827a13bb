"""Bloom join: rows of one Arrow table that match no row of the other are dropped before the join.

A filter of the keys of one table goes to the place of the other, and only rows that it finds come back. The
join itself then drops the few that the filter found by mistake, so the result is exact.

After Mackert and Lohman, "R* optimizer validation and performance evaluation for distributed queries", VLDB
1986; Mullin, "Optimal semijoins for distributed database systems", IEEE TSE 16(5), 1990.

Needs pyarrow (``pip install 'fullbloom[arrow]'``).

>>> import pyarrow as pa
>>> orders = pa.table({"customer": [1, 2, 3, 4, 2], "price": [10, 20, 30, 40, 50]})
>>> customers = pa.table({"customer": [2, 4], "name": ["ada", "alan"]})
>>> joined = join(orders, customers, "customer")
>>> joined.table.sort_by("price").column("name").to_pylist(), joined.kept
(['ada', 'alan', 'ada'], 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom import BloomFilter
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.protocols import Filter

__all__ = ["Joined", "join", "keep_matches", "make_key_filter"]

#: The side whose rows without a match a join drops, and which is therefore filtered; "" is the larger one.
_FILTERED = {
    "inner": "",
    "left outer": "right",
    "right outer": "left",
    "left semi": "left",
    "right semi": "right",
    "left anti": "right",
    "right anti": "left",
}


class Joined(NamedTuple):
    """The result, and what the filter did: the rows of the filtered table, those kept, the filter's bytes."""

    table: Any
    filtered: int
    kept: int
    filter_bytes: int


def join(
    left: Any,
    right: Any,
    keys: str | Sequence[str],
    right_keys: str | Sequence[str] | None = None,
    *,
    join_type: str = "inner",
    fpr: float = 0.01,
) -> Joined:
    """Join two PyArrow tables as ``left.join(right, ...)`` does, with a filter in front.

    keys, right_keys: the key columns, by default of the same names in both; their types must be the same.
    join_type: as for PyArrow, except "full outer", which drops no row. An inner join filters the table with
    more rows, others the table whose unmatched rows they drop. fpr: share of the rows without a match that
    are kept until the join. Raises ``ParameterError`` for another type of join and unequal key types,
    ``ParameterTypeError`` if a table is not one, ``KeyError`` for an unknown column, ``KeyTypeError`` for a
    column that holds no keys, and the errors of PyArrow.
    """
    if join_type not in _FILTERED:
        raise ParameterError(f"join_type must be one of {', '.join(_FILTERED)}, got {join_type!r}")
    left_keys = _list_names(keys)
    other_keys = left_keys if right_keys is None else _list_names(right_keys)
    left_types, right_types = _read_types(left, left_keys), _read_types(right, other_keys)
    if left_types != right_types:
        # Equal numbers and texts of other types are other keys, and the filter would lose matches.
        raise ParameterError(f"keys must have equal types, got {left_types} and {right_types}; cast a column")
    side = _FILTERED[join_type] or ("left" if left.num_rows >= right.num_rows else "right")
    if side == "left":
        seen = make_key_filter(right, other_keys, fpr=fpr)
        rows, left = left.num_rows, keep_matches(left, left_keys, seen)
        kept = left.num_rows
    else:
        seen = make_key_filter(left, left_keys, fpr=fpr)
        rows, right = right.num_rows, keep_matches(right, other_keys, seen)
        kept = right.num_rows
    table = left.join(right, left_keys, other_keys, join_type=join_type)
    return Joined(table, rows, kept, seen.nbytes)


def make_key_filter(table: Any, keys: str | Sequence[str], *, fpr: float = 0.01) -> BloomFilter:
    """Return a filter of the keys of ``table``; send its ``to_bytes()`` to the place of the other table.

    A row with a null among its keys is left out, because a join matches no null. Raises as `join`.
    """
    names = _list_names(keys)
    _read_types(table, names)
    table = table.select(names).drop_null()
    seen = BloomFilter(max(table.num_rows, 1), fpr)
    seen.update(_get_keys(table, names))
    return seen


def keep_matches(table: Any, keys: str | Sequence[str], seen: Filter) -> Any:
    """Return the rows of ``table`` whose keys ``seen`` may contain, without those with a null key.

    Raises as `join`.
    """
    names = _list_names(keys)
    _read_types(table, names)
    return table.filter(seen.contains_many(_get_keys(table, names)))


def _list_names(keys: str | Sequence[str]) -> list[str]:
    names = [keys] if isinstance(keys, str) else list(keys)
    if not names:
        raise ParameterError("keys must name at least one column")
    return names


def _read_types(table: Any, names: list[str]) -> list[Any]:
    if not (hasattr(table, "select") and hasattr(table, "num_rows") and hasattr(table, "join")):
        raise ParameterTypeError(f"a PyArrow table is needed, got {type(table).__name__}")
    return [table.schema.field(name).type for name in names]


def _get_keys(table: Any, names: list[str]) -> Any:
    """Return one column as it is, and several as a table, whose rows are tuples."""
    return table.column(names[0]) if len(names) == 1 else table.select(names)
