"""Guarantee: a scalable filter never exceeds its rate, however many stages it grows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullbloom import theory
from fullbloom.errors import ParameterError

always = settings(derandomize=True, deadline=None)
ratios = st.floats(0.05, 0.95)


def test_the_first_stage_of_the_published_examples() -> None:
    assert theory.stage_fpr(0.001, 0.9) == pytest.approx(1e-4, rel=1e-12)
    assert theory.stage_num_hashes(0.001, 0.9) == 14
    assert theory.stage_num_hashes(0.001, 0.5) == 11


def test_halving_the_rate_costs_one_hash_per_stage() -> None:
    assert theory.stage_num_hashes(0.001, 0.5, [0, 1, 2, 10]) == [11, 12, 13, 21]
    # p (1 - r) r^i = 2^-(i + 2) is a power of two: no hash may come from the rounding of a logarithm.
    assert theory.stage_num_hashes(0.5, 0.5, list(range(40))) == list(range(2, 42))
    assert theory.stage_num_hashes(0.999, 0.001) == 1


@always
@given(fpr=st.floats(1e-9, 0.5), tightening=ratios, stages=st.integers(0, 60))
def test_the_compound_rate_stays_below_the_target(fpr: float, tightening: float, stages: int) -> None:
    rates = [theory.stage_fpr(fpr, tightening, i) for i in range(stages)]
    compound = theory.scalable_fpr(fpr, tightening, stages)
    assert compound == pytest.approx(1 - math.prod(1 - rate for rate in rates), rel=1e-9, abs=1e-15)
    assert compound <= math.fsum(rates) <= fpr * (1 + 1e-12)


@always
@given(fpr=st.floats(1e-6, 0.01), tightening=ratios)
def test_the_compound_rate_is_close_to_the_target(fpr: float, tightening: float) -> None:
    # In the limit the sum is p itself, and the compound rate is below it by at most p^2/2.
    assert theory.scalable_fpr(fpr, tightening, 400) >= fpr - fpr * fpr


def test_rates_below_the_smallest_float_are_zero() -> None:
    assert theory.stage_fpr(0.01, 0.1, 1000) == 0.0
    assert 0.01 - 0.01**2 / 2 <= theory.scalable_fpr(0.01, 0.5, 10_000) < 0.01
    assert theory.stage_num_hashes(0.01, 0.5, 5000) == 5008
    assert theory.compound_fpr([0.5, 0.0]) == 0.5
    assert theory.compound_fpr([0.5, 1.0]) == 1.0
    assert theory.compound_fpr([]) == 0.0


def test_unbounded_growth_is_refused() -> None:
    with pytest.raises(ParameterError, match="stages must be at most 10000, got 10001"):
        theory.scalable_fpr(0.01, 0.5, 10_001)
    with pytest.raises(ParameterError, match="below 2\\^1000"):
        theory.stage_capacity(10, 4, 500)
    with pytest.raises(ParameterError, match="first_capacity must reach"):
        theory.stages_for(10**9, first_capacity=1, growth=1)
