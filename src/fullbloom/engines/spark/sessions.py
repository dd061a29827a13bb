"""What a session of Spark says about itself: whether it is Connect, its settings, and what fits."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from fullbloom.card import format_bytes
from fullbloom.errors import (
    EngineUnavailable,
    FilterMemoryError,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
)

#: Characters of names that messages show.
SHOWN = 200
#: Bytes that the JVM holds as one value, with space for the header of a row.
LARGEST_VALUE = (1 << 31) - (1 << 16)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)b?", re.IGNORECASE)


def get_session() -> Any:
    """Return the active session; raise EngineUnavailable if there is no session."""
    session = SparkSession.getActiveSession()
    if session is None:
        raise EngineUnavailable("Spark has no active session; create one: SparkSession.builder.getOrCreate()")
    return session


def check_frame(frame: Any, columns: list[str]) -> Any:
    """Return the types of ``columns`` of a DataFrame; raise if it is another object or lacks one."""
    if not hasattr(frame, "mapInArrow") or not hasattr(frame, "sparkSession"):
        raise ParameterTypeError(f"a DataFrame of Spark is needed, got {type(frame).__name__}")
    if not columns:
        raise ParameterError("name at least one column")
    fields = {field.name: field.dataType for field in frame.schema.fields}
    if len(fields) < len(frame.columns):
        repeated = [name for name in columns if frame.columns.count(name) > 1]
        if repeated:
            raise ParameterError(f"column {repeated[0][:SHOWN]!r} is ambiguous; rename one of them")
    for column in columns:
        if column not in fields:
            known = ", ".join(frame.columns)[:SHOWN]
            raise ParameterError(f"column {str(column)[:SHOWN]!r} does not exist; the columns are {known}")
    return [fields[column] for column in columns]


def pick(frame: Any, column: str) -> Any:
    """Return a column by its name as it is: without quotes, Spark takes a dot for a field of a struct."""
    quoted = column.replace("`", "``")
    return frame[f"`{quoted}`"]


def check_key_type(column: str, key_type: Any) -> None:
    """Raise KeyTypeError if values of a type of Spark cannot be keys, before anything runs."""
    if isinstance(key_type, spark_types.StructType):
        for field in key_type.fields:
            check_key_type(f"{column}.{field.name}", field.dataType)
        return
    if not isinstance(key_type, _KEYS):
        raise KeyTypeError(
            f"column {column[:SHOWN]!r} has the type {key_type.simpleString()[:SHOWN]}, whose "
            "values cannot be keys; integers, floats, booleans, text, binary, dates, timestamps, "
            "day-time intervals, decimals and structs of these can"
        )


_KEYS = (
    spark_types.IntegralType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.BooleanType,
    spark_types.StringType,
    spark_types.CharType,
    spark_types.VarcharType,
    spark_types.BinaryType,
    spark_types.DateType,
    spark_types.TimestampType,
    spark_types.TimestampNTZType,
    spark_types.DayTimeIntervalType,
    spark_types.DecimalType,
)


def is_classic(frame_or_session: Any) -> bool:
    """Return whether the JVM is within reach, which it is not over Spark Connect."""
    # A frame of Connect takes any name for a column, so hasattr would be true.
    return not type(frame_or_session).__module__.startswith("pyspark.sql.connect.")


def count_local_cores(session: Any) -> int:
    """Return the cores of a session whose tasks run on this machine in the driver's JVM; 0 for others."""
    if not is_classic(session) or not _is_local(session):
        return 0
    return int(session.sparkContext.defaultParallelism)


def _is_local(session: Any) -> bool:
    return re.fullmatch(r"local(\[.*\])?", str(session.conf.get("spark.master", ""))) is not None


def read_size(session: Any, name: str, default: str, unit: str = "b") -> int:
    """Return a setting of bytes, such as ``"1g"``; -1 if it is negative; ``unit`` is of bare numbers."""
    text = str(session.conf.get(name, default)).strip()
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _UNITS[(found[2] or unit).lower()] if found else -1


def check_value_size(nbytes: int) -> None:
    """Raise FilterMemoryError for a filter that Spark cannot move as one value."""
    if nbytes > LARGEST_VALUE:
        raise FilterMemoryError(
            f"the filter has {format_bytes(nbytes)}, and Spark moves at most 2 GiB as one value; "
            "raise fpr, or split the keys by a column and build a filter for each part"
        )


def check_result_size(session: Any, nbytes: int) -> int:
    """Return how many filters of this size the driver accepts as one result, 16 at most.

    Raises FilterMemoryError if it does not accept one.
    """
    check_value_size(nbytes)
    limit = read_size(session, "spark.driver.maxResultSize", "1g")
    if limit <= 0:  # unlimited
        return 16
    if nbytes > limit // 2:
        raise FilterMemoryError(
            f"the filter has {format_bytes(nbytes)}, which does not fit into a result of "
            f"spark.driver.maxResultSize = {format_bytes(limit)}; raise that setting to twice the filter"
        )
    return max(1, min(16, limit // 2 // nbytes))


def check_broadcast_size(session: Any, nbytes: int, max_bytes: int | None) -> None:
    """Raise FilterMemoryError if a filter does not fit beside the tasks of an executor."""
    check_value_size(nbytes)
    check_total_size(session, nbytes, max_bytes)


def check_total_size(session: Any, nbytes: int, max_bytes: int | None = None) -> None:
    """Raise FilterMemoryError if filters with so many bytes do not fit beside the tasks of an executor."""
    if max_bytes is None:
        # Without a cluster, the tasks run in the process of the driver.
        name = "spark.driver.memory" if _is_local(session) else "spark.executor.memory"
        memory = read_size(session, name, "1g", "m")
        max_bytes, reason = max(memory, 0) // 2, f"half of {name}"
        if not max_bytes:
            return
    elif max_bytes < 0:
        raise ParameterError(f"max_bytes must be 0 or more, got {max_bytes}")
    else:
        reason = "max_bytes"
    if nbytes > max_bytes:
        raise FilterMemoryError(
            f"the filter has {format_bytes(nbytes)}, and {reason} is {format_bytes(max_bytes)}: it would not "
            "fit on a worker; raise fpr, or pass max_bytes= if the workers have the memory"
        )
