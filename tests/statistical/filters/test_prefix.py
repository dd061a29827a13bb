"""The prefix filter keeps its rate at every size, and passes on the published share of its keys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import SCALE, SIGMAS, chance, half_digit

import fullbloom
from fullbloom import PrefixFilter, theory

PROBES = 400_000 * SCALE


def keys(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.int64)


@pytest.mark.parametrize("fpr", [0.05, 0.01, 0.004, 0.001, 1e-5])
@pytest.mark.parametrize("capacity", [100, 5_000, 300_000])
def test_the_rate_at_capacity_is_at_most_the_target_and_no_key_is_lost(capacity: int, fpr: float) -> None:
    prefix = PrefixFilter(capacity, fpr, seed=3)
    prefix.update(keys(capacity, 1))
    assert prefix.contains_many(keys(capacity, 1)).all()
    measured = float(prefix.contains_many(keys(PROBES, 2)).mean())
    # The fingerprints in a small table are a sample too.
    spread = chance(fpr * PROBES) / PROBES + SIGMAS * fpr / math.sqrt(capacity)
    assert measured <= fpr + spread
    assert abs(measured - prefix.fpr()) <= spread


@pytest.mark.parametrize(("load", "published"), [(1.0, None), (0.95, "0.059"), (0.90, "0.041")])
@pytest.mark.parametrize("bins", [2_000, 10_000, 40_000])
def test_the_published_share_is_passed_on(bins: int, load: float, published: str | None) -> None:
    # Built for the load 0.95: the shares that Poisson bins of 25 pass on.
    prefix = PrefixFilter(int(bins * 25 * 0.95), 1e-6, seed=bins)
    count = int(load * prefix.num_bins * 25)
    with_warning = pytest.warns(fullbloom.CapacityWarning) if load == 1.0 else None
    if with_warning is None:
        prefix.update(keys(count, 7))
    else:
        with with_warning:
            prefix.update(keys(count, 7))
    law = theory.prefix_spare_share(load)
    # At load 1 the paper bounds it: by 1 / sqrt(2 pi 25).
    assert law < 1 / math.sqrt(50 * math.pi)
    assert published is None or abs(law - float(published)) <= half_digit(published)
    # Keys beyond 25 of a bin to which a Poisson number comes; bins share their keys, which lessens it.
    came = np.random.default_rng(1).poisson(25 * load, 10**6)
    sd = float(np.maximum(came - 25, 0).std()) * math.sqrt(prefix.num_bins)
    assert abs(prefix.spare_items - law * count) <= SIGMAS * sd


def test_the_size_is_the_documented_one() -> None:
    for fpr, bits in ((0.01, "11.07"), (0.004, "11.47"), (0.001, "14.37"), (1e-4, "19.76")):
        assert abs(PrefixFilter.nbytes_for(1_000_000, fpr) * 8e-6 - float(bits)) <= half_digit(bits)


def test_repeated_keys_take_no_space() -> None:
    prefix = PrefixFilter(1000, 0.004)
    for _ in range(50):
        prefix.update(range(1000))
    assert prefix.num_added >= 990
    assert prefix.num_added <= 1000
