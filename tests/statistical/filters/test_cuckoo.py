"""The cuckoo filter keeps its rate, its loads and its space, by its law and by the published figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import SCALE, chance, half_digit, scatter_of_mean, sigmas_of

import fullbloom
from fullbloom import CuckooFilter, FilterFull, theory

# Filling up goes past the capacity; the warning is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")

PROBES = 400_000 * SCALE


def keys(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.int64)


@pytest.mark.parametrize("bucket_size", [2, 4, 8])
@pytest.mark.parametrize("fpr", [0.02, 0.0019, 1e-4])
@pytest.mark.parametrize("capacity", [300, 5_000, 200_000])
def test_the_rate_at_capacity_follows_the_law_and_is_at_most_the_target(capacity, fpr, bucket_size):
    cuckoo = CuckooFilter(capacity, fpr, bucket_size=bucket_size, seed=3)
    cuckoo.update(keys(capacity, 1))
    assert cuckoo.contains_many(keys(capacity, 1)).all()
    measured = float(cuckoo.contains_many(keys(PROBES, 2)).mean())
    # The fingerprints of a small table are a sample too: its own rate is a sum over its keys, and varies by
    # 1 / sqrt(capacity) of itself where each is as rare as a Poisson number's.
    far = sigmas_of(27)
    spread = chance(fpr * PROBES, sigmas=far) / PROBES + far * fpr / math.sqrt(capacity)
    assert measured <= fpr + spread
    load = capacity / (cuckoo.num_buckets * bucket_size)
    law = theory.cuckoo_fpr(cuckoo.fingerprint_bits, bucket_size, load)
    assert abs(measured - law) <= spread
    # fpr() is that of this very table, below the law of large ones by which it was sized.
    table = theory.cuckoo_table_fpr(capacity, cuckoo.num_buckets, cuckoo.fingerprint_bits)
    assert cuckoo.fpr() == pytest.approx(table, rel=1e-12)
    assert table <= law


@pytest.mark.parametrize(("bits", "published"), [(8, "0.0308"), (12, "0.0018")])
def test_a_full_table_of_4096_buckets_has_the_published_rate(bits, published):
    rates, loads = [], []
    for seed in range(10):
        cuckoo = CuckooFilter(15_549, fingerprint_bits=bits, seed=seed)
        assert cuckoo.num_buckets == 4096
        with pytest.raises(FilterFull):
            for batch in np.split(keys(30_000, seed), 30_000 // 100):
                cuckoo.update(batch)
        loads.append(cuckoo.num_added / 16_384)
        rates.append(cuckoo.contains_many(keys(100_000, 99)).mean())
    # Measured for the design: 97 % until the first failure, 3.08 % at f = 8, 0.18 % at f = 12.
    mean, off = scatter_of_mean(loads)
    assert mean == pytest.approx(0.97, abs=half_digit("0.97") + off)
    assert min(loads) >= 0.95
    mean, off = scatter_of_mean(rates)
    assert mean == pytest.approx(float(published), abs=half_digit(published) + off)


@pytest.mark.parametrize(("bucket_size", "least"), [(1, 0.40), (2, 0.84), (4, 0.95), (8, 0.98)])
def test_the_first_key_is_refused_at_the_published_load(bucket_size, least):
    for seed in range(3):
        cuckoo = CuckooFilter(200_000, bucket_size=bucket_size, fingerprint_bits=16, seed=seed)
        source = keys(1_000_000, seed)
        with pytest.raises(FilterFull):
            cuckoo.update(source)
        load = cuckoo.num_added / (cuckoo.num_buckets * bucket_size)
        assert least <= load <= theory.cuckoo_load_threshold(bucket_size) + 0.01
        assert cuckoo.contains_many(source[: cuckoo.num_added]).all()


def test_a_rate_of_0_19_percent_takes_at_most_12_8_bits_a_key():
    cuckoo = CuckooFilter(1_000_000, 0.0019)
    assert cuckoo.fingerprint_bits == 12
    assert cuckoo.nbytes * 8 / 1_000_000 <= 12.8
    semi_sorted = CuckooFilter(1_000_000, 0.0019, semi_sort=True)
    # One bit per slot, and both tables in whole lines.
    saved = 8 * (cuckoo.nbytes - semi_sorted.nbytes)
    assert saved == pytest.approx(4 * cuckoo.num_buckets, abs=512)


@pytest.mark.parametrize("options", [{}, {"semi_sort": True}, {"bucket_size": 8}, {"bucket_size": 2}])
def test_removing_frees_space_and_misses_no_other_key(options):
    cuckoo = CuckooFilter(20_000, 0.001, seed=5, **options)
    source = keys(40_000, 8)
    with pytest.raises(FilterFull, match="remove keys or build"):
        cuckoo.update(source)
    held = source[: cuckoo.num_added]
    assert cuckoo.full
    assert cuckoo.contains_many(held).all()
    gone, left = held[::2], held[1::2]
    assert cuckoo.discard_many(gone).all()
    assert not cuckoo.full
    assert cuckoo.contains_many(left).all()
    assert cuckoo.num_added == len(left)
    again = gone[: len(gone) * 9 // 10]
    cuckoo.update(again)
    assert cuckoo.contains_many(np.concatenate([left, again])).all()


def test_counts_are_exact_up_to_both_buckets_and_then_the_key_is_refused():
    cuckoo = CuckooFilter(1000)
    for copies in range(8):
        assert cuckoo.count("ada") == copies
        assert cuckoo.add("ada") is (copies == 0)
    with pytest.raises(FilterFull, match="8 copies"):
        cuckoo.add("ada")
    assert cuckoo.count("ada") == 8
    assert not cuckoo.full
    assert cuckoo.add("grace")
    for copies in range(8, 0, -1):
        cuckoo.remove("ada")
        assert cuckoo.count("ada") == copies - 1
    with pytest.raises(KeyError, match="ada"):
        cuckoo.remove("ada")
    assert cuckoo.num_added == 1
    assert "grace" in cuckoo


def test_a_merge_adds_the_keys_of_the_other_or_changes_nothing():
    a, b = (CuckooFilter(10_000, seed=1) for _ in range(2))
    a.update(range(4000))
    b.update(range(4000, 8000))
    a.merge(b)
    assert a.contains_many(np.arange(8000)).all()
    assert a.num_added == 8000
    before = a.to_bytes()
    b.update(range(8000, 12_000))
    with pytest.raises(FilterFull, match="do not fit"):
        a.merge(b)
    assert a.to_bytes() == before
    with pytest.raises(fullbloom.IncompatibleFilters, match="num_buckets"):
        a.merge(CuckooFilter(500, seed=1))


def test_files_of_full_filters_keep_the_stash(tmp_path):
    cuckoo = CuckooFilter(500, seed=2)
    source = keys(2000, 4)
    with pytest.raises(FilterFull):
        cuckoo.update(source)
    cuckoo.save(tmp_path / "full.bloom")
    back = CuckooFilter.open(tmp_path / "full.bloom")
    assert back == cuckoo
    assert back.full
    assert back.contains_many(source[: cuckoo.num_added]).all()
    with pytest.raises(fullbloom.ReadOnlyFilter):
        back.remove(int(source[0]))
    copy = back.copy()
    copy.remove(int(source[0]))
    assert copy.contains_many(source[1 : cuckoo.num_added]).all()
