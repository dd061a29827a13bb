"""Rows of structs, tables, record batches and frames are the tuples of their fields."""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SECRET

import fullbloom

N = 7
#: A column of every type, of N values each.
FIELDS: dict[str, Any] = {
    "i8": pa.array(range(-3, 4), pa.int8()),
    "u8": pa.array(range(N), pa.uint8()),
    "i16": pa.array(range(N), pa.int16()),
    "u16": pa.array(range(N), pa.uint16()),
    "i32": pa.array(range(N), pa.int32()),
    "u32": pa.array(range(N), pa.uint32()),
    "i64": pa.array([2**62, -1, 0, 1, 2, 3, -(2**63)]),
    "u64": pa.array([2**64 - 1, 2**63, *range(5)], pa.uint64()),
    "f16": pa.array([0.5, -0.0, float("nan"), 1, 2, 3, 4], pa.float16()),
    "f32": pa.array([0.5, -0.0, float("nan"), 1, 2, 3, 4], pa.float32()),
    "f64": pa.array([0.5, -0.0, float("nan"), 1, 2, 3, 4], pa.float64()),
    "bool": pa.array([True, False] * 3 + [True]),
    "text": pa.array(["", "a", "é" * 9, "x" * 3000, "日本", "b", "c"]),
    "large text": pa.array(["", "a", "é" * 9, "x" * 3000, "日本", "b", "c"], pa.large_string()),
    "view": pa.array(["", "a", "é" * 9, "x" * 3000, "日本", "b", "c"], pa.string_view()),
    "binary": pa.array([b"\xff" * n for n in range(N)]),
    "fixed": pa.array([bytes([n, 0]) for n in range(N)], pa.binary(2)),
    "date": pa.array([dt.date(2024, 1, 1 + n) for n in range(N)]),
    "time": pa.array([dt.time(n) for n in range(N)]),
    "stamp": pa.array([dt.datetime(1, 1, 1 + n) for n in range(N)]),
    "zoned": pa.array([dt.datetime(2024, 1, 1 + n) for n in range(N)], pa.timestamp("ms", "Asia/Tokyo")),
    "span": pa.array([dt.timedelta(-n) for n in range(N)]),
    "decimal": pa.array([decimal.Decimal(n).scaleb(-2) for n in range(N)], pa.decimal128(9, 2)),
    "decimal256": pa.array([decimal.Decimal(10) ** 60 * n for n in range(N)], pa.decimal256(76, 2)),
    "dictionary": pa.array(["p", "q"] * 3 + ["p"]).dictionary_encode(),
}
NESTED = pa.StructArray.from_arrays([FIELDS["i8"], FIELDS["text"]], ["x", "y"])
FIELDS["struct"] = NESTED
FIELDS["struct of struct"] = pa.StructArray.from_arrays([NESTED], ["z"])


def tupled(value: Any) -> Any:
    """A row as Python has it, structs as tuples."""
    return tuple(map(tupled, value.values())) if isinstance(value, dict) else value


def rows(table: Any) -> list[Any]:
    """The rows as tuples; None for one of which a part, however deep, is missing."""

    def holds_none(value: Any) -> bool:
        return value is None or (isinstance(value, tuple) and any(map(holds_none, value)))

    found = [tuple(map(tupled, row)) for row in zip(*(column.to_pylist() for column in table), strict=True)]
    return [None if holds_none(row) else row for row in found]


def hash_rows(values: list[Any], secret: bytes | None = None) -> list[int | None]:
    """The hashes one by one."""
    return [None if value is None else fullbloom.hash_key(value, secret=secret) for value in values]


@for_each("secret", [None, SECRET], ids=["seeded", "keyed"])
@for_each("name", FIELDS)
def test_a_row_hashes_as_the_tuple_of_its_fields(name: str, secret: bytes | None) -> None:
    table = pa.table({"k": range(N), "v": FIELDS[name], "k again": ["a"] * N})
    expected = hash_rows(rows(table.columns), secret)
    assert fullbloom.hash_many(table, secret=secret).to_pylist() == expected
    batch = table.combine_chunks().to_batches()[0]
    assert fullbloom.hash_many(batch, secret=secret).to_pylist() == expected
    struct = batch.to_struct_array()
    assert fullbloom.hash_many(struct, secret=secret).to_pylist() == expected
    assert fullbloom.hash_many(struct.slice(2, 4), secret=secret).to_pylist() == expected[2:6]
    assert fullbloom.hash_many(table.slice(3), secret=secret).to_pylist() == expected[3:]


@for_each("name", FIELDS)
def test_a_row_with_a_null_is_a_null(name: str) -> None:
    mask = pa.array([i % 3 == 1 for i in range(N)])
    values = FIELDS[name].to_pylist()
    holes = pa.array([None if i % 3 == 1 else v for i, v in enumerate(values)], FIELDS[name].type)
    table = pa.table({"k": range(N), "v": holes})
    expected = hash_rows(rows(table.columns))
    assert [i for i, value in enumerate(expected) if value is None] == [1, 4]
    assert fullbloom.hash_many(table).to_pylist() == expected
    bloom = fullbloom.BloomFilter(100)
    bloom.update(table)
    assert bloom.num_added == 5
    whole = pa.StructArray.from_arrays([FIELDS[name], FIELDS["i64"]], ["a", "b"], mask=mask)
    assert [value is None for value in fullbloom.hash_many(whole).to_pylist()] == mask.to_pylist()


def test_columns_with_different_chunks_agree() -> None:
    columns = [
        pa.chunked_array([column.slice(0, i % N), column.slice(i % N)])
        for i, column in enumerate(FIELDS.values())
    ]
    table = pa.table(columns, names=list(FIELDS))
    expected = hash_rows(rows(table.columns))
    assert fullbloom.hash_many(table).to_pylist() == expected
    bloom, twin = fullbloom.BloomFilter(1000), fullbloom.BloomFilter(1000)
    answers = bloom.add_many(table)
    assert isinstance(answers, pa.ChunkedArray)
    assert answers.to_pylist() == [twin.add(row) for row in rows(table.columns)]
    assert bloom == twin
    assert bloom.contains_many(table, threads=2).to_pylist() == [True] * N


def test_rows_depend_on_the_order_and_not_the_names_of_columns() -> None:
    one = pa.table({"a": pa.array([1], pa.int8()), "b": ["x"]})
    other = pa.table({"c": pa.array([1], pa.uint64()), "a": pa.array(["x"], pa.large_string())})
    assert fullbloom.hash_many(one).to_pylist() == fullbloom.hash_many(other).to_pylist()
    assert fullbloom.hash_many(one).to_pylist() == [fullbloom.hash_key((1, "x"))]
    assert fullbloom.hash_many(one.select(["b", "a"])).to_pylist() == [fullbloom.hash_key(("x", 1))]


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=3000)),
            st.one_of(st.none(), st.floats()),
        )
    ),
    start=st.integers(0, 3),
)
def test_any_table_hashes_as_its_tuples(values: list[Any], start: int) -> None:
    kinds = [pa.int64(), pa.string(), pa.float64()]
    table = pa.table(
        [pa.array([row[i] for row in values], kind) for i, kind in enumerate(kinds)], names=["a", "b", "c"]
    )
    expected = [None if None in row else fullbloom.hash_key(row) for row in values[start:]]
    assert fullbloom.hash_many(table.slice(start)).to_pylist() == expected


def test_structs_nest_eight_deep() -> None:
    column: Any = pa.StructArray.from_arrays([FIELDS["i8"], FIELDS["text"]], ["a", "b"])
    for _ in range(7):
        column = pa.StructArray.from_arrays([column, FIELDS["u8"]], ["a", "b"])
    expected = hash_rows([tupled(value) for value in column.to_pylist()])
    assert fullbloom.hash_many(column).to_pylist() == expected
    deeper = pa.StructArray.from_arrays([column, FIELDS["u8"]], ["a", "b"])
    with pytest.raises(fullbloom.KeyTypeError, match="nest 8"):
        fullbloom.hash_many(deeper)


POLARS: dict[str, pl.DataFrame] = {
    "plain": pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
    "nulls": pl.DataFrame({"a": [1, None, 3], "b": ["x", "y", None]}),
    "nan": pl.DataFrame({"a": [1.5, float("nan")], "b": [1, 2]}),
    "moments": pl.DataFrame(
        {"a": [dt.date(2024, 1, 1)], "b": [dt.datetime(2024, 1, 1)], "c": [decimal.Decimal("1.5")]}
    ),
    "categories": pl.DataFrame({"a": ["x", "y"], "b": [1, 2]}, schema_overrides={"a": pl.Categorical}),
    "structs": pl.DataFrame({"a": [{"x": 1, "y": "p"}], "b": [1]}),
    "objects": pl.DataFrame({"a": pl.Series([uuid.UUID(int=1), None], dtype=pl.Object), "b": [1, 2]}),
    "empty": pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Int64, "b": pl.String}),
}


@for_each("name", POLARS)
def test_polars_frames_hash_as_tuples(name: str) -> None:
    frame = POLARS[name]
    values = [None if None in row else tuple(map(tupled, row)) for row in frame.iter_rows()]
    hashes = fullbloom.hash_many(frame)
    assert isinstance(hashes, pl.Series)
    assert hashes.to_list() == hash_rows(values)
    bloom = fullbloom.BloomFilter(100)
    bloom.update(frame)
    mask = bloom.contains_many(frame)
    assert mask.dtype == pl.Boolean
    assert frame.filter(mask).height == sum(value is not None for value in values)


NAN = float("nan")
PANDAS: dict[str, tuple[pd.DataFrame, list[Any]]] = {
    "plain": (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), [(1, "x"), (2, "y")]),
    "index": (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=["p", "q"]), [(1, "x"), (2, "y")]),
    "nan is a key among floats": (pd.DataFrame({"a": [1.5, NAN], "b": [1, 2]}), [(1.5, 1), (NAN, 2)]),
    "missing texts": (pd.DataFrame({"a": ["x", None], "b": [1, 2]}), [("x", 1), None]),
    "nullable": (pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [1, 2]}), [(1, 1), None]),
    "names twice": (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [(1, 2), (3, 4)]),
    "names of numbers": (pd.DataFrame([[1, 2.5]], columns=[0, 1]), [(1, 2.5)]),
    "moments": (
        pd.DataFrame({"a": [pd.Timestamp("2024-01-01"), pd.NaT], "b": [pd.Timedelta("1s")] * 2}),
        [(dt.datetime(2024, 1, 1), dt.timedelta(seconds=1)), None],
    ),
    "zoned": (
        pd.DataFrame({"a": [pd.Timestamp("2024-01-01", tz="Asia/Tokyo")], "b": ["x"]}),
        [(dt.datetime(2023, 12, 31, 15, tzinfo=dt.UTC), "x")],
    ),
    "categories": (
        pd.DataFrame({"a": pd.Series(["x", "y"], dtype="category"), "b": [1, 2]}),
        [("x", 1), ("y", 2)],
    ),
    "objects": (
        pd.DataFrame({"a": pd.Series([uuid.UUID(int=1), ("t", 1), NAN], dtype=object), "b": [NAN, 2.0, 3.0]}),
        [(uuid.UUID(int=1), NAN), (("t", 1), 2.0), None],
    ),
    "strided": (pd.DataFrame({"a": range(6), "b": range(6)}).iloc[::3], [(0, 0), (3, 3)]),
    "empty": (pd.DataFrame({"a": [1], "b": [2]}).iloc[:0], []),
}


@for_each("name", PANDAS)
def test_pandas_frames_hash_as_tuples(name: str) -> None:
    frame, values = PANDAS[name]
    hashes = fullbloom.hash_many(frame)
    assert isinstance(hashes, pd.Series)
    assert [None if pd.isna(value) else value for value in hashes] == hash_rows(values)
    assert hashes.index.equals(frame.index)
    assert hashes.name is None
    bloom = fullbloom.BloomFilter(100)
    bloom.update(frame)
    mask = bloom.contains_many(frame)
    assert len(frame[mask.fillna(False)]) == sum(value is not None for value in values)


@for_each("kind", ["polars", "pandas", "pandas of objects", "table", "batch", "struct"])
def test_a_table_of_one_column_hashes_as_its_values(kind: str) -> None:
    column = {"k": [1, 2]}
    frames: dict[str, Any] = {
        "polars": pl.DataFrame(column),
        "pandas": pd.DataFrame(column),
        "pandas of objects": pd.DataFrame({"k": pd.Series([("a", 1), 1j], dtype=object)}),
        "table": pa.table(column),
        "batch": pa.record_batch(column),
        "struct": pa.array([{"k": 1}]),
    }
    bloom = fullbloom.BloomFilter(100)
    named = "" if kind == "struct" else ", frame['k']"
    for call in (bloom.update, bloom.contains_many, fullbloom.hash_many):
        with pytest.raises(fullbloom.KeyTypeError, match=re.escape(f"pass one column of it{named}, or")):
            call(frames[kind])
    assert bloom.num_added == 0


def test_numpy_records_are_the_tuples_of_their_fields() -> None:
    dtype = np.dtype([("a", "i4"), ("b", "U3"), ("c", "M8[ns]"), ("d", [("e", "f8")])])
    day = dt.datetime(2024, 2, 29)
    keys = np.array([(1, "x", day, (0.5,)), (2, "", day, (NAN,))], dtype)
    expected = hash_rows([(1, "x", day, (0.5,)), (2, "", day, (NAN,))])
    assert fullbloom.hash_many(keys).tolist() == expected
    assert fullbloom.hash_many(list(keys)) == expected
    plain = keys[["a", "b"]]
    assert fullbloom.hash_many(plain).tolist() == hash_rows([(1, "x"), (2, "")])


def test_long_rows_hash_as_tuples() -> None:
    """A row is written down up to 2,048 bytes, and hashed in pieces beyond."""
    lengths = [*range(1985, 2060), 10_000]
    inner = pa.StructArray.from_arrays([pa.array(["y" * n for n in lengths]), pa.array(lengths)], ["p", "q"])
    table = pa.table({"a": ["x" * n for n in lengths], "b": range(len(lengths)), "c": inner})
    assert fullbloom.hash_many(table).to_pylist() == hash_rows(rows(table.columns))
    short = table.select(["a", "b"])
    assert fullbloom.hash_many(short).to_pylist() == hash_rows(rows(short.columns))
