"""A batch of any kind gives the hashes, the bits and the answers of its keys one at a time."""

from __future__ import annotations

import array
import collections
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import for_each
from hostile.container import File
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Variant, bits_of, every_variant, layouts, show

import fullbloom

KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.uuids(),
    st.tuples(st.integers(), st.text("ab")),
)

CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda keys: (key for key in keys),
    "iterator": iter,
    "dict keys": lambda keys: dict.fromkeys(keys).keys(),
    "deque": collections.deque,
}


def one_by_one(keys: Any) -> list[int]:
    """The hashes of the keys, through the scalar path."""
    return [fullbloom.hash_key(key) for key in keys]


@settings(deadline=None)
@given(keys=st.lists(KEYS, max_size=30))
@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_container_hashes_as_its_keys(kind: str, keys: list[Any]) -> None:
    wrap = CONTAINERS[kind]
    expected = list(dict.fromkeys(keys)) if kind == "dict keys" else keys
    assert fullbloom.hash_many(wrap(keys)) == one_by_one(expected)
    bloom = fullbloom.BloomFilter(100, 0.01)
    assert bloom.contains_many(wrap(keys)) == [False] * len(expected)
    answers = bloom.add_many(wrap(keys))
    assert isinstance(answers, list)
    twin = fullbloom.BloomFilter(100, 0.01)
    assert answers == [twin.add(key) for key in expected]
    assert bloom == twin


@for_each("letter", ["a", "\0", "\x7f", "\x80", "é", "鍵", "🔑"])
def test_a_text_hashes_as_its_utf8_bytes_however_it_is_held(letter: str) -> None:
    class Text(str):
        __slots__ = ()

    texts = ["k" * length + letter + "k" * length for length in range(200)]
    texts += [text[:-1] for text in texts] + [sys.intern(texts[7]), "".join(texts), letter, ""]
    expected = [fullbloom.hash_key(text.encode()) for text in texts]
    assert [fullbloom.hash_key(text) for text in texts] == expected
    assert [fullbloom.hash_key(Text(text)) for text in texts] == expected
    assert fullbloom.hash_many(texts) == expected


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_hash_as_their_members(kind: type) -> None:
    keys = kind(["a", b"b", 1, 2.5, (3, "c")])
    bloom = fullbloom.BloomFilter(100, 0.01)
    bloom.update(keys)
    assert bloom.contains_many(keys) == [True] * 5
    assert sorted(fullbloom.hash_many(keys)) == sorted(one_by_one(keys))


INTEGER_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intp", "uintp"]


def integers(name: str) -> Any:
    """Extremes and a few in between of an integer type."""
    info = np.iinfo(name)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 42, info.max // 2 + 1]
    return np.array([*ends, *([2**63 - 1, 2**63, 2**63 + 1] if info.max > 2**63 else [])], dtype=name)


FLOATS = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), -float("nan"), 5.0e-5, 65504.0]


def float_arrays() -> dict[str, Any]:
    """Floats of every width, with both zeros, several NaNs, and a subnormal."""
    odd_nan = np.array([0x7FF8000000000123, 0xFFF0000000000001], np.uint64).view(np.float64)
    return {
        "float16": np.array([*FLOATS, 6e-8], np.float16),
        "float32": np.array([*FLOATS, 1e-40], np.float32),
        "float64": np.concatenate([np.array([*FLOATS, 5e-324]), odd_nan]),
    }


def numpy_arrays() -> dict[str, Any]:
    """Every kind of array that holds keys."""
    base = np.arange(100, dtype=np.int64)
    texts = ["", "a", "é", "日本", "x" * 40, "𝄞", "in\0side"]
    objects = np.empty(8, object)
    objects[:] = ["a", b"b", 1, 2.5, ("t", 1), np.int8(3), True, 2**70]
    wide = np.arange(40, dtype=np.int32).reshape(10, 4)
    record = np.zeros(9, dtype=[("skip", "u1"), ("key", "<i8"), ("more", "<i2")])
    record["key"] = np.arange(9) - 4
    readonly = np.arange(5)
    readonly.flags.writeable = False
    return {
        **{name: integers(name) for name in INTEGER_TYPES},
        **float_arrays(),
        "bool": np.array([True, False, True]),
        "bytes": np.array([b"", b"a", b"abc", b"\xff\xfe", b"in\0side"]),
        "text": np.array(texts),
        "object": objects,
        "strided": base[::3],
        "reversed": base[::-1],
        "reversed strided": base[::-7],
        "column": wide[:, 2],
        "reversed text": np.array(texts)[::-2],
        "bytes strided": np.array([b"aa", b"b", b"cc", b"d"])[1::2],
        "unaligned field": record["key"],
        "unaligned view": np.frombuffer(b"\0" + base.tobytes() + b"\0" * 7, np.int64, 100, 1),
        "broadcast": np.broadcast_to(np.int64(7), (5,)),
        "read-only": readonly,
        "one": np.array([7]),
    }


ARRAYS = numpy_arrays()


@for_each("name", ARRAYS)
def test_numpy_arrays_hash_as_their_items(name: str) -> None:
    keys = ARRAYS[name]
    items = list(keys)
    hashes = fullbloom.hash_many(keys)
    assert isinstance(hashes, np.ndarray)
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == one_by_one(items)
    assert hashes.tolist() == fullbloom.hash_many(keys.tolist())
    bloom = fullbloom.BloomFilter(1000, 0.01)
    twin = fullbloom.BloomFilter(1000, 0.01)
    new = bloom.add_many(keys)
    assert isinstance(new, np.ndarray)
    assert new.dtype == np.bool_
    assert new.tolist() == [twin.add(key) for key in items]
    assert bloom == twin
    found = bloom.contains_many(keys)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.bool_
    assert found.all()
    twin.clear()
    twin.update(keys)
    assert bloom == twin


def test_floats_have_one_zero_and_one_nan() -> None:
    for name, keys in float_arrays().items():
        hashes = fullbloom.hash_many(keys)
        assert hashes[0] == hashes[1] == fullbloom.hash_key(0.0), name
        assert len({int(h) for h in hashes[np.isnan(keys)]}) == 1, name
    assert fullbloom.hash_key(np.float32(0.1)) != fullbloom.hash_key(0.1)
    assert fullbloom.hash_key(np.float32(0.1)) == fullbloom.hash_key(float(np.float32(0.1)))


@for_each(
    "keys",
    [
        memoryview(b"bytes are numbers here"),
        memoryview(np.arange(20, dtype=np.uint64) + np.uint64(2**63)),
        memoryview(np.arange(20, dtype=np.int16))[::-3],
        *[array.array(code, [1, 2, 3, 100]) for code in "bBhHiIlLqQ"],
        *[array.array(code, [1.5, -0.0, 2e5]) for code in "fd"],
    ],
    ids=show,
)
def test_buffers_hash_as_their_items(keys: Any) -> None:
    assert fullbloom.hash_many(keys) == one_by_one(keys.tolist())
    bloom = fullbloom.BloomFilter(1000, 0.01)
    twin = fullbloom.BloomFilter(1000, 0.01)
    answers = bloom.add_many(keys)
    assert isinstance(answers, list)
    assert answers == [twin.add(key) for key in keys.tolist()]
    assert bloom == twin
    assert bloom.contains_many(keys) == [True] * len(keys)


@settings(deadline=None)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1)), step=st.sampled_from([1, 2, -1, -3]))
def test_any_int64_array(values: list[int], step: int) -> None:
    keys = np.array(values, np.int64)[::step]
    assert fullbloom.hash_many(keys).tolist() == one_by_one(values[::step])


@settings(deadline=None)
@given(
    values=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9))
)
def test_any_text_array(values: list[str]) -> None:
    keys = np.array(values, dtype="U9")
    assert fullbloom.hash_many(keys).tolist() == one_by_one(values)


EMPTIES: dict[str, Any] = {
    "list": [],
    "tuple": (),
    "set": set(),
    "generator": lambda: (_ for _ in ()),
    "bytes buffer": memoryview(b""),
    "array": array.array("q"),
    **{f"numpy {keys.dtype}": keys[:0] for keys in ARRAYS.values()},
}


@for_each("kind", EMPTIES)
@for_each("variant", every_variant("keys"))
def test_empty_batches_give_empty_results(variant: Variant, kind: str) -> None:
    def keys() -> Any:
        return EMPTIES[kind]() if callable(EMPTIES[kind]) else EMPTIES[kind]

    bloom = variant.make(100)
    for method in (bloom.add_many, bloom.contains_many, fullbloom.hash_many):
        answer = method(keys())
        assert len(answer) == 0
        assert isinstance(answer, np.ndarray if kind.startswith("numpy") else list)
    assert bloom.update(keys()) is None
    assert bloom.num_added == 0
    assert bloom.fill == 0.0


@for_each("layout", layouts())
@for_each("length", [1, 7, 8, 9, 1023, 1024, 1025, 5000])
def test_batches_agree_at_every_chunk_border(layout: str, length: int) -> None:
    keys = np.arange(length) * 3
    bloom = fullbloom.BloomFilter(length, 0.01, layout=layout)
    twin = fullbloom.BloomFilter(length, 0.01, layout=layout)
    assert bloom.add_many(keys).tolist() == [twin.add(int(key)) for key in keys]
    assert bits_of(bloom) == bits_of(twin)
    probes = np.arange(2 * length)
    assert bloom.contains_many(probes).tolist() == [int(key) in twin for key in probes]


@for_each("wrap", [list, tuple, iter])
@for_each("first", [True, False])
def test_results_are_correct_across_a_long_list(wrap: Any, first: bool) -> None:
    """The answer that is commoner in the first portion (32,768 keys) is the rarer one of the whole."""
    bloom = fullbloom.BloomFilter(100_000, 1e-6)
    members = [f"in/{i}" for i in range(70_000)]
    absent = [f"out/{i}" for i in range(70_000)]
    bloom.update(members)
    early, late = (members, absent) if first else (absent, members)
    keys = [*early[:33_000], late[0], *early[33_000:35_000], *late]
    answers = bloom.contains_many(wrap(keys))
    assert type(answers) is list
    assert answers == [key in bloom for key in keys]


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("variant", every_variant("keys"))
def test_hashes_give_the_results_of_keys(variant: Variant) -> None:
    keys = [*range(300), "a", "b"]
    hashes = fullbloom.hash_many(keys)
    capacity = 200 if variant.row["family"] == "bloom" else 400
    by_key, by_list, by_array, one = (variant.make(capacity, 0.1) for _ in range(4))
    expected = by_key.add_many(keys)
    assert by_list.add_hashed(hashes) == expected
    assert by_array.add_hashed(np.array(hashes, np.uint64)).tolist() == expected
    assert [one.add_hashed(value) for value in hashes] == expected
    assert by_list.to_bytes() == by_array.to_bytes() == one.to_bytes()
    assert File.parse(by_key.to_bytes()).without_domains() == File.parse(one.to_bytes()).without_domains()
    found = by_key.contains_hashed(hashes)
    assert by_key.contains_hashed(np.array(hashes, np.uint64)).tolist() == found == by_key.contains_many(keys)
    assert all(found) or not variant.can("keeps")
