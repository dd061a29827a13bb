"""Buffers of no width, of odd formats and of pointers: the right answer or an error of the tree."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
import pytest
from cases import for_each
from support import show

import fullbloom

testbuffer = pytest.importorskip("_testbuffer", reason="CPython without its own test of buffers")


def every_call(keys: Any) -> list[Any]:
    """All calls that read a batch of keys or hashes."""
    bloom = fullbloom.BloomFilter(100)
    ways = (bloom.update, bloom.add_many, bloom.contains_many, fullbloom.hash_many, bloom.contains_hashed)
    return [lambda way=way: way(keys) for way in ways]


def assert_refused(keys: Any, match: str | None = None) -> None:
    """Each way to read it raises the error for what holds no keys."""
    for call in every_call(keys):
        with pytest.raises(fullbloom.KeyTypeError, match=match):
            call()


@for_each("length", [0, 1, 3, 70_000])
@for_each("kind", ["S0", "U0"])
def test_items_of_zero_width_are_empty_keys(kind: str, length: int) -> None:
    keys = np.zeros(length, [("empty", kind), ("number", "i4")])["empty"]
    assert memoryview(keys).itemsize == 0
    bloom, twin = fullbloom.BloomFilter(100), fullbloom.BloomFilter(100)
    assert fullbloom.hash_many(keys).tolist() == [fullbloom.hash_key(b"")] * length
    assert bloom.add_many(keys).tolist() == [True, *[False] * length][:length]
    twin.update(keys)
    assert twin == bloom
    assert bloom.contains_many(keys).all()
    assert ("" in bloom) is (length > 0)


@pytest.mark.parametrize("dtype", [[], [("a", "S0")], "V0"], ids=show)
def test_records_of_zero_width_are_refused(dtype: Any) -> None:
    assert_refused(np.zeros(3, dtype))


def test_single_bytes_need_no_byte_order() -> None:
    assert fullbloom.hash_many(np.array([b"ab", b"c"], ">S2")).tolist() == fullbloom.hash_many([b"ab", b"c"])


@pytest.mark.parametrize("keys", [[1, 2, 3, 4], [7]])
def test_buffers_of_pointers_are_refused(keys: list[int]) -> None:
    pointers = testbuffer.ndarray(keys, shape=[len(keys)], format="q", flags=testbuffer.ND_PIL)
    assert memoryview(pointers).suboffsets == (0,)
    assert_refused(pointers, "pointers")


@pytest.mark.parametrize("keys", [[1, 2, 3, 4], [7]])
def test_a_strided_view_hashes_as_its_bytes(keys: list[int]) -> None:
    pointers = testbuffer.ndarray(keys, shape=[len(keys)], format="q", flags=testbuffer.ND_PIL)
    view = memoryview(pointers)
    assert fullbloom.hash_key(view) == fullbloom.hash_key(np.array(keys, "q").tobytes())


#: Where a memoryview of CPython keeps its Py_buffer.
BUFFER_AT = 56

kept: list[Any] = []


class Exporter(ctypes.Structure):
    """A Py_buffer in ctypes."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
    ]


def stating(format_: str, item_size: int) -> memoryview:
    """A view of five items that states a format of its own, which no constructor lets through."""
    view = memoryview(bytearray(5 * 16))
    inner = Exporter.from_address(id(view) + BUFFER_AT)
    if (inner.len, inner.itemsize, inner.ndim) != (80, 1, 1):
        pytest.skip("this interpreter keeps the fields of a view elsewhere")
    text = ctypes.create_string_buffer(format_.encode())
    kept.append(text)
    inner.format = ctypes.addressof(text)
    inner.itemsize = item_size
    inner.shape[0] = 5
    inner.len = 5 * item_size
    return view


FORMATS = ["é", "3é", "és", "T{<i:é:}", "日", "", "@", ">", "s", "xs", "T{s", "5s", ">5s", "0w", "5w", "ww"]
FORMATS += [
    "b",
    "2b",
    "n",
    "e",
    "f",
    "d",
    "g",
    "Zd",
    "?",
    "O",
    "2O",
    "&<i",
    "P",
    "\x01",
    "q" * 500,
    "9" * 30 + "s",
]


@for_each("item_size", [0, 1, 2, 4, 7, 8, 16])
def test_every_format_is_read_or_refused(item_size: int) -> None:
    for format_ in FORMATS:
        view = stating(format_, item_size)
        for call in [*every_call(view), lambda view=view: fullbloom.hash_key(view)]:
            with contextlib.suppress(fullbloom.FullbloomError):
                call()


@pytest.mark.parametrize("format_", ["e", "f", "d", "q", "?"])
def test_a_format_wider_than_its_items_is_refused(format_: str) -> None:
    assert_refused(stating(format_, 3))


def test_a_negative_number_of_items_is_refused() -> None:
    """A view that states -1 items was read from its base on, to the end of all memory."""
    item, instance = ctypes.c_ssize_t, memoryview(bytes(8)).cast("q")
    address = ctypes.c_ssize_t.from_address
    # The shape of a memoryview lies in it, as the first of what its Py_buffer points to.
    where = [
        at
        for at in range(id(instance), id(instance) + instance.__sizeof__(), ctypes.sizeof(item))
        if address(at).value == 1
    ]
    shape = where[-1]
    address(shape).value = -1
    try:
        assert instance.shape == (-1,)
        assert_refused(instance, "negative")
    finally:
        address(shape).value = 1
