"""Objects are read where they lie on every interpreter of known layout, and give the keys of the calls."""

from __future__ import annotations

import struct
import sys
import sysconfig

import numpy as np
import pytest
from cases import for_each

import fullbloom
from fullbloom import _core

KNOWN = {(3, 11), (3, 12), (3, 13), (3, 14), (3, 15)}
PATHS = ["int value", "ASCII bytes", "list and tuple items"]

POWERS = [base + step for base in (1 << 15, 1 << 30, 1 << 31, 1 << 60, 1 << 62) for step in (-1, 0, 1)]
# What the interpreter keeps for ever (-5 to 256, from 3.14 on to 1024) and what it makes anew.
INTS = [*range(-300, 1100), *POWERS, *(-n for n in POWERS), 2**63 - 1, -(2**63)]

TEXTS = [
    letter * n
    for letter in ("a", "\0", "\x7f", "\x80", "é", "鍵", "🔑")
    for n in (0, 1, 2, 7, 8, 9, 64, 1000)
]


def test_every_path_is_in_use_where_the_layout_is_known() -> None:
    readable = (
        struct.calcsize("P") == 8 and sys.byteorder == "little" and sys.implementation.name == "cpython"
    )
    in_use = readable and sys.version_info[:2] in KNOWN and not sysconfig.get_config_var("Py_GIL_DISABLED")
    assert _core.fast_paths() == dict.fromkeys(PATHS, in_use)


class Int(int):
    """No exact ``int``: takes the call."""


class Text(str):
    """No exact ``str``: takes the call."""

    __slots__ = ()


def test_ints_read_in_place_equal_ints_read_by_calls() -> None:
    expected = fullbloom.hash_many(np.array(INTS, np.int64)).tolist()
    assert [fullbloom.hash_key(number) for number in INTS] == expected
    assert [fullbloom.hash_key(Int(number)) for number in INTS] == expected


@for_each("text", TEXTS, ids=lambda text: f"{text[:1]!r}*{len(text)}")
def test_strings_read_in_place_equal_strings_read_by_calls(text: str) -> None:
    expected = fullbloom.hash_key(text.encode())
    assert fullbloom.hash_key(text) == fullbloom.hash_key(Text(text)) == expected
    assert fullbloom.hash_key(sys.intern(text)) == expected


@pytest.mark.parametrize("wrap", [list, tuple])
def test_items_read_in_place_equal_iterated_items(wrap: type) -> None:
    for keys in ([], [1], [*INTS, *TEXTS], [*TEXTS, Text("x"), 1.5, *INTS, (1, "a")]):
        assert fullbloom.hash_many(wrap(keys)) == fullbloom.hash_many(iter(keys))


def test_a_list_emptied_while_it_is_read_ends_there() -> None:
    class Emptying:
        """Takes the other keys away while it is read."""

        dtype = "int64"
        __module__ = "numpy"

        def item(self) -> int:
            keys.clear()
            return 7

    keys = ["a", "b", Emptying(), "c", "d"]
    bloom = fullbloom.BloomFilter(10)
    bloom.update(keys)
    assert bloom.num_added == 3
    assert all(bloom.contains_many(["a", "b", 7]))
