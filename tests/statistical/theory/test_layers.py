"""Guarantee: a depth is too large at the rate of its law, which is above the power of one layer's rate."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support import SCALE, Keys, pooled, sigmas_of

import fullbloom
from fullbloom import theory

CASES, RUNS, PROBES = 5, 10 * SCALE, 60_000


def overcounts(capacity: int, fpr: float, layers: int, seed: int) -> tuple[list[float], list[float]]:
    """Return the shares of absent keys with a depth of 1, 2, ... or more if every key was added ``layers``
    times, and the law."""
    made = fullbloom.LayeredBloomFilter(capacity, fpr, layers=layers, seed=seed)
    keys = Keys("random", seed)
    members = keys.take(capacity)
    for _ in range(layers):
        made.update(members)
    depths = np.asarray(made.depth_many(keys.take(PROBES)))
    law = theory.layered_overcount(
        capacity, made.num_bits // layers, made.num_hashes, extra=list(range(1, layers + 1))
    )
    return [float((depths >= depth).mean()) for depth in range(1, layers + 1)], law


@pytest.mark.parametrize("case", range(CASES))
def test_overcounts_of_layers_follow_the_law(case: int) -> None:
    random = Random(f"layers {case}")
    capacity, fpr, layers = random.randint(100, 5000), random.uniform(0.05, 0.4), random.randint(2, 5)
    runs = [overcounts(capacity, fpr, layers, seed) for seed in range(RUNS)]
    for depth, law in enumerate(runs[0][1]):
        found = [measured[depth] for measured, _ in runs]
        # Use the measured scatter of filters, but at least that of the probes alone.
        mean, sd = pooled(found, law, PROBES)
        assert abs(mean - law) <= sigmas_of(CASES * layers) * sd, (capacity, fpr, layers, depth + 1)
        if depth:
            assert law > runs[0][1][0] ** (depth + 1)


def test_two_layers_are_both_wrong_more_often_than_at_the_square() -> None:
    made = fullbloom.LayeredBloomFilter(20_000, 0.001, layers=3)
    twice = theory.layered_overcount(20_000, made.num_bits // 3, made.num_hashes, extra=2)
    assert 2.1e-6 < twice < 2.4e-6
    assert theory.layered_overcount(20_000, made.num_bits // 3, made.num_hashes) <= 1e-3
