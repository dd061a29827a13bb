"""The d-left filter: its rate, its loads, and exact counts up to the last free cell."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from support import SCALE, SIGMAS, Keys, binomial_sd, chance, half_digit, pool, sigmas_of

import fullbloom
from fullbloom import DLeftCountingFilter, theory


@pytest.mark.parametrize("capacity", [500, 10_000, 200_000])
@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
def test_the_rate_at_capacity_is_kept_and_is_the_law(capacity: int, fpr: float) -> None:
    rates, laws, probes = [], [], 200_000 * SCALE
    for seed in range(6):
        f = DLeftCountingFilter(capacity, fpr, seed=seed)
        keys = Keys("random", seed)
        f.update(keys.take(capacity))
        rates.append(float(f.contains_many(keys.take(probes)).mean()))
        laws.append(theory.dleft_fpr(capacity, f.buckets, f.remainder_bits))
        # The share of the fingerprints that are in; the law is its mean. Keys that meet are nearly Poisson.
        fingerprints = f.buckets * 2**f.remainder_bits
        met = capacity - laws[-1] * fingerprints
        assert abs(f.fpr() - laws[-1]) * fingerprints <= chance(met, sigmas=sigmas_of(54))
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd
    mean, sd = pool(rates, laws[0], probes)
    assert abs(mean - laws[0]) <= SIGMAS * sd


def test_the_published_design_has_its_rate_space_and_loads() -> None:
    f = DLeftCountingFilter(240_000, 0.0015, cells=8)
    assert (f.subtables, f.cells, f.buckets, f.remainder_bits) == (4, 8, 10_000, 14)
    # Half a cell of 16 bits more than a key; memory comes in lines of 64 bytes, and one follows the cells.
    assert 0 <= f.nbytes - 40_000 * 8 * 2 <= 64
    assert theory.dleft_bits_per_key(6, 8, 14) == pytest.approx(64 / 3)
    assert theory.dleft_load_fpr(4, 6, 14) == pytest.approx(0.001465, abs=half_digit("0.001465"))
    keys = Keys("random", 1)
    f.update(keys.take(240_000))
    probes = 2_000_000 * SCALE
    found = float(f.contains_many(keys.take(probes)).mean())
    # The table's own rate scatters less than the probes: distinct fingerprints are 240,000 less a few.
    assert abs(found - 0.001464) <= SIGMAS * binomial_sd(0.001464, probes)
    shares = np.array(f.bucket_loads()) / 40_000
    for load, share in ((5, "0.121"), (6, "0.749"), (7, "0.127")):
        rounding = half_digit(share)
        assert abs(shares[load] - float(share)) <= SIGMAS * binomial_sd(float(share), 40_000) + rounding
    rest = 40_000 * math.fsum(theory.dleft_loads(4, 6.0)[:5])
    assert 40_000 * shares[:5].sum() <= rest + chance(rest)
    assert shares[8] == 0


@pytest.mark.parametrize(("subtables", "cells"), [(2, 8), (3, 8), (4, 8), (4, 12), (8, 16)])
@pytest.mark.parametrize("capacity", [3000, 30_000, 300_000])
def test_loads_match_the_fluid_limit(subtables: int, cells: int, capacity: int) -> None:
    f = DLeftCountingFilter(capacity, 0.001, subtables=subtables, cells=cells)
    f.update(Keys("random", 5).take(capacity))
    loads = np.array(f.bucket_loads())
    buckets = subtables * f.buckets
    assert loads.sum() == buckets
    law = theory.dleft_loads(subtables, capacity / buckets)
    for load, share in enumerate(loads / buckets):
        expected = law[load] if load < len(law) else 0.0
        # Loads of buckets repel each other, so that independent ones scatter more.
        assert abs(share - expected) * buckets <= chance(expected * buckets), load


def test_at_one_percent_it_takes_at_most_two_fifths_of_a_counting_filter() -> None:
    for capacity in (10_000, 1_000_000):
        f = DLeftCountingFilter(capacity, 0.01)
        assert f.nbytes * 8 / capacity <= 0.45 * 4 * 9.585
        assert f.nbytes == DLeftCountingFilter.nbytes_for(capacity, 0.01)


@pytest.mark.parametrize("capacity", [1, 2, 10, 33, 100, 1000])
def test_small_tables_take_their_capacity(capacity: int) -> None:
    for seed in range(50):
        f = DLeftCountingFilter(capacity, 0.01, seed=seed)
        f.update(range(capacity))
        assert all(f.contains_many(range(capacity)))


def test_counts_are_never_too_small_and_removals_are_exact() -> None:
    draw = random.Random(9)
    # 300 keys of about 7 copies: two cells each.
    f, truth = DLeftCountingFilter(1000, 0.001), Counter[int]()
    for _ in range(20_000):
        key = draw.randrange(300)
        if draw.random() < 0.55:
            f.add(key)
            truth[key] += 1
        elif truth[key]:
            f.remove(key)
            truth[key] -= 1
    counts = f.count_many(range(300))
    assert all(count >= truth[key] for key, count in enumerate(counts))
    # Each key is found as another, with that one's copies, at the rate of 300.
    most, rate = max(truth.values()), theory.dleft_fpr(300, f.buckets, f.remainder_bits)
    expected = rate * sum(n * n for n in truth.values()) / most
    assert sum(counts) - truth.total() <= most * (expected + chance(expected))
    for key, copies in truth.items():
        assert f.discard_many([key] * copies) == [True] * copies
    assert (f.num_added, f.fill) == (0, 0.0)


def test_copies_take_few_cells() -> None:
    f = DLeftCountingFilter(100)
    for copies, cells in ((3, 1), (4, 2), (12, 2), (13, 3), (39, 3), (40, 4), (88_572, 10), (88_573, 11)):
        f.update(["a"] * (copies - f.count("a")))
        assert f.count("a") == copies
        assert sum(load * buckets for load, buckets in enumerate(f.bucket_loads())) == cells
    assert f.num_added == 1


def test_a_full_table_refuses_keys_and_accepts_them_after_a_removal() -> None:
    f = DLeftCountingFilter(200, 0.01)
    held: list[int] = []

    def fill() -> None:
        for key in range(10_000):
            f.add(key)
            held.append(key)

    with pytest.warns(fullbloom.CapacityWarning), pytest.raises(fullbloom.FilterFull, match="remove keys"):
        fill()
    assert len(held) > 200
    refused = len(held)
    before = f.to_bytes()
    with pytest.raises(fullbloom.FilterFull):
        f.add(refused)
    assert f.to_bytes() == before
    assert all(f.contains_many(held))
    assert f.discard_many(held[:200]) == [True] * 200
    f.add(refused)
    assert refused in f
    assert all(f.contains_many(held[200:]))


def test_removing_a_certainly_absent_key_changes_nothing() -> None:
    f = DLeftCountingFilter(100)
    f.update(range(50))
    before = f.to_bytes()
    absent = next(key for key in range(1000, 2000) if key not in f)
    with pytest.raises(KeyError):
        f.remove(absent)
    assert not f.discard(absent)
    assert f.to_bytes() == before


def test_merging_adds_counts_or_changes_nothing() -> None:
    a, b = DLeftCountingFilter(1000), DLeftCountingFilter(1000)
    a.update([*range(400), *range(100)])
    b.update([*range(300, 700)] * 3)
    expected = [x + y for x, y in zip(a.count_many(range(1000)), b.count_many(range(1000)), strict=True)]
    a.merge(b)
    assert a.count_many(range(1000)) == expected
    with pytest.raises(fullbloom.IncompatibleFilters, match="buckets"):
        a.merge(DLeftCountingFilter(2000))
    small, other = DLeftCountingFilter(40), DLeftCountingFilter(40)
    small.update(range(40))
    other.update(range(40, 80))
    before = small.to_bytes()
    with pytest.raises(fullbloom.FilterFull):
        small.merge(other)
    assert small.to_bytes() == before
