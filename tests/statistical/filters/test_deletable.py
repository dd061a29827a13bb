"""The deletable filter: how many keys can go, and that nobody else goes with them."""

from __future__ import annotations

import math

import pytest
from support import SCALE, SIGMAS, Keys, binomial_sd, half_digit, pool, rates_at, scatter_of_mean, sigmas_of

import fullbloom
from fullbloom import DeletableBloomFilter, theory

# m, n, k, r; simulated, published and conditioned deletability. The first is of an independent simulation
# of 2000 runs (the published one, 0.530 in the third row, is of an unknown number); the others are formulas.
TABLE = [
    (1000, 100, 7, 50, 0.129, "0.214", "0.131"),
    (1000, 100, 7, 100, 0.552, "0.759", "0.552"),
    (1024, 50, 5, 16, 0.550, "0.660", "0.572"),
    (1024, 50, 5, 64, 0.976, "0.996", "0.978"),
    (4096, 200, 5, 128, 0.886, "0.945", "0.887"),
]


@pytest.mark.parametrize(("m", "n", "k", "r", "simulated", "published", "conditioned"), TABLE)
def test_the_table_of_deletability(
    m: int, n: int, k: int, r: int, simulated: float, published: str, conditioned: str
) -> None:
    assert theory.deletability(n, m, k, r) == pytest.approx(float(conditioned), abs=half_digit(conditioned))
    assert theory.published_deletability(n, m, k, r) == pytest.approx(
        float(published), abs=half_digit(published)
    )
    shares, estimates = [], []
    for seed in range(150 * SCALE):
        f = DeletableBloomFilter.with_shape(m, k, regions=r, capacity=n, seed=seed)
        keys = Keys("random", seed).take(n)
        f.update(keys)
        estimates.append(f.deletability)
        # Each of some keys from the full filter.
        shares.append(sum(f.copy().discard(int(key)) for key in keys[:20]) / 20)
    mean, sd = pool(shares, float(conditioned), 20)
    # The other simulation scatters as ours does.
    off = SIGMAS * sd * math.sqrt(1 + len(shares) / 2000) + half_digit(f"{simulated:.3f}")
    assert abs(mean - simulated) <= off
    # The law takes the regions of a key for independent: it is off by no more than from the simulation.
    assert abs(mean - float(conditioned)) <= abs(simulated - float(conditioned)) + off
    assert mean < float(published) - SIGMAS * sd
    result, off = scatter_of_mean(result - share for result, share in zip(estimates, shares, strict=True))
    assert abs(result) <= abs(simulated - float(conditioned)) + off


@pytest.mark.parametrize("capacity", [500, 10_000, 200_000])
@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
def test_the_rate_at_capacity_is_kept_and_is_the_law(capacity: int, fpr: float) -> None:
    probes = 200_000 * SCALE
    rates, stated = rates_at(lambda seed: DeletableBloomFilter(capacity, fpr, seed=seed), capacity, 6, probes)
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd
    assert abs(mean - stated) <= SIGMAS * sd


@pytest.mark.parametrize("capacity", [1000, 20_000, 300_000])
def test_by_default_nine_keys_of_ten_can_be_removed_at_capacity(capacity: int) -> None:
    f = DeletableBloomFilter(capacity, 0.01)
    keys = Keys("random", 2).take(capacity)
    new = f.add_many(keys).sum()
    law = theory.deletability(capacity, f.num_bits, f.num_hashes, f.regions)
    assert law == pytest.approx(0.9, abs=half_digit("0.9"))
    assert abs(f.deletability - law) <= SIGMAS * binomial_sd(law, capacity // 2)
    removed = f.discard_many(keys)
    # Keys that share a region stay together, so that each trial counts half.
    assert abs(removed.mean() - law) <= SIGMAS * binomial_sd(law, capacity // 2)
    # A removed key may look present again only as any absent key does; one that stayed is found.
    assert f.contains_many(keys[~removed]).all()
    assert f.num_added == new - removed.sum()


def test_removals_deny_no_other_member() -> None:
    for seed in range(20):
        f = DeletableBloomFilter(500, 0.02, seed=seed)
        keys = Keys("random", seed).take(1000)
        f.update(keys[:500])
        gone = f.discard_many(keys[:250])
        f.update(keys[500:700])
        assert f.contains_many(keys[:250])[~gone].all()
        assert f.contains_many(keys[250:700]).all()


def test_a_key_added_twice_stays() -> None:
    f = DeletableBloomFilter(100)
    assert (f.add("a"), f.add("a")) == (True, False)
    assert not f.discard("a")
    assert "a" in f


def test_absent_keys_are_refused_and_change_nothing() -> None:
    f = DeletableBloomFilter(100)
    f.update(range(60))
    before = f.to_bytes()
    absent = [key for key in range(1000, 1500) if key not in f]
    assert f.discard_many(absent) == [False] * len(absent)
    assert f.to_bytes() == before


def test_merged_filters_still_lose_no_member() -> None:
    trials = 20
    far = sigmas_of(2 * trials)
    for seed in range(trials):
        a, b = (DeletableBloomFilter(1000, seed=seed) for _ in range(2))
        keys = Keys("random", seed).take(800)
        a.update(keys[:500])
        b.update(keys[400:])
        a.merge(b)
        assert a.contains_many(keys).all()
        off = far * theory.estimate_std(800, a.num_bits, a.num_hashes)
        assert a.num_added == pytest.approx(800, abs=off)
        # Keys in both filters were met: they stay.
        assert not a.discard_many(keys[400:500]).any()
        result = a.deletability
        gone = a.discard_many(keys[:300])
        # Keys that share a region stay together, so that each counts half.
        assert gone.mean() >= result - far * binomial_sd(result, 150)
        assert a.contains_many(keys[300:]).all()
        assert a.contains_many(keys[:300])[~gone].all()
    with pytest.raises(fullbloom.IncompatibleFilters, match="regions"):
        a.merge(DeletableBloomFilter(1000, regions=8, seed=seed))


def test_clear_resets_the_collision_flags() -> None:
    f = DeletableBloomFilter(10)
    f.update(range(10))
    f.update(range(10))
    assert f.collided > 0
    f.clear()
    assert (f.collided, f.deletability, f.num_added) == (0.0, 1.0, 0)
    assert f == DeletableBloomFilter(10)
