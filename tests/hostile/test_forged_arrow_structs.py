"""Arrow structs that state what cannot be are refused; nulls and offsets at every level are read right."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pyarrow as pa
from cases import for_each
from hostile.capsules import Address, Array, Column, Schema, address, array, memory, released, schema
from hostile.test_forged_arrow import LAYOUTS, LONG, SIZES, assert_refused, view, words

import fullbloom


def pointers(*things: Any) -> int:
    """The address of an array of the addresses of these."""
    return address((Address * max(1, len(things)))(*(address(thing) for thing in things)))


def struct_of(
    *fields: tuple[bytes, Array], rows: int = 2, nulls: bytes | None = None, **changes: Any
) -> Column:
    """A column of structs with these fields; changes of the schema begin with `said_`."""
    schemas, arrays = pointers(*(schema(name) for name, _ in fields)), pointers(*(held for _, held in fields))
    said = {"n_children": len(fields), "children": schemas}
    held = {"n_children": len(fields), "children": arrays}
    for name, value in changes.items():
        place = said if name.startswith("said_") else held
        place[name.removeprefix("said_")] = value
    return Column(schema(b"+s", **said), array(rows, nulls, **held))


def numbers(*values: int, **changes: Any) -> tuple[bytes, Array]:
    """A field of numbers."""
    return b"l", array(len(values), changes.pop("nulls", None), words(*values, kind="q"), **changes)


def texts() -> tuple[bytes, Array]:
    """A field of two texts."""
    return b"vu", array(2, None, view(b"short") + view(LONG), LONG, SIZES)


WRONG: dict[str, dict[str, Any]] = {
    "more fields than it holds": {"said_n_children": 3},
    "fewer fields than it holds": {"n_children": 5},
    "a negative number of fields": {"said_n_children": -1, "n_children": -1},
    "the greatest number of fields": {"said_n_children": 2**63 - 1, "n_children": 2**63 - 1},
    "fields nowhere": {"children": None},
    "schemas nowhere": {"said_children": None},
    "fields in the first page": {"children": 64},
    "fields at an odd address": {"children": memory(bytes(64), shift=3)},
    "no such fields": {"children": memory(bytes(64))},
    "no such schemas": {"said_children": memory(bytes(64))},
    "more rows than its fields": {"length": 3},
    "an offset past its fields": {"offset": 1},
    "the greatest length": {"length": 2**63 - 1},
    "the greatest offset": {"offset": 2**63 - 1},
    "an offset whose bits lie past all memory": {"offset": 2**62},
    "a negative length": {"length": -1},
    "a dictionary out of place": {"dictionary": address(array(0, None, None))},
    "no buffers": {"n_buffers": 0},
}


@for_each("wrong", WRONG)
def test_impossible_structs_are_refused(wrong: str) -> None:
    assert_refused(lambda: struct_of(numbers(1, 2), texts(), **WRONG[wrong]))


@for_each("format_", LAYOUTS)
@for_each("wrong", [{"length": 1}, {"length": -1}, {"offset": -1}, {"null_count": 3}, {"n_buffers": 1}])
def test_an_impossible_field_is_refused(format_: bytes, wrong: dict[str, Any]) -> None:
    assert_refused(lambda: struct_of(numbers(1, 2), (format_, array(2, *LAYOUTS[format_], **wrong))))


@for_each("format_", LAYOUTS)
def test_every_arrow_layout_may_be_a_field(format_: bytes) -> None:
    before = dict(released)
    single = pa.array(fullbloom.hash_many(Column(schema(format_), array(2, *LAYOUTS[format_]))))
    rows = pa.array(fullbloom.hash_many(struct_of((format_, array(2, *LAYOUTS[format_])), numbers(1, 2))))
    assert single.null_count == rows.null_count == 0
    assert len(set(rows.to_pylist())) == 2
    # Only what was lent is released; it releases its fields.
    assert released == {**before, Array: before[Array] + 2, Schema: before[Schema] + 2}


def test_offsets_of_a_struct_and_of_its_fields_add_up() -> None:
    fields = [numbers(9, 9, 1, 2, 9, offset=1, length=4), numbers(8, 3, 4, 8)]
    keys = struct_of(*fields, rows=2, offset=1)
    assert pa.array(fullbloom.hash_many(keys)).to_pylist() == fullbloom.hash_many([(1, 3), (2, 4)])


def test_nulls_of_a_struct_and_of_its_fields_add_up() -> None:
    fields = [numbers(1, 2, 3, 4, nulls=b"\x0b"), numbers(5, 6, 7, 8, nulls=b"\x0e")]
    keys = struct_of(*fields, rows=4, nulls=b"\x0d")
    # Row 0 lacks its second field, row 1 is a null, row 2 lacks its first field.
    assert pa.array(fullbloom.hash_many(keys)).to_pylist() == [None, None, None, fullbloom.hash_key((4, 8))]


def test_structs_that_hold_themselves_nest_too_deep() -> None:
    def circle() -> Column:
        said, held = schema(b"+s", n_children=2), array(1, None, n_children=2)
        said.children, held.children = pointers(said, said), pointers(held, held)
        return Column(
            schema(b"+s", n_children=2, children=said.children),
            array(1, None, n_children=2, children=held.children),
        )

    assert_refused(circle, "nest 8")


def test_dictionary_fields_are_read() -> None:
    def column(index: int, nulls: bytes | None = None) -> Column:
        values = array(2, None, words(0, 1, 3), b"abb")
        said = schema(b"c", dictionary=address(schema(b"u")))
        held = array(2, nulls, bytes([1, index & 255]), dictionary=address(values))
        other_said, other_held = schema(b"l"), numbers(1, 2)[1]
        fields = {"n_children": 2, "children": pointers(said, other_said)}
        return Column(
            schema(b"+s", **fields), array(2, None, n_children=2, children=pointers(held, other_held))
        )

    hashes = pa.array(fullbloom.hash_many(column(0))).to_pylist()
    assert hashes == fullbloom.hash_many([("bb", 1), ("a", 2)])
    for wild in (2, 127, -1, -128):
        assert_refused(lambda wild=wild: column(wild), "index")
        hashes = pa.array(fullbloom.hash_many(column(wild, b"\x01"))).to_pylist()
        assert hashes == [fullbloom.hash_key(("bb", 1)), None]


@for_each("format_", [b"d:", b"d:1", b"d:1,", b"d:9,2,16", b"d:9,x", b"d:9,99999999999", b"ts", b"tsu"])
@for_each("struct", [False, True])
def test_unknown_formats_are_refused(format_: bytes, struct: bool) -> None:
    assert_refused(
        lambda: (
            struct_of((format_, array(1, None, bytes(64))), numbers(1), rows=1)
            if struct
            else Column(schema(format_), array(1, None, bytes(64)))
        )
    )


def test_fuzzed_numbers_of_structs_give_an_error_or_a_result() -> None:
    rng = np.random.default_rng(11)
    room = bytes(8192)
    for _ in range(1000):
        fields = []
        for _ in range(rng.integers(2, 4)):
            format_ = list(LAYOUTS)[rng.integers(len(LAYOUTS))]
            plain = [room if data is not None else None for data in LAYOUTS[format_]]
            numbers = {name: int(rng.integers(-2, 40)) for name in ("length", "offset", "null_count")}
            fields.append((format_, array(0, *plain, **numbers)))
        changes = {name: int(rng.integers(-2, 40)) for name in ("length", "offset", "null_count")}
        nulls = [None, room][rng.integers(2)]
        with contextlib.suppress(fullbloom.FullbloomError):
            fullbloom.hash_many(struct_of(*fields, nulls=nulls, **changes))
