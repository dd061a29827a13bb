"""Guarantee: what is made of all keys at once is the same whatever their order, repetitions and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fullbloom

MADE = {row["name"]: row for row in fullbloom.variants() if row["adds"] in ("build", "build_pairs")}
#: Above what one thread takes at a time.
NUMBER = 200_000


def built(name: str, keys: Any, **options: Any) -> bytes:
    made = getattr(fullbloom, MADE[name]["class"])
    values = [] if MADE[name]["adds"] == "build" else [keys.astype(np.uint64) % np.uint64(251)]
    return made.build(keys, *values, **options).to_bytes()


@pytest.mark.parametrize("name", MADE)
def test_threads_order_and_repetitions_leave_no_trace(name: str) -> None:
    keys = np.arange(NUMBER, dtype=np.int64)
    wanted = built(name, keys)
    few, many = np.append(keys, 123_456), np.concatenate([keys, keys[::3]])
    for some in (keys[::-1], few, many):
        for threads in (1, 2, 5):
            assert built(name, some, threads=threads) == wanted
    assert built(name, few, memory=1 << 24) == wanted
    assert built(name, many, memory=1 << 24, threads=2) == wanted
