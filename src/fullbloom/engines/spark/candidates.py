"""The hash of a row's key as a long of Spark, and lookups of such longs where they are fastest."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions
from pyspark.sql import types as spark_types

from fullbloom.engines.spark.jvm import fits_plan, might_contain
from fullbloom.engines.spark.lookups import create_lookup, send_filter
from fullbloom.engines.spark.sessions import is_classic


def hash_columns(frame: Any, columns: list[str]) -> Any:
    """Return the Column of Spark's 64-bit hash of some columns: never null, equal for equal rows.

    Integers of all widths are hashed as longs, and the two zeros of floats as one, because joins and groups
    take them for equal. Two nulls are equal, as in groups.
    """
    keys = []
    for column in columns:
        key, key_type = frame[column], frame.schema[column].dataType
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
