"""`add(key, n)` and `remove(key, n)` are n calls, where counts exist, at once."""

from __future__ import annotations

import contextlib
import random
import warnings
from typing import Any

import pytest
from cases import for_each
from support import Variant, every_variant, most_counted

import fullbloom

COUNTING = every_variant("count", "keys")
REMOVING = every_variant("count", "remove", "keys")


def one_by_one(instance: Any, key: Any, times: int) -> bool:
    """The answers of single calls, until the filter is full: whether the first key was new."""
    answers = []
    with contextlib.suppress(fullbloom.FilterFull):
        answers = [instance.add(key) for _ in range(times)]
    return bool(answers and answers[0])


@for_each("variant", COUNTING)
def test_adding_n_times_equals_n_adds(variant: Variant) -> None:
    chosen = random.Random(3)
    instance, twin = variant.make(500), variant.make(500)
    for _ in range(60):
        key, times = chosen.randrange(20), chosen.choice([1, 2, 3, 7])
        before = key in twin
        full = False
        try:
            new = instance.add(key, times)
            assert new is (not before)
        except fullbloom.FilterFull:
            full = True
        one_by_one(twin, key, times)
        assert instance.to_bytes() == twin.to_bytes(), (key, times, full)
        assert instance.num_added == twin.num_added


@for_each("variant", COUNTING)
def test_adding_more_times_than_cells_can_count_saturates_or_refuses(variant: Variant) -> None:
    """A full table refuses; a counter that stops takes the rest of a billion at once."""
    instance, few = variant.make(100), variant.make(100)
    most = most_counted(instance)
    times = 10**9 if most < 2**16 else 3000
    try:
        assert instance.add("often", times)
    except fullbloom.FilterFull:
        assert "often" in instance
        return
    assert instance.count("often") == min(most, times)
    assert few.add("often", min(most, times))
    assert instance.fill == few.fill
    assert instance.num_added in {1, times}


@for_each("variant", REMOVING)
def test_removing_n_times_removes_all_or_nothing(variant: Variant) -> None:
    instance = variant.make(500)
    instance.update(range(50))
    instance.add("x", 3)
    assert instance.count("x") >= 3
    before = instance.to_bytes()
    for call in (lambda: instance.remove("x", 400), lambda: instance.remove("never there", 2)):
        if instance.count("x") < min(400, most_counted(instance)):
            with pytest.raises(KeyError) as caught:
                call()
            assert caught.value.args[0] in {"x", "never there"}
            assert instance.to_bytes() == before
    assert instance.discard("x", 400) is False
    twin = instance.copy()
    assert instance.remove("x", 2) is None
    twin.remove("x")
    twin.remove("x")
    assert instance.to_bytes() == twin.to_bytes()
    assert instance.discard("x", instance.count("x")) is True
    assert "x" not in instance


@for_each("variant", REMOVING)
def test_a_saturated_counter_is_never_decremented(variant: Variant) -> None:
    instance = variant.make(100)
    if most_counted(instance) > 2**16:
        return
    instance.add("often", 10**9)
    instance.remove("often", 10**8)
    assert "often" in instance
    assert instance.num_added == 9 * 10**8


@for_each("variant", COUNTING)
@for_each("times", [0, -1, 2**64, 1.5, "2", None, True])
def test_invalid_multiplicities_are_refused_by_name(variant: Variant, times: Any) -> None:
    instance = variant.make(100)
    before = instance.to_bytes()
    for name in ("add", "remove", "discard"):
        if hasattr(instance, name):
            with pytest.raises(
                (fullbloom.ParameterError, fullbloom.ParameterTypeError), match="times must be"
            ):
                getattr(instance, name)("x", times)
    assert instance.to_bytes() == before


@for_each("variant", every_variant("keys"))
def test_wrong_numbers_of_arguments_are_refused(variant: Variant) -> None:
    instance = variant.make(100)
    for name in ("add", "remove", "discard"):
        if not hasattr(instance, name):
            continue
        call = getattr(instance, name)
        wrong = [(), ("x", 1, 1)] if variant.can("count") else [(), ("x", 1)]
        for arguments in wrong:
            with pytest.raises(TypeError, match=f"{name}.. takes"):
                call(*arguments)
        with pytest.raises(TypeError, match=f"{name}.. takes"):
            call(key="x")
        with pytest.raises(fullbloom.KeyTypeError):
            call(None, *([2] if variant.can("count") else []))


@for_each("variant", COUNTING)
def test_adding_n_times_warns_as_n_adds_do(variant: Variant) -> None:
    result = []
    for add in (lambda f, key: f.add(key, 5), lambda f, key: [f.add(key) for _ in range(5)]):
        instance = variant.make(10)
        with warnings.catch_warnings(record=True) as caught, contextlib.suppress(fullbloom.FilterFull):
            warnings.simplefilter("always")
            for key in range(instance.capacity + 3):
                add(instance, key)
        result.append((len(caught), instance.to_bytes()))
    assert result[0] == result[1]
