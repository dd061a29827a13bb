"""Guarantee: estimates are centred on the truth and scatter as much as their deviation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from support import half_digit

from fullbloom import theory
from fullbloom.errors import ParameterError

Printed = Callable[[float, str], bool]
Margin = Callable[[int, float], float]

TRIALS = 1500
M = 10_000


def add(filters: np.ndarray, random: np.random.Generator, throws: int) -> None:
    filters[
        np.arange(len(filters))[:, None], random.integers(filters.shape[1], size=(len(filters), throws))
    ] = True


@cache
def set_bits(items: int, num_hashes: int) -> np.ndarray:
    """One-bits of TRIALS filters of M bits with ``items`` keys."""
    filters = np.zeros((TRIALS, M), dtype=bool)
    add(filters, np.random.default_rng(20261128 + items), items * num_hashes)
    return np.asarray(filters.sum(axis=1))


@cache
def two_filters(
    own_a: int, own_b: int, both: int, num_hashes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One-bits of TRIALS pairs of filters: a, b, a | b, a & b."""
    random = np.random.default_rng(20261129)
    common = np.zeros((TRIALS, M), dtype=bool)
    add(common, random, both * num_hashes)
    a, b = common.copy(), common
    add(a, random, own_a * num_hashes)
    add(b, random, own_b * num_hashes)
    return a.sum(axis=1), b.sum(axis=1), (a | b).sum(axis=1), (a & b).sum(axis=1)


def check_centre_and_scatter(
    values: np.ndarray, truth: float, bias: float, std: float, margin: Margin
) -> None:
    assert abs(float(values.mean()) - truth - bias) < margin(TRIALS, std)
    # The sample variance of TRIALS normal values has the relative deviation sqrt(2 / (TRIALS - 1)).
    spread = float(values.var(ddof=1)) / std**2
    assert abs(spread - 1) < margin(TRIALS - 1, math.sqrt(2))


@pytest.mark.parametrize(("items", "std"), [(1000, "8.00"), (2000, "18.4")])
def test_the_count_is_centred_and_scatters_as_stated(
    items: int, std: str, printed: Printed, normal_margin: Margin
) -> None:
    assert printed(theory.estimate_std(items, M, 7), std)
    estimates = theory.estimate_items(set_bits(items, 7), M, 7)
    bias = math.expm1(7 * items / M) / 14
    check_centre_and_scatter(estimates.value, items, bias, theory.estimate_std(items, M, 7), normal_margin)
    # The deviation stated for each filter is the one at its own estimate.
    # The median of normal values scatters sqrt(pi / 2) times as much as the mean, which the bias is above.
    off = math.sqrt(math.pi / 2) * normal_margin(TRIALS, float(std)) + bias
    low, high = (theory.estimate_std(items + change, M, 7) for change in (-off, off))
    assert low <= float(np.median(estimates.std)) <= high


def test_the_intersection_is_centred_and_scatters_as_stated(printed: Printed, normal_margin: Margin) -> None:
    a, b, either, shared = two_filters(500, 1000, 500, 4)
    stated = theory.estimate_intersection(*(expected_bits(n, 4) for n in (1000, 1500, 2000)), M, 4)
    assert stated.value == pytest.approx(500, abs=1e-6)
    assert printed(stated.std, "9.8")
    estimates = theory.estimate_intersection(a, b, either, M, 4)
    # Biases of the three estimates, (e^t - 1)/(2k), with their signs.
    bias = (math.expm1(0.4) + math.expm1(0.6) - math.expm1(0.8)) / 8
    check_centre_and_scatter(estimates.value, 500, bias, stated.std, normal_margin)
    counted = theory.estimate_items(shared, M, 4).value
    naive = float(counted.mean())
    off = half_digit("654") + normal_margin(TRIALS, float(counted.std(ddof=1)))
    assert naive == pytest.approx(654, abs=off)
    assert naive - 500 > 10 * stated.std


def expected_bits(items: float, num_hashes: int) -> float:
    """The one-bits at which the estimate is exactly ``items``."""
    return -M * math.expm1(-num_hashes * items / M)


def test_the_union_and_the_jaccard_index_are_centred_and_scatter_as_stated(normal_margin: Margin) -> None:
    a, b, either, _ = two_filters(500, 1000, 500, 4)
    union = theory.estimate_union(either, M, 4)
    check_centre_and_scatter(
        union.value, 2000, math.expm1(0.8) / 8, theory.estimate_std(2000, M, 4), normal_margin
    )
    stated = theory.estimate_jaccard(*(expected_bits(n, 4) for n in (1000, 1500, 2000)), M, 4)
    assert stated.value == pytest.approx(0.25, abs=1e-9)
    similarity = theory.estimate_jaccard(a, b, either, M, 4)
    # A ratio of estimates has a bias of second order, below the square of its relative deviation.
    bound = normal_margin(TRIALS, stated.std) + 1.25 * (union.std.mean() / 2000) ** 2 + stated.std**2
    assert abs(float(similarity.value.mean()) - 0.25) < bound
    assert abs(float(similarity.value.var(ddof=1)) / stated.std**2 - 1) < normal_margin(
        TRIALS - 1, math.sqrt(2)
    )


def test_a_small_intersection_of_large_sets_has_a_large_deviation() -> None:
    bits = [expected_bits(n, 7) for n in (1000, 1000, 1995)]
    estimate = theory.estimate_intersection(*bits, M, 7)
    assert estimate.value == pytest.approx(5, abs=1e-6)
    assert estimate.std > 2 * estimate.value


def test_estimates_of_full_and_empty_filters() -> None:
    assert theory.estimate_items(0, 64, 3) == (0.0, 0.0)
    assert theory.estimate_items(64, 64, 3) == (math.inf, math.inf)
    assert theory.estimate_jaccard(0, 0, 0, 64, 3) == (1.0, 0.0)
    assert theory.estimate_intersection(0, 0, 0, 64, 3) == (0.0, 0.0)
    for estimate in (theory.estimate_intersection, theory.estimate_jaccard):
        value, std = estimate(40, 50, 64, 64, 3)
        assert math.isnan(value)
        assert std == math.inf


def test_estimates_stay_in_range_where_noise_would_leave_it() -> None:
    # More ones in the OR than independence explains: A* + B* - U* is negative.
    assert theory.estimate_intersection(300, 300, 600, 10_000, 4).value == 0.0
    assert theory.estimate_jaccard(300, 300, 600, 10_000, 4).value == 0.0
    assert theory.estimate_jaccard(300, 300, 300, 10_000, 4).value == 1.0


@pytest.mark.parametrize("bits", [(10, 20, 19), (10, 20, 31), (10, 200, 200)])
def test_counts_that_contradict_each_other_are_rejected(bits: tuple[int, int, int]) -> None:
    with pytest.raises(ParameterError):
        theory.estimate_intersection(*bits, 100, 3)
    with pytest.raises(ParameterError):
        theory.estimate_jaccard(*bits, 100, 3)
