"""Guarantee: a filter of few cells, or of narrow ones, reports its own rate."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support import SCALE, Keys, binomial_sd, scatter_of_mean, sigmas_of

import fullbloom
from fullbloom import theory

CASES, RUNS, PROBES = 8, 40 * SCALE, 20_000


@pytest.mark.parametrize("case", range(CASES))
def test_a_classic_filter_reports_the_rate_of_its_bits(case: int) -> None:
    random = Random(f"small classic {case}")
    items = random.randint(1, 60)
    made = fullbloom.BloomFilter(items, random.uniform(0.02, 0.3), layout="classic", seed=case)
    made.update(range(items))
    reported = made.fpr()
    assert reported == pytest.approx(made.fill**made.num_hashes, rel=1e-12)
    probes = 20 * PROBES
    measured = float(np.mean(made.contains_many(Keys("random", case).take(probes))))
    assert abs(measured - reported) <= sigmas_of(CASES) * binomial_sd(reported, probes)


@pytest.mark.parametrize(
    ("num_bits", "num_hashes", "items"), [(8, 2, 1), (20, 14, 1), (58, 40, 1), (64, 7, 5)]
)
def test_small_filters_have_on_average_the_rate_of_fpr_at(num_bits: int, num_hashes: int, items: int) -> None:
    rates = []
    for seed in range(100 * RUNS):
        made = fullbloom.BloomFilter.with_shape(num_bits, num_hashes, seed=seed)
        made.update(range(items))
        rates.append(made.fpr())
    law = theory.fpr_at("classic", num_bits, num_hashes, items)
    mean, off = scatter_of_mean(rates, cases=4)
    assert abs(mean - law) <= off
    assert law == pytest.approx(theory.exact_fpr(items, num_bits, num_hashes), rel=1e-9)


@pytest.mark.parametrize(("capacity", "bits"), [(3, 4), (10, 8), (40, 5), (100, 8)])
def test_a_cuckoo_filter_of_few_buckets_reports_its_rate(capacity: int, bits: int) -> None:
    apart, reported = [], 0.0
    for seed in range(RUNS):
        made = fullbloom.CuckooFilter(capacity, fingerprint_bits=bits, seed=seed)
        keys = Keys("random", seed)
        made.update(keys.take(capacity))
        reported = made.fpr()
        apart.append(float(np.mean(made.contains_many(keys.take(PROBES)))) - reported)
    assert reported == pytest.approx(theory.cuckoo_table_fpr(capacity, made.num_buckets, bits), rel=1e-12)
    mean, off = scatter_of_mean(apart, cases=4)
    assert abs(mean) <= off
