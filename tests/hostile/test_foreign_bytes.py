"""Bytes of other programs' filters with a field that lies: refused by name, without memory, in time."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import pytest
from cases import for_each
from compat.foreign import samples
from hostile.limits import MIB, bounded

import fullbloom
from fullbloom import FilterMemoryError, ForeignFilter, FormatError
from fullbloom.formats import detect, open_foreign, rows


class Field(NamedTuple):
    """A field, its struct code, where it is (from the end if negative), and values that no filter has."""

    name: str
    code: str
    at: int
    lies: tuple[float, ...]


I32 = (0, -1, -(2**31), 2**31 - 1)
U64 = (0, 2**63, 2**64 - 1, 2**32)
RATES = (0.0, 1.0, -0.5, 2.0, float("nan"), float("inf"))
GUAVA = [
    Field("strategy", "B", 0, (2, 128, 255)),
    Field("number of hashes", "B", 1, (0,)),
    Field("words", ">i", 2, I32),
]
BIP37 = [
    Field("length", "B", 0, (0, 1, 2, 4, 252, 253, 254, 255)),
    Field("number of hashes", "<I", -9, (0, 51, 2**31, 2**32 - 1)),
]
PYPROBABLES = [
    Field("estimated_elements", "<Q", -20, (*U64, 1, 10**12)),
    Field("false_positive_rate", "<f", -4, RATES),
]
#: Each format whose bytes state something: a filter's shape, and its fields.
LAYOUTS: dict[str, tuple[int, int, list[Field]]] = {
    "spark": (
        1024,
        4,
        [
            Field("version", ">i", 0, (*I32, 1, 3)),
            Field("number of hashes", ">i", 4, (*I32, 65_537)),
            Field("words", ">i", 12, (*I32, 1, 15, 17, 32)),
        ],
    ),
    "spark-v1": (
        1024,
        4,
        [
            Field("version", ">i", 0, (*I32, 2, 3)),
            Field("number of hashes", ">i", 4, (*I32, 65_537)),
            Field("words", ">i", 8, (*I32, 1, 15, 17, 32)),
        ],
    ),
    "guava": (1024, 4, [*GUAVA, Field("strategy", "B", 0, (0,))]),
    "guava-32": (1024, 4, [*GUAVA, Field("strategy", "B", 0, (1,))]),
    "parquet": (
        2048,
        8,
        [
            Field("numBytes", "B", 0, (0, 0x14, 0x16, 0x25)),
            Field("numBytes", "B", 1, (0x81, 0xC0, 0xFF)),
            Field("algorithm, hash or compression", "B", 3, (0, 0x2C)),
            Field("algorithm, hash or compression", "B", 8, (0x2C, 0xFF)),
            Field("algorithm, hash or compression", "B", 15, (1, 0x15)),
        ],
    ),
    "bip37": (24, 5, [*BIP37, Field("flag", "B", -1, (3, 128, 255))]),
    "bip37-all": (24, 5, [*BIP37, Field("flag", "B", -1, (0, 2, 3, 255))]),
    "bip37-p2pubkey": (24, 5, [*BIP37, Field("flag", "B", -1, (0, 1, 3, 255))]),
    "ethereum": (2048, 3, []),
    "rbloom": (1024, 4, [Field("number of hashes", "<Q", 0, (*U64, 65))]),
    "pybloom-live": (
        1024,
        4,
        [
            Field("error_rate", "<d", 0, RATES),
            Field("number of hashes", "<Q", 8, (*U64, 65)),
            Field("slice", "<Q", 16, (*U64, 2**40, 1, 250, 300)),
        ],
    ),
    "pybloomfiltermmap3": (
        1024,
        4,
        [
            Field("MBITARRAY", "B", 0, (0, 255)),
            Field("bits", "<Q", 9, (*U64, 1016, 1023, 1032)),
            Field("header", "<i", 17, (0, -1, 1199, 1201, 2**31 - 1)),
            Field("number of hashes", "<I", 37, (0, 33, 2**31, 2**32 - 1)),
            Field("version", "B", 1077, (0, 2, 255)),
        ],
    ),
    "pyprobables": (96, 7, PYPROBABLES),
    "pyprobables-bytes": (96, 7, PYPROBABLES),
}
#: A length is all that they state; rbloom states not even that.
ANY_LENGTH = {"rbloom"}


def golden(name: str) -> bytes:
    """A filter with some keys, as its program would write it."""
    num_bits, num_hashes, _ = LAYOUTS[name]
    row = next(row for row in rows() if row["name"] == name)
    key_type = row["key_types"][0]
    bloom = ForeignFilter.with_shape(name, num_bits, num_hashes, key_type=key_type)
    bloom.update(range(5) if key_type == "hash" else [f"key {i}" for i in range(5)])
    return samples.bytes_of(bloom)


def changed(data: bytes, field: Field, lie: float) -> bytes:
    copy, at = bytearray(data), field.at % len(data)
    struct.pack_into(field.code, copy, at, lie)
    return bytes(copy)


def read(name: str, data: bytes) -> ForeignFilter:
    key_type = next(row["key_types"][0] for row in rows() if row["name"] == name)
    with bounded(len(data)):
        found: ForeignFilter = open_foreign(data, name, key_type=key_type)
    return found


def test_every_format_that_states_something_has_its_fields_here() -> None:
    stating = {row["name"] for row in rows() if row["class"] == "ForeignFilter" and not row["needs"]}
    assert stating == set(LAYOUTS)


@for_each("name", LAYOUTS)
def test_a_field_that_lies_is_named(name: str) -> None:
    data = golden(name)
    assert read(name, data).fill > 0
    for field in LAYOUTS[name][2]:
        for lie in field.lies:
            forged = changed(data, field, lie)
            assert forged != data, (field, lie)
            with pytest.raises(FormatError, match=f'format "{name}"') as refused:
                read(name, forged)
            words = str(refused.value).split('": ', 1)[1]
            assert field.name.split(",")[0] in words, (field, lie, words)


def test_a_filter_of_one_bit_has_it_set_or_not() -> None:
    for bits, found in ((b"\0", False), (b"\1", True)):
        bloom = read("pybloom-live", struct.pack("<dQQQQ", 0.5, 1, 1, 1, 0) + bits)
        assert bloom.contains_many(["a", "b"]) == [found] * 2


@for_each("name", LAYOUTS)
def test_bytes_that_are_missing_or_left_over_are_refused(name: str) -> None:
    data = golden(name)
    longer = [data + b"\0", data + b"\xff" * 8, data * 2]
    for lie in [*(data[:cut] for cut in range(len(data))), *longer]:
        if name in ANY_LENGTH and len(lie) > 8:
            assert read(name, lie).num_bits == 8 * len(lie) - 64
            continue
        with pytest.raises(FormatError, match=f'format "{name}"'):
            read(name, lie)


@for_each("name", LAYOUTS)
def test_each_bit_of_a_header_that_flips_is_refused_or_kept(name: str) -> None:
    data = golden(name)
    head = [*range(min(48, len(data))), *range(max(0, len(data) - 24), len(data))]
    row = next(row for row in rows() if row["name"] == name)
    for at in dict.fromkeys(head):
        for bit in range(8):
            forged = bytearray(data)
            forged[at] ^= 1 << bit
            try:
                accepted = read(name, bytes(forged))
            except FormatError:
                continue
            assert accepted.nbytes <= len(data)
            if row["written"] and accepted.format == name:
                assert accepted.to_foreign() == forged


@for_each("name", [name for name in LAYOUTS if name not in {"ethereum", "bip37-all", "bip37-p2pubkey"}])
@pytest.mark.timed
def test_a_filter_of_many_bytes_opens_within_its_size(name: str) -> None:
    most = 36_000 if name == "bip37" else 4 * MIB
    key_type = next(row["key_types"][0] for row in rows() if row["name"] == name)
    if not next(row["written"] for row in rows() if row["name"] == name):
        return
    data = ForeignFilter.with_shape(name, 8 * most, 8, key_type=key_type).to_foreign()
    with bounded(2 * len(data)):
        assert open_foreign(data, name, key_type=key_type).nbytes == most
    with pytest.raises(FilterMemoryError, match="max_bytes"):
        open_foreign(data, name, key_type=key_type, max_bytes=most - 1)


@pytest.mark.timed
def test_bits_beyond_the_most_of_a_format_take_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 7))
        file.truncate(8 + 2**37 + 1)
    with (
        bounded(0),
        pytest.raises(FormatError, match=r'num_bits must be a multiple of 8.* in format "rbloom"'),
    ):
        open_foreign(path, "rbloom")
    with bounded(0), pytest.raises(FormatError, match=r'num_bits must be .* in format "md5-slices"'):
        open_foreign(path, "md5-slices", num_bits=8 * path.stat().st_size, num_hashes=3)


def test_three_bytes_and_a_length_are_no_filter_of_bitcoin(tmp_path: Path) -> None:
    length = 20_000
    noise = b"\xfd" + struct.pack("<H", length) + b"\xa5" * (length + 9)
    path = tmp_path / "noise"
    path.write_bytes(noise)
    assert detect(noise) is None
    assert detect(path) is None
    with pytest.raises(FormatError, match="not a fullbloom file"):
        fullbloom.open(path)
    tail = struct.pack("<IIB", 11, 7, 0)
    assert detect(noise[:-9] + tail) == "bip37"
    for lie in (struct.pack("<IIB", 0, 7, 0), struct.pack("<IIB", 51, 7, 0), struct.pack("<IIB", 11, 7, 3)):
        assert detect(noise[:-9] + lie) is None
