"""Spectral filters never count too low, and err as rarely as published."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import SIGMAS, pool, rates_at, scatter_of_mean

import fullbloom
from fullbloom import theory

MODES = ("minimum-selection", "minimal-increase", "recurring-minimum")


def events(seed: int, keys: int = 1000, count: int = 15_000, skew: float = 0.5) -> Any:
    """A Zipf stream over ``keys`` keys, each of which comes once at least."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, keys + 1) ** -skew
    drawn = random.choice(keys, count - keys, p=weights / weights.sum())
    stream = np.concatenate([np.arange(keys), drawn])
    random.shuffle(stream)
    return stream + seed * 1_000_000


def wrong_share(mode: str, fpr: float, seed: int) -> float:
    """The share of keys whose count is not exact; none may be below the truth."""
    spectral = fullbloom.SpectralBloomFilter(1000, fpr, mode=mode, seed=seed)
    stream = events(seed)
    spectral.update(stream)
    truth = Counter(stream.tolist())
    keys = np.array(list(truth))
    counts, exact = np.array(spectral.count_many(keys)), np.array([truth[key] for key in keys.tolist()])
    assert (counts >= exact.astype(np.uint64)).all()
    assert spectral.num_added == len(stream)
    return float((counts != exact.astype(np.uint64)).mean())


@pytest.mark.parametrize("error", [0.1009, 0.0323, 0.0094])
def test_the_share_of_wrong_counts_is_the_published_one(error: float) -> None:
    """By selection of the minimum the Bloom error; by the other modes less, beyond chance.

    Published for the errors above, at k = 5: 11, 3.2 and 1 %; 5.8, 1.4 and 0.5 %; 5.9, 1.5 and 0.4 %.
    """
    shares = {mode: np.array([wrong_share(mode, error, seed) for seed in range(24)]) for mode in MODES}
    selection = shares[MODES[0]]
    shape = fullbloom.SpectralBloomFilter(1000, error)
    # A count is wrong when 999 other keys stand in all of its counters.
    law = theory.second_order_fpr(999, shape.num_counters, shape.num_hashes)
    mean, off = scatter_of_mean(selection)
    assert abs(mean - law) <= off, (mean, law)
    for mode in MODES[1:]:
        gained, off = scatter_of_mean(selection - shares[mode])
        assert gained > off, (mode, gained)


@pytest.mark.parametrize("skew", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("mode", MODES)
def test_no_count_is_below_the_truth_even_far_past_capacity(mode: str, skew: float) -> None:
    spectral = fullbloom.SpectralBloomFilter(150, 0.1, mode=mode)
    stream = events(3, skew=skew)
    with pytest.warns(fullbloom.CapacityWarning):
        spectral.update(stream)
    for key, times in Counter(stream.tolist()).items():
        assert spectral.count(key) >= times
    assert spectral.num_apart <= 75


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("capacity", "filters"), [(20, 300), (1000, 40), (20_000, 8)])
@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
def test_the_rate_at_capacity_is_at_most_the_target(
    mode: str, capacity: int, filters: int, fpr: float
) -> None:
    probes, make = 20_000, partial(fullbloom.SpectralBloomFilter, capacity, fpr, mode=mode)
    rates, _ = rates_at(lambda seed: make(seed=seed), capacity, filters, probes)
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd, mean / fpr


@pytest.mark.parametrize("mode", MODES)
def test_a_full_counter_refuses_and_the_filter_still_answers(mode: str) -> None:
    spectral = fullbloom.SpectralBloomFilter(100, mode=mode, counter_bits=8)
    spectral.update(["often"] * 255)
    spectral.add("once")
    before = spectral.copy()
    with pytest.raises(fullbloom.FilterFull, match="counter_bits"):
        spectral.add("often")
    assert spectral == before
    assert (spectral.count("often"), spectral.count("once"), spectral.num_added) == (255, 1, 256)
    again = fullbloom.loads(spectral.to_bytes())
    assert again == spectral
    assert again.count_many(["often", "once", "never"]) == [255, 1, 0]
