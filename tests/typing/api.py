"""What a type checker must see: checked with ``mypy --strict``, never run.

``assert_type`` fails the check when an inferred type differs from the one written here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import bloomery
from bloomery import BloomFilter, ScalableBloomFilter, errors


def one_key(f: BloomFilter) -> None:
    """Scalar calls answer bool."""
    assert_type(f.add("key"), bool)
    assert_type("key" in f, bool)
    assert_type(f.add((1, "part", 2.5)), bool)


def batches(f: BloomFilter) -> None:
    """A batch answers in the caller's kind, which a type cannot say; update answers nothing."""
    assert_type(f.contains_many([1, 2]), Any)
    assert_type(f.add_many([1, 2], threads=2), Any)
    f.update(range(10))


def attributes(f: BloomFilter) -> None:
    """Properties have plain types."""
    assert_type(f.capacity, int)
    assert_type(f.target_fpr, float)
    assert_type(f.layout, str)
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


def growing() -> None:
    """The growing class has no algebra."""
    s = ScalableBloomFilter(1000, fpr=0.01, growth=2.0)
    assert_type(s.stages, int)
    s | s  # type: ignore[operator]


def functions() -> None:
    """Functions of the package."""
    assert_type(bloomery.hash_key("key", seed=1), int)
    assert_type(bloomery.variants(), list[dict[str, Any]])


def exceptions() -> None:
    """Each exception is also the built-in one it is."""
    problem: ValueError = errors.ParameterError("fpr")
    assert_type(isinstance(problem, errors.BloomeryError), bool)


def mistakes(f: BloomFilter) -> None:
    """Wrong calls are found."""
    f.add()  # type: ignore[call-arg]
    BloomFilter("many")  # type: ignore[arg-type]
    f | 1  # type: ignore[operator]
