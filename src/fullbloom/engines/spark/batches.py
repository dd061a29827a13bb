"""Sizes of the batches of Arrow in which Spark sends rows to Python workers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark_types

from fullbloom.engines.spark.sessions import is_classic, runs_python

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
#: Rows whose batches of keys, 16 MB at most, need no limit of bytes.
_MOST_ROWS = 1 << 20
#: Spark's number for no limit.
_UNLIMITED = (1 << 31) - 1
_VARIABLE = (spark_types.StringType, spark_types.CharType, spark_types.VarcharType, spark_types.BinaryType)


@contextmanager
def limit_batches_by_rows(keys: Any) -> Iterator[None]:
    """Let queries in this block send one column of a frame in batches of limited rows, but not bytes.

    Spark computes the size of a batch after each row, which takes more than a third of the time of sending
    longs. Only keys of a fixed width need no limit of bytes. A frame with Python functions of its own keeps
    that limit, because these may take wide rows.
    """
    (field,), session = keys.schema.fields, keys.sparkSession
    is_wide = isinstance(field.dataType, (*_VARIABLE, spark_types.StructType))
    rows = int(session.conf.get(_ROWS, "10000") or 0)
    if is_wide or not 0 < rows <= _MOST_ROWS or not is_classic(keys) or runs_python(keys):
        yield
        return
    before = session.conf.get(_BYTES, None)
    try:
        session.conf.set(_BYTES, str(_UNLIMITED))
        yield
    finally:
        if before is None:
            session.conf.unset(_BYTES)
        else:
            session.conf.set(_BYTES, before)
