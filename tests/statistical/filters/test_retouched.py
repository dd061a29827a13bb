"""The retouched filter: what clearing bits costs and brings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import SCALE, SIGMAS, Keys, pool, rates_at, scatter_of_mean

import fullbloom
from fullbloom import RetouchedBloomFilter, theory

SCHEMES = ["random", "minimum-fn", "maximum-fp", "ratio"]


@pytest.mark.parametrize("capacity", [2000, 20_000, 200_000])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_random_clearing_follows_its_law_and_gains_nothing(capacity: int, share: float) -> None:
    rates, missed, estimated, before, laws, probes = [], [], [], [], [], 200_000 * SCALE
    for seed in range(6):
        f = RetouchedBloomFilter(capacity, 0.05, seed=seed)
        keys = Keys("random", seed)
        members = keys.take(capacity)
        f.update(members)
        ones = round(f.fill * f.num_bits)
        before.append(f.fill**f.num_hashes)
        laws.append(theory.retouched_fpr(f.fill, share, f.num_hashes))
        assert f.fnr() == 0.0
        assert f.clear_random(share, seed) == pytest.approx(share * ones, abs=0.5 + 1e-9)
        rates.append(float(f.contains_many(keys.take(probes)).mean()))
        missed.append(1.0 - float(f.contains_many(members).mean()))
        estimated.append(f.fnr())
    fnr = theory.retouched_fnr(share, f.num_hashes)
    # Losses of members that share a bit come together: filters are independent.
    mean, off = scatter_of_mean(missed)
    assert abs(mean - fnr) <= off
    mean, off = scatter_of_mean(np.subtract(missed, estimated))
    assert abs(mean) <= off
    fpr = sum(laws) / 6
    mean, sd = pool(rates, fpr, probes)
    assert abs(mean - fpr) <= SIGMAS * sd
    # What the rate loses is what the members lose.
    for law, rate in zip(laws, before, strict=True):
        assert 1.0 - law / rate == pytest.approx(fnr, rel=1e-9)


@pytest.mark.parametrize("capacity", [2000, 10_000, 50_000])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_choosing_the_bit_removes_more_than_it_denies(capacity: int, scheme: str) -> None:
    f = RetouchedBloomFilter(capacity, 0.02, seed=1)
    keys = Keys("random", 3)
    members, absent = keys.take(capacity), keys.take(20 * capacity)
    f.update(members)
    wrong = absent[f.contains_many(absent)]
    assert f.add_false_positives(wrong).all()
    troublesome = wrong[: len(wrong) // 10]
    cleared = f.retouch_many(troublesome, scheme)
    assert not f.contains_many(troublesome).any()
    assert not f.retouch_many(troublesome, scheme).any()
    assert 0 < cleared.sum() <= len(troublesome)
    gone = 1.0 - float(f.contains_many(wrong).mean())
    missed = 1.0 - float(f.contains_many(members).mean())
    # Members that share a cleared bit are lost together: a bit is set by 1 + ln 2 of them.
    sd = math.sqrt(missed / capacity * (1 + math.log(2)))
    assert gone > missed + SIGMAS * sd
    assert abs(f.fnr() - missed) <= SIGMAS * sd


def test_the_selective_schemes_beat_the_random_one() -> None:
    ratios, sds = {}, {}
    for scheme in SCHEMES:
        f = RetouchedBloomFilter(20_000, 0.02)
        keys = Keys("random", 4)
        members, absent = keys.take(20_000), keys.take(400_000)
        f.update(members)
        wrong = absent[f.contains_many(absent)]
        f.add_false_positives(wrong)
        f.retouch_many(wrong[:800], scheme)
        gone = 1.0 - float(f.contains_many(wrong).mean())
        lost = int((~f.contains_many(members)).sum())
        ratios[scheme] = gone / lost
        # As above, and as large a share of the false positives that came with those retouched.
        sds[scheme] = ratios[scheme] * math.sqrt((1 + math.log(2)) * (1 / lost + 1 / (gone * len(wrong))))
    for scheme in SCHEMES[1:]:
        sd = math.hypot(sds[scheme], sds["random"])
        assert ratios[scheme] > ratios["random"] + SIGMAS * sd


@pytest.mark.parametrize("capacity", [500, 10_000, 200_000])
@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
def test_the_rate_at_capacity_is_kept(capacity: int, fpr: float) -> None:
    probes = 200_000 * SCALE
    rates, stated = rates_at(lambda seed: RetouchedBloomFilter(capacity, fpr, seed=seed), capacity, 6, probes)
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd
    assert abs(mean - stated) <= SIGMAS * sd


def test_retouching_clears_one_bit_and_only_for_reported_keys() -> None:
    f = RetouchedBloomFilter(100, 0.1)
    f.update(range(100))
    ones = round(f.fill * f.num_bits)
    absent = next(key for key in range(1000, 9999) if key not in f)
    before = f.to_bytes()
    assert not f.retouch(absent)
    assert not f.add_false_positive(absent)
    assert f.to_bytes() == before
    wrong = next(key for key in range(1000, 9999) if key in f)
    assert f.add_false_positive(wrong)
    assert wrong in f
    assert f.retouch(wrong, scheme="minimum-fn")
    assert wrong not in f
    assert round(f.fill * f.num_bits) == ones - 1
    lost = [key for key in range(100) if key not in f]
    assert lost
    # The bit of the fewest members: no more are denied than by one at random.
    assert 0 < f.fnr() <= theory.retouched_fnr(1 / ones, f.num_hashes)
    # Adding the lost again heals them, and brings the false positive back.
    f.update(lost)
    assert all(f.contains_many(range(100)))
    assert wrong in f
    assert f.fnr() == 0.0


def test_training_data_are_saved() -> None:
    f = RetouchedBloomFilter(200, 0.1)
    f.update(range(200))
    wrong = [key for key in range(1000, 5000) if f.add_false_positive(key)]
    again = fullbloom.loads(f.to_bytes())
    assert again == f
    for key in wrong[::3]:
        assert f.retouch(key) == again.retouch(key)
    assert again.to_bytes() == f.to_bytes()
