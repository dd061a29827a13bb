"""What a filter says of itself (count, rate) is within the deviation that it states."""

from __future__ import annotations

import math

import pytest
from support import SCALE, SIGMAS, Keys, chi_square_quantile, layouts, pooled

import fullbloom

TRIALS = 200
# One false alarm in a million for a fresh seed.
QUANTILE = 4.753


@pytest.mark.parametrize("load", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("layout", layouts())
@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
def test_approx_count(layout: str, load: float) -> None:
    capacity = 5000
    items = int(capacity * load)
    errors = []
    for seed in range(TRIALS):
        bloom = fullbloom.BloomFilter(capacity, 0.01, layout=layout, seed=seed)
        bloom.update(Keys("random", seed).take(items))
        estimate, sd = bloom.approx_count()
        assert 0 < sd < items
        errors.append((estimate - items) / sd)
    # If the stated deviation is the true one, the squares add up to chi-square; the mean is unbiased.
    squares = math.fsum(error * error for error in errors)
    assert squares <= chi_square_quantile(TRIALS, QUANTILE), squares / TRIALS
    assert squares >= chi_square_quantile(TRIALS, -QUANTILE), squares / TRIALS
    assert abs(math.fsum(errors)) <= QUANTILE * math.sqrt(TRIALS)


@pytest.mark.parametrize("layout", layouts())
def test_two_filters(layout: str) -> None:
    """Union and intersection counts: unbiased, at the stated deviation."""
    unions, overlaps = [], []
    for seed in range(TRIALS):
        left = fullbloom.BloomFilter(10_000, 0.01, layout=layout, seed=seed)
        right = left.copy()
        keys = Keys("random", seed)
        shared = keys.take(2000)
        for bloom in (left, right):
            bloom.update(shared)
            bloom.update(keys.take(3000))
        union, union_sd = left.union_count(right)
        overlap, overlap_sd = left.intersection_count(right)
        unions.append((union - 8000) / union_sd)
        overlaps.append((overlap - 2000) / overlap_sd)
        assert left.union_count(right) == right.union_count(left)
        assert left.jaccard(right) == pytest.approx(overlap / union)
    for errors in (unions, overlaps):
        squares = math.fsum(error * error for error in errors)
        assert chi_square_quantile(TRIALS, -QUANTILE) <= squares <= chi_square_quantile(TRIALS, QUANTILE)
        assert abs(math.fsum(errors)) <= QUANTILE * math.sqrt(TRIALS)


@pytest.mark.parametrize("load", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("layout", layouts())
@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
def test_present_rate(layout: str, fpr: float, load: float) -> None:
    capacity, filters, probes = 50_000, 8, 200_000 * SCALE
    measured, stated = [], []
    for seed in range(filters):
        bloom = fullbloom.BloomFilter(capacity, fpr, layout=layout, seed=seed)
        keys = Keys("random", seed)
        bloom.update(keys.take(int(capacity * load)))
        stated.append(bloom.fpr())
        measured.append(float(bloom.contains_many(keys.take(probes)).mean()))
    model = math.fsum(stated) / filters
    mean, sd = pooled(measured, model, probes)
    assert abs(mean - model) <= SIGMAS * sd, f"measured {mean:.3e}, stated {model:.3e}, sd {sd:.1e}"
    # The law reaches the target at capacity, where test_rate_at_capacity holds it.
    assert load == 1 or (model < fpr) is (load < 1)


def bloom_like(made: fullbloom.BloomFilter) -> fullbloom.BloomFilter:
    """One key in the shape of ``made``."""
    other = made.copy()
    other.clear()
    other.add("a")
    return other


@pytest.mark.parametrize("layout", layouts())
def test_ends_of_the_scale(layout: str) -> None:
    bloom = fullbloom.BloomFilter(100, 0.01, layout=layout)
    assert bloom.approx_count() == (0.0, 0.0)
    assert bloom.fpr() == 0.0
    assert bloom.jaccard(bloom.copy()) == 1.0
    assert bloom.isdisjoint(bloom.copy())
    full = fullbloom.BloomFilter.with_shape(512, 8, capacity=10**6, layout=layout)
    full.update(range(20_000))
    assert full.fill == 1.0
    assert full.fpr() == 1.0
    # What is full holds no trace of the number: nothing is claimed.
    assert full.approx_count() == full.union_count(bloom_like(full)) == (math.inf, math.inf)
    common, deviation = full.intersection_count(bloom_like(full))
    assert math.isnan(common)
    assert deviation == math.inf
    assert math.isnan(full.jaccard(bloom_like(full)))
    assert all(full.contains_many(["never", "added"]))
    repr(full)
    full.info()
    assert fullbloom.loads(full.to_bytes()) == full


@pytest.mark.parametrize("layout", layouts())
def test_certainly_disjoint(layout: str) -> None:
    left = fullbloom.BloomFilter(100_000, 0.01, layout=layout)
    right = left.copy()
    left.add("a")
    right.add("b")
    assert left.isdisjoint(right)
    right.add("a")
    assert not left.isdisjoint(right)
