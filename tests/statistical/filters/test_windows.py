"""Windows keep their promise: the last keys are found, and the rate stays at the target.

Bounds are three standard deviations of the pooled measurement (``support.pool``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import SCALE, SIGMAS, Keys, binomial_sd, chance, half_digit, pool, scatter_of_mean, student

import fullbloom
from fullbloom import theory

WINDOWS: dict[str, Any] = {
    "aging": fullbloom.AgingBloomFilter,
    "aging without refreshing": lambda *a, **k: fullbloom.AgingBloomFilter(*a, refresh=False, **k),
    "rolling": fullbloom.RollingBloomFilter,
    "rolling of 2": lambda *a, **k: fullbloom.RollingBloomFilter(*a, generations=2, **k),
    "rolling of 8": lambda *a, **k: fullbloom.RollingBloomFilter(*a, generations=8, **k),
}
# capacity -> (filters, probes of each)
SIZES = {100: (40, 20_000), 1000: (20, 40_000), 10_000: (8, 100_000), 100_000: (4, 200_000)}


@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("capacity", SIZES)
@pytest.mark.parametrize("name", WINDOWS)
def test_full_windows_stay_below_the_rate_and_deny_no_recent_key(
    name: str, capacity: int, fpr: float
) -> None:
    filters, probes = SIZES[capacity]
    probes *= SCALE
    rates, stated = [], []
    for seed in range(filters):
        window = WINDOWS[name](capacity, fpr, seed=seed)
        keys = Keys("random", seed)
        # Just before the planes turn every generation is full: the worst moment.
        generations = len(window.generation_counts())
        share = window.info()["keys_per_generation"]
        stream = keys.take(share * generations * 3)
        new = window.add_many(stream)
        # A new key is taken for known at the rate of a full window at most.
        assert float(new.mean()) >= 1 - fpr - chance(fpr * len(new)) / len(new)
        # Without refreshing, a key that was falsely known is not written, and not promised.
        promised = slice(None) if name != "aging without refreshing" else new[-capacity:]
        assert window.contains_many(stream[-capacity:][promised]).all()
        rates.append(float(window.contains_many(keys.take(probes)).mean()))
        stated.append(window.fpr())
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd, mean / fpr
    model = math.fsum(stated) / filters
    mean, sd = pool(rates, model, probes)
    assert abs(mean - model) <= SIGMAS * sd, (mean, model)


@pytest.mark.parametrize("alphabet", [130, 400, 5000])
def test_the_last_distinct_keys_are_never_denied(alphabet: int) -> None:
    window = fullbloom.AgingBloomFilter(100, 0.01)
    rng = np.random.default_rng(alphabet)
    recent: dict[int, None] = {}
    for key in rng.integers(0, alphabet, 20_000).tolist():
        window.add(key)
        recent.pop(key, None)
        recent[key] = None
        if len(recent) > 100:
            del recent[next(iter(recent))]
        if key % 16 == 0:
            assert all(window.contains_many(list(recent)))


@pytest.mark.parametrize(
    ("make", "generations"), [(fullbloom.AgingBloomFilter, 2), (fullbloom.RollingBloomFilter, 3)]
)
def test_windows_of_time_remember_and_forget_by_the_clock(make: Any, generations: int) -> None:
    window = make(5000, 1e-6, window=60.0)
    added: list[float] = []
    now = 1e9
    rng = np.random.default_rng(1)
    for gap in rng.exponential(0.5, 2000):
        now += gap
        window.advance(now)
        window.add(len(added))
        added.append(now)
        young = [i for i, then in enumerate(added) if now - then <= 60.0]
        assert window.contains_many(young) == [True] * len(young)
    limit = 60.0 * generations / (generations - 1)
    old = [i for i, then in enumerate(added) if now - then > limit]
    assert not any(window.contains_many(old))
    with pytest.raises(fullbloom.ParameterError):
        window.advance(now - 1.0)
    with pytest.raises(fullbloom.ParameterError):
        make(10).advance(1.0)
    with pytest.warns(fullbloom.CapacityWarning):
        window.update(range(10**6, 10**6 + 6000))


@pytest.mark.parametrize("cell_bits", [1, 2, 4, 8])
@pytest.mark.parametrize(("capacity", "fpr"), [(300, 0.1), (1000, 0.01), (5000, 0.01), (2000, 0.001)])
def test_stable_filters_settle_at_rate_and_fill(cell_bits: int, capacity: int, fpr: float) -> None:
    rates, zeros, probes = [], [], 10_000 * SCALE
    for seed in range(6):
        stable = fullbloom.StableBloomFilter(capacity, fpr, cell_bits=cell_bits, seed=seed)
        keys = Keys("random", seed)
        stable.update(keys.take(40 * capacity))
        result = []
        for _ in range(5):
            stable.update(keys.take(5 * capacity))
            zeros.append(1.0 - stable.fill)
            result.append(float(stable.contains_many(keys.take(probes)).mean()))
        rates.append(sum(result) / 5)
    shape = (stable.num_cells, stable.num_hashes, stable.decrements, 2**cell_bits - 1)
    mean, off = scatter_of_mean(np.reshape(zeros, (-1, 5)).mean(axis=1))
    assert abs(mean - theory.stable_zeros(*shape)) <= off
    mean, sd = pool(rates, fpr, 5 * probes)
    law = theory.stable_limit_fpr(*shape)
    assert law <= fpr
    assert abs(mean - law) <= student(SIGMAS, len(rates) - 1) * sd, mean / law


@pytest.mark.parametrize("capacity", [1000, 10_000, 100_000])
def test_half_of_the_keys_are_remembered_beyond_the_capacity(capacity: int) -> None:
    stable = fullbloom.StableBloomFilter(capacity, 0.01)
    keys = Keys("random", 5)
    stable.update(keys.take(20 * capacity))
    stream = keys.take(2 * capacity)
    stable.update(stream)
    ages = np.arange(2 * capacity)[::-1]
    found = stable.contains_many(stream)
    for age in (0.1, 0.5, 1.0, 1.5):
        near = abs(ages - age * capacity) < capacity // 20
        law = float(np.mean([stable.recall(int(each)) for each in ages[near][::10]]))
        assert abs(float(found[near].mean()) - law) <= SIGMAS * binomial_sd(law, int(near.sum()))
    assert stable.recall(capacity) >= 0.5
    assert stable.recall(0) == 1.0


@pytest.mark.parametrize(("hashes", "decrements", "top", "zeros"), [(3, 36, 3, "0.786"), (2, 18, 1, "0.900")])
def test_a_plain_simulation_gives_the_published_figures(
    hashes: int, decrements: int, top: int, zeros: str
) -> None:
    cells, steps = 1000, 60_000
    rng = np.random.default_rng(2)
    state = np.zeros(cells, np.int64)
    starts, places = rng.integers(0, cells, steps), rng.integers(0, cells, (steps, hashes))
    empty, rates = [], []
    offsets = np.arange(decrements)
    for step in range(steps):
        run = (starts[step] + offsets) % cells
        state[run] = np.maximum(state[run] - 1, 0)
        state[places[step]] = top
        if step > 5000 and step % 20 == 0:
            share = float((state > 0).mean())
            empty.append(1 - share)
            rates.append(share**hashes)
    # A cell is written or cleared about once in 40 steps: parts of 1100 steps know nothing of each other.
    mean, off = scatter_of_mean(np.reshape(empty[:2700], (50, -1)).mean(axis=1))
    law = theory.stable_zeros(cells, hashes, decrements, top)
    assert abs(law - float(zeros)) <= half_digit(zeros)
    assert abs(mean - law) <= off
    mean, off = scatter_of_mean(np.reshape(rates[:2700], (50, -1)).mean(axis=1))
    assert abs(mean - theory.stable_limit_fpr(cells, hashes, decrements, top)) <= off
