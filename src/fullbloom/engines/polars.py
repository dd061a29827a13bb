"""Filters in expressions of Polars: ``pl.col("x").bloom.contains(f)``, and filters built from frames.

Importing this module registers the namespace ``bloom``.

>>> import polars as pl
>>> import fullbloom.engines.polars as bloom
>>> orders = pl.LazyFrame({"customer": [1, 2, 7, None], "shop": ["a", "a", "b", "b"]})
>>> customers = bloom.build(orders.filter(pl.col("customer") < 5), "customer", capacity=100)
>>> orders.filter(pl.col("customer").bloom.contains(customers)).collect()["customer"].to_list()
[1, 2]

Needs polars (``pip install 'fullbloom[polars]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.engines.kinds import FilterGroups, create_filter
from fullbloom.errors import ParameterError, ParameterTypeError
from fullbloom.extras import require_extra

with require_extra("polars"):
    import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.protocols import Filter

__all__ = ["BloomNamespace", "build", "build_groups"]

#: Rows of a batch that `build` reads.
_BATCH_ROWS = 1 << 18
#: Characters of a name that messages show.
_SHOWN = 200


@pl.api.register_expr_namespace("bloom")
class BloomNamespace:
    """The methods of expressions under ``.bloom``."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def contains(self, filter_: Filter) -> pl.Expr:
        """Return an expression that is True where the filter may contain the key, False where it does not.

        The expression is element-wise: the streaming engine evaluates it batch by batch, and it may be pushed
        down in the plan. A null gives null, and NaN is a key. A struct is looked up as the tuple of its
        fields. Raises ParameterTypeError if ``filter_`` is not a filter; a column that holds no keys raises
        KeyTypeError when the query runs.

        >>> import polars as pl
        >>> from fullbloom import BloomFilter
        >>> known = BloomFilter(100)
        >>> known.update(["ada"])
        >>> pl.select(pl.lit("ada").bloom.contains(known)).item()
        True
        """
        if not callable(getattr(filter_, "contains_many", None)) or isinstance(filter_, type):
            message = f"a filter is needed, such as BloomFilter(1000), got {type(filter_).__name__}"
            raise ParameterTypeError(message)
        return self._expression.map_batches(
            filter_.contains_many, return_dtype=pl.Boolean, is_elementwise=True
        )

    def build(
        self, *, capacity: int | None = None, fpr: float = 0.01, kind: str = "bloom", **parameters: Any
    ) -> pl.Expr:
        """Return an aggregation: the bytes of a filter of the values, one filter per group in ``group_by``.

        `fullbloom.loads` opens the bytes. Without ``capacity``, each filter is sized for the number of rows
        in its group; filters can only be merged if they have the same capacity. Polars holds all values of a
        group in memory; `build_groups` does not.

        >>> import fullbloom, polars as pl
        >>> visits = pl.DataFrame({"day": ["mon", "mon", "tue"], "user": [1, 2, 1]})
        >>> days = visits.group_by("day", maintain_order=True).agg(pl.col("user").bloom.build())
        >>> monday = fullbloom.loads(days["user"][0])
        >>> monday.contains_many([1, 2, 3])
        [True, True, False]
        """
        # Refuses parameters before the query runs.
        create_filter(kind, 1 if capacity is None else capacity, fpr, **parameters)

        def build_bytes(values: pl.Series) -> pl.Series:
            rows = max(1, len(values)) if capacity is None else capacity
            result = create_filter(kind, rows, fpr, **parameters)
            result.update(values)
            return pl.Series(values.name, [result.to_bytes()], dtype=pl.Binary)

        return self._expression.map_batches(build_bytes, return_dtype=pl.Binary, returns_scalar=True)


def build(
    frame: pl.LazyFrame | pl.DataFrame,
    column: str,
    *,
    capacity: int,
    fpr: float = 0.01,
    kind: str = "bloom",
    **parameters: Any,
) -> Any:
    """Return a filter of the values in one column; nulls are skipped.

    A lazy frame runs on the streaming engine and never holds the whole column. ``kind`` is the name of a kind
    that takes a ``capacity`` and ``fpr``, and ``parameters`` are further ones of its class, ``seed=`` for
    example. Raises ParameterError if the column or the kind does not exist, KeyTypeError if the column holds
    no keys. There is no filter unless the whole column was added.
    """
    result = create_filter(kind, capacity, fpr, **parameters)
    for batch in _stream(frame, [column]):
        result.update(batch[column])
    return result


def build_groups(
    frame: pl.LazyFrame | pl.DataFrame,
    by: str,
    column: str,
    *,
    capacity: int,
    fpr: float = 0.01,
    kind: str = "bloom",
    **parameters: Any,
) -> dict[Any, Any]:
    """Return a filter of ``column`` for each value of the column ``by``, as a dictionary.

    All filters have the same ``capacity``, so they can be merged. The frame is read as in `build`: memory
    holds the filters and one batch. Rows whose group is null are under the key None, and those whose group is
    NaN under ``math.nan``. Raises ParameterTypeError if the groups are lists or structs, and the errors of
    `build`.

    >>> import polars as pl
    >>> visits = pl.LazyFrame({"day": ["mon", "mon", "tue"], "user": [1, 2, 3]})
    >>> days = build_groups(visits, "day", "user", capacity=100)
    >>> sorted(days), 2 in days["mon"], 2 in days["tue"]
    (['mon', 'tue'], True, False)
    """
    groups = FilterGroups(kind, capacity, fpr, **parameters)
    for batch in _stream(frame, [by, column]):
        # partition_by() takes patterns, too.
        renamed = pl.DataFrame({"group": batch[by], "key": batch[column]})
        for rows in renamed.partition_by("group"):
            groups.update(rows["group"][0], rows["key"])
    return groups.filters


def _stream(frame: pl.LazyFrame | pl.DataFrame, columns: list[str]) -> Iterator[pl.DataFrame]:
    """Yield some columns of a frame, batch by batch."""
    if not isinstance(frame, pl.LazyFrame | pl.DataFrame):
        raise ParameterTypeError(f"a LazyFrame or DataFrame is needed, got {type(frame).__name__}")
    names = frame.lazy().collect_schema().names()
    for column in columns:
        if column not in names:
            known = ", ".join(names)[:_SHOWN]
            raise ParameterError(f"column {str(column)[:_SHOWN]!r} does not exist; the columns are {known}")
    # As plain names: Polars takes "*" and "^...$" in select() for patterns.
    chosen = frame.lazy().select(pl.selectors.by_name(*dict.fromkeys(columns)))
    yield from chosen.collect_batches(chunk_size=_BATCH_ROWS, maintain_order=False, engine="streaming")
