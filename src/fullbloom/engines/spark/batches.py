"""Sizes of the batches of Arrow in which Spark sends rows to Python workers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark_types

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
#: Rows of a batch of keys with a fixed width, of 2 MB at most.
_WIDE = 1 << 16
#: Spark's number for no limit.
_UNLIMITED = (1 << 31) - 1
_VARIABLE = (spark_types.StringType, spark_types.CharType, spark_types.VarcharType, spark_types.BinaryType)


@contextmanager
def widen_batches(session: Any, key_type: Any) -> Iterator[None]:
    """Let Spark send larger batches in this block, if keys of a type have a fixed width.

    Spark computes the size of a batch after each row, to limit its bytes. That takes more than half of the
    time of sending longs, and a number of rows limits these as well.
    """
    if isinstance(key_type, (*_VARIABLE, spark_types.StructType)):
        yield
        return
    before = {name: session.conf.get(name, None) for name in (_ROWS, _BYTES)}
    rows = int(before[_ROWS] or 0)
    try:
        session.conf.set(_ROWS, str(max(rows, _WIDE) if rows > 0 else _WIDE))
        session.conf.set(_BYTES, str(_UNLIMITED))
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
