"""Creates an empty filter by the name of its kind, for engines that build filters from columns."""

from __future__ import annotations

from typing import Any

from fullbloom import ForeignFilter
from fullbloom.errors import ParameterError
from fullbloom.registry import Row, get_class, get_row, is_open, rows

#: Spark's own formats: version 2, which Spark 4 writes, and version 1.
SPARK_FORMATS = ("spark", "spark-v1")


def _is_sized(row: Row) -> bool:
    return {"capacity", "fpr"} <= {name for name, *_ in row["parameters"]}


def list_kinds() -> list[str]:
    """Return the names of the kinds that `create_filter` accepts.

    >>> "bloom" in list_kinds(), "xor" in list_kinds()
    (True, False)
    """
    return [row["name"] for row in rows() if is_open(row, "key") and _is_sized(row)]


def create_filter(kind: str, capacity: int, fpr: float, **parameters: Any) -> Any:
    """Return an empty filter for ``capacity`` keys at the rate ``fpr``.

    ``parameters`` are further ones of the kind's class.

    Raises ParameterError if ``kind`` is not a name in `list_kinds`, and the errors of the class.

    >>> type(create_filter("cuckoo", 1000, 0.001)).__name__
    'CuckooFilter'
    """
    kinds = list_kinds()
    if kind not in kinds:
        raise ParameterError(f"kind must be one of {', '.join(kinds)}, got {str(kind)[:40]!r}")
    row = next(row for row in rows() if row["name"] == kind)
    return get_class(row)(capacity, fpr, **parameters)


def create_mergeable(kind: str, capacity: int, fpr: float, **parameters: Any) -> Any:
    """Return an empty filter as `create_filter` does, if filters of its kind merge, or one in Spark's format.

    Raises ParameterError if ``kind`` does not exist or cannot merge, and the errors of the class.

    >>> create_mergeable("spark", 100, 0.01).format
    'spark'
    """
    if kind in SPARK_FORMATS:
        return ForeignFilter(kind, capacity, fpr, **parameters)
    kinds = [name for name in list_kinds() if hasattr(get_class(get_row(name)), "merge")]
    if kind not in kinds:
        known = ", ".join([*kinds, *SPARK_FORMATS])
        raise ParameterError(f"kind must be one of {known}, got {str(kind)[:40]!r}")
    return create_filter(kind, capacity, fpr, **parameters)
