"""Every format of other programs: golden bytes, a second implementation of its rule, one surface for keys."""

from __future__ import annotations

import copy
import pickle
import random
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from compat.foreign import rules

import fullbloom
from fullbloom import (
    ForeignFilter,
    FormatError,
    IncompatibleFilters,
    KeyTypeError,
    ParameterError,
    ReadOnlyFilter,
)
from fullbloom.formats import detect, open_foreign, rows

WORDS = ["a", "b", "hello", "café"]
MIXED = [*WORDS, 0, 1, -1, 2**40]
#: Bytes that the programs wrote: format, key type, keys, bytes.
GOLDEN = [
    ("spark-v1", "any", MIXED, "00000001000000040000000187a6190a091be602"),
    ("spark", "any", MIXED, "00000002000000040000000000000001c67910411e9d2140"),
    ("spark", "any", MIXED, "00000002000000040000002a000000018409f5998106d101"),
    ("guava", "utf-8", WORDS, "01050000000220100200088402040002404820c0a103"),
    ("guava", "utf-16", WORDS, "01050000000224b2a02020a280800008000000280800"),
    ("guava", "long", [0, 1, -1, 2**40], "01050000000200008025200800011088800410434c02"),
    ("guava", "int", [0, 1, -1, 2**20], "01050000000250002020420082214003000000800002"),
]
ROWS = {row["name"]: row for row in rows() if row["class"] == "ForeignFilter"}
CHOICES = [(row["name"], key_type) for row in ROWS.values() for key_type in row["key_types"]]
#: Of those whose bytes state their shape.
HEADED = [(name, key_type) for name, key_type in CHOICES if ROWS[name]["detected"] and ROWS[name]["written"]]
#: Whose file has its words' bytes in another order than memory.
SWAPPED = {"spark", "spark-v1", "guava", "guava-32"}


def draw_keys(key_type: str, count: int, seed: int = 1) -> list[Any]:
    draw = random.Random(seed)
    text = ["".join(draw.choices("aé日🔑 z", k=draw.randint(0, 40))) for _ in range(count)]
    whole = [draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 60) for _ in range(count)]
    return {
        "any": [*text[: count // 2], *whole[: count - count // 2]],
        "long": whole,
        "int": [number >> 33 for number in whole],
        "bytes": [word.encode() for word in text],
        "utf-16": text,
        "float": [float(np.float32(draw.gauss(0, 1))) for _ in range(count)],
        "double": [draw.gauss(0, 1e9) for _ in range(count)],
        "hash": whole,
    }[key_type]


def make_filter(name: str, key_type: str, count: int = 400) -> tuple[ForeignFilter, list[Any]]:
    keys = draw_keys(key_type, count)
    seed = 42 if name == "spark" else 0
    bloom = ForeignFilter(name, count, 0.01, key_type=key_type, seed=seed)
    bloom.update(keys)
    return bloom, keys


@for_each(("name", "key_type", "keys", "data"), GOLDEN)
def test_bytes_of_the_programs_are_read_and_written(
    name: str, key_type: str, keys: list[Any], data: str, tmp_path: Path
) -> None:
    theirs = bytes.fromhex(data)
    read = open_foreign(theirs, key_type=key_type)
    assert (read.format, detect(theirs)) == (name, name)
    assert all(read.contains_many(keys))
    assert read.to_foreign() == theirs
    again = ForeignFilter.with_shape(name, read.num_bits, read.num_hashes, key_type=key_type, seed=read.seed)
    for key in keys:
        again.add(key)
        assert key in again
    assert again.to_foreign() == theirs
    path = tmp_path / "theirs"
    path.write_bytes(theirs)
    assert open_foreign(path, funnel=key_type) == read
    assert detect(path) == name
    if len(next(row for row in rows() if row["name"] == name)["key_types"]) == 1:
        assert fullbloom.open(path) == read
    else:
        with pytest.raises(ParameterError, match="do not record the type of their keys"):
            fullbloom.open(path)


def swapped(name: str, body: bytes) -> bytes:
    """The bits as the file has them."""
    if name not in SWAPPED:
        return body
    return b"".join(body[at : at + 8][::-1] for at in range(0, len(body), 8))


@for_each(("name", "key_type"), CHOICES)
def test_bits_are_those_of_the_rule(name: str, key_type: str) -> None:
    bloom, keys = make_filter(name, key_type)
    shape = bloom.num_bits, bloom.num_hashes, bloom.seed
    # A container of ours ends with the bits, filled up to whole lines.
    body = bloom.to_bytes()[-(-(-bloom.num_bits // 512) * 64) :][: bloom.nbytes]
    if ROWS[name]["written"]:
        assert (
            rules.turned(body) if ROWS[name]["order"] == "msb" else swapped(name, body)
        ) in bloom.to_foreign()
    cells = rules.bits(name, key_type, keys, *shape)
    assert body == cells
    absent = draw_keys(key_type, 1000, seed=2)
    places = [list(rules.RULES[name](rules.encoded(key, key_type), *shape)) for key in absent]
    expected = [all(cells[bit >> 3] >> (bit & 7) & 1 for bit in bits) for bits in places]
    assert bloom.contains_many(absent) == expected
    assert [key in bloom for key in absent] == expected


@for_each(("name", "key_type"), CHOICES)
def test_every_container_of_keys_gets_the_same_answers(name: str, key_type: str) -> None:
    bloom, keys = make_filter(name, key_type)
    keys = [*keys, *draw_keys(key_type, 500, seed=3)]
    if key_type == "any":
        keys = [key for key in keys if isinstance(key, int)]
    expected = [key in bloom for key in keys]
    assert bloom.contains_many(keys) == bloom.contains_many(tuple(keys)) == expected
    assert bloom.contains_many(iter(keys)) == expected
    column = pa.array(keys)
    found = bloom.contains_many(column)
    assert isinstance(found, pa.BooleanArray)
    assert found.to_pylist() == expected
    gaps = pa.chunked_array([column.slice(0, 7), pa.array([None] * 3, column.type), column.slice(7)])
    assert bloom.contains_many(gaps).to_pylist() == [*expected[:7], None, None, None, *expected[7:]]
    assert bloom.contains_many(column.dictionary_encode()).to_pylist() == expected
    assert bloom.contains_many(pl.Series(keys)).to_list() == expected
    assert bloom.contains_many(pd.Series(keys)).tolist() == expected
    if key_type not in {"bytes", "utf-16"}:
        kinds = {"any": "<i8", "long": "<i8", "int": "<i4", "float": "<f4", "double": "<f8", "hash": "<i8"}
        values = np.array(keys, dtype=kinds[key_type])
        assert bloom.contains_many(values).tolist() == expected
        assert bloom.contains_many(values[::-1]).tolist() == expected[::-1]
        assert bloom.contains_many(array(values.dtype.char, values.tolist())) == expected
    elif key_type == "utf-16":
        assert bloom.contains_many(np.array(keys, object)).tolist() == expected


@for_each(("name", "key_type"), CHOICES)
def test_adding_reports_what_was_new_in_any_container(name: str, key_type: str) -> None:
    bloom, keys = make_filter(name, key_type)
    one, many, columns = (copy.copy(bloom) for _ in range(3))
    for each in (one, many, columns):
        each.clear()
        assert each.fill == 0
    new = [one.add(key) for key in keys]
    assert many.add_many(keys) == new
    if key_type != "any":
        column = pa.chunked_array([pa.array([None, *keys])])
        assert columns.add_many(column).to_pylist() == [None, *new]
        assert columns == bloom
    assert one == many == bloom
    assert not any(many.add_many(keys))


@for_each(("name", "key_type"), CHOICES)
def test_files_of_ours_keep_the_filter(name: str, key_type: str, tmp_path: Path) -> None:
    bloom, keys = make_filter(name, key_type)
    path = tmp_path / "own.bloom"
    bloom.save(path)
    opened = fullbloom.open(path, verify="full")
    assert isinstance(opened, ForeignFilter)
    assert (opened.path, bloom.path) == (str(path), None)
    for again in (opened, ForeignFilter.open(path), fullbloom.loads(path.read_bytes())):
        assert again == bloom
        if ROWS[name]["written"]:
            assert again.to_foreign() == bloom.to_foreign()
        assert again.to_bytes() == path.read_bytes()
        assert (again.format, again.key_type, again.seed) == (bloom.format, bloom.key_type, bloom.seed)
        assert again.contains_many(keys) == [True] * len(keys)
    with pytest.raises(ReadOnlyFilter):
        opened.add(keys[0])
    assert pickle.loads(pickle.dumps(bloom)) == copy.deepcopy(bloom) == opened.copy() == bloom
    assert opened.copy().add(keys[0]) is False


@for_each(
    ("name", "key_type", "key"),
    [
        ("spark", "any", 1.5),
        ("spark", "any", 2**63),
        ("spark", "any", ("a", 1)),
        ("guava", "int", 2**31),
        ("guava", "int", "a"),
        ("guava", "long", "a"),
        ("guava", "utf-8", 1),
        ("guava", "utf-16", b"\xff"),
        ("parquet", "float", 0.1),
        ("parquet", "double", 1),
    ],
)
def test_keys_of_another_type_are_refused_by_name(name: str, key_type: str, key: Any) -> None:
    bloom = ForeignFilter(name, 100, key_type=key_type)
    for ask in (lambda: key in bloom, lambda: bloom.add(key)):
        with pytest.raises(KeyTypeError, match="keys of this filter must be"):
            ask()
    with pytest.raises(KeyTypeError, match="item 0 of the batch"):
        bloom.contains_many([key])
    assert bloom.fill == 0
    good = draw_keys(bloom.key_type, 3)
    with pytest.raises(KeyTypeError, match="item 3 of the batch"):
        bloom.update([*good, key])
    assert all(bloom.contains_many(good))


def test_rows_of_a_column_before_a_refused_one_are_added() -> None:
    bloom = ForeignFilter("guava", 100, key_type="int")
    column = pa.chunked_array([[1, 2], [3, 2**40, 4]])
    with pytest.raises(KeyTypeError, match="item 3 of the batch"):
        bloom.update(column)
    assert bloom.contains_many([1, 2, 3, 4]) == [True, True, True, False]
    with pytest.raises(KeyTypeError, match="rows of several fields"):
        bloom.contains_many(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(KeyTypeError, match="a batch takes many keys"):
        bloom.contains_many("abc")
    with pytest.raises(KeyTypeError, match="is not a batch"):
        bloom.update(fullbloom.BloomFilter(10))


def test_filters_of_another_shape_do_not_merge() -> None:
    one = ForeignFilter("spark", 100)
    for other, differs in [
        (ForeignFilter("spark", 1000), "num_bits"),
        (ForeignFilter("spark", 100, seed=1), "seed"),
        (ForeignFilter("spark-v1", 100), "format"),
    ]:
        with pytest.raises(IncompatibleFilters, match=differs):
            one.merge(other)
        assert one != other
    one |= one
    with pytest.raises(IncompatibleFilters, match=r"Murmur3 pair summed in 64 bits.*in 32 bits"):
        one.convert("spark-v1")
    assert one.convert("spark") == one


def test_estimates_follow_the_fill() -> None:
    for name, key_type in CHOICES:
        if key_type not in {"any", "long"}:
            continue
        bloom = ForeignFilter(name, 10_000, 0.01, key_type=key_type)
        bloom.update(np.arange(10_000))
        items, deviation = bloom.approx_count()
        assert abs(items - 10_000) < 6 * deviation, name
        found = sum(bloom.contains_many(np.arange(10**6, 10**6 + 200_000)))
        rate = bloom.fpr()
        assert abs(found - 200_000 * rate) < 6 * (200_000 * rate) ** 0.5 + 0.1 * 200_000 * rate, name
        info = bloom.info()
        assert (info["format"], info["nbytes"]) == (name, bloom.nbytes)


@for_each(("name", "key_type"), HEADED)
def test_every_length_that_lies_is_refused(name: str, key_type: str) -> None:
    bloom, _ = make_filter(name, key_type, 100)
    data = bloom.to_foreign()
    head = len(data) - bloom.nbytes
    for cut in (*range(head + 9), len(data) - 1):
        with pytest.raises(FormatError, match=f'of format "{name}"'):
            open_foreign(data[:cut], name, key_type=key_type)
        assert detect(data[:cut]) is None
    with pytest.raises(FormatError):
        open_foreign(data + b"\0", key_type=key_type)
    with pytest.raises(fullbloom.FilterMemoryError):
        open_foreign(data, key_type=key_type, max_bytes=bloom.nbytes - 1)
    draw = random.Random(5)
    for _ in range(2000):
        lie = bytearray(data)
        lie[draw.randrange(head)] = draw.randrange(256)
        try:
            read = open_foreign(bytes(lie), name, key_type=key_type)
        except FormatError:
            continue
        assert read.to_foreign() == lie


def test_files_of_no_format_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    for data in (b"", b"\0", b"PAR1" * 10, bytes(100), b"\1" * 1000):
        path.write_bytes(data)
        assert detect(path) is None
        with pytest.raises(FormatError, match="fit in none of the formats"):
            open_foreign(path)
        with pytest.raises(FormatError, match="not a fullbloom file"):
            fullbloom.open(path)
    with pytest.raises(FileNotFoundError):
        open_foreign(tmp_path / "missing")
    with pytest.raises(FormatError, match="not a regular file"):
        open_foreign(tmp_path)


def test_options_name_what_they_take() -> None:
    with pytest.raises(ParameterError, match="format must be one of spark, "):
        ForeignFilter("sparc", 10)
    with pytest.raises(ParameterError, match="funnel must be one of bytes, utf-16, int, long"):
        ForeignFilter("guava", 10, key_type="double")
    with pytest.raises(ParameterError, match="say which: funnel= one of"):
        ForeignFilter("guava", 10)
    with pytest.raises(ParameterError, match="seed must be 0"):
        ForeignFilter("guava", 10, key_type="int", seed=1)
    with pytest.raises(ParameterError, match="num_bits must be a multiple of 64"):
        ForeignFilter.with_shape("spark", 65, 4)
    with pytest.raises(ParameterError, match="num_hashes must be between 1 and 255"):
        ForeignFilter.with_shape("guava", 64, 256, key_type="int")
    with pytest.raises(ParameterError, match="one parameter"):
        open_foreign(b"", key_type="int", funnel="long")
