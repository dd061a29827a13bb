"""The rate by m/n and k, and by n and m: the tables and plots of encyclopedias, measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import fullbloom
from benchmarks.figures.sampling import fill, rate_of, scale
from fullbloom import theory

if TYPE_CHECKING:
    import numpy as np

BITS_PER_KEY = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16)
HASHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
ITEMS, FILTERS, PROBES = 20_000, 10, 100_000
#: Lower rates would need more lookups than the page takes time for.
LEAST_RATE = 2e-5
#: Up to here the exact law takes milliseconds.
SMALL = 1 << 20
#: Sizes of the second plot, as powers of two.
SIZES = (8, 12, 16, 20, 24)


@dataclass(frozen=True)
class Point:
    """A measured rate, with its law."""

    num_bits: int
    items: int
    num_hashes: int
    law: float
    measured: float
    error: float

    @property
    def deviation(self) -> float:
        """Standard errors between measured and law."""
        return (self.measured - self.law) / self.error


def measure_point(
    draw: np.random.Generator, bits: int, items: int, hashes: int, filters: int, probes: int
) -> Point:
    """The mean rate of some filters; its error is that of the lookups and of the fill."""
    held = [
        fill(lambda: fullbloom.BloomFilter.with_shape(bits, hashes, capacity=items), draw, items)
        for _ in range(filters)
    ]
    measured = sum(rate_of(each, draw, probes) for each in held) / filters
    small = bits * items * hashes < SMALL
    law = theory.exact_fpr(items, bits, hashes) if small else theory.second_order_fpr(items, bits, hashes)
    return Point(
        bits, items, hashes, law, measured, math.sqrt(_variance(items, bits, hashes, probes) / filters)
    )


def _variance(items: int, bits: int, hashes: int, probes: int) -> float:
    """The variance of one filter's measured rate."""
    load = items * hashes / bits
    zero = math.exp(-load)
    rate = (1 - zero) ** hashes
    fill_variance = zero * (1 - (1 + load) * zero) / bits
    return rate * (1 - rate) / probes + (hashes * (1 - zero) ** (hashes - 1)) ** 2 * fill_variance


def measure_rates(draw: np.random.Generator, share: float = 1.0) -> list[Point]:
    """A rate for each m/n and k where it is high enough to be measured."""
    return [
        measure_point(draw, per_key * ITEMS, ITEMS, hashes, scale(FILTERS, share), PROBES)
        for per_key in BITS_PER_KEY
        for hashes in HASHES
        if theory.classic_fpr(ITEMS, per_key * ITEMS, hashes) >= LEAST_RATE
    ]


def measure_sizes(draw: np.random.Generator, share: float = 1.0) -> list[Point]:
    """Rates of filters of 2^8 to 2^24 bits, each with the best k for its load."""
    points = []
    for size in SIZES:
        bits = 1 << size
        for per_key in (1, 2, 4, 6, 8, 12, 16):
            items = bits // per_key
            hashes = theory.num_hashes(bits, items)
            filters = scale(2 if size > 20 else 40, share)
            points.append(measure_point(draw, bits, items, hashes, filters, 100_000))
    return points
