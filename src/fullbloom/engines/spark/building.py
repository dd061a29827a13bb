"""Filters of a column: executors add the batches of their partitions, and the parts merge into one."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import fullbloom
from fullbloom.engines.kinds import create_mergeable
from fullbloom.engines.spark.batches import limit_by_rows
from fullbloom.engines.spark.sessions import (
    check_frame,
    check_key_type,
    check_result_size,
    count_local_cores,
    pick,
)
from fullbloom.engines.spark.shipping import TranslateErrors, ship
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCHEMA = "group int, filter binary"
#: Tasks of the first round of merging.
_GROUPS = 16
#: Parts that each core of a local session builds, so that a core which is done early finds another.
_PARTS_PER_CORE = 2


def build(
    frame: Any, column: str, *, capacity: int, fpr: float = 0.01, kind: str = "bloom", **parameters: Any
) -> Any:
    """Return a filter of the values in one column of a DataFrame; nulls are skipped, NaN is a key.

    Each partition becomes a filter for ``capacity`` keys, built from batches of Arrow. Groups of these merge
    on executors, and the driver merges at most 16 results. With ``local[N]``, where all tasks run on this
    machine, each core builds at most two, and the driver merges their files. Tasks that Spark retries or
    runs twice cannot change the filter, because a part reaches the result once. If a partition fails for
    good, this raises an error and returns no filter.

    ``kind`` is a kind that takes ``capacity`` and ``fpr`` and can merge, or ``"spark"`` (``"spark-v1"``) for
    a `ForeignFilter` with the bits of Spark's own filter. ``parameters`` are further ones of its class,
    ``seed=`` for example. A filter with a secret is refused, because a plan must not contain the secret.

    Raises ParameterError, and KeyTypeError if the column holds no keys; FilterMemoryError if Spark cannot
    move a filter of this size; EngineError if a worker lacks this package or has another version of it. All
    but the last raise before anything runs.
    """
    (key_type,) = check_frame(frame, [column])
    check_key_type(column, key_type)
    if parameters.get("secret") is not None:
        raise ParameterError(
            "a filter with a secret cannot be built by workers: plans would contain the secret"
        )
    result = create_mergeable(kind, capacity, fpr, **parameters)
    width = check_result_size(frame.sparkSession, result.nbytes)
    # mapInArrow resolves names without quotes.
    keys = limit_by_rows(frame.select(pick(frame, column).alias("key")))
    arguments = (kind, capacity, fpr, parameters)
    parts = _PARTS_PER_CORE * count_local_cores(frame.sparkSession)
    with TranslateErrors():
        if 0 < parts <= width:
            _merge_files(result, keys.coalesce(parts), arguments)
        else:
            _merge_tree(result, keys, arguments, width)
    return result


def _merge_files(result: Any, keys: Any, arguments: tuple[Any, ...]) -> None:
    """Merge parts that tasks on this machine write to files; through Spark, 12 MB would take 0.15 s."""
    with tempfile.TemporaryDirectory(prefix="fullbloom-") as folder:
        written = keys.mapInArrow(ship("write_filter", *arguments, folder), "path string")
        for row in written.collect():
            result.merge(fullbloom.open(row["path"]))


def _merge_tree(result: Any, keys: Any, arguments: tuple[Any, ...], width: int) -> None:
    """Merge parts in groups on executors, and ``width`` results of these at most."""
    merged = keys.mapInArrow(ship("send_filter", *arguments, _GROUPS), _SCHEMA)
    for groups in (_GROUPS, width) if width < _GROUPS else (_GROUPS,):
        merged = merged.repartition(groups, "group").mapInArrow(ship("merge_filters", width), _SCHEMA)
    for row in merged.select("filter").collect():
        result.merge(fullbloom.loads(row["filter"]))


def approx_count_distinct_union(
    sources: Iterable[Any], column: str | None = None, *, capacity: int, fpr: float = 0.01
) -> tuple[float, float]:
    """Return an estimate of the distinct values in several sources together, and its standard deviation.

    A source is a DataFrame, whose ``column`` is read, or a filter that `build` returned for the same
    ``capacity`` and ``fpr``, so that the filter of each day is built once and any range of days is counted
    without reading rows. Nulls do not count. Raises IncompatibleFilters if a filter has another shape, and
    the errors of `build`.
    """
    whole = create_mergeable("bloom", capacity, fpr)
    for source in sources:
        if not hasattr(source, "mapInArrow"):
            if not hasattr(source, "approx_count"):
                raise ParameterTypeError(f"a DataFrame or filter is needed, got {type(source).__name__}")
            whole.merge(source)
        elif column is None:
            raise ParameterError("column is needed, because a source is a DataFrame")
        else:
            whole.merge(build(source, column, capacity=capacity, fpr=fpr))
    estimate, deviation = whole.approx_count()
    return estimate, deviation
