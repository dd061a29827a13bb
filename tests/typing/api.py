"""Types that a checker must infer: checked with ``mypy --strict``, never run.

``assert_type`` fails the check when an inferred type differs from the one written here.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fullbloom
from fullbloom import BloomFilter, ScalableBloomFilter, errors
from fullbloom.keys import Keys


def one_key(f: BloomFilter) -> None:
    """Scalar calls answer bool."""
    assert_type(f.add("key"), bool)
    assert_type("key" in f, bool)
    assert_type(f.add((1, "part", 2.5)), bool)


def batches(f: BloomFilter) -> None:
    """A batch returns its results in the container type of the keys; update returns nothing."""
    assert_type(f.contains_many([1, 2]), list[bool])
    assert_type(f.add_many(range(2), threads=2), list[bool])
    assert_type(f.contains_many(np.arange(3)), NDArray[np.bool_])
    assert_type(f.contains_many(pl.Series(["a"])), pl.Series)
    assert_type(f.contains_many(pl.DataFrame({"a": [1]})), pl.Series)
    assert_type(f.contains_many(["mixed", 1, (2.5, b"a")]), list[bool])
    f.update(range(10))
    f.update(["mixed", 1], {2.5: "value"}, (str(i) for i in range(3)), uuid.uuid4().bytes.splitlines(), f)


def hashes(f: BloomFilter) -> None:
    """Hashes, too: one answers with one."""
    assert_type(fullbloom.hash_many(["a"]), list[int])
    assert_type(fullbloom.hash_many(np.arange(3)), NDArray[np.uint64])
    assert_type(f.add_hashed(5), bool)
    assert_type(f.add_hashed(np.uint64(5)), bool)
    assert_type(f.contains_hashed([5]), list[bool])
    assert_type(f.contains_hashed(fullbloom.hash_many(np.arange(3))), NDArray[np.bool_])


def keys(f: BloomFilter, day: dt.date) -> None:
    """Every class of key of docs/keys.md."""
    for key in ("a", b"a", bytearray(b"a"), memoryview(b"a"), uuid.uuid4(), 1, True, 1.5, (1, ("a", day))):
        f.add(key)
    f.update([day, dt.datetime(2024, 1, 15), dt.time(1), dt.timedelta(1), decimal.Decimal(1)])
    f.update(
        [
            np.int64(1),
            np.float32(1),
            np.str_("a"),
            np.bytes_(b"a"),
            np.datetime64("2024-01-15"),
            np.bool_(True),
        ]
    )


def annotated(
    f: BloomFilter,
    a: Collection[str],
    b: Iterator[str],
    c: Iterable[int],
    d: Sequence[str],
    e: Keys,
    g: NDArray[np.float64],
    h: list[Any],
    i: Any,
) -> None:
    """Annotations that users write for their own parameters."""
    f.update(a, b, c, d, e, g, h, i)
    assert_type(f.contains_many(a), list[bool])
    assert_type(f.contains_many(c), list[bool])
    assert_type(f.contains_many(g), NDArray[np.bool_])
    assert_type(f.contains_many(h), list[bool])
    f.contains_many(e)
    f.contains_many(i)
    with Path("x").open() as lines, Path("x").open("rb") as raw:
        f.update(lines, raw)


def attributes(f: BloomFilter) -> None:
    """Properties have plain types."""
    assert_type(f.capacity, int)
    assert_type(f.target_fpr, float)
    BloomFilter(1000, layout=f.layout, scheme=f.scheme)
    assert_type(f.keyed, bool)
    assert_type(f.fpr(), float)
    assert_type(f.approx_count(), tuple[float, float])
    assert_type(f.info(), dict[str, Any])


def algebra(f: BloomFilter, g: BloomFilter) -> None:
    """Operators stay within the class."""
    assert_type(f | g, BloomFilter)
    assert_type(f & g, BloomFilter)
    assert_type(f <= g, bool)
    assert_type(f < g, bool)
    assert_type(f.union(g, g), BloomFilter)
    assert_type(f.intersection(), BloomFilter)
    f.update([1], g)
    f |= g
    assert_type(f, BloomFilter)
    assert_type(f.copy(), BloomFilter)


def files(path: Path) -> None:
    """Paths of every kind; open() finds the class."""
    f = BloomFilter(1000, fpr=0.01, layout="blocked", seed=1, secret=True)
    f.save(path)
    assert_type(BloomFilter.open(str(path)), BloomFilter)
    assert_type(BloomFilter.from_bytes(f.to_bytes()), BloomFilter)
    with BloomFilter.open(path, mode="r+") as writer:
        assert_type(writer, BloomFilter)
    with fullbloom.open(path, mode="r+") as writer:
        assert_type(writer, BloomFilter)
    assert_type(len(memoryview(f)), int)


def growing() -> None:
    """The growing class has no algebra."""
    s = ScalableBloomFilter(1000, fpr=0.01, growth=2.0)
    assert_type(s.stages, int)
    s | s  # type: ignore[operator]


def functions() -> None:
    """Functions of the package."""
    assert_type(fullbloom.hash_key("key", seed=1), int)
    assert_type(fullbloom.variants(), list[dict[str, Any]])


def exceptions() -> None:
    """Each exception is also the built-in one it is."""
    problem: ValueError = errors.ParameterError("fpr")
    assert_type(isinstance(problem, errors.FullbloomError), bool)


def mistakes(f: BloomFilter) -> None:
    """Wrong calls are found; of all classes, the tests make many more."""
    f.add([1, 2])  # type: ignore[arg-type]
    f.add(None)  # type: ignore[arg-type]
    f.update("abc")  # type: ignore[arg-type]
    f.update(5)  # type: ignore[arg-type]
    f.contains_many("abc")  # type: ignore[arg-type]
    BloomFilter(1000, layout="fast")  # type: ignore[arg-type]
    BloomFilter.open("x", mode="w")  # type: ignore[arg-type]
    f.add()  # type: ignore[call-arg]
    BloomFilter("many")  # type: ignore[arg-type]
    f | 1  # type: ignore[operator]
