"""Counting filters keep the rate of their law and the published figures, in any layout and width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import SCALE, SIGMAS, Keys, chance, half_digit, pool, scatter_of_mean

import fullbloom
from fullbloom import theory

# capacity -> (filters, probes of each)
SIZES = {100: (100, 10_000), 1000: (40, 25_000), 10_000: (16, 60_000), 100_000: (8, 120_000)}
KINDS = [("classic", 2), ("classic", 3), ("classic", 4), ("classic", 8), ("blocked", 2), ("blocked", 4)]
KINDS += [("blocked", 8), ("blocked", 16)]


def measured(
    capacity: int, filters: int, probes: int, least: int, **options: Any
) -> tuple[list[float], float]:
    """Rates of several filters at capacity, each with its own seed and keys; and the mean stated."""
    rates, stated = [], []
    for seed in range(filters):
        counting = fullbloom.CountingBloomFilter(capacity, seed=seed, **options)
        keys = Keys("random", seed)
        counting.update(keys.take(capacity))
        rates.append(float(counting.contains_many_at_least(keys.take(probes), least).mean()))
        stated.append(counting.fpr_at_least(least))
    return rates, math.fsum(stated) / filters


@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("capacity", SIZES)
@pytest.mark.parametrize(("layout", "counter_bits"), KINDS)
def test_the_rate_at_capacity_is_at_most_the_target(
    layout: str, counter_bits: int, capacity: int, fpr: float
) -> None:
    filters, probes = SIZES[capacity]
    probes *= SCALE
    rates, stated = measured(capacity, filters, probes, 1, fpr=fpr, layout=layout, counter_bits=counter_bits)
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd, mean / fpr
    if capacity >= 10_000:
        assert mean >= stated - SIGMAS * sd, mean / stated


@pytest.mark.parametrize("threshold", [2, 3, 5])
@pytest.mark.parametrize("capacity", [10, 100, 1000, 10_000])
@pytest.mark.parametrize("layout", ["classic", "blocked"])
def test_the_rate_at_a_threshold_is_at_most_the_target(layout: str, capacity: int, threshold: int) -> None:
    filters, probes, fpr = max(6, 20_000 // capacity), 20_000 * SCALE, 0.01
    options: dict[str, Any] = {"fpr": fpr, "layout": layout, "threshold": threshold}
    rates, stated = measured(capacity, min(filters, 400), probes, threshold, **options)
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd, mean / fpr
    if capacity >= 10_000:
        assert mean >= stated - SIGMAS * sd, mean / stated


@pytest.mark.parametrize("layout", ["classic", "blocked"])
def test_the_stated_rates_are_the_measured_ones(layout: str) -> None:
    off: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for seed in range(12):
        counting = fullbloom.CountingBloomFilter(20_000, 0.05, layout=layout, seed=seed)
        keys = Keys("random", seed)
        counting.update(keys.take(20_000))
        absent = keys.take(100_000 * SCALE)
        for least, errors in off.items():
            rate = float(counting.contains_many_at_least(absent, least).mean())
            errors.append(rate - counting.fpr_at_least(least))
    for least, errors in off.items():
        mean, bound = scatter_of_mean(errors)
        # At 1.5e-6 most filters find nothing.
        rare = chance(counting.fpr_at_least(least) * len(absent) * len(errors)) / len(absent) / len(errors)
        assert abs(mean) <= max(bound, rare), (least, mean)


def test_the_count_threshold_law_matches_a_simulation() -> None:
    cells, items, hashes = 10_000, 1000, 7
    random = np.random.default_rng(5)
    for threshold in (1, 2, 3):
        shares = []
        for _ in range(200 * SCALE):
            loads = np.bincount(random.integers(0, cells, items * hashes), minlength=cells)
            shares.append(float((loads >= threshold).mean()))
        mean, off = scatter_of_mean(shares)
        assert abs(mean - theory.threshold_fpr(items, cells, hashes, threshold) ** (1 / hashes)) <= off


@pytest.mark.parametrize(
    ("threshold", "hashes", "rate"),
    [(1, 7, "8.2e-3"), (2, 9, "1.63e-6"), (3, 12, "9.4e-12"), (4, 14, "1.7e-18"), (5, 16, "9.7e-27")],
)
def test_the_best_k_of_each_threshold_is_the_published_one(threshold: int, hashes: int, rate: str) -> None:
    assert theory.best_threshold_hashes(1000, 10_000, threshold) == hashes
    assert abs(theory.threshold_fpr(1000, 10_000, hashes, threshold) - float(rate)) <= half_digit(rate)


def test_overflow_is_as_rare_as_published() -> None:
    assert abs(theory.counter_overflow_bound(1, 4) - 1.37e-15) <= half_digit("1.37e-15")
    # A Poisson number of 16 or of 4 that is 0.693 in the mean, by its own sum.
    for bits in (4, 2):
        most = 1 << bits
        terms = [math.log(2) ** i / math.factorial(i) / 2 for i in range(most, most + 20)]
        assert theory.counter_overflow(math.log(2), bits) == pytest.approx(math.fsum(terms), rel=1e-9)


def test_space_at_one_percent_is_four_times_that_of_bits() -> None:
    bits = fullbloom.BloomFilter.nbytes_for(1_000_000, 0.01)
    classic = fullbloom.BloomFilter(1_000_000, 0.01, layout="classic").nbytes
    counting = fullbloom.CountingBloomFilter(1_000_000, 0.01, layout="classic").nbytes
    # But for lines of 64 bytes begun.
    assert abs(counting - 4 * classic) <= 5 * 64
    assert fullbloom.CountingBloomFilter.nbytes_for(1_000_000, 0.01) <= 4.8 * bits


@pytest.mark.parametrize(("layout", "counter_bits"), KINDS)
def test_a_stream_of_adds_and_removals_leaves_no_false_negative(layout: str, counter_bits: int) -> None:
    counting = fullbloom.CountingBloomFilter(4000, 0.01, layout=layout, counter_bits=counter_bits)
    keys = Keys("random", 3)
    window: list[Any] = []
    for _ in range(60):
        window.append(keys.take(200))
        counting.update(window[-1])
        if len(window) > 10:
            assert counting.discard_many(window.pop(0)).all()
        assert all(counting.contains_many(part).all() for part in window)
    assert counting.num_added == 2000
    for part in window:
        counting.discard_many(part)
    # Narrow counters get stuck now and then: after each of 60 turns, of 2200 keys, as many are full as
    # Poisson numbers would be, and not all of them are others.
    cells, most = counting.num_counters, 2**counter_bits - 1
    load = 2200 * counting.num_hashes / cells
    tail = [math.exp(i * math.log(load) - load - math.lgamma(i + 1)) for i in range(most, most + 20)]
    stuck = 60 * cells * math.fsum(tail)
    assert counting.fill * cells <= stuck + chance(stuck)
    assert counting.num_added == 0


def test_keys_never_added_are_refused_and_nothing_changes() -> None:
    counting = fullbloom.CountingBloomFilter(1000)
    counting.update(range(1000))
    before = counting.copy()
    absent = [key for key in range(10_000, 20_000) if key not in counting]
    for key in absent[:100]:
        with pytest.raises(KeyError):
            counting.remove(key)
    assert counting.discard_many(absent) == [False] * len(absent)
    assert counting == before
    assert counting.num_added == 1000


def test_a_saturated_counter_reports_its_maximum_and_stays() -> None:
    counting = fullbloom.CountingBloomFilter(100, counter_bits=4)
    for _ in range(40):
        counting.add("often")
    assert counting.count("often") == 15
    assert counting.contains("often", at_least=40)
    assert counting.num_added == 40
    for _ in range(40):
        counting.remove("often")
    assert counting.count("often") == 15


def test_repeated_keys_cause_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    counting = fullbloom.CountingBloomFilter(100)
    for _ in range(50):
        counting.update(range(80))
    assert counting.num_added == 4000
    assert not recwarn.list
