"""Columns of dates, times, durations and decimals hash as their values one at a time, in every unit."""

from __future__ import annotations

import datetime as dt
import decimal
import zoneinfo
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from compat import key_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SECRET

import fullbloom

DAYS = [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
STAMPS = [dt.datetime.combine(day, dt.time(hour, 7, 9)) for day in DAYS for hour in (0, 23)]
NEAR = [stamp for stamp in STAMPS if 1700 < stamp.year < 2200]
ZONES = ["UTC", "Europe/Berlin", "+05:30", "America/New_York"]
SPANS = [dt.timedelta(), dt.timedelta(-1, 1), dt.timedelta(10_000, 5), dt.timedelta(seconds=-1)]
TIMES = [dt.time(), dt.time(23, 59, 59), dt.time(0, 0, 1)]
DECIMALS = [
    decimal.Decimal(text) for text in ("0.00", "1.00", "-1.50", "99.99", "100.00", "-0.01", "12345.60")
]
WIDE = [decimal.Decimal("9" * 70 + ".25"), decimal.Decimal("-" + "9" * 74), decimal.Decimal("0.50")]


def columns() -> dict[str, tuple[Any, list[Any]]]:
    """An Arrow type, and the Python values that a column of it holds."""
    instance: dict[str, tuple[Any, list[Any]]] = {
        "date32": (pa.date32(), DAYS),
        "date64": (pa.date64(), DAYS),
        "decimal32": (pa.decimal32(9, 2), DECIMALS),
        "decimal64": (pa.decimal64(18, 2), DECIMALS),
        "decimal128": (pa.decimal128(38, 2), DECIMALS),
        "decimal256": (pa.decimal256(76, 2), [*DECIMALS, *WIDE]),
        "decimal of tens": (pa.decimal128(5, -1), [decimal.Decimal(n) for n in (0, 10, 120, 100, -30)]),
    }
    for unit in ("s", "ms", "us", "ns"):
        stamps = NEAR if unit == "ns" else STAMPS
        instance[f"timestamp {unit}"] = (pa.timestamp(unit), stamps)
        instance[f"duration {unit}"] = (pa.duration(unit), SPANS)
        instance[f"time {unit}"] = ((pa.time32 if unit in {"s", "ms"} else pa.time64)(unit), TIMES)
        for zone in ZONES:
            aware = [stamp.replace(tzinfo=dt.UTC) for stamp in NEAR]
            instance[f"timestamp {unit} {zone}"] = (pa.timestamp(unit, zone), aware)
    return instance


COLUMNS = columns()


@for_each("secret", [None, SECRET], ids=["seeded", "keyed"])
@for_each("name", COLUMNS)
def test_arrow_columns_hash_as_their_values(name: str, secret: bytes | None) -> None:
    kind, values = COLUMNS[name]
    missing = [None, *values, None]
    expected = [None if value is None else key_oracle.hash_key(value, secret=secret) for value in missing]
    column = pa.array(missing, kind)
    forms = {
        "whole": column,
        "slice": column.slice(1),
        "chunks": pa.chunked_array([column[:2], column[2:]]),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array(range(len(missing)), pa.int8()), column),
    }
    for form, keys in forms.items():
        wanted = expected[1:] if form == "slice" else expected
        assert fullbloom.hash_many(keys, secret=secret).to_pylist() == wanted
    # A column without nulls, and the same keys one at a time.
    plain = fullbloom.hash_many(pa.array(values, kind), secret=secret).to_pylist()
    assert plain == expected[1:-1] == [fullbloom.hash_key(value, secret=secret) for value in values]


NUMPY_UNITS = ["h", "m", "s", "ms", "us", "ns", "10ms", "3h", "D", "W"]


@for_each("unit", NUMPY_UNITS)
@for_each("kind", ["M8", "m8"])
def test_numpy_columns_hash_as_their_values(kind: str, unit: str) -> None:
    dtype = np.dtype(f"{kind}[{unit}]")
    counts = np.array([0, 1, -1, 12_345, -(2**40), 2**44, 2**63 - 1, -(2**63) + 1])
    keys = counts.view(dtype)
    expected = [key_oracle.hash_key(key) for key in keys]
    assert fullbloom.hash_many(keys).tolist() == expected
    assert fullbloom.hash_many(list(keys)) == expected
    assert fullbloom.hash_many(keys[::-1]).tolist() == expected[::-1]
    bloom = fullbloom.BloomFilter(100)
    assert bloom.add_many(keys).all()
    assert isinstance(bloom.contains_many(keys), np.ndarray)
    assert all(key in bloom for key in keys)


@pytest.mark.parametrize("unit", ["Y", "M"])
def test_years_and_months_hash_as_their_first_days(unit: str) -> None:
    keys = np.array(["1969", "2024", "0001"], f"M8[{unit}]")
    days = [dt.date(int(str(key)[:4]), 1, 1) for key in keys]
    assert fullbloom.hash_many(keys).tolist() == fullbloom.hash_many(days)


@settings(deadline=None, max_examples=200)
@given(
    value=st.decimals(-(10**20), 10**20, allow_nan=False, places=6),
    zeros=st.integers(0, 10),
    seed=st.integers(0, 2**64 - 1),
)
def test_decimals_with_different_trailing_zeros_are_one_key(
    value: decimal.Decimal, zeros: int, seed: int
) -> None:
    longer = decimal.Decimal(f"{value:f}" + "0" * zeros)
    assert longer == value
    expected = key_oracle.hash_key(value, seed)
    assert fullbloom.hash_key(longer, seed=seed) == expected
    for kind in (pa.decimal128(38, 6), pa.decimal256(76, 6 + zeros)):
        assert fullbloom.hash_many(pa.array([value], kind), seed=seed).to_pylist() == [expected]


SERIES: dict[str, tuple[Any, list[Any]]] = {
    "polars date": (pl.Series("k", [*DAYS, None]), [*DAYS, None]),
    "polars datetime": (pl.Series("k", [*NEAR, None]), [*NEAR, None]),
    **{
        f"polars datetime {unit}": (pl.Series("k", NEAR, dtype=pl.Datetime(unit)), NEAR)  # type: ignore[arg-type]
        for unit in ("ms", "us", "ns")
    },
    "polars zoned": (
        pl.Series("k", NEAR).dt.replace_time_zone("Europe/Berlin"),
        [stamp.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")) for stamp in NEAR],
    ),
    "polars time": (pl.Series("k", TIMES), TIMES),
    "polars duration": (pl.Series("k", SPANS), SPANS),
    "polars decimal": (pl.Series("k", DECIMALS, dtype=pl.Decimal(20, 2)), DECIMALS),
    "pandas datetime": (pd.Series([*NEAR, None], name="k"), [*NEAR, None]),
    "pandas ns": (pd.Series(NEAR, name="k").astype("datetime64[ns]"), NEAR),
    "pandas zoned": (
        pd.Series(NEAR, name="k").dt.tz_localize("Asia/Tokyo"),
        [stamp.replace(tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")) for stamp in NEAR],
    ),
    "pandas timedelta": (pd.Series([*SPANS, None], name="k"), [*SPANS, None]),
    "pandas dates": (pd.Series([*DAYS, None], name="k", dtype=object), [*DAYS, None]),
    "pandas decimals": (pd.Series([*DECIMALS, None], name="k", dtype=object), [*DECIMALS, None]),
    "pandas category": (pd.Series(NEAR, name="k", dtype="category"), NEAR),
    "pandas index": (pd.DatetimeIndex(NEAR), NEAR),
}


@for_each("name", SERIES)
def test_series_hash_as_their_values(name: str) -> None:
    keys, values = SERIES[name]
    hashes = list(fullbloom.hash_many(keys))
    expected = [None if value is None else fullbloom.hash_key(value) for value in values]
    assert [None if pd.isna(found) else found for found in hashes] == expected
    bloom = fullbloom.BloomFilter(100)
    bloom.update(keys)
    assert all(value in bloom for value in values if value is not None)
    found = bloom.contains_many(keys)
    if not name.endswith("index"):
        assert type(found) is type(keys)
        assert found.name == "k"


def test_a_float_column_of_integers_with_gaps_has_other_keys_until_it_is_cast() -> None:
    """The column that pandas makes from whole numbers if one is missing."""
    bloom = fullbloom.BloomFilter(100)
    bloom.update([1, 3])
    keys = pd.Series([1, None, 3])
    assert keys.dtype == float
    assert not bloom.contains_many(keys).any()
    cast = bloom.contains_many(keys.astype("Int64"))
    assert cast.tolist() == [True, pd.NA, True]


TEXTS = ["", "a", "é" * 40, "日本", "in\0side", "x" * 1000]


@pytest.mark.parametrize(
    "dtype", [np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)], ids=["plain", "missing"]
)
def test_numpy_texts_of_any_length(dtype: Any) -> None:
    keys = np.array(TEXTS * 10_000, dtype)
    hashes = fullbloom.hash_many(keys)
    assert isinstance(hashes, np.ndarray)
    assert hashes.tolist() == fullbloom.hash_many(TEXTS) * 10_000
    bloom = fullbloom.BloomFilter(100)
    bloom.update(keys[::7])
    assert bloom.contains_many(keys).all()


def test_numpy_bytes_of_fixed_size_keep_their_zeros() -> None:
    keys = np.array([b"abc\0", b"\0\0\0\0"]).view("V4")
    assert fullbloom.hash_many(keys).tolist() == fullbloom.hash_many([b"abc\0", b"\0" * 4])
    assert fullbloom.hash_many(pa.array([b"abc\0"], pa.binary(4))).to_pylist() == [
        fullbloom.hash_key(b"abc\0")
    ]
