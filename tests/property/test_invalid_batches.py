"""Invalid batches are refused by an error of the tree, and keys before a refused one stay."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from support import show

import fullbloom

NO_KEYS: dict[str, Any] = {
    "None in list": ["a", None],
    "list in list": [["a"]],
    "dict in list": [{}],
    "Decimal NaN": [decimal.Decimal("NaN")],
    "time with a zone": [dt.time(tzinfo=dt.UTC)],
    "complex": [1j],
    "object": [object()],
    "nested too deep": [functools.reduce(lambda inner, _: (inner,), range(100), ())],
    "lone surrogate": ["\ud800"],
    "tuple with None": [("a", None)],
    "str": "abc",
    "bytes": b"abc",
    "bytearray": bytearray(b"abc"),
    "str subclass": type("Text", (str,), {})("abc"),
    "numpy complex": np.array([1j]),
    "numpy NaT": np.array(["2020-01-01", "NaT"], "M8[D]"),
    "numpy timedelta64 of months": np.array([1], "m8[M]"),
    "numpy datetime64 of picoseconds": np.array([1], "M8[ps]"),
    "numpy datetime64 without a unit": np.array([], "M8"),
    "numpy structured with an array": np.zeros(2, dtype=[("a", "i4"), ("b", "f8", (2,))]),
    "numpy void of no width": np.zeros(2, dtype="V0"),
    "numpy texts with a missing one": np.array(["a", None], np.dtypes.StringDType(na_object=None)),
    "numpy texts with NaN": np.array(["a", float("nan")], np.dtypes.StringDType(na_object=float("nan"))),
    "list of arrays": [np.arange(2)],
    "list of arrays of one": [np.array([5])],
    "list of scalar arrays": [np.array(5)],
    "tuple with array": [(np.array([5]), "a")],
    "list of datetime64[ps]": [np.datetime64(1, "ps")],
    "list of timedelta64[Y]": [np.timedelta64(1, "Y")],
    "list of NaT": [np.datetime64("NaT", "s")],
    "numpy object with None": np.array(["a", None], object),
    "numpy text with surrogate": np.array(["a\ud800"]),
    "arrow list": pa.array([[1]], pa.list_(pa.int64())),
    "arrow list of fixed size": pa.array([[1]], pa.list_(pa.int64(), 1)),
    "arrow list view": pa.array([[1]], pa.list_view(pa.int64())),
    "arrow map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "arrow interval": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "arrow runs": pa.RunEndEncodedArray.from_arrays([2], ["a"]),
    "arrow union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    "arrow struct of one": pa.array([{"a": 1}]),
    "arrow struct of none": pa.array([{}]),
    "arrow struct with a list": pa.array([{"a": 1, "b": [1]}]),
    "arrow table of one": pa.table({"a": [1]}),
    "arrow record batch of one": pa.record_batch({"a": [1]}),
    "arrow table of none": pa.table({}),
}


@for_each("kind", NO_KEYS)
@for_each("method", ["update", "add_many", "contains_many", "hash_many"])
def test_values_that_are_not_keys_are_refused(kind: str, method: str) -> None:
    bloom = fullbloom.BloomFilter(100)
    call = fullbloom.hash_many if method == "hash_many" else getattr(bloom, method)
    with pytest.raises(fullbloom.KeyTypeError) as caught:
        call(NO_KEYS[kind])
    assert isinstance(caught.value, TypeError)
    assert "key" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (np.arange(2), "numpy.ndarray"),
        (np.array([5]), "numpy.ndarray"),
        (np.array(5), "numpy.ndarray"),
    ],
    ids=show,
)
def test_only_numpy_scalars_are_single_keys(key: Any, name: str) -> None:
    bloom = fullbloom.BloomFilter(100)
    for call in (bloom.add, bloom.__contains__, fullbloom.hash_key):
        with pytest.raises(fullbloom.KeyTypeError, match=f"got {name}; pass"):
            call(key)
    assert bloom.num_added == 0


@pytest.mark.parametrize("shape", [(), (2, 2), (1, 1, 1)])
def test_arrays_of_more_than_one_dimension_are_refused(shape: tuple[int, ...]) -> None:
    bloom = fullbloom.BloomFilter(100)
    with pytest.raises(fullbloom.FullbloomError, match="dimension"):
        bloom.update(np.zeros(shape))


@pytest.mark.parametrize("batch", [5, 1.5, None, object()])
def test_values_that_are_not_iterable_are_refused(batch: Any) -> None:
    bloom = fullbloom.BloomFilter(100)
    with pytest.raises(TypeError):
        bloom.update(batch)


@for_each("wrap", [list, tuple, iter])
@for_each("before", [0, 3, 40_000])
def test_keys_before_a_refused_one_are_added(wrap: Any, before: int) -> None:
    bloom = fullbloom.BloomFilter(100_000)
    with pytest.raises(fullbloom.KeyTypeError, match="NoneType"):
        bloom.update(wrap([*range(before), None, "after"]))
    assert all(bloom.contains_many(list(range(before))))
    assert "after" not in bloom


@for_each("wrap", [list, tuple, iter, lambda keys: np.array(keys, object), "pandas", "polars"])
@for_each("before", [0, 3, 40_000])
@for_each("method", ["update", "add_many", "contains_many", "hash_many"])
def test_a_refused_key_is_named_by_its_place(wrap: Any, before: int, method: str) -> None:
    bloom = fullbloom.BloomFilter(100_000)
    call = fullbloom.hash_many if method == "hash_many" else getattr(bloom, method)
    keys: list[Any] = [*range(before), 2**70, {}, "after"]
    if wrap == "pandas":
        batch: Any = pd.Series(keys, dtype=object)
    else:
        batch = pl.Series(keys, dtype=pl.Object) if wrap == "polars" else wrap(keys)
    with pytest.raises(
        fullbloom.KeyTypeError, match=rf"item {before + 1} of the batch .*got dict; pass tuple"
    ):
        call(batch)


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (np.array(["2020-01-01", "2020-01-02", "NaT"], "M8[us]"), 2),
        (np.array([1, "NaT"], "m8[s]"), 1),
        (np.array(["a", "b\ud800"]), 1),
        (np.array(["a", "b", None], np.dtypes.StringDType(na_object=None)), 2),
    ],
)
def test_a_refused_key_of_an_array_is_named_by_its_place(keys: Any, place: int) -> None:
    with pytest.raises(fullbloom.KeyTypeError, match=f"item {place} of the batch"):
        fullbloom.hash_many(keys)


def test_errors_of_the_callers_iterator_propagate() -> None:
    def keys() -> Any:
        yield "first"
        raise RuntimeError("mine")

    bloom = fullbloom.BloomFilter(100)
    with pytest.raises(RuntimeError, match="mine"):
        bloom.update(keys())
    assert "first" in bloom


def test_a_list_that_shrinks_while_it_is_read_ends_there() -> None:
    keys: list[Any] = []

    class Clearing:
        """Looks like a NumPy scalar, and empties the list when its value is read."""

        dtype = "mine"

        def item(self) -> int:
            keys.clear()
            return 5

    Clearing.__module__ = "numpy"
    keys += [1, 2, Clearing(), 3, 4]
    bloom = fullbloom.BloomFilter(100)
    assert bloom.add_many(keys) == [True, True, True]
    assert all(key in bloom for key in (1, 2, 5))
    assert bloom.num_added == 3


@for_each("hashes", [[-1], [2**64], [1.5], ["a"], [None], "abc", 2**64, -1, "a", 1.5, None])
def test_hashes_are_64_bit_whole_numbers(hashes: Any) -> None:
    bloom = fullbloom.BloomFilter(100)
    for method in (bloom.add_hashed, bloom.contains_hashed):
        with pytest.raises((fullbloom.FullbloomError, OverflowError, TypeError)):
            method(hashes)
    assert bloom.num_added == 0


@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("mask", [[0, 1, 0], [0, 0, 0]])
def test_keys_under_a_mask_are_never_added(kind: type, mask: list[int]) -> None:
    array = np.ma.array([1, 7, 3], mask=mask, dtype=kind)  # type: ignore[no-untyped-call]
    bloom = fullbloom.BloomFilter(100)
    for method in (bloom.update, bloom.add_many, bloom.contains_many, fullbloom.hash_many):
        with pytest.raises(fullbloom.KeyTypeError, match=r"array\.compressed\(\)"):
            method(array)
    assert bloom.num_added == 0
    bloom.update(array.compressed())
    assert (7 in bloom) is (mask[1] == 0)


@for_each("dtype", ["i2", "i8", "u8", "f8", "U1", "M8[s]", "m8[ns]"])
def test_byte_swapped_arrays_are_refused_with_a_remedy_that_works(dtype: str) -> None:
    native = np.array(["Ā", "a"] if dtype == "U1" else [1, 2], dtype)
    array = native.astype(native.dtype.newbyteorder("S"))
    with pytest.raises(fullbloom.KeyTypeError) as caught:
        fullbloom.hash_many(array)
    remedy = 'array.astype(array.dtype.newbyteorder("="))'
    assert remedy in str(caught.value)
    keys = array.astype(array.dtype.newbyteorder("="))
    assert (fullbloom.hash_many(keys) == fullbloom.hash_many(native)).all()
