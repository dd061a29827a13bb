"""A filter in the place of keys is its keys where two can be merged, and refused with the reason where not.

Before, `update(other)` added the bytes of the other filter as integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cases import for_each
from support import Variant, every_variant

import fullbloom

VARIANTS = every_variant()
#: Everything that takes many keys; some classes have only some of them.
BATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "contains_many": lambda f, keys: f.contains_many(keys),
    "contains_hashed": lambda f, keys: f.contains_hashed(keys),
    "add_many": lambda f, keys: f.add_many(keys),
    "add_hashed": lambda f, keys: f.add_hashed(keys),
    "update of pairs": lambda f, keys: f.update(keys, 1),
    "add_many of pairs": lambda f, keys: f.add_many(keys, 1),
    "discard_many": lambda f, keys: f.discard_many(keys),
    "remove_many": lambda f, keys: f.remove_many(keys),
    "count_many": lambda f, keys: f.count_many(keys),
    "depth_many": lambda f, keys: f.depth_many(keys),
    "label_many": lambda f, keys: f.label_many(keys),
    "get_many": lambda f, keys: f.get_many(keys),
    "contains_many_at_least": lambda f, keys: f.contains_many_at_least(keys, 1),
    "add_false_positives": lambda f, keys: f.add_false_positives(keys),
    "retouch_many": lambda f, keys: f.retouch_many(keys),
}


def fill(variant: Variant, keys: range, **options: Any) -> Any:
    return variant.build_from(keys, 500, **options)


@for_each("variant", every_variant("merge", "keys") + every_variant("merge", "numbers"))
def test_update_merges_a_filter_of_its_class(variant: Variant) -> None:
    first, second = fill(variant, range(100)), fill(variant, range(50, 150))
    merged = first.copy()
    merged.merge(second)
    theirs = second.to_bytes()
    assert first.update(second) is None
    assert first.to_bytes() == merged.to_bytes()
    assert second.to_bytes() == theirs
    assert all(first.contains_many(range(150)))
    # Among batches, in order.
    first, second = fill(variant, range(100)), fill(variant, range(50, 150))
    one_by_one = first.copy()
    first.update([200], second, (201,))
    one_by_one.add(200)
    one_by_one.merge(second)
    one_by_one.add(201)
    assert first.to_bytes() == one_by_one.to_bytes()


@for_each("variant", every_variant("merge", "keys") + every_variant("merge", "numbers"))
def test_update_with_itself_is_a_merge_with_itself(variant: Variant) -> None:
    first = fill(variant, range(50))
    merged = first.copy()
    merged.merge(merged)
    first.update(first)
    assert first.to_bytes() == merged.to_bytes()


@for_each("variant", every_variant("merge", "keys") + every_variant("merge", "numbers"))
def test_update_refuses_a_filter_with_other_parameters(variant: Variant) -> None:
    first, second = fill(variant, range(50)), fill(variant, range(50), seed=5)
    before = first.to_bytes()
    with pytest.raises(fullbloom.IncompatibleFilters, match="seed"):
        first.update(second)
    assert first.to_bytes() == before


@for_each("variant", [v for v in every_variant("keys") if not v.values[0].can("merge")])
def test_update_says_why_two_filters_cannot_be_merged(variant: Variant) -> None:
    first, second = fill(variant, range(50)), fill(variant, range(50, 80))
    before = first.to_bytes()
    with pytest.raises(fullbloom.KeyTypeError, match="not defined") as caught:
        first.update(second)
    assert variant.row["merging"] in str(caught.value)
    assert "add the keys" in str(caught.value)
    assert first.to_bytes() == before


@for_each("method", BATCHES)
@for_each("variant", VARIANTS)
def test_other_methods_refuse_a_filter_as_keys(variant: Variant, method: str) -> None:
    instance = fill(variant, range(50))
    name = method.partition(" ")[0]
    if not hasattr(instance, name) or (
        variant.can("pairs") != method.endswith("of pairs") and name in {"update", "add_many"}
    ):
        return
    before = instance.to_bytes()
    for other in (
        fill(variant, range(50, 80)),
        fullbloom.BloomFilter(100),
        fullbloom.CuckooFilter(100),
        instance,
    ):
        with pytest.raises(fullbloom.KeyTypeError, match="pass the keys themselves") as caught:
            BATCHES[method](instance, other)
        assert type(other).__name__ in str(caught.value)
    assert instance.to_bytes() == before


@for_each("variant", VARIANTS)
def test_other_classes_and_hash_many_refuse_a_filter_as_keys(variant: Variant) -> None:
    instance = fill(variant, range(50))
    other: Any = fullbloom.QuotientFilter(10) if variant.name == "bloom" else fullbloom.BloomFilter(10)
    with pytest.raises(fullbloom.KeyTypeError, match=variant.cls.__name__):
        other.update(instance)
    assert other.num_added == 0
    with pytest.raises(fullbloom.KeyTypeError, match=variant.cls.__name__):
        fullbloom.hash_many(instance)
    with pytest.raises(fullbloom.KeyTypeError):
        fullbloom.hash_key(instance)
    with pytest.raises(fullbloom.KeyTypeError):
        other.update([instance])


@pytest.mark.parametrize("variant", every_variant("build"))
def test_build_refuses_a_filter_as_keys(variant: Variant) -> None:
    for other in (fill(variant, range(50)), fullbloom.BloomFilter(10)):
        with pytest.raises(fullbloom.KeyTypeError, match=type(other).__name__):
            variant.cls.build(other, *((1,) if variant.can("valued") else ()))


@for_each("variant", every_variant("add") + every_variant("numbers"))
def test_constructors_refuse_a_filter_as_capacity(variant: Variant) -> None:
    instance = fill(variant, range(50))
    with pytest.raises(fullbloom.ParameterTypeError, match="capacity must be a whole number"):
        variant.cls(instance)


def test_the_bits_of_a_filter_are_keys_only_through_memoryview() -> None:
    """A view of the bits is an array of integers like any other."""
    instance = fullbloom.BloomFilter(100)
    assert len(instance.contains_many(memoryview(instance))) == instance.nbytes
