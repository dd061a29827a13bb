"""Guarantee: the exact laws agree with enumeration, with rational formulas and with simulation."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullbloom import theory

if TYPE_CHECKING:
    from collections.abc import Callable

exactly = settings(derandomize=True, deadline=None, max_examples=60)


@pytest.mark.parametrize(("m", "n", "k"), [(3, 2, 2), (4, 2, 2), (5, 2, 3), (4, 3, 2)])
def test_both_laws_agree_with_the_enumeration_of_all_filters(m: int, n: int, k: int) -> None:
    repeats = list(itertools.product(range(m), repeat=k))
    subsets = list(itertools.combinations(range(m), k))
    for keys, law in ((repeats, theory.exact_fpr), (subsets, theory.distinct_fpr)):
        hits = total = 0
        for stored in itertools.product(keys, repeat=n):
            ones = set().union(*stored)
            hits += sum(ones.issuperset(probe) for probe in keys)
            total += len(keys)
        assert law(n, m, k) == pytest.approx(hits / total, rel=1e-13)


@exactly
@given(items=st.integers(1, 30), num_bits=st.integers(8, 256), num_hashes=st.integers(2, 12))
def test_the_rates_are_ordered(items: int, num_bits: int, num_hashes: int) -> None:
    sizes = (items, num_bits, num_hashes)
    exact = theory.exact_fpr(*sizes)
    slack = 1 + 1e-12
    assert theory.exponential_fpr(*sizes) <= theory.classic_fpr(*sizes) * slack
    assert theory.classic_fpr(*sizes) <= exact * slack
    assert exact <= theory.goel_gupta_fpr(*sizes) * slack
    if theory.fill(*sizes) < 0.9:
        assert (
            theory.exponential_fpr(*sizes)
            < theory.classic_fpr(*sizes)
            < exact
            < theory.goel_gupta_fpr(*sizes)
        )


def test_the_second_order_error_falls_with_the_square_of_the_size() -> None:
    errors = []
    for m in (128, 256, 512, 1024):
        exact = theory.exact_fpr(m // 8, m, 5)
        errors.append(abs(theory.second_order_fpr(m // 8, m, 5) / exact - 1))
    # Each doubling of m divides an error of order 1/m^2 by four; the next order moves that by a few percent.
    assert all(3.5 < before / after < 4.5 for before, after in itertools.pairwise(errors))


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_second_order_shortcut_survives_the_smallest_filters(m: int) -> None:
    for n in (0, 1, 7):
        assert 0.0 <= theory.second_order_fpr(n, m, 2) <= 1.0 + 1e-12
        # With k = 2 the Taylor series ends at the second term, so the shortcut is exact.
        assert theory.second_order_fpr(n, m, 2) == pytest.approx(theory.exact_fpr(n, m, 2), rel=1e-12)


def test_the_second_order_shortcut_keeps_its_digits_in_huge_filters() -> None:
    # The correction is k(k-1)/2 var/mu^2 with var/m -> e^-t - (1 + t) e^-2t; at m = 10^12 the textbook form
    # of var has lost every digit of it.
    m, k, t = 10**12, 7, 0.7
    limit = k * (k - 1) / 2 * (math.exp(-t) - (1 + t) * math.exp(-2 * t)) / (1 - math.exp(-t)) ** 2 / m
    classic, second = theory.classic_fpr(m / 10, m, k), theory.second_order_fpr(m / 10, m, k)
    assert second / classic - 1 == pytest.approx(limit, abs=3e-16)


def test_a_simulated_filter_has_the_exact_rate(mean_margin: Callable[[int, float], float]) -> None:
    trials, (n, m, k) = 20_000, (100, 1024, 7)
    random = np.random.default_rng(20261121)
    occupied = np.empty(trials)
    for start in range(0, trials, 2000):
        ones = np.zeros((2000, m), dtype=bool)
        ones[np.arange(2000)[:, None], random.integers(m, size=(2000, n * k))] = True
        occupied[start : start + 2000] = ones.sum(axis=1)
    # The rate of each filter, (X/m)^k, averaged; its second moment is the exact law again, with 2k probes.
    law = theory.occupancy_law(n * k, m)
    second_moment = math.fsum(p * (i / m) ** (2 * k) for i, p in enumerate(law))
    exact = theory.exact_fpr(n, m, k)
    margin = mean_margin(trials, second_moment - exact**2)
    assert abs(float(np.mean((occupied / m) ** k)) - exact) < margin


def test_the_and_of_two_simulated_filters_has_its_rate(mean_margin: Callable[[int, float], float]) -> None:
    trials, (a, b, both), m, k = 4000, (60, 90, 30), 1000, 4
    random = np.random.default_rng(20261122)
    rows = np.arange(trials)[:, None]
    filters = np.zeros((2, trials, m), dtype=bool)
    for index, own in ((0, a - both), (1, b - both)):
        filters[index][rows, random.integers(m, size=(trials, own * k))] = True
    filters[:, rows, random.integers(m, size=(trials, both * k))] = True
    set_in_both = (filters[0] & filters[1]).mean(axis=1)
    law = theory.intersection_fpr(a, b, both, m, k)
    # The law takes the share at its mean; the power k adds at most k(k-1)/2 var/mean^2 with var <= mean/m, by
    # the negative association of the cells, and a term of the next order, here below the square of the first.
    share = law ** (1 / k)
    curvature = k * (k - 1) / 2 / (m * share)
    # Values of a share to the power k, so the variance is at most about k^2 var/mean^2 of the squared mean.
    margin = mean_margin(trials, 2 * law**2 * k * k / (m * share))
    rate = float(np.mean(set_in_both**k))
    assert law - margin < rate < law * (1 + curvature + curvature**2) + margin


@exactly
@given(
    items=st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500)),
    num_bits=st.integers(1, 10_000),
    num_hashes=st.integers(1, 12),
)
def test_the_intersection_is_between_a_new_filter_and_its_operands(
    items: tuple[int, int, int], num_bits: int, num_hashes: int
) -> None:
    own_a, own_b, both = items
    rate = theory.intersection_fpr(own_a + both, own_b + both, both, num_bits, num_hashes)
    fresh = theory.classic_fpr(both, num_bits, num_hashes)
    operands = [theory.classic_fpr(own + both, num_bits, num_hashes) for own in (own_a, own_b)]
    assert fresh * (1 - 1e-12) <= rate <= min(operands) * (1 + 1e-12)
