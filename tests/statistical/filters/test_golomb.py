"""Golomb-coded sets: bits per key by their law at the published rates, and a rate that is exact."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from support import SIGMAS, Keys, binomial_sd

import fullbloom
from fullbloom import theory

#: Rates, and the bits per key that are published for their Rice codes.
FIGURES = ((2.0**-7, 8.534), (0.01, 8.108), (2.0**-10, 11.541), (2.0**-20, 21.541), (1 / 784_931, 21.052))


@pytest.mark.parametrize(("fpr", "bits"), FIGURES)
@pytest.mark.parametrize("size", [1000, 10_000, 100_000])
def test_codes_take_the_published_bits(fpr: float, bits: float, size: int) -> None:
    assert round(theory.golomb_bits_per_key(fpr, theory.rice_bits(fpr)), 3) == bits
    instance = fullbloom.GolombSet.build(Keys("random", 1).take(size), fpr)
    # Only zeros vary, geometrically for each value; keys that meet leave wider gaps, and the gap behind the
    # last value of each block of 128 is not coded.
    zeros = bits - 1 - instance.rice_bits
    off = SIGMAS * (zeros * (zeros + 1) / size) ** 0.5 + zeros * fpr + 1 / (128 * fpr * 2**instance.rice_bits)
    assert abs(instance.code_bits / instance.num_added - bits) < off
    assert instance.code_bits / instance.num_added > theory.succinct_bits_per_key(fpr) - off


def test_no_other_parameter_takes_fewer_bits_at_any_rate() -> None:
    random = Random(20)
    for fpr in [random.uniform(0.1, 0.95) for _ in range(12)]:
        keys = Keys("random", random.randrange(1 << 20)).take(20_000)
        instance = fullbloom.GolombSet.build(keys, fpr)
        others = {instance.rice_bits + 1, max(1, instance.rice_bits - 1)} - {instance.rice_bits}
        bits = {p: fullbloom.GolombSet.build(keys, fpr, rice_bits=p).code_bits for p in others}
        # Where two parameters take nearly as many bits, chance decides.
        assert instance.code_bits < min(bits.values()) * 1.005, fpr
        share = -math.expm1(-fpr)
        expected = share / fpr * theory.golomb_bits_per_key(share, instance.rice_bits)
        assert abs(instance.code_bits / len(keys) / expected - 1.0) < SIGMAS / len(keys) ** 0.5 + 0.01, fpr


@pytest.mark.parametrize("fpr", [0.3, 0.01, 0.001])
def test_the_rate_is_the_share_of_values(fpr: float) -> None:
    source = Keys("random", 5)
    instance = fullbloom.GolombSet.build(source.take(50_000), fpr)
    assert instance.fpr() == instance.num_added / instance.universe <= fpr
    trials = 1_000_000
    found = float(np.mean(instance.contains_many(source.take(trials))))
    assert abs(found - instance.fpr()) < SIGMAS * binomial_sd(instance.fpr(), trials)


@pytest.mark.parametrize("fpr", [0.5, 0.05, 0.001])
def test_keys_that_share_a_value_count_once(fpr: float) -> None:
    size = 50_000
    instance = fullbloom.GolombSet.build(Keys("random", 9).take(size), fpr)
    # Each value is hit with the chance of at least one of n; hits of two values are negatively correlated.
    expected = instance.universe * theory.hash_collision_fpr(size, np.log2(instance.universe))
    assert abs(instance.num_added - expected) < SIGMAS * (size * fpr) ** 0.5


@pytest.mark.parametrize(
    ("a", "b", "both"), [(20_000, 20_000, 5000), (30_000, 100, 0), (500, 40_000, 500), (0, 9, 0)]
)
@pytest.mark.parametrize("fpr", [0.1, 0.001, 1e-9])
def test_the_intersection_equals_that_of_the_values(a: int, b: int, both: int, fpr: float) -> None:
    source = Keys("random", 7)
    common, one, other = source.take(both), source.take(a - both), source.take(b - both)
    ours, theirs = (
        fullbloom.GolombSet.build(np.concatenate([common, rest]), fpr, capacity=50_000)
        for rest in (one, other)
    )
    met = ours & theirs
    assert list(met.values()) == sorted(set(ours.values()) & set(theirs.values()))
    assert met.to_bytes() == (theirs & ours).to_bytes() == ours.intersection(theirs, ours).to_bytes()
    assert met.num_added == ours.intersection_count(theirs) == theirs.intersection_count(ours)
    assert ours.isdisjoint(theirs) == (met.num_added == 0)
    assert met.contains_many(common).all()
    # Beside the common keys, what chance brings together.
    chance = (a - both) * b / ours.universe
    assert both - both * fpr * 2 <= met.num_added <= both + chance + 4.5 * (chance + 1) ** 0.5 + 1
    kept = ours.copy()
    kept &= theirs
    assert kept == met
    assert (met | ours) == ours
    with pytest.raises(fullbloom.IncompatibleFilters, match="differ in most"):
        ours & fullbloom.GolombSet.build(common, fpr)


def test_values_are_spread_evenly() -> None:
    size = 20_000
    instance = fullbloom.GolombSet.build(Keys("random", 2).take(size), 0.01)
    values = np.array(list(instance.values()), dtype=np.float64) / instance.universe
    # Kolmogorov and Smirnov: exceeded by one seed in 1,000.
    steps = np.arange(1, len(values) + 1) / len(values)
    assert np.abs(steps - values).max() * len(values) ** 0.5 < 1.95
