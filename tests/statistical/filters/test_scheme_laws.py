"""Every scheme has the rate of its law: double hashing and its kin more than chance, others as much."""

from __future__ import annotations

import math

import pytest
from support import SCALE, SCHEMES, Keys, pooled, sigmas_of

import fullbloom
from fullbloom import theory

PROBED = ("classic", "partitioned")
#: m, n, k: even, prime and a power of two; at rates of 7e-5, 7e-3 and 2e-3.
SIZES = [(2000, 100, 14), (1009, 100, 7), (4096, 300, 9)]
CASES = [(layout, scheme, *size) for layout in PROBED for scheme in SCHEMES[layout] for size in SIZES]
#: Sums of first order leave out keys in threes, and that slices of odd sizes round: 5 % of the excess.
REST = 0.05


@pytest.mark.parametrize(("layout", "scheme", "m", "n", "k"), CASES)
def test_the_rate_is_that_of_the_law(layout: str, scheme: str, m: int, n: int, k: int) -> None:
    law = theory.fpr_at(layout, m, k, n, scheme=scheme)
    ideal = theory.fpr_at(layout, m, k, n)
    filters, probes = 60, 20_000 * SCALE if law > 1e-3 else 60_000 * SCALE
    rates, told = [], []
    for seed in range(filters):
        f = fullbloom.BloomFilter.with_shape(m, k, capacity=n, layout=layout, scheme=scheme, seed=seed)
        keys = Keys("random", 1000 + seed)
        f.update(keys.take(n))
        rates.append(float(f.contains_many(keys.take(probes)).mean()))
        told.append(f.fpr())
    mean, sd = pooled(rates, law, probes)
    margin = sigmas_of(len(CASES)) * sd + REST * abs(law - ideal)
    assert abs(mean - law) <= margin, f"{mean:.4e} against {law:.4e}, ideal {ideal:.4e}, sd {sd:.1e}"
    # What filters tell of themselves is the law at their fill.
    gap = [rate - own for rate, own in zip(rates, told, strict=True)]
    own, own_sd = pooled(gap, 0.0, 1)
    assert abs(own) <= sigmas_of(len(CASES)) * own_sd + REST * abs(law - ideal)


@pytest.mark.parametrize(("layout", "scheme"), [(layout, s) for layout in PROBED for s in SCHEMES[layout]])
@pytest.mark.parametrize(("capacity", "fpr"), [(50, 1e-3), (100, 1e-4), (1000, 1e-4)])
def test_sized_filters_keep_their_rate(capacity: int, fpr: float, layout: str, scheme: str) -> None:
    filters, probes = 30, 50_000 * SCALE
    rates = []
    for seed in range(filters):
        f = fullbloom.BloomFilter(capacity, fpr, layout=layout, scheme=scheme, seed=seed)
        assert theory.fpr_at(layout, f.num_bits, f.num_hashes, capacity, scheme=scheme) <= fpr
        keys = Keys("random", seed)
        f.update(keys.take(capacity))
        rates.append(float(f.contains_many(keys.take(probes)).mean()))
    mean, sd = pooled(rates, fpr, probes)
    assert mean <= fpr * (1 + REST) + sigmas_of(len(CASES)) * sd


def test_a_hash_of_32_bits_is_a_floor() -> None:
    n, probes = 2_000_000 * SCALE, 4_000_000 * SCALE
    floor = theory.hash_collision_fpr(n, hash_bits=32)
    f = fullbloom.BloomFilter(n, 2e-3, hash="murmur3-32", seed=3)
    # Not numbers in sequence: the function maps those below 2^32 one to one.
    keys = Keys("random", 1)
    f.update(keys.take(n))
    found = float(f.contains_many(keys.take(probes)).mean())
    # Half of a thousandth, of which the bits alone would say half of that again.
    assert found <= 2e-3
    assert abs(found - f.fpr()) <= 5 * math.sqrt(f.fpr() / probes) + 0.02 * floor
    assert found > floor
    count, deviation = f.approx_count()
    assert abs(count - n) <= 5 * deviation
    with pytest.raises(fullbloom.ParameterError, match="murmur3-32"):
        fullbloom.BloomFilter(n, floor, hash="murmur3-32")
