"""The registry of structures: rows, classes, and the layouts of the plain filter.

Tools do not name structures. They look one up by its role, or decide by the fields of a row.

>>> get_class(find_by_role("plain")).__name__
'BloomFilter'
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fullbloom import _core

Row = dict[str, Any]

_FORGETS = "by design"


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of `fullbloom.variants`, read once; callers must not change them."""
    return tuple(_core.variants())


def capabilities() -> list[str]:
    """Return the words for what structures can do, in the order of the rows.

    >>> {"add", "remove", "expire"} <= {*capabilities()}
    True
    """
    return [*dict.fromkeys(word for row in rows() for word in row["capabilities"])]


def get_class(row: Row) -> Any:
    """Return the class of a row."""
    return getattr(_core, row["class"])


def get_row(name: str) -> Row:
    """Return the row of the structure ``name``; raise ``KeyError`` if it does not exist.

    >>> get_row("cuckoo")["class"]
    'CuckooFilter'
    """
    return {row["name"]: row for row in rows()}[name]


def find_row(value: object) -> Row | None:
    """Return the row of a filter; None for an object of any other class.

    >>> find_row(set()) is None
    True
    """
    return next((row for row in rows() if get_class(row) is type(value)), None)


def find_by_role(role: str) -> Row:
    """Return the row of the default structure for ``role``.

    "plain" if the number of keys is known, "growing" otherwise. Raises ``KeyError`` for other roles.
    """
    return {row["role"]: row for row in rows() if row["role"]}[role]


def is_open(row: Row, *entry: str) -> bool:
    """Return whether the structure takes entries of these parts at any time.

    >>> [row["name"] for row in rows() if is_open(row, "key", "value")]
    ['spatial', 'compact']
    """
    return row["entry"] == [*entry] and "static" not in row["capabilities"]


def is_built(row: Row, *entry: str) -> bool:
    """Return whether the structure is built from all its entries at once, with these parts.

    >>> [row["name"] for row in rows() if is_built(row, "included", "excluded")]
    ['cascade']
    """
    return row["entry"] == [*entry] and "static" in row["capabilities"]


def has_entry_of(row: Row, other: Row) -> bool:
    """Return whether both structures take the same entries, at the same time.

    >>> [has_entry_of(get_row("spatial"), get_row(name)) for name in ("compact", "bloomier")]
    [True, False]
    """
    takes = is_built if "static" in other["capabilities"] else is_open
    return takes(row, *other["entry"])


def is_forgetful(row: Row) -> bool:
    """Return whether the structure has false negatives by design.

    >>> is_forgetful(get_row("aging")), is_forgetful(get_row("cuckoo"))
    (True, False)
    """
    return bool(row["false_negatives"] == _FORGETS)


@cache
def layouts(having: str = "name") -> tuple[str, ...]:
    """Return the layouts of the plain filter, or those with the property ``having``.

    ``having`` is "one_line" (all bits of a key in one cache line), "two_lines" (in two), "auto" ("auto" may
    select it) or "parquet" (the bits of a Parquet file's filter).

    >>> layouts("parquet")
    ('split',)
    """
    return tuple(row["name"] for row in _core.layouts() if row[having])
