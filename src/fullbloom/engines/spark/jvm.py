"""Spark's own filters: to and from the JVM, and lookups in the JVM; not over Spark Connect."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import functions

from fullbloom import ForeignFilter
from fullbloom.engines.kinds import SPARK_FORMATS
from fullbloom.engines.spark.sessions import get_session, is_classic, read_size
from fullbloom.errors import EngineUnavailable, ParameterTypeError

#: Spark's aggregate makes no larger filters; the settings, and their defaults.
_LIMITS = "spark.sql.optimizer.runtime.bloomFilter."
_MOST_KEYS, _MOST_BITS = (_LIMITS + "maxNumItems", "4000000"), (_LIMITS + "maxNumBits", "67108864")
#: Share of the bits of a filter by Spark's aggregate that are 1.
_FILL = 1 / 6
#: A larger filter would make the plan, which every task receives, larger than a task should be.
LARGEST_LITERAL = 16 << 20


def from_jvm(bloom_filter: Any) -> ForeignFilter:
    """Return the filter in a ``org.apache.spark.util.sketch.BloomFilter`` of the JVM, bit for bit.

    Raises EngineUnavailable over Spark Connect, which has no JVM objects.
    """
    stream = _get_jvm().java.io.ByteArrayOutputStream()
    bloom_filter.writeTo(stream)
    return ForeignFilter.from_foreign(bytes(stream.toByteArray()))


def to_jvm(filter_: ForeignFilter) -> Any:
    """Return a filter in Spark's format as a ``BloomFilter`` of the JVM, for Java and Scala code.

    Raises ParameterTypeError for a filter of another format, EngineUnavailable over Spark Connect.
    """
    data = bytearray(_check_format(filter_).to_foreign())
    jvm = _get_jvm()
    return jvm.org.apache.spark.util.sketch.BloomFilter.readFrom(jvm.java.io.ByteArrayInputStream(data))


def might_contain(column: Any, filter_: ForeignFilter) -> Any:
    """Return the Column of Spark's own lookup, compiled into the query, in a filter of Spark's format.

    ``column`` must hold longs, so cast shorter integers: ``col("id").cast("long")``. It is the fastest lookup
    of integers, because no row leaves the JVM. The filter becomes a part of the plan: at most 16 MiB. Raises
    ParameterTypeError for a filter of another format or size, EngineUnavailable over Spark Connect; Spark
    raises AnalysisException if the column does not hold longs.
    """
    data = _check_format(filter_).to_foreign()
    if len(data) > LARGEST_LITERAL:
        raise ParameterTypeError(f"the filter has {len(data)} bytes; use contains beyond {LARGEST_LITERAL}")
    catalyst = _get_jvm().org.apache.spark.sql.catalyst.expressions
    key = functions.col(column) if isinstance(column, str) else column
    return _to_column(
        catalyst.BloomFilterMightContain(_to_expression(functions.lit(data)), _to_expression(key))
    )


def look_up_integers(key: Any, filter_: ForeignFilter, otherwise: Any) -> Any:
    """Return the Column of Spark's own lookup if ``key`` holds longs or ints, else the Column ``otherwise``.

    Types of columns are unknown until Spark resolves the query. The optimizer knows them, and keeps one of
    the branches.
    """
    types = _get_jvm().org.apache.spark.sql.types.DataTypes
    long_key = _pass_on(key, "java.lang.Long", types.LongType)
    int_key = _pass_on(key, "java.lang.Integer", types.IntegerType).cast("long")
    key_type = functions.typeof(key)
    return (
        functions.when(key_type == "bigint", might_contain(long_key, filter_))
        .when(key_type == "int", might_contain(int_key, filter_))
        .otherwise(otherwise)
    )


def _pass_on(key: Any, class_name: str, key_type: Any) -> Any:
    """Return the Column of the sum of ``key`` and 0 in Java, of ``key_type`` whatever ``key`` holds.

    Spark checks the types of all branches before it removes one, and refuses some casts then.
    """
    jvm = _get_jvm()
    package = getattr(jvm, "scala.collection.immutable")
    nil, nothing = (
        getattr(package, "Nil$").__getattr__("MODULE$"),
        getattr(jvm.scala, "None$").__getattr__("MODULE$"),
    )
    zero = _to_expression(functions.lit(0).cast("long" if "Long" in class_name else "int"))
    arguments = nil.prepended(zero).prepended(_to_expression(key))
    return _to_column(
        jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
            jvm.java.lang.Class.forName(class_name),
            key_type,
            "sum",
            arguments,
            nil,
            True,
            True,
            True,
            nothing,
        )
    )


def _to_expression(column: Any) -> Any:
    return _get_jvm().org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)  # noqa: SLF001


def _to_column(expression: Any) -> Any:
    from pyspark.sql.classic.column import Column

    return Column(_get_jvm().org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def aggregate_longs(frame: Any, column: str, rows: int, fpr: float) -> ForeignFilter | None:
    """Return a filter of a column of longs by Spark's own aggregate; None if that makes no filter so large.

    Five of six bits stay 0, so that most absent keys take one lookup in memory and no wrong guess of the
    processor. This takes 1.7 times the bits of the smallest filter. The frame must have rows.
    """
    hashes = math.ceil(math.log(fpr, _FILL))
    bits = 64 * math.ceil(-hashes * rows / math.log1p(-_FILL) / 64)
    # Spark derives the number of hashes from the bits per key.
    keys = max(1, round(bits * math.log(2) / hashes))
    most_keys, most_bits = (read_size(frame.sparkSession, *one) for one in (_MOST_KEYS, _MOST_BITS))
    if keys > most_keys or bits > most_bits:
        return None
    return from_jvm(frame._jdf.stat().bloomFilter(column, keys, bits))  # noqa: SLF001


def limit_partitions(frame: Any, rows: int) -> Any:
    """Return a frame of the first rows of each partition, which reads no more of them."""
    sql, session = _get_jvm().org.apache.spark.sql, frame.sparkSession
    limit = sql.catalyst.expressions.Literal(rows, sql.types.DataTypes.IntegerType)
    plan = sql.catalyst.plans.logical.LocalLimit(limit, frame._jdf.logicalPlan())  # noqa: SLF001
    return type(frame)(sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)  # noqa: SLF001


def _get_jvm() -> Any:
    session = get_session()
    if not is_classic(session):
        raise EngineUnavailable(
            "Spark Connect gives no access to the JVM; use contains, or a classic session"
        )
    return session._jvm  # noqa: SLF001


def fits_plan(filter_: Any) -> bool:
    """Return whether `might_contain` accepts a filter."""
    return getattr(filter_, "format", None) in SPARK_FORMATS and filter_.nbytes < LARGEST_LITERAL - 64


def _check_format(filter_: Any) -> Any:
    if getattr(filter_, "format", None) not in SPARK_FORMATS:
        raise ParameterTypeError(
            f"a filter in Spark's format is needed, as of build(kind='spark'), got {type(filter_).__name__}"
        )
    return filter_
