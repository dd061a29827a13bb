"""No batch keeps the interpreter while it looks over a column, however long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from concurrency.gil import MOST, least_of_longest, watch
from support import LONG

import fullbloom

#: Rows of the longest column, of 4 bytes, and how long it may keep the interpreter: 300 MB in the long form.
ROWS = 75_000_000 if LONG else 20_000_000
MAY = MOST if LONG else MOST / 2


def _arrow(make: Callable[[Any], object]) -> Callable[[], object]:
    return lambda: make(pytest.importorskip("pyarrow"))


def _nullable(pa: Any) -> object:
    return pa.array(np.arange(ROWS // 2), mask=np.arange(ROWS // 2) % 3 == 0)


def _dictionary(pa: Any) -> object:
    return pa.DictionaryArray.from_arrays(np.arange(ROWS, dtype="int32") % 1000, np.arange(1000))


def _dictionary_with_null(pa: Any) -> object:
    values = pa.array([None, *range(999)])
    return pa.DictionaryArray.from_arrays(np.arange(ROWS, dtype="int32") % 1000, values)


def _texts(pa: Any) -> object:
    data = pa.py_buffer(bytes(ROWS))
    return pa.Array.from_buffers(
        pa.binary(), ROWS, [None, pa.py_buffer(np.arange(ROWS + 1, dtype="int32")), data]
    )


def _views(pa: Any) -> object:
    return pa.Array.from_buffers(pa.binary_view(), ROWS // 4, [None, pa.py_buffer(np.zeros(ROWS, "int32"))])


COLUMNS: dict[str, Callable[[], object]] = {
    "list": lambda: [f"key-{i}" for i in range(ROWS // 20)],
    "numbers": lambda: np.arange(ROWS // 4),
    "wide text": lambda: np.full(ROWS // 8, "abcdefgh"),
    "one wide text": lambda: np.array(["x" * ROWS]),
    "nullable": _arrow(_nullable),
    "dictionary": _arrow(_dictionary),
    "dictionary with a null value": _arrow(_dictionary_with_null),
    "distinct values": _arrow(
        lambda pa: pa.DictionaryArray.from_arrays(np.arange(1 << 22, dtype="int32"), np.arange(1 << 22))
    ),
    "texts": _arrow(_texts),
    "views": _arrow(_views),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.timed
def test_batches_of_every_kind_of_column_release_the_gil(column: str) -> None:
    keys, f = COLUMNS[column](), fullbloom.BloomFilter(1000)
    held = {}
    with watch() as watching:
        for name in ("contains_many", "update"):
            longest = least_of_longest(watching, lambda name=name: getattr(f.copy(), name)(keys), MAY)
            if longest >= MAY:
                held[name] = f"{1000 * longest:.1f} ms"
    assert not held


@pytest.mark.timed
def test_ready_hashes_in_a_list_are_read_a_piece_at_a_time() -> None:
    hashes = list(range(3_000_000))
    f = fullbloom.BloomFilter(1000)
    with watch() as watching:
        longest = least_of_longest(watching, lambda: f.add_hashed(hashes))
    assert longest < MOST, f"{1000 * longest:.1f} ms"


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL that a call could keep"
)
def test_the_watch_detects_a_call_that_holds_the_gil() -> None:
    much = bytes(200_000_000)
    with watch() as watching:
        assert min(watching.during(lambda: much.count(b"ab")) for _ in range(3)) > MAY
