"""Guarantee: expressions of Polars give the filter's answers on both engines; builds have a batch's bits."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import polars as pl
import pytest
from hostile.container import File

import fullbloom
from fullbloom import BloomFilter, KeyTypeError, ParameterError, ParameterTypeError
from fullbloom.engines.polars import build, build_groups

ENGINES = ["in-memory", "streaming"]
COLUMNS = {
    "integers": pl.Series([1, None, -3], dtype=pl.Int8),
    "unsigned": pl.Series([1, None, 2**63], dtype=pl.UInt64),
    "floats": pl.Series([1.5, None, float("nan")]),
    "texts": pl.Series(["a", None, "ä"]),
    "categories": pl.Series(["a", None, "b"], dtype=pl.Categorical),
    "binaries": pl.Series([b"a", None, b"\xff"]),
    "booleans": pl.Series([True, None, False]),
    "dates": pl.Series([dt.date(2020, 1, 1), None, dt.date(1, 1, 1)]),
    "times": pl.Series([dt.time(1), None, dt.time(23, 59)]),
    "timestamps": pl.Series([dt.datetime(2020, 1, 1), None, dt.datetime(2021, 1, 1)]),
    "durations": pl.Series([dt.timedelta(1), None, dt.timedelta(2)]),
    "decimals": pl.Series([decimal.Decimal("1.5"), None, decimal.Decimal("2.25")]),
    "rows": pl.Series([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 2, "b": "z"}]),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_gives_the_answers_of_its_batch(name, engine):
    column = COLUMNS[name].alias("x")
    known, empty = BloomFilter(100, fpr=1e-9), BloomFilter(100, fpr=1e-9)
    known.update(column)
    empty.update(column)
    empty.clear()
    found = (
        pl.LazyFrame({"x": column})
        .select(known=pl.col("x").bloom.contains(known), empty=pl.col("x").bloom.contains(empty))
        .collect(engine=engine)
    )
    assert found["known"].to_list() == known.contains_many(column).to_list() == [True, None, True]
    assert found["empty"].to_list() == [False, None, False]
    assert found.schema["known"] == pl.Boolean


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rows", [0, 1, 300_000])
def test_a_lazy_filter_keeps_the_candidates(rows, engine):
    known = BloomFilter(1000, fpr=0.1)
    known.update(range(0, 3000, 3))
    frame = pl.LazyFrame({"x": pl.int_range(rows, eager=True)})
    kept = frame.filter(pl.col("x").bloom.contains(known)).collect(engine=engine)
    assert sorted(kept["x"]) == [x for x in range(rows) if x in known]


def test_the_filter_is_pushed_below_a_join():
    known = BloomFilter(10)
    big = pl.LazyFrame({"x": [1, 2, 3]})
    small = pl.LazyFrame({"x": [1], "y": [1]})
    plan = big.join(small, on="x").filter(pl.col("x").bloom.contains(known)).explain()
    assert plan.index("JOIN") < plan.index("python_udf")


def test_what_is_no_filter_is_refused_when_the_query_is_written():
    for wrong in ([1], BloomFilter, None):
        with pytest.raises(ParameterTypeError, match="a filter is needed"):
            pl.col("x").bloom.contains(wrong)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_holds_no_keys_is_an_error(engine):
    frame = pl.LazyFrame({"x": [[1]]})
    with pytest.raises((KeyTypeError, pl.exceptions.ComputeError), match="a list is not a key"):
        frame.select(pl.col("x").bloom.contains(BloomFilter(10))).collect(engine=engine)


def test_a_build_has_the_bits_of_a_batch(tmp_path):
    values = [None if number % 7 == 0 else number for number in range(600_000)]
    expected = BloomFilter(600_000, fpr=0.001, seed=3)
    expected.update([value for value in values if value is not None])
    frame = pl.DataFrame({"x": values})
    frame.write_parquet(tmp_path / "rows.parquet")
    for source in (frame, frame.lazy(), pl.scan_parquet(tmp_path / "rows.parquet")):
        assert build(source, "x", capacity=600_000, fpr=0.001, seed=3) == expected


@pytest.mark.parametrize("kind", ["cuckoo", "counting", "quotient"])
def test_other_kinds_are_built(kind):
    made = build(pl.DataFrame({"x": range(1000)}), "x", capacity=1000, kind=kind)
    assert all(made.contains_many(list(range(1000))))


def test_groups_have_the_bits_of_their_batches():
    frame = pl.DataFrame({"x": range(1000), "g": [None if x % 5 == 0 else x % 3 for x in range(1000)]})
    groups = build_groups(frame.lazy(), "g", "x", capacity=1000)
    assert groups.keys() == {0, 1, 2, None}
    for group, found in groups.items():
        expected = BloomFilter(1000)
        expected.update(frame.filter(pl.col("g").eq_missing(group))["x"])
        assert found == expected


def test_nan_is_one_group_in_all_batches():
    """A million rows are read in several batches, each with a NaN of its own."""
    frame = pl.DataFrame({"x": range(1_000_000)}).with_columns(
        g=pl.when(pl.col("x") % 2 == 0).then(float("nan")).otherwise(1.0)
    )
    groups = build_groups(frame.lazy(), "g", "x", capacity=500_000)
    assert len(groups) == 2
    for group, start in ((math.nan, 0), (1.0, 1)):
        expected = BloomFilter(500_000)
        expected.update(range(start, 1_000_000, 2))
        assert groups[group].bits() == expected.bits()


@pytest.mark.parametrize("group", [[1], {"a": 1}])
def test_groups_that_are_no_keys_of_a_dictionary_are_refused(group):
    frame = pl.DataFrame({"g": [group], "x": [1]})
    with pytest.raises(ParameterTypeError, match="group by a column of numbers, text or times"):
        build_groups(frame, "g", "x", capacity=10)


@pytest.mark.parametrize("engine", ENGINES)
def test_group_by_aggregates_filters_as_bytes(engine):
    frame = pl.LazyFrame({"x": range(1000), "g": [x % 3 for x in range(1000)]})
    rows = frame.group_by("g").agg(pl.col("x").bloom.build(capacity=500)).collect(engine=engine)
    for group, data in rows.rows():
        expected = BloomFilter(500)
        expected.update(range(group, 1000, 3))
        assert fullbloom.loads(data) == expected
    sized = frame.group_by("g").agg(pl.col("x").bloom.build()).collect(engine=engine)
    assert sorted(fullbloom.loads(data).capacity for data in sized["x"]) == [333, 333, 334]


def test_a_whole_column_is_one_filter():
    made = fullbloom.loads(pl.select(pl.int_range(100).bloom.build()).item())
    assert all(made.contains_many(list(range(100))))


def test_a_build_that_cannot_be_is_refused():
    frame = pl.LazyFrame({"x": [1], "list": [[1]]})
    with pytest.raises(ParameterError, match="'y' does not exist; the columns are x, list"):
        build(frame, "y", capacity=10)
    with pytest.raises(ParameterError, match="'g' does not exist"):
        build_groups(frame, "g", "x", capacity=10)
    with pytest.raises(ParameterError, match=r"kind must be one of bloom, .*got 'xor'"):
        build(frame, "x", capacity=10, kind="xor")
    with pytest.raises(ParameterError, match="kind must be one of"):
        pl.col("x").bloom.build(kind="none")
    with pytest.raises(ParameterError, match="capacity must be"):
        pl.col("x").bloom.build(capacity=0)
    with pytest.raises(KeyTypeError, match="a list is not a key"):
        build(frame, "list", capacity=10)
    with pytest.raises(ParameterTypeError, match="got list"):
        build([1], "x", capacity=10)


def test_a_filter_of_another_key_rule_is_refused_before_a_query_has_it():
    file = File.parse(BloomFilter(10).to_bytes())
    file.rule = 2
    with pytest.raises(fullbloom.FormatError, match="key rule 2, this release knows 1"):
        pl.LazyFrame({"x": [1]}).filter(pl.col("x").bloom.contains(fullbloom.loads(file.build())))


@pytest.mark.parametrize("column", ["*", "^a.*$", "a.b", "a b", "len"])
def test_names_that_look_like_patterns_are_names(column):
    frame = pl.DataFrame({column: [1, 2], "ab": [3, 4], "group": ["x", "y"]})
    assert build(frame, column, capacity=10).contains_many([1, 2, 3]) == [True, True, False]
    groups = build_groups(frame, "group", column, capacity=10)
    assert {name: one.contains_many([1, 2]) for name, one in groups.items()} == {
        "x": [True, False],
        "y": [False, True],
    }
    assert {*build_groups(frame, column, "ab", capacity=10)} == {1, 2}
