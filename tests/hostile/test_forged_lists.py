"""Lists and tables that state what is not there are refused before a byte of it is read."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from cases import for_each
from hostile.capsules import Address, Array, Column, Schema, address, array, schema

import fullbloom
from fullbloom import SignatureIndex


def children(*parts: Any) -> int:
    """The addresses of parts, as a parent holds them."""
    return address((Address * max(1, len(parts)))(*(address(part) for part in parts)))


def numbers(*values: int) -> Array:
    return array(len(values), None, struct.pack(f"<{len(values)}q", *values))


def lists(offsets: bytes, rows: int, format_: bytes = b"+l", **changes: Any) -> Column:
    item, values = schema(b"l"), numbers(1, 2, 3)
    parent: Schema = schema(format_, n_children=1, children=children(item))
    return Column(
        parent, array(rows, None, offsets, **{"n_children": 1, "children": children(values), **changes})
    )


def test_sound_lists_are_read() -> None:
    index = SignatureIndex(4096, 4)
    assert index.add_many(lists(struct.pack("<4i", 0, 2, 2, 3), 3)) == 3
    assert (index.candidates([2]), index.candidates([3])) == ([0], [2])
    assert index.add_many(lists(struct.pack("<4q", 0, 2, 2, 3), 3, b"+L")) == 3
    assert index.add_many(lists(struct.pack("<4i", 0, 2, 2, 3), 1, offset=2)) == 1
    assert index.candidates([3]) == [2, 5, 6]


@for_each(
    ("offsets", "rows", "changes"),
    [
        ((0, 2, 1, 3), 3, {}),
        ((-1, 2, 2, 3), 3, {}),
        ((0, 1, 2, 4), 3, {}),
        ((0, 1, 2, 2**31 - 1), 3, {}),
        ((5, 6, 7, 8), 3, {}),
        ((0, 1, 2, 3), -1, {}),
        ((0, 1, 2, 3), 3, {"offset": -1}),
        ((0, 1, 2, 3), 2**62, {}),
        ((0, 1, 2, 3), 3, {"n_children": 0}),
        ((0, 1, 2, 3), 3, {"n_children": 2}),
        ((0, 1, 2, 3), 3, {"children": 0}),
        ((0, 1, 2, 3), 3, {"children": 8}),
        ((0, 1, 2, 3), 3, {"n_buffers": 1}),
        ((0, 1, 2, 3), 3, {"null_count": 4}),
    ],
)
def test_lying_lists_are_refused(offsets: tuple[int, ...], rows: int, changes: dict[str, Any]) -> None:
    index = SignatureIndex(64, 3)
    with pytest.raises(fullbloom.KeyTypeError, match="states"):
        index.add_many(lists(struct.pack("<4i", *offsets), rows, **changes))
    assert len(index) == 0


def table(rows: int, *columns: tuple[bytes, Array], **changes: Any) -> Column:
    fields = children(*(schema(b"l", name=name) for name, _ in columns))
    parent = schema(b"+s", n_children=len(columns), children=fields)
    values = children(*(part for _, part in columns))
    return Column(parent, array(rows, None, **{"n_children": len(columns), "children": values, **changes}))


def test_sound_tables_are_read_from_their_offset() -> None:
    index = SignatureIndex(4096, 4, columns=["a", "b"])
    sound = table(2, (b"b", numbers(7, 8, 9)), (b"a", numbers(4, 5, 6)), offset=1)
    assert index.add_table(sound) == 2
    assert (index.candidates({"a": 5, "b": 8}), index.candidates({"a": 4})) == ([0], [])


@for_each(
    ("rows", "changes"),
    [(4, {}), (3, {"offset": 1}), (2**62, {}), (-1, {}), (3, {"n_children": 1}), (3, {"children": 0})],
)
def test_lying_tables_are_refused(rows: int, changes: dict[str, Any]) -> None:
    index = SignatureIndex(64, 3, columns=["a", "b"])
    with pytest.raises(fullbloom.KeyTypeError, match="states"):
        index.add_table(table(rows, (b"a", numbers(1, 2, 3)), (b"b", numbers(1, 2, 3)), **changes))
    assert len(index) == 0
