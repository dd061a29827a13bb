"""Joins whose large side is filtered first, if that pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions
from pyspark.sql import types as spark_types

from fullbloom.card import format_bytes
from fullbloom.engines.kinds import create_mergeable
from fullbloom.engines.spark import plans
from fullbloom.engines.spark.candidates import (
    collect_hashes,
    hash_columns,
    keep_candidates,
    sample_candidates,
)
from fullbloom.engines.spark.sessions import (
    check_broadcast_size,
    check_frame,
    is_classic,
    read_size,
)
from fullbloom.errors import FilterMemoryError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Joins that drop rows of the large side which have no partner, by the names that Spark accepts.
_PRUNED = {"inner": "inner", "semi": "left_semi", "leftsemi": "left_semi", "left_semi": "left_semi"}
_PRUNED |= dict.fromkeys(("right", "rightouter", "right_outer"), "right")
#: A filter that keeps more of the rows costs more than it saves.
_MOST_KEPT = 0.5
#: The large side must have this many times the bytes of the small one.
_LEAST_RATIO = 4
#: Rows and bytes of a small side of which each task holds its part in memory, so that no side is sorted.
_HASHED_ROWS, _HASHED_BYTES = 1 << 20, 1 << 26
#: Characters of names and types that reasons show.
_SHOWN = 100
#: Where the schema of a table has the type of a column of texts of limited length.
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
#: Types whose equal values have equal hashes; a join by other columns is left to Spark.
_HASHED = (
    spark_types.IntegralType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.BooleanType,
    spark_types.BinaryType,
    spark_types.DateType,
    spark_types.TimestampType,
    spark_types.TimestampNTZType,
    spark_types.DecimalType,
)


@dataclass(frozen=True)
class JoinPlan:
    """What `bloom_join` decided, and why.

    rows: rows of the small side, if they were counted. nbytes: size of the filter. kept: share of the sampled
    large rows that the filter keeps, from 0 to 1; None without a sample.
    """

    uses_filter: bool
    reason: str
    rows: int | None = None
    nbytes: int | None = None
    kept: float | None = None
    condition: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        verb = "filters the large side" if self.uses_filter else "joins without a filter"
        return f"bloom_join {verb}: {self.reason}"


def bloom_join(
    big: Any,
    small: Any,
    *,
    on: str | Sequence[str],
    how: str = "inner",
    fpr: float = 0.01,
    use_filter: bool | None = None,
    sample: bool = True,
    max_bytes: int | None = None,
    is_repeatable: bool | None = None,
) -> Any:
    """Return the join of two DataFrames; a filter of the small side's keys drops large rows first if it pays.

    ``on`` names columns of both, and ``how`` is "inner", "left_semi" or "right": other joins keep rows
    without a partner. The result is exactly that of ``big.join(small, on, how)``. The small side's keys are
    counted and read now, for the filter, and again with the join, so both reads must give the same rows. A
    side whose plan does not show that gets no filter: one with a limit, a random function, or Python code,
    such as a UDF or ``createDataFrame`` of a list. Persist it, or pass ``is_repeatable=True`` if it does.
    Nobody sees a source that changes in between. The filter is used unless Spark broadcasts the small side
    anyway, the large side is too small, the filter is too large (``max_bytes``), or it keeps more than half
    of a sample of the large side: the first 2,000 rows of each partition. The sample is omitted if the large
    side is the result of a shuffle, or with ``sample=False``. ``use_filter`` overrides the decision, except
    where a filter could change the result.

    Where the small side was counted, has at most a million rows and 64 MiB, and has no hint, the join gets
    Spark's hint ``shuffle_hash``, so that neither side is sorted.

    The analyzed plan has the decision (``explain(True)``), and `plan_join` returns it. Raises ParameterError
    if a column does not exist or ``how`` is another join; EngineError if a worker lacks this package.
    """
    kind = _find_kind(how)
    columns = [on] if isinstance(on, str) else [*on]
    plan = plan_join(
        big,
        small,
        on=columns,
        how=how,
        fpr=fpr,
        use_filter=use_filter,
        sample=sample,
        max_bytes=max_bytes,
        is_repeatable=is_repeatable,
    )
    # A constant condition: it is part of the analyzed plan, and the optimizer removes it.
    noted = big.where(functions.lit(str(plan)).isNotNull())
    filtered = noted.where(plan.condition) if plan.uses_filter else noted
    return filtered.join(_hint(small, plan.rows), columns, kind)


def plan_join(
    big: Any,
    small: Any,
    *,
    on: str | Sequence[str],
    how: str = "inner",
    fpr: float = 0.01,
    use_filter: bool | None = None,
    sample: bool = True,
    max_bytes: int | None = None,
    is_repeatable: bool | None = None,
) -> JoinPlan:
    """Return what `bloom_join` would do, with its estimates; parameters and errors are as of `bloom_join`."""
    _find_kind(how)
    columns = [on] if isinstance(on, str) else [*on]
    types = zip(columns, check_frame(big, columns), check_frame(small, columns), strict=True)
    problem = next((found for one in types if (found := _compare_types(*one))), None)
    problem = problem or next(
        (found for one in columns if (found := _compare_padding(one, big, small))), None
    )
    if problem is None and not (plans.is_repeatable(small) if is_repeatable is None else is_repeatable):
        problem = (
            "the small side may have other rows each time it is evaluated; pass is_repeatable=True if it has "
            "not, or persist it"
        )
    if problem is None and use_filter is None:
        problem = _compare_sizes(big, small)
    if problem is not None or use_filter is False:
        return JoinPlan(uses_filter=False, reason=problem or "use_filter is False")
    return _measure(big, small, columns, fpr=fpr, forced=bool(use_filter), sample=sample, max_bytes=max_bytes)


def _hint(small: Any, rows: int | None) -> Any:
    """Return the small side with the hint that its parts fit into memory, if its rows were counted and do."""
    if rows is None or rows > _HASHED_ROWS or not is_classic(small) or plans.has_hint(small):
        return small
    nbytes = plans.estimate_bytes(small)
    return small.hint("shuffle_hash") if nbytes is not None and nbytes <= _HASHED_BYTES else small


def _find_kind(how: str) -> str:
    if how not in _PRUNED:
        raise ParameterError(
            f"how must be inner, left_semi or right, got {str(how)[:40]!r}: other joins keep large rows that "
            "have no partner, so a filter has nothing to drop"
        )
    return _PRUNED[how]


def _compare_types(column: str, big: Any, small: Any) -> str | None:
    """Return why equal values of two types may have different hashes; None if they have equal ones."""
    integers = isinstance(big, spark_types.IntegralType) and isinstance(small, spark_types.IntegralType)
    if big != small and not integers:
        types = f"{big.simpleString()} and {small.simpleString()}"[:_SHOWN]
        return f"column {column[:_SHOWN]} has the types {types}; cast one"
    plain_text = isinstance(big, spark_types.StringType) and big.simpleString() == "string"
    if not plain_text and not isinstance(big, _HASHED):
        return f"column {column[:_SHOWN]} has a type whose equal values may differ in bytes"
    return None


def _compare_padding(column: str, big: Any, small: Any) -> str | None:
    """Return why Spark pads texts before it compares them: two lengths of ``char``, which the type hides."""
    big_text, small_text = (frame.schema[column].metadata.get(_PADDED, "") for frame in (big, small))
    if big_text != small_text and big_text.startswith("char") and small_text.startswith("char"):
        return f"column {column[:_SHOWN]} has the types {big_text} and {small_text}; cast one"
    return None


def _compare_sizes(big: Any, small: Any) -> str | None:
    """Return why the sizes that Spark estimates speak against a filter."""
    small_bytes, big_bytes = plans.estimate_bytes(small), plans.estimate_bytes(big)
    if small_bytes is None or big_bytes is None:
        return None
    threshold = read_size(big.sparkSession, "spark.sql.autoBroadcastJoinThreshold", "10485760b")
    if small_bytes <= threshold:
        return f"Spark broadcasts the small side ({format_bytes(small_bytes)})"
    if big_bytes < _LEAST_RATIO * small_bytes:
        return f"the large side has {format_bytes(big_bytes)}, the small one {format_bytes(small_bytes)}"
    return None


def _measure(
    big: Any, small: Any, columns: list[str], *, fpr: float, forced: bool, sample: bool, max_bytes: int | None
) -> JoinPlan:
    """Build the filter, sample the large side, and decide."""
    session = big.sparkSession
    rows = small.count()
    try:
        nbytes = create_mergeable("spark", max(1, rows), fpr).nbytes
        check_broadcast_size(session, nbytes, max_bytes)
    except FilterMemoryError as error:
        if forced:
            raise
        return JoinPlan(uses_filter=False, reason=str(error), rows=rows)
    known = collect_hashes(small, columns, rows, fpr)
    nbytes = known.nbytes
    size = f"{rows} keys, {format_bytes(nbytes)}"
    kept = sample_candidates(big, columns, known) if sample and plans.is_narrow(big) else None
    if kept is not None and kept > _MOST_KEPT and not forced:
        reason = f"a filter of {size} would keep {kept:.1%} of a sample of the large side"
        return JoinPlan(uses_filter=False, reason=reason, rows=rows, nbytes=nbytes, kept=kept)
    condition = keep_candidates(session, hash_columns(big, columns), known, max_bytes)
    share = "no sample was taken" if kept is None else f"keeps {kept:.1%} of a sample"
    return JoinPlan(
        uses_filter=True, reason=f"{size}, {share}", rows=rows, nbytes=nbytes, kept=kept, condition=condition
    )
