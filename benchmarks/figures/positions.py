"""Positions from few hashes: the rate of each scheme in small filters and in a large one."""

from __future__ import annotations

from functools import partial

import fullbloom
from benchmarks.figures.model import Case, Subject, binomial
from benchmarks.figures.sampling import draw_hashes, formula, rate, scale
from fullbloom import theory

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


def collide() -> Case:
    """The floor of a 32-bit hash: keys with equal hashes."""
    items, bits = 4_000_000, 128_000_000

    def measure(draw, share):  # noqa: ANN001, ANN202 - see Measure
        held = fullbloom.BloomFilter.with_shape(bits, 16, capacity=items, hash="murmur3-32")
        held.update(draw_hashes(draw, items))
        probes = scale(8_000_000, share, 500_000)
        return binomial(int(held.contains_many(draw_hashes(draw, probes)).sum()), probes)

    floor = theory.hash_collision_fpr(items, 32)
    why = "the floor of a 32-bit hash, 1 - e^(-n/2^32)"
    return Case(
        "rate with the 32-bit hash `murmur3-32`",
        f"{floor:.2e}",
        measure,
        "RocksDB, `bloom_impl.h`",
        f"n = {items:,}, 32 bits per key",
        law=floor + 2.2e-7,
        why=why,
    )


def subject() -> Subject:
    """The cases."""
    formulas = [Case(what, published, formula(value), "theory") for what, published, value in FORMULAS]
    return Subject("positions", "Positions from few hashes", TEXT, [*formulas, *list_rates(), collide()])
