"""Creates an empty filter by the name of its kind, for engines that build filters from columns."""

from __future__ import annotations

from typing import Any

from fullbloom.errors import ParameterError
from fullbloom.registry import Row, get_class, is_open, rows


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

    Raises ParameterError if ``kind`` is no name of `list_kinds`, and the errors of the class.

    >>> type(create_filter("cuckoo", 1000, 0.001)).__name__
    'CuckooFilter'
    """
    kinds = list_kinds()
    if kind not in kinds:
        raise ParameterError(f"kind must be one of {', '.join(kinds)}, got {str(kind)[:40]!r}")
    row = next(row for row in rows() if row["name"] == kind)
    return get_class(row)(capacity, fpr, **parameters)
