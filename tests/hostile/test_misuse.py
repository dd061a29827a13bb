"""Merging unlike filters, going past capacity, writing where one may not: a clear error, an intact filter."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from support import SECRET, layouts

import fullbloom

# Each differs from the first in the named fields.
BASE: dict[str, Any] = {"layout": "classic", "seed": 1, "secret": None, "scheme": None}
UNLIKE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "seed": ({"seed": 2}, ["seed", "1", "2"]),
    "secret": ({"secret": SECRET}, ["secret"]),
    "scheme": ({"scheme": "double"}, ["scheme", "mcg", "double"]),
    "hash": ({"hash": "sha256"}, ["hash", "xxh3", "sha256"]),
    "layout": ({"layout": "partitioned"}, ["layout", "classic", "partitioned"]),
    "blocked": ({"layout": "blocked"}, ["layout", "scheme"]),
    "capacity": ({"capacity": 2000}, ["num_bits"]),
    "fpr": ({"fpr": 1e-4}, ["num_bits", "num_hashes"]),
    "everything": (
        {"layout": "split", "seed": 9, "secret": SECRET, "capacity": 5000},
        ["layout", "scheme", "num_bits", "num_hashes", "seed", "secret"],
    ),
}
OPERATIONS: dict[str, Any] = {
    "union": lambda a, b: a.union(b),
    "|": lambda a, b: a | b,
    "|=": lambda a, b: a.__ior__(b),
    "intersection": lambda a, b: a.intersection(b),
    "&": lambda a, b: a & b,
    "&=": lambda a, b: a.__iand__(b),
    "issubset": lambda a, b: a.issubset(b),
    "<=": lambda a, b: a <= b,
    "union_count": lambda a, b: a.union_count(b),
    "intersection_count": lambda a, b: a.intersection_count(b),
    "jaccard": lambda a, b: a.jaccard(b),
    "isdisjoint": lambda a, b: a.isdisjoint(b),
}


def make(**options: Any) -> Any:
    """A filter like the others except for ``options``."""
    settings = {**BASE, **options}
    return fullbloom.BloomFilter(settings.pop("capacity", 1000), settings.pop("fpr", 0.01), **settings)


@for_each("operation", OPERATIONS)
@for_each("difference", UNLIKE)
def test_unlike_filters_name_every_difference(difference: str, operation: str) -> None:
    options, named = UNLIKE[difference]
    left, right = make(), make(**options)
    left.update(range(100))
    right.update(range(50))
    before = left.to_bytes(), right.to_bytes()
    with pytest.raises(fullbloom.IncompatibleFilters) as caught:
        OPERATIONS[operation](left, right)
    for word in named:
        assert word in str(caught.value)
    for field in ("layout", "scheme", "num_bits", "num_hashes", "seed", "secret"):
        if f"{field} (" in str(caught.value):
            assert getattr(left, field) != getattr(right, field)
    assert (left.to_bytes(), right.to_bytes()) == before
    assert left != right


@for_each("operation", OPERATIONS)
def test_a_filter_may_be_combined_with_itself(operation: str) -> None:
    bloom = make()
    bloom.update(range(100))
    before = bytes(memoryview(bloom))
    OPERATIONS[operation](bloom, bloom)
    assert bytes(memoryview(bloom)) == before


@for_each("layout", layouts())
@for_each("how", ["add", "update", "add_many", "numpy", "add_hashed"])
def test_past_capacity_warns_exactly_once(layout: str, how: str) -> None:
    bloom = fullbloom.BloomFilter(200, 0.01, layout=layout)
    ways: dict[str, Any] = {
        "add": lambda keys: [bloom.add(key) for key in keys],
        "update": lambda keys: bloom.update(list(keys)),
        "add_many": lambda keys: bloom.add_many(list(keys)),
        "numpy": lambda keys: bloom.update(np.array(list(keys))),
        "add_hashed": lambda keys: bloom.add_hashed(fullbloom.hash_many(list(keys))),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ways[how](range(200))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(200, 800, 50):
            ways[how](range(start, start + 50))
    assert [item.category for item in caught] == [fullbloom.CapacityWarning]
    assert "200" in str(caught[0].message)
    assert "capacity" in str(caught[0].message)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert bloom.contains_many(list(range(800))) == [True] * 800


def test_a_warning_that_is_an_error_loses_no_key() -> None:
    bloom = fullbloom.BloomFilter(10, 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fullbloom.CapacityWarning)
        with pytest.raises(fullbloom.CapacityWarning):
            bloom.update(range(100))
    assert all(bloom.contains_many(range(100)))


def test_clear_renews_the_warning_and_copies_keep_it() -> None:
    bloom = fullbloom.BloomFilter(10, 0.01)
    with pytest.warns(fullbloom.CapacityWarning):
        bloom.update(range(50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bloom.copy().add("more")
        fullbloom.loads(bloom.to_bytes()).add("more")
        pickle.loads(pickle.dumps(bloom)).add("more")
    bloom.clear()
    with pytest.warns(fullbloom.CapacityWarning):
        bloom.update(range(50))


def test_merging_past_capacity_is_reported() -> None:
    left, right = make(capacity=100), make(capacity=100)
    left.update(range(100))
    right.update(range(1000, 1100))
    with pytest.warns(fullbloom.CapacityWarning):
        left |= right
    assert left.fpr() > left.target_fpr


@pytest.mark.parametrize("layout", layouts())
def test_strict_filters_refuse_more_keys_and_keep_finding_others(layout: str) -> None:
    bloom = fullbloom.BloomFilter(100, 0.001, layout=layout, strict=True)
    keys = [f"key-{i}" for i in range(500)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fullbloom.FilterFull) as caught:
            bloom.update(keys)
        assert "100" in str(caught.value)
        assert isinstance(caught.value, OverflowError)
        assert bloom.num_added == 100
        before = bloom.to_bytes()
        assert all(bloom.contains_many(keys[:100]))
        for act in (bloom.add, lambda key: bloom.update([key]), lambda key: bloom.add_many([key])):
            with pytest.raises(fullbloom.FilterFull):
                act("another")
        # What is already in is no addition.
        assert not bloom.add(keys[0])
        bloom.update(keys[:100])
        assert bloom.add_many(keys[:50]) == [False] * 50
    assert bloom.to_bytes() == before
    for twin in (bloom.copy(), fullbloom.loads(before), copy.deepcopy(bloom)):
        assert twin.strict
        with pytest.raises(fullbloom.FilterFull):
            twin.add("another")


@for_each("name", ["mode", "verify"])
@for_each("value", ["w", "", "R", "fully", None, 5])
def test_unknown_modes_are_refused(name: str, value: Any, golden: Path) -> None:
    with pytest.raises((fullbloom.ParameterError, TypeError)):
        fullbloom.open(golden / "bloom-classic.bloom", **{name: value})


def shows(secret: bytes, text: str | bytes) -> bool:
    """Whether ``text`` contains the secret in any usual spelling."""
    spellings = [
        secret,
        secret.hex().encode(),
        repr(secret)[2:-1].encode(),
        secret[::-1],
        secret[:8],
        secret[8:],
    ]
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    return any(spelling in data for spelling in spellings)


def test_a_secret_never_shows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    other = b"another secret!!"
    for cls in (fullbloom.BloomFilter, fullbloom.ScalableBloomFilter):
        bloom = cls(100, 0.01, secret=SECRET)
        bloom.update(range(50))
        bloom.save(tmp_path / "keyed.bloom")
        seen: list[str | bytes] = [
            repr(bloom),
            str(bloom),
            repr(bloom.info()),
            bloom.to_bytes(),
            (tmp_path / "keyed.bloom").read_bytes(),
            repr([getattr(bloom, name, None) for name in dir(bloom)]),
        ]
        attempts: list[Any] = [
            lambda f=bloom: pickle.dumps(f),
            lambda f=bloom: f.__reduce_ex__(4),
            lambda: fullbloom.open(tmp_path / "keyed.bloom"),
            lambda: fullbloom.open(tmp_path / "keyed.bloom", secret=other),
            lambda f=bloom: fullbloom.loads(f.to_bytes(), secret=other),
            lambda f=bloom: fullbloom.loads(f.to_bytes()[:-1], secret=SECRET),
            lambda: fullbloom.BloomFilter(100, secret=SECRET + b"!"),
            lambda: fullbloom.BloomFilter(100, secret=SECRET.decode()),
            lambda: fullbloom.hash_key(None, secret=SECRET),
            lambda: fullbloom.BloomFilter(100) | fullbloom.BloomFilter(100, secret=SECRET),
            lambda: fullbloom.BloomFilter(100, secret=other) | fullbloom.BloomFilter(100, secret=SECRET),
        ]
        for attempt in attempts:
            with pytest.raises((fullbloom.FullbloomError, TypeError)) as caught:
                attempt()
            # The message only: a traceback prints the source line, and this test has the secret in it.
            seen += [str(caught.value), "".join(traceback.format_exception_only(caught.value))]
        for text in [*seen, caplog.text]:
            assert not shows(SECRET, text), text
            assert not shows(other, text), text


def test_keyed_filters_need_their_secret(tmp_path: Path) -> None:
    bloom = fullbloom.BloomFilter(100, secret=SECRET)
    bloom.update(range(50))
    bloom.save(tmp_path / "keyed.bloom")
    for wrong in (None, b"another secret!!"):
        with pytest.raises(fullbloom.ParameterError, match="secret"):
            fullbloom.open(tmp_path / "keyed.bloom", secret=wrong)
    opened = fullbloom.open(tmp_path / "keyed.bloom", secret=SECRET)
    assert opened == bloom
    assert opened.keyed
    assert all(opened.contains_many(range(50)))
    plain = fullbloom.BloomFilter(100)
    with pytest.raises(fullbloom.ParameterError, match="without"):
        fullbloom.loads(plain.to_bytes(), secret=SECRET)
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(bloom)
    assert copy.copy(bloom) == copy.deepcopy(bloom) == bloom


def test_random_secrets_differ() -> None:
    one, other = (fullbloom.BloomFilter(100, secret=True) for _ in range(2))
    with pytest.raises(fullbloom.IncompatibleFilters, match="secret"):
        one | other
    assert not fullbloom.BloomFilter(100, secret=False).keyed


def test_keys_never_show_in_errors_of_filters() -> None:
    canary = "canary-9f86d081"
    bloom = fullbloom.BloomFilter(1, 0.01, strict=True)
    bloom.add("first")
    with pytest.raises(fullbloom.FilterFull) as caught:
        bloom.add(canary)
    assert canary not in str(caught.value)
    assert canary not in repr(bloom)
    assert canary.encode() not in bloom.to_bytes()


def test_views_are_read_only_and_keep_the_filter_alive() -> None:
    bloom = make()
    bloom.update(range(100))
    view = memoryview(bloom)
    assert view.readonly
    assert view.nbytes == bloom.nbytes or view.nbytes >= bloom.num_bits // 8
    with pytest.raises(TypeError):
        view[0] = 1
    expected = bytes(view)
    del bloom
    assert bytes(view) == expected


def test_filters_are_not_hashable_and_refuse_attributes() -> None:
    bloom = make()
    with pytest.raises(TypeError):
        hash(bloom)
    with pytest.raises(AttributeError):
        bloom.capacity = 5
    with pytest.raises(AttributeError):
        bloom.mine = 5
