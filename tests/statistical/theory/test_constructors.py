"""Guarantee: the sizes that the Rust core picks keep the requested rate, by independent laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from fullbloom import theory
from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

LAYOUTS = ["classic", "blocked", "split", "partitioned", "two-block"]
CAPACITIES = [1, 2, 10, 20, 100, 1000, 10_000, 1_000_000]
RATES = [0.1, 0.01, 0.001, 1e-4, 1e-6]

# The recurrence is affordable up to here; above it the second-order law is within 1e-4 of it at 1e-6.
EXACT_BELOW = 3000


def classic_law(items: int, num_bits: int, num_hashes: int) -> float:
    law = theory.exact_fpr if num_bits < EXACT_BELOW else theory.second_order_fpr
    return law(items, num_bits, num_hashes)


LAWS: dict[str, Callable[[int, int, int], float]] = {
    "classic": classic_law,
    "blocked": theory.blocked_fpr,
    "split": lambda items, num_bits, _: theory.split_fpr(items, num_bits),
    "partitioned": theory.partitioned_fpr,
    "two-block": theory.two_block_fpr,
}
LIMITS: dict[str, Callable[[float, int], float]] = {
    "classic": lambda density, num_hashes: theory.exponential_fpr(1, density, num_hashes),
    "blocked": theory.blocked_limit_fpr,
    "split": lambda density, _: theory.split_limit_fpr(density),
    "partitioned": lambda density, num_hashes: theory.exponential_fpr(1, density, num_hashes),
    "two-block": theory.two_block_limit_fpr,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("fpr", RATES)
def test_a_filter_at_capacity_has_at_most_its_rate(layout: str, capacity: int, fpr: float) -> None:
    size = theory.size_for(layout, capacity, fpr)
    assert LAWS[layout](capacity, size.num_bits, size.num_hashes) <= fpr
    assert theory.fpr_at(layout, size.num_bits, size.num_hashes, capacity) <= fpr


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fpr", RATES)
def test_a_filter_is_not_larger_than_its_promise_needs(layout: str, fpr: float) -> None:
    size = theory.size_for(layout, 1_000_000, fpr)
    # At 0.5 % more keys a filter sized to the bit is over its rate, for every layout and rate here.
    assert LIMITS[layout](size.num_bits / 1_005_000, size.num_hashes) > fpr


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("load", [0.1, 0.5, 1.0, 2.0])
def test_the_present_rate_is_that_of_an_independent_law(layout: str, capacity: int, load: float) -> None:
    size = theory.size_for(layout, capacity, 0.01)
    items = max(1, round(capacity * load))
    reported = theory.fpr_at(layout, size.num_bits, size.num_hashes, items)
    exact = LAWS[layout](items, size.num_bits, size.num_hashes)
    if layout == "classic":
        # The method may use any of the usual forms, which differ in filters of a few keys.
        assert theory.exponential_fpr(items, size.num_bits, size.num_hashes) <= reported
        assert reported <= theory.goel_gupta_fpr(items, size.num_bits, size.num_hashes)
        assert theory.exponential_fpr(items, size.num_bits, size.num_hashes) <= exact
        assert exact <= theory.goel_gupta_fpr(items, size.num_bits, size.num_hashes)
    else:
        assert reported == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("fpr", RATES)
def test_capacity_at_undoes_size_for(layout: str, capacity: int, fpr: float) -> None:
    size = theory.size_for(layout, capacity, fpr)
    most = theory.capacity_at(layout, size.num_bits, size.num_hashes, fpr)
    assert most >= capacity
    assert theory.fpr_at(layout, size.num_bits, size.num_hashes, most) <= fpr * (1 + 1e-9)
    assert theory.fpr_at(layout, size.num_bits, size.num_hashes, most + 1) > fpr * (1 - 1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_empty_filter_has_no_false_positives_and_a_fuller_one_has_more(layout: str) -> None:
    size = theory.size_for(layout, 1000, 0.01)
    rates = theory.fpr_at(layout, *size, items=[0, 1, 10, 100, 1000, 10_000])
    assert rates[0] == 0.0
    assert rates == sorted(rates)
    assert rates[-1] <= 1.0


def test_functions_of_the_core_take_vectors_too() -> None:
    sizes = theory.size_for("classic", [1000, 2000], 0.01)
    assert sizes == [theory.size_for("classic", 1000, 0.01), theory.size_for("classic", 2000, 0.01)]
    arrays = theory.size_for("classic", np.array([1000, 2000]), 0.01)
    assert arrays[0].tolist() == [size.num_bits for size in sizes]
    assert arrays[1].tolist() == [size.num_hashes for size in sizes]


@pytest.mark.parametrize("call", [("cubic", 100, 0.01), ("classic", 0, 0.01), ("classic", 100, 1.5)])
def test_nonsense_is_rejected_by_the_core_too(call: tuple[str, int, float]) -> None:
    with pytest.raises(ParameterError):
        theory.size_for(*call)
