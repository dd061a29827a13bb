"""Depths, labels and values err in one direction only, at the rates of their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import SIGMAS, Keys, binomial_sd, chance, half_digit, pool, scatter_of_mean, sigmas_of

import fullbloom
from fullbloom import theory


@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("capacity", [100, 3000, 50_000])
def test_depths_are_never_too_small_and_seldom_too_large(capacity: int, fpr: float) -> None:
    rates, probes = [], 50_000
    for seed in range(6):
        layered = fullbloom.LayeredBloomFilter(capacity, fpr, layers=4, seed=seed)
        keys = Keys("random", seed)
        members = keys.take(capacity)
        times = np.arange(capacity) % 4
        for turn in range(1, 5):
            layered.update(members[times >= turn - 1])
        depths = layered.depth_many(members)
        assert (depths >= times + 1).all()
        assert (depths == layered.count_many(members)).all()
        excess = float((depths > times + 1).mean())
        assert excess <= fpr + SIGMAS * binomial_sd(fpr, capacity)
        absent = layered.depth_many(keys.take(probes))
        rates.append(float((absent > 0).mean()))
        twice = float((absent > 1).mean())
        law = theory.layered_overcount(capacity, layered.num_bits // 4, layered.num_hashes, 2)
        # A bound: a quarter of the keys came once, so that the second layer holds three.
        assert twice <= law + chance(law * probes, sigmas=sigmas_of(54)) / probes
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd


@pytest.mark.parametrize("areas", [1, 5, 100])
@pytest.mark.parametrize("capacity", [200, 1000, 20_000])
def test_labels_only_rise_and_absent_keys_keep_the_rate(capacity: int, areas: int) -> None:
    rates, probes = [], 50_000
    for seed in range(6):
        spatial = fullbloom.SpatialBloomFilter(capacity, 0.01, areas=areas, seed=seed)
        keys = Keys("random", seed)
        members, labels = keys.take(capacity), 1 + np.arange(capacity) % areas
        new = spatial.add_many(members, labels)
        assert float(new.mean()) >= 1 - 0.01 - SIGMAS * binomial_sd(0.01, capacity)
        assert (spatial.label_many(members) >= labels).all()
        found = spatial.label_many(keys.take(probes))
        rates.append(float((found > 0).mean()))
        assert sum(spatial.label_rates()) == pytest.approx(spatial.fill**spatial.num_hashes)
    mean, sd = pool(rates, 0.01, probes)
    assert mean <= 0.01 + SIGMAS * sd


def test_the_published_table_of_five_areas() -> None:
    prior, promoted = theory.spatial_fprs([200] * 5, 8192, 5), theory.spatial_promotion([200] * 5, 8192, 5)
    for law, published in (
        (prior, ("0.0113", "0.0059", "0.0022", "0.0005", "0.00002")),
        (promoted, ("0.0086", "0.0027", "0.0005", "0.00002", "0.0")),
    ):
        for rate, figure in zip(law, published, strict=True):
            assert abs(rate - float(figure)) <= half_digit(figure)
    # The rule itself on ideal positions.
    rng = np.random.default_rng(3)
    rates, raised, runs, probes = [], [], 150, 20_000
    for _ in range(runs):
        cells = np.zeros(8192, np.int64)
        places = rng.integers(0, 8192, (5, 200, 5))
        for area in range(5):
            cells[places[area].ravel()] = area + 1
        raised.append((cells[places].min(axis=2) > np.arange(1, 6)[:, None]).mean(axis=1))
        found = cells[rng.integers(0, 8192, (probes, 5))].min(axis=1)
        rates.append(np.bincount(found, minlength=6)[1:] / probes)
    # The keys of a run share its cells: runs are independent.
    for measured, law, trials in ((rates, prior, runs * probes), (raised, promoted, runs * 200)):
        for got, rate in zip(np.transpose(measured).tolist(), law, strict=True):
            mean, off = scatter_of_mean(got)
            assert abs(mean - rate) <= max(off, SIGMAS * binomial_sd(rate, trials)), (mean, rate)


def sd_of_one(rate: float, compact: fullbloom.CompactApproximator) -> float:
    """Deviation of the rate of one filter, measured with 100,000 keys.

    Of m cells a share x is above a level; x varies by less than sqrt(x (1 - x) / m), and x^k by k of it.
    """
    hashes = compact.num_hashes
    fill = rate ** (1 / hashes)
    return math.hypot(binomial_sd(rate, 100_000), hashes * rate / fill * binomial_sd(fill, compact.num_cells))


@pytest.mark.parametrize("lattice", ["max", "min", "or"])
@pytest.mark.parametrize("capacity", [200, 2000, 20_000])
def test_values_are_never_too_small(capacity: int, lattice: str) -> None:
    keys = Keys("random", 1)
    members, rng = keys.take(capacity), np.random.default_rng(1)
    values = rng.integers(1, 255, capacity)
    compact = fullbloom.CompactApproximator(capacity, 0.01, lattice=lattice)
    halves = [compact.copy(), compact.copy()]
    compact.update(members, values)
    got = compact.get_many(members).astype(np.int64)
    under = {"max": got < values, "min": got > values, "or": (got & values) != values}[lattice]
    assert not under.any()
    assert compact.get_many(members[:50]).tolist() == [compact.get(key) for key in members[:50].tolist()]
    # Order does not matter, once more changes nothing, and merging is adding.
    halves[0].update(members[::-2], values[::-2])
    halves[1].update(members, values)
    halves[0].merge(halves[1])
    assert halves[0] == compact
    absent = compact.get_many(keys.take(100_000)).astype(np.int64)
    bottom = 255 if lattice == "min" else 0
    assert float((absent != bottom).mean()) <= 0.01 + SIGMAS * sd_of_one(0.01, compact)
    if lattice == "max":
        for level in (64, 128, 200):
            law = theory.value_excess(int((values > level).sum()), compact.num_cells, compact.num_hashes)
            assert abs(float((absent > level).mean()) - law) <= SIGMAS * sd_of_one(law, compact)


def test_pairs_are_checked_before_any_is_added() -> None:
    spatial = fullbloom.SpatialBloomFilter(100, areas=3)
    for labels in ([1, 2, 4], [1, 2, 0], [1, 2], [1, 2, 3, 3], 4, 0):
        with pytest.raises(fullbloom.ParameterError):
            spatial.update(["a", "b", "c"], labels)
        assert spatial.num_added == 0
    with pytest.raises(fullbloom.ParameterTypeError):
        spatial.update(["a"], ["1"])
    with pytest.raises(fullbloom.ParameterError):
        spatial.update(iter(["a", "b", "c"]), [1, 2])
    assert spatial.add_many(["a", "b"], 2) == [True, True]
    assert spatial.add("a", 3) is False
    assert spatial.label_many(["a", "b", "c"]) == [3, 2, 0]
    arrow = pytest.importorskip("pyarrow")
    assert spatial.add_many(arrow.array(["x", "y"]), [1, 2]).to_pylist() == [True, True]
    with pytest.raises(fullbloom.KeyTypeError):
        spatial.update(arrow.array(["x", None]), [1, 2])
