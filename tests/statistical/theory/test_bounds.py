"""Guarantee: no value crosses its bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullbloom import theory

if TYPE_CHECKING:
    from collections.abc import Callable

rates = st.floats(1e-12, 0.999)


@settings(derandomize=True, deadline=None)
@given(items=st.integers(0, 10**9), num_bits=st.integers(2, 10**10), num_hashes=st.integers(1, 30))
def test_goel_gupta_is_above_the_classic_rate_at_every_size(
    items: int, num_bits: int, num_hashes: int
) -> None:
    bound = theory.goel_gupta_fpr(items, num_bits, num_hashes)
    assert theory.classic_fpr(items, num_bits, num_hashes) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("deviation", [0.01, 0.02, 0.03])
def test_simulated_fills_stay_inside_the_azuma_bound(
    deviation: float, mean_margin: Callable[[int, float], float]
) -> None:
    trials, n, m, k = 4000, 100, 1000, 7
    random = np.random.default_rng(20261123)
    ones = np.zeros((trials, m), dtype=bool)
    ones[np.arange(trials)[:, None], random.integers(m, size=(trials, n * k))] = True
    off = np.abs(ones.mean(axis=1) - theory.fill(n, m, k)) >= deviation
    bound = theory.fill_tail(deviation, n, m, k)
    assert bound < 1.0 or deviation < 0.02
    assert float(off.mean()) <= bound + mean_margin(trials, bound * (1 - bound))


@settings(derandomize=True, deadline=None)
@given(fpr=rates)
def test_a_bloom_filter_needs_44_percent_more_than_the_least(fpr: float) -> None:
    assert theory.bits_per_key(fpr) / theory.min_bits_per_key(fpr) == pytest.approx(1.442695, rel=1e-6)


@pytest.mark.long
@settings(derandomize=True, deadline=None)
@given(fpr=st.floats(1e-9, 0.5), num_hashes=st.integers(1, 30))
def test_no_layout_beats_the_information_bound(fpr: float, num_hashes: int) -> None:
    least = theory.min_bits_per_key(fpr)
    assert theory.bits_per_key(fpr, num_hashes) > least
    assert theory.split_bits_per_key(fpr) > least
    assert theory.blocked_bits_per_key(fpr, 4 + 4 * (num_hashes % 3)) > least
