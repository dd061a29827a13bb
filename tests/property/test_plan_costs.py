"""Guarantee: given the costs of a false positive and of a byte, `plan.choices` picks the cheapest rate."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from support import SCALE

from fullbloom import theory
from fullbloom.errors import ParameterError, ParameterTypeError
from fullbloom.plan import choices


def total(rate: float, items: float, lookups: float, wrong: float, byte: float) -> float:
    """Expected cost of the wrong answers and of a classic filter."""
    return lookups * wrong * rate + byte * items * theory.bits_per_key(rate) / 8


def draw_costs(random: Random) -> tuple[int, float, float, float]:
    items = int(10 ** random.uniform(2, 9))
    return items, 10 ** random.uniform(2, 12), 10 ** random.uniform(-8, -1), 10 ** random.uniform(-10, -7)


def test_no_other_rate_costs_less() -> None:
    random = Random(1970)
    for _ in range(300 * SCALE):
        costs = draw_costs(random)
        best = theory.cheapest_fpr(*costs)
        least = total(best, *costs)
        for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
            rate = best * factor
            if 0 < rate <= 0.5:
                assert total(rate, *costs) >= least * (1 - 1e-12), (costs, factor)


def test_choices_have_the_rate_of_the_costs() -> None:
    random = Random(28)
    for _ in range(30 * SCALE):
        items, lookups, wrong, byte = draw_costs(random)
        found = choices(items, cost_of_false_positive=wrong, cost_of_byte=byte, absent_lookups=lookups)
        best = max(theory.cheapest_fpr(items, lookups, wrong, byte), 1e-15, 2 * items / 2**64)
        assert found == choices(items, best) or math.isclose(found[0].fpr, best, rel_tol=0.2)
        assert all(choice.fpr <= best * 1.0000001 for choice in found)


def test_lookups_are_as_many_as_items_by_default() -> None:
    given: dict[str, Any] = {"cost_of_false_positive": 1e-3, "cost_of_byte": 1e-6}
    assert choices(10_000, **given) == choices(10_000, absent_lookups=10_000, **given)
    assert choices(10_000, **given) == choices(10_000, theory.cheapest_fpr(1, 1, 1e-3, 1e-6))


@pytest.mark.parametrize(
    "arguments",
    [
        {"cost_of_byte": 1.0},
        {"cost_of_false_positive": 1.0},
        {"absent_lookups": 10},
        {"cost_of_byte": 1.0, "cost_of_false_positive": 1.0, "fpr": 0.1},
    ],
)
def test_costs_that_are_not_complete_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="costs choose the rate"):
        choices(1000, **arguments)


def test_costs_out_of_range_are_refused() -> None:
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(ParameterError, match="cost_of_false_positive"):
            choices(1000, cost_of_false_positive=wrong, cost_of_byte=1)
    with pytest.raises(ParameterTypeError):
        choices(1000, cost_of_false_positive="1", cost_of_byte=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="items"):
        choices(cost_of_false_positive=1, cost_of_byte=1, memory=1000)
    with pytest.raises(ParameterError, match=r"^items must be at least 1"):
        choices(0, cost_of_false_positive=1, cost_of_byte=1)


def test_information_is_between_the_lower_bound_and_the_bits() -> None:
    random = Random(7)
    for _ in range(300 * SCALE):
        rate, hashes = 10 ** random.uniform(-9, -0.4), random.randint(1, 30)
        bits = theory.information_per_key(rate, hashes)
        assert theory.min_bits_per_key(rate) <= bits <= theory.bits_per_key(rate, hashes) * (1 + 1e-12)
        if hashes == 1 and rate < 0.01:
            assert bits == pytest.approx(theory.succinct_bits_per_key(rate), rel=0.01)
    halves = [theory.information_per_key(2.0**-k, k) for k in range(1, 20)]
    assert halves == pytest.approx([theory.bits_per_key(2.0**-k) for k in range(1, 20)])
