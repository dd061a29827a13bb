"""Every filter behaves as the built-in set does, as far as it can: truth, unions, intersections, order."""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from cases import for_each
from support import Variant, every_variant, sigmas_of

import fullbloom

EVERY = [*every_variant("add"), *every_variant("add", "numbers")]
MERGING = [*every_variant("merge"), *every_variant("merge", "numbers")]
INTERSECTING = [*every_variant("intersect"), *every_variant("intersect", "numbers")]
#: Methods that take any number of others.
SEVERAL = ("union", "intersection", "intersection_update", "difference", "difference_update")


def fill(variant: Variant, keys: Any, **options: Any) -> Any:
    return variant.build_from(keys, options.pop("capacity", 2000), **options)


def take_all_out(variant: Variant, instance: Any, keys: Any) -> bool:
    """Take every key out again where the class can; whether it could."""
    if not variant.can("remove"):
        return False
    assert all(instance.discard_many(keys))
    return True


@for_each("variant", EVERY)
def test_an_empty_filter_is_falsy(variant: Variant) -> None:
    instance = variant.make(2000)
    assert not instance
    assert bool(instance) is False
    variant.add(instance, 1)
    assert instance
    assert bool(instance) is True
    assert bool(instance.copy()) is True
    assert bool(fullbloom.loads(instance.to_bytes())) is True
    instance.clear()
    assert not instance
    variant.add(instance, 1)
    if take_all_out(variant, instance, [1]):
        assert not instance


@pytest.mark.parametrize("variant", [v for v in EVERY if hasattr(v.values[0].cls, "advance")])
def test_a_window_that_forgot_everything_is_falsy(variant: Variant) -> None:
    instance = variant.cls(100, window=10.0)
    instance.advance(0.0)
    instance.add("key")
    assert instance
    instance.advance(1e6)
    assert not instance
    assert "key" not in instance


@for_each("variant", INTERSECTING)
def test_an_intersection_is_falsy_only_if_nothing_is_found(variant: Variant) -> None:
    """The estimate of one key among thousands is noise, and 0 as often as not."""
    for seed in range(20):
        keys = random.Random(seed).sample(range(2000), 1801)
        first, second = fill(variant, keys[:901]), fill(variant, keys[900:])
        both = first & second
        assert keys[900] in both
        assert both


@for_each("variant", MERGING)
def test_a_union_finds_the_keys_of_all_operands(variant: Variant) -> None:
    parts = [fill(variant, range(start, start + 100)) for start in (0, 50, 300)]
    before = [part.to_bytes() for part in parts]
    merged = parts[0].copy()
    for part in parts[1:]:
        merged.merge(part)
    united = parts[0].union(*parts[1:])
    assert type(united) is variant.cls
    assert united.to_bytes() == merged.to_bytes()
    assert (parts[0] | parts[1] | parts[2]).to_bytes() == merged.to_bytes()
    assert [part.to_bytes() for part in parts] == before
    assert parts[0].union().to_bytes() == before[0]
    first = parts[0]
    parts[0] |= parts[1]
    parts[0] |= parts[2]
    assert parts[0] is first
    assert first.to_bytes() == merged.to_bytes()


@for_each("variant", INTERSECTING)
def test_an_intersection_finds_every_common_key(variant: Variant) -> None:
    parts = [fill(variant, range(start, 1000, step)) for start, step in ((0, 2), (0, 3), (0, 5))]
    common = range(0, 1000, 30)
    kept = parts[0].intersection(*parts[1:])
    assert all(kept.contains_many(common))
    assert (parts[0] & parts[1] & parts[2]).to_bytes() == kept.to_bytes()
    assert kept <= parts[1]
    assert parts[0].intersection() == parts[0]
    assert (parts[0] & parts[0]) == parts[0]
    first, others = parts[0], parts[1:]
    updated, by_operator = first.copy(), first.copy()
    assert updated.intersection_update(*others) is None
    by_operator &= others[0]
    by_operator &= others[1]
    assert updated.to_bytes() == by_operator.to_bytes() == kept.to_bytes()
    # Most of what is in one of them only is gone.
    left = [key for key in first.contains_many(range(1000)) if key]
    assert sum(kept.contains_many(range(1000))) < len(left)


@for_each("variant", INTERSECTING)
def test_comparison_operators_follow_those_of_sets(variant: Variant) -> None:
    small, large, other = (fill(variant, keys) for keys in (range(100), range(200), range(900, 1000)))
    empty, same = variant.make(2000), fill(variant, range(100))
    sets = {"small": small, "large": large, "other": other, "empty": empty, "same": same}
    truth = {
        "small": set(range(100)),
        "large": set(range(200)),
        "other": set(range(900, 1000)),
        "empty": set(),
        "same": set(range(100)),
    }
    relations: dict[str, Callable[[Any, Any], Any]] = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
        "issubset": lambda a, b: a.issubset(b),
        "issuperset": lambda a, b: a.issuperset(b),
    }
    for (a, mine), (b, theirs), (name, relation) in product(sets.items(), sets.items(), relations.items()):
        assert relation(mine, theirs) is relation(truth[a], truth[b]), (a, name, b)


@for_each("variant", INTERSECTING)
def test_disjoint_filters_have_no_common_key(variant: Variant) -> None:
    for seed in range(50):
        chosen = random.Random(seed)
        first, second = (chosen.sample(range(2000), chosen.randrange(4)) for _ in range(2))
        a, b = fill(variant, first), fill(variant, second)
        if set(first) & set(second):
            assert not a.isdisjoint(b)
        assert a.isdisjoint(b) is b.isdisjoint(a)
        if not first or not second:
            assert a.isdisjoint(b)
    assert fill(variant, [1]).isdisjoint(fill(variant, [2]))


@for_each("variant", INTERSECTING)
def test_union_and_intersection_counts_estimate_the_truth(variant: Variant) -> None:
    first, second = fill(variant, range(800)), fill(variant, range(500, 1500))
    for (estimate, deviation), truth in (
        (first.union_count(second), 1500),
        (first.intersection_count(second), 300),
    ):
        assert abs(estimate - truth) <= sigmas_of(2 * len(INTERSECTING)) * deviation
        assert (deviation == 0) == variant.can("numbers")
    share = first.jaccard(second)
    assert share == pytest.approx(first.intersection_count(second)[0] / first.union_count(second)[0])
    assert first.jaccard(first) == pytest.approx(1.0)
    assert variant.make(2000).jaccard(variant.make(2000)) == 1.0
    kept = first & second
    # A whole number of keys.
    assert kept.num_added == pytest.approx(first.intersection_count(second)[0], abs=0.5)


@pytest.mark.parametrize("variant", [v for v in INTERSECTING if v.values[0].can("count")])
def test_unions_and_intersections_of_multisets_support_removal(variant: Variant) -> None:
    """Counts of a union are at least the sum, of an intersection the smaller; then keys go one by one."""
    chosen = random.Random(7)
    first = [chosen.randrange(300) for _ in range(900)]
    second = [chosen.randrange(150, 450) for _ in range(900)]
    a, b = fill(variant, first), fill(variant, second)
    both, either = a & b, a | b
    kept = {key: min(first.count(key), second.count(key)) for key in range(450)}
    assert all(both.count(key) >= times for key, times in kept.items())
    total = {key: first.count(key) + second.count(key) for key in range(450)}
    assert all(either.count(key) >= min(15, times) for key, times in total.items())
    assert both <= a
    assert both <= b
    assert a <= either
    left = {key: times for key, times in kept.items() if times}
    for key in list(left):
        for _ in range(left.pop(key)):
            both.remove(key)
        assert all(both.contains_many(list(left))), "taking one key out lost another"


@for_each("method", SEVERAL)
@for_each("variant", EVERY)
def test_operands_of_another_class_are_refused_before_any_change(variant: Variant, method: str) -> None:
    instance, good = fill(variant, range(50)), fill(variant, range(100))
    if not hasattr(instance, method):
        return
    before = instance.to_bytes()
    for other in ({1}, None, [1], fullbloom.PrefixFilter(10)):
        with pytest.raises(fullbloom.ParameterTypeError, match=type(other).__name__):
            getattr(instance, method)(good, other)
    with pytest.raises(fullbloom.IncompatibleFilters, match="seed"):
        getattr(instance, method)(good, fill(variant, range(10), seed=9))
    assert instance.to_bytes() == before


@for_each("variant", EVERY)
def test_operators_with_other_types_are_type_errors(variant: Variant) -> None:
    instance = fill(variant, range(50))
    for work in (operator.or_, operator.and_, operator.sub, operator.xor, operator.lt, operator.ge):
        for other in ({1}, None, fullbloom.PrefixFilter(10)):
            with pytest.raises(TypeError):
                work(instance, other)
    assert instance != {1}


@pytest.mark.parametrize("variant", every_variant("merge", "numbers"))
def test_an_exact_set_supports_the_whole_set_algebra(variant: Variant) -> None:
    for seed in range(20):
        chosen = random.Random(seed)
        sets = [set(chosen.sample(range(300), 100)) for _ in range(3)]
        instance = [fill(variant, part, capacity=300) for part in sets]

        def members(found: Any) -> set[int]:
            assert found.num_added == sum(found.contains_many(range(300)))
            return {key for key in range(300) if key in found}

        for name in ("union", "intersection", "difference"):
            assert members(getattr(instance[0], name)(*instance[1:])) == getattr(set, name)(*sets)
        for work in (operator.or_, operator.and_, operator.sub, operator.xor):
            assert members(work(instance[0], instance[1])) == work(sets[0], sets[1])
        for name in ("intersection_update", "difference_update", "symmetric_difference_update"):
            mine, theirs = instance[0].copy(), sets[0].copy()
            getattr(mine, name)(instance[1])
            getattr(theirs, name)(sets[1])
            assert members(mine) == theirs
        assert members(instance[0].symmetric_difference(instance[1])) == sets[0] ^ sets[1]
        assert instance[0].intersection_count(instance[1]) == (len(sets[0] & sets[1]), 0.0)
        itself = instance[0].copy()
        itself ^= itself
        assert not itself
        instance[0] -= instance[0]
        assert not instance[0]


@for_each("variant", every_variant("merge", "estimate", "keys"))
def test_a_union_at_its_capacity_does_not_warn(variant: Variant) -> None:
    """The number of keys in a union is an estimate, and one key above capacity is within its noise."""
    for seed in range(20):
        first, second = (variant.make(1000, seed=seed) for _ in range(2))
        first.update(range(600))
        second.update(range(400, 1000))
        with warnings.catch_warnings():
            warnings.simplefilter("error", fullbloom.CapacityWarning)
            first | second
            first |= second
    third = variant.make(1000)
    third.update(range(900))
    with pytest.warns(fullbloom.CapacityWarning):
        third |= filled_like(third, range(900, 1800))


def filled_like(instance: Any, keys: range) -> Any:
    other = instance.copy()
    other.clear()
    other.update(keys)
    return other


def test_a_strict_union_at_its_capacity_is_accepted() -> None:
    for seed in range(20):
        first, second = (fullbloom.BloomFilter(1000, seed=seed, strict=True) for _ in range(2))
        first.update(range(600))
        second.update(range(400, 1000))
        first |= second
        assert all(first.contains_many(range(1000)))
    third = fullbloom.BloomFilter(1000, strict=True)
    third.update(range(900))
    with pytest.raises(fullbloom.FilterFull):
        third |= filled_like(third, range(900, 1800))
