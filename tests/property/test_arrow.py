"""Arrow columns of every type, sliced, chunked and with nulls, hash as their values one at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

import fullbloom

TEXTS = ["", "a", "éé", "日本", "exactly 12 b", "a string longer than twelve bytes", "b" * 100, "a"]
BYTES = [b"", b"a", b"\xff\x00\xfe", b"exactly 12 b", b"longer than twelve bytes by far", b"\0"]
INTS = [0, 1, 2, 3, 100, 127]


def values_of() -> dict[str, tuple[pa.DataType, list[Any]]]:
    """A type and its values, for every type that holds keys."""
    integer = {}
    for bits in (8, 16, 32, 64):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        integer[f"int{bits}"] = (getattr(pa, f"int{bits}")(), [*INTS, low, high, -1])
        integer[f"uint{bits}"] = (getattr(pa, f"uint{bits}")(), [*INTS, 2**bits - 1, 2 ** (bits - 1)])
    floats = [0.0, -0.0, 1.5, float("inf"), float("nan"), -2.0]
    return {
        **integer,
        "float16": (pa.float16(), floats),
        "float32": (pa.float32(), floats),
        "float64": (pa.float64(), [*floats, 1e300]),
        "bool": (pa.bool_(), [True, False, True, True, False, False, True, False, True, True]),
        "string": (pa.string(), TEXTS),
        "large_string": (pa.large_string(), TEXTS),
        "string_view": (pa.string_view(), TEXTS),
        "binary": (pa.binary(), BYTES),
        "large_binary": (pa.large_binary(), BYTES),
        "binary_view": (pa.binary_view(), BYTES),
        "fixed_size_binary": (pa.binary(3), [b"abc", b"\0\0\0", b"xyz", b"ab\0"]),
        "null": (pa.null(), [None] * 10),
        "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", "y", "x", "z", "y"]),
        "dictionary of int64": (pa.dictionary(pa.int32(), pa.int64()), [5, 6, 5, 5, 2**40]),
        "dictionary of large_string": (pa.dictionary(pa.uint16(), pa.large_string()), ["x", "", "yy"]),
    }


VALUES = values_of()


def with_nulls(values: list[Any]) -> list[Any]:
    """Every third value missing."""
    return [None if i % 3 == 1 else value for i, value in enumerate(values)]


def column(name: str, values: list[Any]) -> pa.Array:
    """An array of the named type."""
    return pa.array(values, VALUES[name][0])


def forms(name: str) -> dict[str, tuple[Any, list[Any]]]:
    """The column plain, with nulls, sliced, chunked: each with its values."""
    values = VALUES[name][1]
    missing = with_nulls(values)
    both = missing + values
    kind = VALUES[name][0]
    return {
        "plain": (column(name, values), values),
        "nulls": (column(name, missing), missing),
        "all null": (column(name, [None] * 5), [None] * 5),
        "sliced": (column(name, both).slice(3, len(both) - 5), both[3:-2]),
        "sliced past 8": (column(name, both * 3).slice(9), (both * 3)[9:]),
        "empty": (column(name, []), []),
        "empty slice": (column(name, values).slice(len(values)), []),
        "chunked": (pa.chunked_array([column(name, values), column(name, missing)]), values + missing),
        "chunked slices": (
            pa.chunked_array([column(name, both).slice(1, 2), column(name, both).slice(4)]),
            both[1:3] + both[4:],
        ),
        "chunked, one": (pa.chunked_array([column(name, missing)]), missing),
        "chunked, none": (pa.chunked_array([], type=kind), []),
        "chunked, empty inside": (
            pa.chunked_array([column(name, []), column(name, values), column(name, [])]),
            values,
        ),
    }


FORMS = list(forms("int64"))


@for_each("form", FORMS)
@for_each("name", VALUES)
def test_arrow_columns_hash_as_their_values(name: str, form: str) -> None:
    keys, values = forms(name)[form]
    # float16 columns hold values rounded to their width, and every width is compared as a double.
    stored = [v.as_py() for v in keys] if name.startswith("float") else values
    hashes = fullbloom.hash_many(keys)
    assert isinstance(hashes, type(keys) if isinstance(keys, pa.ChunkedArray) else pa.Array)
    assert hashes.type == pa.uint64()
    assert hashes.to_pylist() == [None if v is None else fullbloom.hash_key(v) for v in stored]
    bloom, twin = fullbloom.BloomFilter(1000), fullbloom.BloomFilter(1000)
    new = bloom.add_many(keys)
    assert new.type == pa.bool_()
    assert new.to_pylist() == [None if v is None else twin.add(v) for v in stored]
    assert bloom == twin
    assert bloom.num_added == twin.num_added
    found = bloom.contains_many(keys)
    assert isinstance(found, pa.ChunkedArray if isinstance(keys, pa.ChunkedArray) else pa.BooleanArray)
    assert found.to_pylist() == [None if v is None else True for v in values]
    found.validate(full=True)
    updated = fullbloom.BloomFilter(1000)
    assert updated.update(keys) is None
    assert updated == bloom
    by_hash = fullbloom.BloomFilter(1000)
    assert by_hash.add_hashed(hashes).to_pylist() == new.to_pylist()
    assert by_hash == bloom
    assert bloom.contains_hashed(hashes).to_pylist() == found.to_pylist()


@settings(deadline=None)
@given(
    values=st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))),
    start=st.integers(0, 5),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
)
def test_any_text_column_hashes_as_its_values(values: list[str | None], start: int, kind: Any) -> None:
    keys = pa.array(values, kind).slice(start)
    expected = [None if v is None else fullbloom.hash_key(v) for v in values[start:]]
    assert fullbloom.hash_many(keys).to_pylist() == expected


def test_a_null_inside_a_dictionary_is_a_null() -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], pa.int8()), pa.array(["a", None]))
    bloom = fullbloom.BloomFilter(100)
    assert bloom.add_many(keys).to_pylist() == [True, None, False, None]
    assert "" not in bloom
    assert bloom.num_added == 1


def test_a_dictionary_of_nulls_holds_nulls() -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.nulls(1))
    bloom = fullbloom.BloomFilter(100)
    assert bloom.add_many(keys).to_pylist() == [None, None]
    assert bloom.num_added == 0


def test_results_for_a_foreign_exporter_are_arrow() -> None:
    class Column:
        """Speaks the interface and comes from no known library."""

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return pa.array(["a", None, "b"]).__arrow_c_array__(requested_schema)

    class Stream:
        """As above, by the chunk."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.chunked_array([["a"], ["b"]]).__arrow_c_stream__(requested_schema)

    bloom = fullbloom.BloomFilter(100)
    assert pa.array(bloom.add_many(Column())).to_pylist() == [True, None, True]
    bloom.update(Stream())
    assert bloom.num_added == 2


def test_large_columns_agree_across_chunks() -> None:
    values = [None if i % 1000 == 999 else f"key-{i}" for i in range(70_001)]
    bloom, twin = fullbloom.BloomFilter(100_000), fullbloom.BloomFilter(100_000)
    new = bloom.add_many(pa.array(values), threads=2)
    assert new.to_pylist() == [None if v is None else twin.add(v) for v in values]
    assert bloom == twin
