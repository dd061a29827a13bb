"""Xor and binary fuse filters: bytes of pyfusefilter, in both directions, and bytes that lie."""

from __future__ import annotations

import copy
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from cases import for_each

import fullbloom
from fullbloom import (
    FilterMemoryError,
    ForeignFilter,
    ForeignStaticFilter,
    FormatError,
    IncompatibleFilters,
    KeyTypeError,
    ParameterError,
)
from fullbloom.formats import detect, open_foreign
from fullbloom.formats.conversion import convert

FORMATS = ["xor8", "xor16", "fuse8", "fuse16"]
#: What pyfusefilter 1.3.0 wrote for its items "a", "b", "hello", "café" and 7.
GOLDEN = {
    "fuse8": (
        "6734d23725b2f66d05000000080000000100000008000000180000000000000000000000008a00000000000000"
        "00fa42500000f4"
    ),
    "fuse16": (
        "6734d23725b2f66d05000000080000000100000008000000180000000000000000000000000000000000000000"
        "008a3300000000000000000000000000000000fa91424f50fd00000000f42d00000000"
    ),
}
ITEMS = ["a", "b", "hello", "café", 7]
#: The fields of headers: name in messages, offset, format of struct.
XOR = [("blockLength", 8, "<Q")]
FUSE = [
    ("SegmentLength", 12, "<I"),
    ("SegmentCount", 16, "<I"),
    ("SegmentCountLength", 20, "<I"),
    ("ArrayLength", 24, "<I"),
]


def theirs(name: str) -> Any:
    reason = "needs pyfusefilter: pip install -r requirements/formats.txt"
    package = pytest.importorskip("pyfusefilter", reason=reason)
    # It passes str to xxhash, which releases from 4 on refuse; those before encoded it.
    package.pyfusefilter.hash = lambda item: xxhash.xxh64_intdigest(str(item).encode())
    return getattr(package, name.capitalize())


def draw_keys(count: int, seed: int = 1) -> list[Any]:
    draw = random.Random(seed)
    texts = {"".join(draw.choices("aé日🔑 z9", k=draw.randint(0, 40))) for _ in range(count)}
    return [*texts, *{draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 50) for _ in range(count)}]


@pytest.mark.parametrize("name", GOLDEN)
def test_known_keys_give_the_bytes_of_the_program(name: str) -> None:
    built = ForeignStaticFilter.build(name, ITEMS, key_type="str")
    assert built.to_foreign().hex() == GOLDEN[name]


@for_each("name", FORMATS)
@for_each("count", [1, 2, 5, 100, 20_000])
def test_dumps_of_the_program_are_read_asked_and_written_back(name: str, count: int) -> None:
    keys = draw_keys(count)
    made = theirs(name)(keys)
    data = bytes(made.serialize())
    read = open_foreign(data, key_type="str")
    assert isinstance(read, ForeignStaticFilter)
    assert (read.format, detect(data), read.to_foreign()) == (name, name, data)
    absent = draw_keys(2000, seed=2)
    expected = [key in made for key in [*keys, *absent]]
    assert all(expected[: len(keys)])
    assert read.contains_many([*keys, *absent]) == expected
    assert [key in read for key in absent] == expected[len(keys) :]


@for_each("name", FORMATS)
@for_each("count", [1, 3, 100, 20_000])
def test_the_program_reads_ours(name: str, count: int) -> None:
    keys = draw_keys(count)
    built = ForeignStaticFilter.build(name, keys, key_type="str")
    read = theirs(name).deserialize(built.to_foreign())
    assert bytes(read.serialize()) == built.to_foreign()
    absent = draw_keys(2000, seed=3)
    assert [key in read for key in [*keys, *absent]] == built.contains_many([*keys, *absent])


@for_each("name", ["fuse8", "fuse16"])
@for_each("count", [0, 1, 2, 3, 7, 33, 300, 5000, 150_000])
def test_builds_of_distinct_keys_are_those_of_the_program(name: str, count: int) -> None:
    keys = [f"key-{i}" for i in range(count)]
    built = ForeignStaticFilter.build(name, keys[::-1], key_type="str")
    assert built.to_foreign() == bytes(theirs(name)(keys).serialize())
    assert built.num_keys == count


@pytest.mark.parametrize("name", FORMATS)
def test_containers_of_keys_get_the_same_answers(name: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    keys = draw.integers(-(2**63), 2**63 - 1, 5000)
    built = ForeignStaticFilter.build(name, keys, key_type="uint64")
    for same in (keys.tolist(), pa.array(keys), iter(keys.tolist()), [int(key) % 2**64 for key in keys]):
        assert ForeignStaticFilter.build(name, same, key_type="uint64") == built
    asked = np.concatenate([keys[:100], draw.integers(0, 2**62, 4000)])
    expected = [int(key) in built for key in asked]
    assert built.contains_many(asked).tolist() == expected
    assert built.contains_many(pa.array(asked)).to_pylist() == expected
    assert built.contains_many(pa.array([1, None]))[1].as_py() is None
    assert built.contains_many(asked.astype(np.uint64)).tolist() == expected
    width = built.fingerprint_bits
    assert built.fpr() == 2.0**-width
    path = tmp_path / "f"
    built.save(path)
    for again in (
        fullbloom.open(path),
        fullbloom.open(path, verify="full"),
        fullbloom.loads(built.to_bytes()),
        pickle.loads(pickle.dumps(built)),
        copy.copy(built),
    ):
        assert again == built
        assert again.contains_many(asked).tolist() == expected
    assert fullbloom.open(path).path == str(path.absolute())
    assert repr(built).startswith(f'ForeignStaticFilter("{name}", key_type="uint64"')
    assert built.info()["num_cells"] * width // 8 == built.nbytes
    path.write_bytes(built.to_foreign())
    assert open_foreign(path, key_type="uint64") == built
    with pytest.raises(ParameterError, match="do not record the type of their keys"):
        fullbloom.open(path)
    with pytest.raises(FilterMemoryError, match="max_bytes"):
        open_foreign(path, key_type="uint64", max_bytes=100)


@pytest.mark.parametrize("name", FORMATS)
def test_every_field_that_lies_is_refused_by_its_name(name: str) -> None:
    data = ForeignStaticFilter.build(name, draw_keys(500), key_type="str").to_foreign()
    for field, at, layout in XOR if name.startswith("xor") else FUSE:
        (right,) = struct.unpack_from(layout, data, at)
        for wrong in {0, 1, right - 1, right + 1, 2 * right, 2**32 - 1, 2**31} - {right}:
            lie = bytearray(data)
            struct.pack_into(layout, lie, at, wrong)
            with pytest.raises(FormatError, match=name):
                open_foreign(lie, name, key_type="str")
            assert detect(lie) != name
        with pytest.raises(FormatError, match=field if name.startswith("fuse") else "cells"):
            open_foreign(bytes(data[:at]) + b"\1" + bytes(data[at + 1 :]), name, key_type="str")
    for cut in range(0, len(data), 7):
        with pytest.raises(FormatError):
            open_foreign(data[:cut], name, key_type="str")
    with pytest.raises(FormatError, match="bytes follow its header"):
        open_foreign(data + b"\0", name, key_type="str")


def test_more_keys_than_cells_are_refused() -> None:
    data = bytearray(ForeignStaticFilter.build("fuse8", ["a"], key_type="str").to_foreign())
    struct.pack_into("<I", data, 8, 1000)
    with pytest.raises(FormatError, match="Size"):
        open_foreign(data, "fuse8", key_type="str")


def test_keys_of_another_type_are_refused() -> None:
    built = ForeignStaticFilter.build("fuse8", [1, 2**64 - 1, -5], key_type="uint64")
    assert built.contains_many([1, 2**64 - 1, -5, 2**64 - 5]) == [True] * 4
    for key in ("a", 1.5, 2**64, -(2**63) - 1):
        with pytest.raises(KeyTypeError, match="keys of this filter must be"):
            key in built  # noqa: B015
    with pytest.raises(KeyTypeError):
        ForeignStaticFilter.build("fuse8", [1.5], key_type="str")
    with pytest.raises(ParameterError, match="key_type"):
        ForeignStaticFilter.build("fuse8", [1], key_type="long")
    with pytest.raises(ParameterError, match="at least one key"):
        ForeignStaticFilter.build("xor8", [], key_type="str")


def test_conversion_keeps_the_format_or_says_why_not() -> None:
    built = ForeignStaticFilter.build("fuse8", ["a"], key_type="str")
    assert convert(built, "fuse8") == built.to_foreign()
    assert fullbloom.loads(convert(built, "fullbloom")) == built
    for to in ("fuse16", "spark"):
        with pytest.raises(IncompatibleFilters, match="does not contain its keys"):
            convert(built, to)
    with pytest.raises(IncompatibleFilters, match="does not contain its keys"):
        convert(ForeignFilter("spark", 10), "xor8")
