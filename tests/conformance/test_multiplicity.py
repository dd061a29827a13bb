"""`add(key, n)` and `remove(key, n)` are n calls, where counts exist, at once."""

from __future__ import annotations

import contextlib
import random
import warnings
from typing import Any

import pytest
from support import Variant, every_variant, most_counted

import fullbloom

COUNTING = every_variant("count", "keys")
REMOVING = every_variant("count", "remove", "keys")


def one_by_one(made: Any, key: Any, times: int) -> bool:
    """The answers of single calls, until one finds no room: whether the first was new."""
    answers = []
    with contextlib.suppress(fullbloom.FilterFull):
        answers = [made.add(key) for _ in range(times)]
    return bool(answers and answers[0])


@pytest.mark.parametrize("variant", COUNTING)
def test_adding_n_times_equals_n_adds(variant: Variant) -> None:
    chosen = random.Random(3)
    made, twin = variant.make(500), variant.make(500)
    for _ in range(60):
        key, times = chosen.randrange(20), chosen.choice([1, 2, 3, 7])
        before = key in twin
        full = False
        try:
            new = made.add(key, times)
            assert new is (not before)
        except fullbloom.FilterFull:
            full = True
        one_by_one(twin, key, times)
        assert made.to_bytes() == twin.to_bytes(), (key, times, full)
        assert made.num_added == twin.num_added


@pytest.mark.parametrize("variant", COUNTING)
def test_adding_more_times_than_cells_can_count_saturates_or_refuses(variant: Variant) -> None:
    """A full table refuses; a counter that stops takes the rest of a billion at once."""
    made, few = variant.make(100), variant.make(100)
    most = most_counted(made)
    times = 10**9 if most < 2**16 else 3000
    try:
        assert made.add("often", times)
    except fullbloom.FilterFull:
        assert "often" in made
        return
    assert made.count("often") == min(most, times)
    assert few.add("often", min(most, times))
    assert made.fill == few.fill
    assert made.num_added in {1, times}


@pytest.mark.parametrize("variant", REMOVING)
def test_removing_n_times_removes_all_or_nothing(variant: Variant) -> None:
    made = variant.make(500)
    made.update(range(50))
    made.add("x", 3)
    assert made.count("x") >= 3
    before = made.to_bytes()
    for call in (lambda: made.remove("x", 400), lambda: made.remove("never there", 2)):
        if made.count("x") < min(400, most_counted(made)):
            with pytest.raises(KeyError) as caught:
                call()
            assert caught.value.args[0] in {"x", "never there"}
            assert made.to_bytes() == before
    assert made.discard("x", 400) is False
    twin = made.copy()
    assert made.remove("x", 2) is None
    twin.remove("x")
    twin.remove("x")
    assert made.to_bytes() == twin.to_bytes()
    assert made.discard("x", made.count("x")) is True
    assert "x" not in made


@pytest.mark.parametrize("variant", REMOVING)
def test_a_saturated_counter_is_never_decremented(variant: Variant) -> None:
    made = variant.make(100)
    if most_counted(made) > 2**16:
        return
    made.add("often", 10**9)
    made.remove("often", 10**8)
    assert "often" in made
    assert made.num_added == 9 * 10**8


@pytest.mark.parametrize("variant", COUNTING)
@pytest.mark.parametrize("times", [0, -1, 2**64, 1.5, "2", None, True])
def test_invalid_multiplicities_are_refused_by_name(variant: Variant, times: Any) -> None:
    made = variant.make(100)
    before = made.to_bytes()
    for name in ("add", "remove", "discard"):
        if hasattr(made, name):
            with pytest.raises(
                (fullbloom.ParameterError, fullbloom.ParameterTypeError), match="times must be"
            ):
                getattr(made, name)("x", times)
    assert made.to_bytes() == before


@pytest.mark.parametrize("variant", every_variant("keys"))
def test_wrong_numbers_of_arguments_are_refused(variant: Variant) -> None:
    made = variant.make(100)
    for name in ("add", "remove", "discard"):
        if not hasattr(made, name):
            continue
        call = getattr(made, name)
        wrong = [(), ("x", 1, 1)] if variant.can("count") else [(), ("x", 1)]
        for arguments in wrong:
            with pytest.raises(TypeError, match=f"{name}.. takes"):
                call(*arguments)
        with pytest.raises(TypeError, match=f"{name}.. takes"):
            call(key="x")
        with pytest.raises(fullbloom.KeyTypeError):
            call(None, *([2] if variant.can("count") else []))


@pytest.mark.parametrize("variant", COUNTING)
def test_adding_n_times_warns_as_n_adds_do(variant: Variant) -> None:
    told = []
    for add in (lambda f, key: f.add(key, 5), lambda f, key: [f.add(key) for _ in range(5)]):
        made = variant.make(10)
        with warnings.catch_warnings(record=True) as caught, contextlib.suppress(fullbloom.FilterFull):
            warnings.simplefilter("always")
            for key in range(made.capacity + 3):
                add(made, key)
        told.append((len(caught), made.to_bytes()))
    assert told[0] == told[1]
