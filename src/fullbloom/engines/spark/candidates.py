"""The hash of a row's key as a long of Spark; filters and lookups of such longs where they are fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions
from pyspark.sql import types as spark_types

from fullbloom.engines.spark.building import build
from fullbloom.engines.spark.jvm import (
    aggregate_longs,
    fits_plan,
    limit_partitions,
    might_contain,
)
from fullbloom.engines.spark.lookups import create_group_lookup, create_lookup, send_filter
from fullbloom.engines.spark.sessions import is_classic, pick
from fullbloom.engines.spark.shipping import TranslateErrors, ship

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Rows of each partition that a sample reads.
_SAMPLED = 2000
#: Rows up to which Spark's aggregate takes less time than sending the hashes to Python.
_AGGREGATED = 1 << 20


def hash_columns(frame: Any, columns: list[str]) -> Any:
    """Return the Column of Spark's 64-bit hash of some columns: never null, equal for equal rows.

    Integers of all widths are hashed as longs, and the two zeros of floats as one, because joins and groups
    take them for equal. Two nulls are equal, as in groups.
    """
    keys = []
    for column in columns:
        key, key_type = pick(frame, column), frame.schema[column].dataType
        if isinstance(key_type, spark_types.IntegralType):
            key = key.cast("long")
        elif isinstance(key_type, (spark_types.FloatType, spark_types.DoubleType)):
            key = key + functions.lit(0.0)
        keys.append(key)
    return functions.xxhash64(*keys)


def keep_candidates(session: Any, hashes: Any, filter_: Any, max_bytes: int | None = None) -> Any:
    """Return the Column of a lookup of longs in a filter of Spark's format: in the JVM if possible."""
    if is_classic(session) and fits_plan(filter_):
        return might_contain(hashes, filter_)
    return create_lookup(*send_filter(session, filter_, max_bytes))(hashes)


def keep_in_groups(session: Any, hashes: Any, filters: Iterable[Any], shift: int) -> Any:
    """Return the Column of a lookup of longs, each in the filter that its digits above ``shift`` choose."""
    return create_group_lookup([send_filter(session, one) for one in filters], shift)(hashes)


def collect_hashes(frame: Any, columns: list[str], rows: int, fpr: float) -> Any:
    """Return a filter in Spark's format of the hashes of some columns, of a frame with so many rows."""
    hashes = frame.select(hash_columns(frame, columns).alias("key"))
    if 0 < rows <= _AGGREGATED and is_classic(frame):
        known = aggregate_longs(hashes, "key", rows, fpr)
        if known is not None:
            return known
    return build(hashes, "key", capacity=max(1, rows), fpr=fpr, kind="spark")


def sample_candidates(frame: Any, columns: list[str], filter_: Any) -> float | None:
    """Return the share of the first rows of each partition that a filter keeps; None if there are no rows."""
    hashes, session = hash_columns(frame, columns), frame.sparkSession
    if is_classic(session) and fits_plan(filter_):
        marks = limit_partitions(frame.select(might_contain(hashes, filter_).alias("kept")), _SAMPLED)
        found = marks.groupBy().agg(functions.count("kept"), functions.count_if("kept")).first()
    else:
        count = ship("sample_lookups", *send_filter(session, filter_), _SAMPLED)
        with TranslateErrors():
            counts = frame.select(hashes.alias("key")).mapInArrow(count, "rows long, kept long")
            found = counts.groupBy().sum("rows", "kept").first()
    return found[1] / found[0] if found and found[0] else None
