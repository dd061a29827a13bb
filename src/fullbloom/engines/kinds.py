"""Creates an empty filter by the name of its kind, for engines that build filters from columns."""

from __future__ import annotations

import math
from typing import Any

from fullbloom import ForeignFilter, _core
from fullbloom.errors import ParameterError, ParameterTypeError
from fullbloom.registry import Row, get_class, get_row, is_open, rows

#: Spark's own formats: version 2, which Spark 4 writes, and version 1.
SPARK_FORMATS = tuple(row["name"] for row in _core.foreign_formats() if row["program"] == "spark")


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


class FilterGroups:
    """Filters of one shape by the values of a group, for engines that read groups batch by batch.

    >>> groups = FilterGroups("bloom", 100, 0.01)
    >>> groups.update("mon", [1, 2])
    >>> groups.update("mon", [3])
    >>> 3 in groups.filters["mon"]
    True
    """

    def __init__(self, kind: str, capacity: int, fpr: float, **parameters: Any) -> None:
        """Create no filter yet; raise the errors of `create_filter`."""
        create_filter(kind, capacity, fpr, **parameters)
        self._shape = kind, capacity, fpr
        self._parameters = parameters
        self.filters: dict[Any, Any] = {}

    def update(self, group: Any, keys: Any) -> None:
        """Add keys to the filter of a group; raise ParameterTypeError if the group is a list or struct."""
        if isinstance(group, float) and math.isnan(group):
            group = math.nan  # a dictionary finds this one object, and each other NaN would be a new key
        try:
            found = self.filters.get(group)
        except TypeError:
            raise create_group_error(type(group).__name__) from None
        if found is None:
            found = self.filters[group] = create_filter(*self._shape, **self._parameters)
        found.update(keys)


def create_group_error(kind: str) -> ParameterTypeError:
    """Return the error of groups that are lists or structs."""
    return ParameterTypeError(
        f"a group is the key of a dictionary, which a {kind[:40]} cannot be; group by a column of numbers, "
        "text or times"
    )
