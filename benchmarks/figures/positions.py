"""Positions from few hashes: the rate of each scheme in small filters and in a large one."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial
from benchmarks.figures.sampling import draw_hashes, formula, rate, scale
from fullbloom import theory

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.figures.model import Measure

TEXT = """A filter computes its k positions from one 64-bit hash. The published figures are of an
independent simulation with ideal hash functions, of 60 runs with 100,000 lookups each, or 10 runs for m =
1000. `seeded` and `mcg` stand for independent positions, `mcg` is the default. Each law is that of
`theory.fpr_at(..., scheme=)`."""

#: m, n, k, runs, and by scheme the rate of the simulation.
TABLE = (
    (
        1000,
        100,
        7,
        10,
        {
            "seeded": "8.8e-3",
            "mcg": "8.8e-3",
            "double": "9.3e-3",
            "quadratic": "9.3e-3",
            "enhanced-double": "8.4e-3",
            "triple": "8.5e-3",
        },
    ),
    (
        2000,
        100,
        14,
        60,
        {
            "seeded": "6.6e-5",
            "mcg": "6.6e-5",
            "double": "7.7e-4",
            "odd-step": "3.8e-4",
            "quadratic": "2.8e-4",
            "enhanced-double": "9.2e-5",
            "triple": "9.2e-5",
        },
    ),
    (
        2048,
        100,
        14,
        60,
        {
            "seeded": "5.5e-5",
            "mcg": "5.5e-5",
            "double": "6.5e-4",
            "odd-step": "3.5e-4",
            "enhanced-double": "7.7e-5",
        },
    ),
    (
        2003,
        100,
        14,
        60,
        {
            "seeded": "6.8e-5",
            "mcg": "6.8e-5",
            "double": "4.8e-4",
            "odd-step": "4.9e-4",
            "enhanced-double": "8.9e-5",
        },
    ),
    (
        100_000,
        10_000,
        7,
        60,
        {
            "seeded": "8.25e-3",
            "mcg": "8.25e-3",
            "double": "8.16e-3",
            "quadratic": "8.09e-3",
            "enhanced-double": "8.23e-3",
            "triple": "8.12e-3",
        },
    ),
)
FORMULAS = (
    ("textbook rate, m = 1000, n = 100, k = 7", "8.21e-3", partial(theory.classic_fpr, 100, 1000, 7)),
    ("exact rate, m = 1000, n = 100, k = 7", "8.27e-3", partial(theory.exact_fpr, 100, 1000, 7)),
    ("exact rate, m = 2003, n = 100, k = 14", "6.7e-5", partial(theory.exact_fpr, 100, 2003, 14)),
    ("textbook rate, m = 2048, n = 100, k = 14", "5.35e-5", partial(theory.classic_fpr, 100, 2048, 14)),
    ("textbook rate, m = 2000, n = 100, k = 14", "6.73e-5", partial(theory.classic_fpr, 100, 2000, 14)),
    ("second order, m = 2048, n = 100, k = 14", "5.42e-5", partial(theory.second_order_fpr, 100, 2048, 14)),
    ("rate, m = 100,000, n = 10,000, k = 7", "8.194e-3", partial(theory.exponential_fpr, 10_000, 100_000, 7)),
)
SOURCES = {
    "double": "Kirsch, Mitzenmacher 2006",
    "enhanced-double": "Dillinger, Manolios 2004",
    "triple": "Dillinger, Manolios 2004",
    "quadratic": "a tutorial",
    "odd-step": "an essay",
}


def list_rates() -> list[Case]:
    """The table of schemes."""
    cases = []
    for bits, items, hashes, runs, schemes in TABLE:
        for scheme, published in schemes.items():
            make = partial(fullbloom.BloomFilter.with_shape, bits, hashes, capacity=items, scheme=scheme)
            cases.append(
                Case(
                    f"rate with `{scheme}`",
                    published,
                    rate(make, items, filters=60 if items > 1000 else 150),
                    SOURCES.get(scheme, "independent positions"),
                    f"m = {bits:,}, n = {items:,}, k = {hashes}",
                    law=theory.fpr_at("classic", bits, hashes, items, scheme=scheme),
                    law_error=0.06,
                    runs=runs,
                )
            )
    return cases


def rate_of_short_hash(items: int, bits: int, hashes: int) -> Measure:
    """The rate of a filter whose base hash has 32 bits, over some millions of keys."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        held = fullbloom.BloomFilter.with_shape(bits, hashes, capacity=items, hash="murmur3-32")
        for start in range(0, items, 1 << 22):
            held.update(draw_hashes(draw, min(1 << 22, items - start)))
        probes = scale(8_000_000, share, 500_000)
        return binomial(int(held.contains_many(draw_hashes(draw, probes)).sum()), probes)

    return measure


def list_floors() -> list[Case]:
    """What a 32-bit base hash adds: keys with equal hashes."""
    items, source = 4_000_000, "RocksDB, `bloom_impl.h`"
    floor, many = theory.hash_collision_fpr(items, 32), 40_000_000
    ideal = theory.free_block_limit_fpr(10, 6)
    distinct = 2.0**32 * theory.hash_collision_fpr(many, 32)
    own = theory.exponential_fpr(distinct, 10 * many, 6)
    with_floor = 1 - (1 - theory.hash_collision_fpr(many, 32)) * (1 - own)
    return [
        Case(
            "rate with the 32-bit hash `murmur3-32`",
            "9.31e-4",
            rate_of_short_hash(items, 128_000_000, 16),
            source,
            f"n = {items:,}, 32 bits per key",
            law=floor + 2.2e-7,
            formula="1 - e^(-n/2^32)",
        ),
        Case(
            "keys from which the floor exceeds the rate of 10 bits per key",
            "4e7",
            formula(lambda: -(2.0**32) * math.log1p(-ideal)),
            source,
            "rate 0.96 %, k = 6",
        ),
        Case(
            "rate with `murmur3-32` at that number of keys, percent",
            "1.77",
            lambda draw, share: percent(rate_of_short_hash(many, 10 * many, 6)(draw, share)),
            source,
            f"n = {many:,}, 10 bits per key, k = 6; without the floor 0.84",
            law=100 * with_floor,
            formula="0.93 + 0.84",
            why="keys with equal hashes set their bits once: 39.8 million of the hashes differ",
        ),
    ]


def percent(sample: Sample) -> Sample:
    """A share in percent."""
    return Sample(100 * sample.mean, 100 * sample.error, 100 * sample.spread, sample.count)


def subject() -> Subject:
    """The cases."""
    formulas = [Case(what, published, formula(value), "theory") for what, published, value in FORMULAS]
    return Subject("positions", "Positions from few hashes", TEXT, [*formulas, *list_rates(), *list_floors()])
