"""Sizes of the batches of Arrow in which Spark sends rows to Python workers."""

from __future__ import annotations

import threading
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
#: Sessions without the limit of bytes: the blocks in them, and the limit to restore after the last of these.
_lifted: dict[int, tuple[int, str | None]] = {}
_lock = threading.Lock()


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
    _lift_limit(session)
    try:
        yield
    finally:
        _restore_limit(session)


def _lift_limit(session: Any) -> None:
    with _lock:
        blocks, before = _lifted.get(_get_id(session), (0, None))
        if blocks == 0:
            before = session.conf.get(_BYTES, None)
            session.conf.set(_BYTES, str(_UNLIMITED))
        _lifted[_get_id(session)] = (blocks + 1, before)


def _restore_limit(session: Any) -> None:
    with _lock:
        blocks, before = _lifted.pop(_get_id(session))
        if blocks > 1:
            _lifted[_get_id(session)] = (blocks - 1, before)
        elif before is None:
            session.conf.unset(_BYTES)
        else:
            session.conf.set(_BYTES, before)


def _get_id(session: Any) -> int:
    """Return the number of the JVM's session, which several objects in Python may share."""
    return int(session._jsparkSession.hashCode())  # noqa: SLF001
