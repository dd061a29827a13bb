"""Polars and pandas columns: the answers are Series of the same library, names and indices kept."""

from __future__ import annotations

import fractions
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each

import fullbloom

POLARS: dict[str, pl.Series] = {
    "text": pl.Series("k", ["a", "b", "a string longer than twelve bytes", "b"]),
    "text with nulls": pl.Series("k", ["a", None, "b", None]),
    "int64": pl.Series("k", [1, -2, 2**62, 1]),
    "int with nulls": pl.Series("k", [1, None, 3]),
    "uint64": pl.Series("k", [1, 2**63, 2**64 - 1], dtype=pl.UInt64),
    "uint8": pl.Series("k", [1, 255], dtype=pl.UInt8),
    "float32": pl.Series("k", [1.5, -0.0, float("nan"), None], dtype=pl.Float32),
    "bool": pl.Series("k", [True, None, False]),
    "binary": pl.Series("k", [b"a", None, b"\xff" * 20]),
    "categorical": pl.Series("k", ["x", None, "y", "x"], dtype=pl.Categorical),
    "enum": pl.Series("k", ["x", "y", None], dtype=pl.Enum(["y", "x"])),
    "sliced": pl.Series("k", ["a", "b", None, "c"] * 5).slice(3, 12),
    "chunked": pl.Series("k", ["a", None]).append(pl.Series("k", ["b", "a"])),
    "chunked ints": pl.Series("k", [1, 2]).append(pl.Series("k", [None, 4])),
    "objects": pl.Series("k", [uuid.UUID(int=i) for i in range(3)]),
    "mixed objects": pl.Series("k", ["a", None, 1, 2**70, ("t", 1), b"a"], dtype=pl.Object),
    "chunked objects": pl.concat([pl.Series("k", [key], dtype=pl.Object) for key in ("a", 1)]),
    "no objects": pl.Series("k", [], dtype=pl.Object),
    "empty": pl.Series("k", [], dtype=pl.Int64),
    "empty text": pl.Series("k", [], dtype=pl.String),
    "empty of no type": pl.Series("k", []),
    "nothing but nulls": pl.Series("k", [None, None]),
}

PANDAS: dict[str, pd.Series[Any]] = {
    "text": pd.Series(["a", "b", "c", "a"], name="k"),
    "text with nulls": pd.Series(["a", None, "b"], name="k", index=[5, 6, 7]),
    "int64": pd.Series([1, -2, 3], name="k", index=["x", "y", "z"]),
    "uint8": pd.Series([1, 255], dtype="uint8"),
    "nullable int": pd.Series([1, None, 3], dtype="Int64", name="k"),
    "nullable bool": pd.Series([True, None, False], dtype="boolean", name="k"),
    "arrow text": pd.Series(["a", None, "b"], dtype="string[pyarrow]", name="k"),
    "python text": pd.Series(["a", None, "b"], dtype="string[python]", name="k"),
    "object": pd.Series(["a", "b", "a"], dtype=object, name="k"),
    "mixed objects": pd.Series(["a", 1, b"a", 2.5], name="k", index=[3, 2, 1, 0]),
    "long integers": pd.Series([2**70, -(2**70), 1], name="k"),
    "tuples": pd.Series([(1, "a"), (2, "b")], name="k"),
    "sparse": pd.Series(pd.arrays.SparseArray([1, 0, 2]), name="k"),
    "float": pd.Series([1.5, -0.0, 2.0], name="k"),
    "mixed objects with nulls": pd.Series(
        ["a", None, 1, float("nan"), (2, "b")], name="k", index=range(5, 10)
    ),
    "bool": pd.Series([True, False], name="k"),
    "category": pd.Series(["x", "y", "x"], dtype="category", name="k"),
    "category with nulls": pd.Series(["x", None, "x"], dtype="category", name="k"),
    "strided": pd.Series(range(10), name="k").iloc[::3],
    "empty": pd.Series([], dtype="int64", name="k"),
    "empty text": pd.Series([], dtype="str", name="k"),
    "empty objects": pd.Series([], dtype=object, name="k"),
    "nothing but nulls": pd.Series([None, None], dtype=object, name="k"),
}


def check(keys: Any, values: list[Any], as_list: Any) -> None:
    """The batch answers of ``keys`` are those of ``values`` one at a time; a null answers null."""
    bloom, twin = fullbloom.BloomFilter(100), fullbloom.BloomFilter(100)
    hashes = fullbloom.hash_many(keys)
    new = bloom.add_many(keys)
    assert as_list(hashes) == [None if v is None else fullbloom.hash_key(v) for v in values]
    assert as_list(new) == [None if v is None else twin.add(v) for v in values]
    assert bloom == twin
    assert bloom.num_added == twin.num_added
    found = bloom.contains_many(keys)
    assert as_list(found) == [None if v is None else True for v in values]
    twin.clear()
    twin.update(keys)
    assert twin == bloom
    by_hash = fullbloom.BloomFilter(100)
    assert as_list(by_hash.add_hashed(hashes)) == as_list(new)
    assert by_hash == bloom
    again = bloom.contains_hashed(hashes)
    assert as_list(again) == as_list(found)
    for answer in (hashes, new, found, again):
        assert type(answer) is type(keys)
        assert answer.name == keys.name


@for_each("name", POLARS)
def test_polars_columns_hash_as_their_values(name: str) -> None:
    keys = POLARS[name]
    check(keys, keys.to_list(), lambda series: series.to_list())
    bloom = fullbloom.BloomFilter(100)
    assert bloom.contains_many(keys).dtype == pl.Boolean
    assert fullbloom.hash_many(keys).dtype == pl.UInt64


def test_polars_object_columns_hash_as_their_values() -> None:
    def series() -> pl.Series:
        return pl.Series([uuid.UUID(int=i) for i in range(3)])

    assert series().dtype == pl.Object
    bloom = fullbloom.BloomFilter(100)
    bloom.update(series())
    assert bloom.contains_many(series()).all()
    assert all(key in bloom for key in series())
    with pytest.raises(fullbloom.KeyTypeError, match=r"item 1 of the batch .*Fraction"):
        bloom.update(pl.Series(["a", fractions.Fraction(1)], dtype=pl.Object))


def plain(series: pd.Series[Any]) -> list[Any]:
    """Python values, None where pandas has a missing one."""
    return [None if pd.isna(value) else value for value in series.tolist()]


@for_each("name", PANDAS)
def test_pandas_columns_hash_as_their_values(name: str) -> None:
    keys = PANDAS[name]
    check(keys, plain(keys), plain)
    bloom = fullbloom.BloomFilter(100)
    found = bloom.contains_many(keys)
    assert found.index.equals(keys.index)
    assert str(found.dtype) in {"bool", "boolean"}
    assert not keys.isna().any() or str(found.dtype) == "boolean"


@pytest.mark.parametrize("values", [["a", [], 1], [1j], ["\ud800"], ["a", None, 1j]])
def test_pandas_objects_that_are_not_keys_are_refused(values: list[Any]) -> None:
    bloom = fullbloom.BloomFilter(100)
    with pytest.raises(fullbloom.KeyTypeError):
        bloom.update(pd.Series(values, dtype=None if values == [1j] else object))


NAN = float("nan")

#: NaN in columns of floats: a key like any other, and never a null.
FLOATS: dict[str, Any] = {
    "list": [1.5, NAN, -0.0],
    "numpy": np.array([1.5, NAN, -0.0]),
    "arrow": pa.array([1.5, NAN, -0.0]),
    "polars": pl.Series("k", [1.5, NAN, -0.0]),
    **{
        f"pandas {d}": pd.Series([1.5, NAN, -0.0], dtype=d, name="k")
        for d in ("float16", "float32", "float64")
    },
    "pandas strided": pd.Series([1.5, 7.0, NAN, 7.0, -0.0], name="k", index=range(5, 10)).iloc[::2],
    "pandas arrow": pd.Series(pd.array(pa.array([1.5, NAN, -0.0]), dtype=pd.ArrowDtype(pa.float64()))),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1.5, NAN, -0.0])),
    "pandas index": pd.Index([1.5, NAN, -0.0]),
}

#: The missing values of columns that have them: nulls, no keys.
MISSING: dict[str, Any] = {
    "arrow": pa.array([1.5, None]),
    "polars": pl.Series([1.5, None]),
    "nullable": pd.Series([1.5, None], dtype="Float64"),
    "arrow in pandas": pd.Series(pd.array(pa.array([1.5, None]), dtype=pd.ArrowDtype(pa.float64()))),
    "category": pd.Series([1.5, NAN], dtype="category"),
    "text": pd.Series(["a", NAN]),
    **{f"object {m!r}": pd.Series(["a", m], dtype=object) for m in (None, NAN, pd.NA)},
    **{f"mixed {m!r}": pd.Series([("a", 1), m], dtype=object) for m in (None, NAN, pd.NA, pd.NaT)},
}


def to_list(answers: Any) -> list[Any]:
    """Answers of any kind as a list."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(answers, name):
            answers = getattr(answers, name)()
    return list(answers)


@for_each("kind", FLOATS)
def test_a_nan_among_floats_is_a_key(kind: str) -> None:
    keys = FLOATS[kind]
    bloom = fullbloom.BloomFilter(100)
    assert to_list(bloom.add_many(keys)) == [True] * 3
    assert NAN in bloom
    assert to_list(bloom.contains_many(keys)) == [True] * 3
    assert to_list(fullbloom.hash_many(keys)) == fullbloom.hash_many(FLOATS["list"])
    if isinstance(keys, pd.Series):
        answer = bloom.contains_many(keys)
        assert answer.dtype == bool
        assert answer.index.equals(keys.index)
        assert answer.name == keys.name


@for_each("kind", MISSING)
def test_a_missing_value_is_a_null(kind: str) -> None:
    keys = MISSING[kind]
    bloom = fullbloom.BloomFilter(100)
    answers = plain(pd.Series(to_list(bloom.add_many(keys)), dtype=object))
    assert answers == [True, None]
    assert bloom.num_added == 1
    assert NAN not in bloom


def test_a_mask_filters_a_frame() -> None:
    bloom = fullbloom.BloomFilter(100)
    bloom.update(["a", "c"])
    frame = pl.DataFrame({"k": ["a", "b", "c"], "v": [1, 2, 3]})
    assert frame.filter(bloom.contains_many(frame["k"]))["v"].to_list() == [1, 3]
    table = pd.DataFrame({"k": ["a", "b", "c"], "v": [1, 2, 3]}, index=[7, 8, 9])
    assert table[bloom.contains_many(table["k"])]["v"].tolist() == [1, 3]


def test_a_frame_of_one_column_is_refused_as_ambiguous() -> None:
    bloom = fullbloom.BloomFilter(100)
    columns = {"k": [1]}
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns), pa.table(columns), pa.record_batch(columns)):
        with pytest.raises(fullbloom.KeyTypeError, match="pass one column of it"):
            bloom.update(frame)
    assert bloom.num_added == 0
