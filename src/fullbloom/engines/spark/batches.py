"""Sizes of the batches of Arrow in which Spark sends rows to Python workers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import types as spark_types

from fullbloom.engines.spark.plans import runs_python
from fullbloom.engines.spark.sessions import is_classic

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
#: Rows whose batches of keys, 16 MB at most, need no limit of bytes.
_MOST_ROWS = 1 << 20
#: Spark's number for no limit.
_UNLIMITED = (1 << 31) - 1
_VARIABLE = (spark_types.StringType, spark_types.CharType, spark_types.VarcharType, spark_types.BinaryType)


def limit_by_rows(keys: Any) -> Any:
    """Return a frame of one column; if its keys are of a fixed width, batches have no limit of bytes.

    Spark computes the size of a batch after each row, which takes more than a third of the time of sending
    longs. The limit is a setting, and a setting belongs to a session: the result has the same plan in a clone
    of the session, so no other query sees it. A frame with Python functions of its own keeps its limit,
    because these may take wide rows.
    """
    (field,), session = keys.schema.fields, keys.sparkSession
    is_wide = isinstance(field.dataType, (*_VARIABLE, spark_types.StructType))
    rows = int(session.conf.get(_ROWS, "10000") or 0)
    if is_wide or not 0 < rows <= _MOST_ROWS or not is_classic(keys) or runs_python(keys):
        return keys
    with suppress(Py4JError):  # a JVM without this method: the query takes longer, and is the same
        clone = session._jsparkSession.cloneSession()  # noqa: SLF001
        clone.conf().set(_BYTES, str(_UNLIMITED))
        dataset = session._jvm.org.apache.spark.sql.classic.Dataset  # noqa: SLF001
        return type(keys)(dataset.ofRows(clone, keys._jdf.logicalPlan()), session)  # noqa: SLF001
    return keys
