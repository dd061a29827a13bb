"""A filter sized for (n, p) measures at most p at n: every layout, size, rate and kind of key.

The bound is three standard deviations of the pooled measurement: between the filters and between the probes
(``support.pool``). The probes of one cell are about the same number whatever the capacity.
"""

from __future__ import annotations

import pytest
from support import SCALE, SIGMAS, Keys, layouts, pool, rates_at

import fullbloom

# capacity -> (filters, probes of each)
SIZES = {
    100: (100, 10_000),
    1000: (40, 25_000),
    10_000: (16, 60_000),
    100_000: (8, 120_000),
    10**6: (3, 300_000),
}


def measure(
    layout: str, capacity: int, fpr: float, kind: str, filters: int, probes: int
) -> tuple[list[float], float]:
    def make(seed: int) -> fullbloom.BloomFilter:
        return fullbloom.BloomFilter(capacity, fpr, layout=layout, seed=seed)

    return rates_at(make, capacity, filters, probes, kind)


def judge(rates: list[float], stated: float, fpr: float, probes: int, capacity: int) -> None:
    """Hold the measured rates against the target, and from 10,000 keys on against what the filters state."""
    mean, sd = pool(rates, fpr, probes)
    assert mean <= fpr + SIGMAS * sd, f"{mean / fpr:.3f} of the target, sd {sd / fpr:.3f}"
    if capacity >= 10_000:
        assert mean >= stated - SIGMAS * sd, f"{mean / stated:.3f} of what is stated, sd {sd / fpr:.3f}"


@pytest.mark.parametrize("kind", ["sequential", "strided", "random"])
@pytest.mark.parametrize("fpr", [1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("capacity", SIZES)
@pytest.mark.parametrize("layout", layouts())
def test_the_rate_at_capacity_is_at_most_the_target(
    layout: str, capacity: int, fpr: float, kind: str
) -> None:
    filters, probes = SIZES[capacity]
    probes *= SCALE
    judge(*measure(layout, capacity, fpr, kind, filters, probes), fpr, probes, capacity)


@pytest.mark.parametrize("layout", layouts())
def test_a_rate_of_one_in_a_million_is_kept(layout: str) -> None:
    filters, chunk, chunks = 4, 1_000_000, 5 * SCALE
    rates, stated = [], 0.0
    for seed in range(filters):
        bloom = fullbloom.BloomFilter(10_000, 1e-6, layout=layout, seed=seed)
        keys = Keys("random", seed)
        bloom.update(keys.take(10_000))
        hits = sum(int(bloom.contains_many(keys.take(chunk)).sum()) for _ in range(chunks))
        rates.append(hits / (chunk * chunks))
        stated += bloom.fpr() / filters
    judge(rates, stated, 1e-6, chunk * chunks, 10_000)


@pytest.mark.parametrize("fpr", [0.1, 0.01, 1e-3])
@pytest.mark.parametrize("layout", layouts())
def test_text_and_keyed_filters_keep_their_rate(layout: str, fpr: float) -> None:
    for secret in (None, b"sixteen secrets!"):
        rates, stated = [], 0.0
        for seed in range(8):
            bloom = fullbloom.BloomFilter(10_000, fpr, layout=layout, seed=seed, secret=secret)
            bloom.update([f"https://example.org/{seed}/{i}" for i in range(10_000)])
            found = bloom.contains_many([f"https://example.org/{seed}/{i}" for i in range(10_000, 40_000)])
            rates.append(sum(found) / 30_000)
            stated += bloom.fpr() / 8
        judge(rates, stated, fpr, 30_000, 10_000)


@pytest.mark.parametrize("layout", layouts())
def test_tiny_filters_keep_their_rate(layout: str) -> None:
    for capacity in (1, 2, 5, 10):
        for fpr in (0.3, 0.05, 0.001):
            rates, _ = measure(layout, capacity, fpr, "random", 400, 2000)
            mean, sd = pool(rates, fpr, 2000)
            assert mean <= fpr + SIGMAS * sd, (capacity, fpr, mean)
