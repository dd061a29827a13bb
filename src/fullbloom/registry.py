"""What the registry says: the row of a structure, its class, the layouts of the plain filter.

Tools name no structure. They ask for the one that plays a role, or go by what a row says.

>>> class_of(with_role("plain")).__name__
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
    """Return the rows of `fullbloom.variants`, asked for once; not to be changed."""
    return tuple(_core.variants())


def class_of(row: Row) -> Any:
    """Return the class of a row."""
    return getattr(_core, row["class"])


def row_named(name: str) -> Row:
    """Return the row of a structure; ``KeyError`` when there is none of this name.

    >>> row_named("cuckoo")["class"]
    'CuckooFilter'
    """
    return {row["name"]: row for row in rows()}[name]


def row_of(seen: object) -> Row | None:
    """Return the row of a filter; None for an object of another make.

    >>> row_of(set()) is None
    True
    """
    return next((row for row in rows() if class_of(row) is type(seen)), None)


def with_role(role: str) -> Row:
    """Return the row that tools take unasked.

    "plain" where the number of keys is known, "growing" where it is not. ``KeyError`` for other words.
    """
    return {row["role"]: row for row in rows() if row["role"]}[role]


def forgets(row: Row) -> bool:
    """Tell whether the structure has false negatives by design.

    >>> forgets(row_named("aging")), forgets(row_named("cuckoo"))
    (True, False)
    """
    return bool(row["false_negatives"] == _FORGETS)


@cache
def layouts(having: str = "name") -> tuple[str, ...]:
    """Return the layouts of the plain filter, or those that the core says ``having`` of.

    ``having`` is "one_line" (all bits of a key in one cache line), "two_lines" (in two), "auto" ("auto" may
    stand for it) or "parquet" (the bits of a Parquet file's filter).

    >>> layouts("parquet")
    ('split',)
    """
    return tuple(row["name"] for row in _core.layouts() if row[having])
