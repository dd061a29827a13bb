"""What is not a batch of keys is refused by an error of the tree, and keys before a refused one stay."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bloomery

NO_KEYS: dict[str, Any] = {
    "None in list": ["a", None],
    "list in list": [["a"]],
    "dict in list": [{}],
    "Decimal": [decimal.Decimal(1)],
    "date": [dt.date(2020, 1, 1)],
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
    "numpy datetime64": np.array(["2020-01-01"], "M8[D]"),
    "numpy timedelta64": np.array([1], "m8[s]"),
    "numpy structured": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
    "numpy void": np.zeros(2, dtype="V7"),
    "list of arrays": [np.arange(2)],
    "list of arrays of one": [np.array([5])],
    "list of scalar arrays": [np.array(5)],
    "tuple with array": [(np.array([5]), "a")],
    "list of datetime64[ns]": [np.datetime64(1, "ns")],
    "list of timedelta64[ns]": [np.timedelta64(1, "ns")],
    "list of timedelta64[Y]": [np.timedelta64(1, "Y")],
    "numpy object with None": np.array(["a", None], object),
    "numpy text with surrogate": np.array(["a\ud800"]),
    "arrow timestamp": pa.array([1, 2], pa.timestamp("s")),
    "arrow decimal": pa.array([decimal.Decimal(1)], pa.decimal128(5)),
    "arrow list": pa.array([[1]], pa.list_(pa.int64())),
    "arrow struct": pa.array([{"a": 1}]),
    "arrow table": pa.table({"a": [1]}),
    "arrow record batch": pa.record_batch({"a": [1]}),
}


@pytest.mark.parametrize("kind", NO_KEYS)
@pytest.mark.parametrize("method", ["update", "add_many", "contains_many", "hash_many"])
def test_no_keys(kind: str, method: str) -> None:
    bloom = bloomery.BloomFilter(100)
    call = bloomery.hash_many if method == "hash_many" else getattr(bloom, method)
    with pytest.raises(bloomery.KeyTypeError) as caught:
        call(NO_KEYS[kind])
    assert isinstance(caught.value, TypeError)
    assert "key" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (np.arange(2), "numpy.ndarray"),
        (np.array([5]), "numpy.ndarray"),
        (np.array(5), "numpy.ndarray"),
        (np.datetime64(1, "ns"), "numpy.datetime64"),
        (np.timedelta64(1, "ns"), "numpy.timedelta64"),
        (np.timedelta64(1, "s"), "numpy.timedelta64"),
    ],
    ids=repr,
)
def test_of_numpy_only_scalars_that_are_no_dates_are_one_key(key: Any, name: str) -> None:
    bloom = bloomery.BloomFilter(100)
    for call in (bloom.add, bloom.__contains__, bloomery.hash_key):
        with pytest.raises(bloomery.KeyTypeError, match=f"got {name}; pass"):
            call(key)
    assert bloom.num_added == 0


@pytest.mark.parametrize("shape", [(), (2, 2), (1, 1, 1)])
def test_only_one_dimension(shape: tuple[int, ...]) -> None:
    bloom = bloomery.BloomFilter(100)
    with pytest.raises(bloomery.BloomeryError, match="dimension"):
        bloom.update(np.zeros(shape))


@pytest.mark.parametrize("batch", [5, 1.5, None, object()])
def test_not_iterable(batch: Any) -> None:
    bloom = bloomery.BloomFilter(100)
    with pytest.raises(TypeError):
        bloom.update(batch)


@pytest.mark.parametrize("wrap", [list, tuple, iter])
@pytest.mark.parametrize("before", [0, 3, 40_000])
def test_keys_before_a_refused_one_are_added(wrap: Any, before: int) -> None:
    bloom = bloomery.BloomFilter(100_000)
    with pytest.raises(bloomery.KeyTypeError, match="NoneType"):
        bloom.update(wrap([*range(before), None, "after"]))
    assert all(bloom.contains_many(list(range(before))))
    assert "after" not in bloom


def test_errors_of_the_callers_iterator_pass_through() -> None:
    def keys() -> Any:
        yield "first"
        raise RuntimeError("mine")

    bloom = bloomery.BloomFilter(100)
    with pytest.raises(RuntimeError, match="mine"):
        bloom.update(keys())
    assert "first" in bloom


def test_a_list_that_shrinks_while_it_is_read() -> None:
    keys: list[Any] = []

    class Clearing:
        """Looks like a NumPy scalar, and empties the list when asked for its value."""

        dtype = "mine"

        def item(self) -> int:
            keys.clear()
            return 5

    Clearing.__module__ = "numpy"
    keys += [1, 2, Clearing(), 3, 4]
    bloom = bloomery.BloomFilter(100)
    assert bloom.add_many(keys) == [True, True, True]
    assert all(key in bloom for key in (1, 2, 5))
    assert bloom.num_added == 3


@pytest.mark.parametrize("hashes", [[-1], [2**64], [1.5], ["a"], [None], "abc", 2**64, -1, "a", 1.5, None])
def test_hashes_are_64_bit_whole_numbers(hashes: Any) -> None:
    bloom = bloomery.BloomFilter(100)
    for method in (bloom.add_hashed, bloom.contains_hashed):
        with pytest.raises((bloomery.BloomeryError, OverflowError, TypeError)):
            method(hashes)
    assert bloom.num_added == 0


@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("mask", [[0, 1, 0], [0, 0, 0]])
def test_keys_under_a_mask_are_never_added(kind: type, mask: list[int]) -> None:
    array = np.ma.array([1, 7, 3], mask=mask, dtype=kind)  # type: ignore[no-untyped-call]
    bloom = bloomery.BloomFilter(100)
    for method in (bloom.update, bloom.add_many, bloom.contains_many, bloomery.hash_many):
        with pytest.raises(bloomery.KeyTypeError, match=r"array\.compressed\(\)"):
            method(array)
    assert bloom.num_added == 0
    bloom.update(array.compressed())
    assert (7 in bloom) is (mask[1] == 0)


@pytest.mark.parametrize("dtype", ["i2", "i8", "u8", "f8", "U1"])
def test_byte_swapped_arrays_are_refused_with_a_remedy_that_works(dtype: str) -> None:
    native = np.array(["Ā", "a"] if dtype == "U1" else [1, 2], dtype)
    array = native.astype(native.dtype.newbyteorder("S"))
    with pytest.raises(bloomery.KeyTypeError) as caught:
        bloomery.hash_many(array)
    remedy = 'array.astype(array.dtype.newbyteorder("="))'
    assert remedy in str(caught.value)
    keys = array.astype(array.dtype.newbyteorder("="))
    assert (bloomery.hash_many(keys) == bloomery.hash_many(native)).all()
