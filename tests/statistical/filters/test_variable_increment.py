"""Variable-increment filters keep the rate of their law, the published table, and exact removal."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from support import SCALE, SIGMAS, Keys, half_digit, pool, rates_at

import fullbloom
from fullbloom import theory

# capacity -> (filters, probes of each)
SIZES = {10: (300, 4000), 100: (100, 10_000), 1000: (40, 25_000), 10_000: (16, 60_000), 100_000: (8, 120_000)}


@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("capacity", SIZES)
@pytest.mark.parametrize("increments", [2, 4, 8])
def test_the_rate_at_capacity_is_at_most_the_target(increments: int, capacity: int, fpr: float) -> None:
    filters, probes = SIZES[capacity]
    probes *= SCALE
    make = partial(fullbloom.VariableIncrementFilter, capacity, fpr, increments=increments)
    rates, stated = rates_at(lambda seed: make(seed=seed), capacity, filters, probes)
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd, mean / fpr
    if capacity >= 10_000:
        assert mean >= stated - SIGMAS * sd, mean / fpr


@pytest.mark.parametrize(
    ("cells", "hashes", "increments", "rate"),
    [
        (10_000, 4, 1, "0.011815"),
        (10_000, 4, 2, "1.274e-3"),
        (10_000, 4, 4, "2.088e-4"),
        (10_000, 4, 8, "5.54e-5"),
        (5000, 3, 1, "0.091869"),
        (5000, 3, 4, "6.73e-3"),
        (5000, 3, 8, "3.17e-3"),
    ],
)
def test_the_law_is_the_published_one(cells: int, hashes: int, increments: int, rate: str) -> None:
    law = theory.variable_increment_fpr(1000, cells, hashes, increments)
    assert law == pytest.approx(float(rate), abs=half_digit(rate))


@pytest.mark.parametrize(("increments", "published"), [(1, "0.091869"), (4, "6.9e-3"), (8, "2.9e-3")])
def test_the_law_matches_a_simulation(increments: int, published: str) -> None:
    """m = 5000, n = 1000, k = 3, the figures of the table; increments drawn by NumPy."""
    random, rates, probes = np.random.default_rng(9), [], 300_000 * SCALE
    for _ in range(12):
        cells = random.integers(0, 5000, 3000)
        amounts = random.integers(increments, 2 * increments, 3000)
        sums = np.bincount(cells, weights=amounts, minlength=5000).astype(np.int64)
        asked, held = (
            random.integers(increments, 2 * increments, (probes, 3)),
            sums[random.integers(0, 5000, (probes, 3))],
        )
        rates.append(float(((held == asked) | (held >= asked + increments)).all(axis=1).mean()))
    law = theory.variable_increment_fpr(1000, 5000, 3, increments)
    mean, sd = pool(rates, law, probes)
    assert abs(mean - law) <= SIGMAS * sd
    # The published figures are simulated too: as far off as ours may be, and by half of their last digit.
    assert abs(mean - float(published)) <= 2 * SIGMAS * sd + half_digit(published)


@pytest.mark.parametrize("increments", [2, 4, 8])
def test_a_stream_of_adds_and_removals_leaves_an_empty_filter(increments: int) -> None:
    variable = fullbloom.VariableIncrementFilter(2500, 0.01, increments=increments)
    keys = Keys("random", 3)
    window: list[Any] = []
    for _ in range(60):
        window.append(keys.take(200))
        variable.update(window[-1])
        if len(window) > 10:
            assert variable.discard_many(window.pop(0)).all()
        assert all(variable.contains_many(part).all() for part in window)
    for part in window:
        variable.discard_many(part)
    assert variable.fill == 0.0
    assert variable.num_added == 0
    with pytest.raises(KeyError):
        variable.remove("never there")


@pytest.mark.parametrize("fpr", [0.01, 0.001])
def test_it_is_smaller_than_a_counting_filter(fpr: float) -> None:
    counting = fullbloom.CountingBloomFilter(100_000, fpr, layout="classic").nbytes
    assert fullbloom.VariableIncrementFilter(100_000, fpr).nbytes <= 0.77 * counting


def test_narrow_counters_get_stuck_and_still_deny_no_key() -> None:
    variable = fullbloom.VariableIncrementFilter(1000, 0.01, increments=4, counter_bits=4)
    keys = Keys("random", 8)
    first, second = keys.take(500), keys.take(500)
    variable.update(first)
    variable.update(second)
    assert variable.discard_many(first).all()
    assert variable.contains_many(second).all()
