"""Sizes and numbers of hashes, and the rules of thumb: so many bits per key for a rate."""

from __future__ import annotations

import math
from functools import partial

import fullbloom
from benchmarks.figures.model import Case, Subject
from benchmarks.figures.sampling import formula, rate
from fullbloom import theory

TEXT = """The rules of thumb of tutorials, and what filters of these sizes do. Rates depend on m/n and k
only, so they are measured at n = 100,000. Sizes are those of the formula, rounded up."""

SIZES = (
    (10_000_000, 0.01, "95850584", "7"),
    (10_000_000, 0.001, "143775876", "10"),
    (5_000_000, 0.001, "71887938", "10"),
)
BYTES = ((100_000_000, "119.8"), (1_000_000_000, "1198"))
RULES = ((0.1, "4.79", 3), (0.01, "9.59", 7), (0.001, "14.38", 10), (0.0001, "19.17", 13))
#: Bits per key, hashes, published rate.
WRONG = (
    (14.3776, 4, "0.00348", "k = 4, far below the optimum 10", "a tutorial"),
    (14.3776, 20, "0.00327", "k = 20, far above the optimum 10", "a tutorial"),
    (14.3776, 10, "0.0010000", "k = 10, the optimum", "a tutorial"),
    (9.5850583, 6, "0.010143", "k = 6, from a size cut to a whole number", "a service design"),
    (9.5850583, 7, "0.010039", "k = 7", "a service design"),
)
N = 100_000


def make(per_key: float, hashes: int) -> fullbloom.BloomFilter:
    """A classic filter for N keys."""
    return fullbloom.BloomFilter.with_shape(round(per_key * N), hashes, capacity=N)


def list_sizes() -> list[Case]:
    """Sizes of the formula."""
    cases = []
    for items, fpr, bits, hashes in SIZES:
        shape = f"n = {items:,}, p = {fpr:g}"
        found = theory.num_bits(items, fpr)
        cases += [
            Case("bits", bits, formula(partial(theory.num_bits, items, fpr)), "Bloom 1970", shape),
            Case("hashes", hashes, formula(partial(theory.num_hashes, found, items)), "Bloom 1970", shape),
        ]
    for items, megabytes in BYTES:
        size = theory.size_for("classic", items, 0.01).num_bits / 8e6
        why = "the constructor sizes for a whole number of hashes, so that the rate is kept"
        cases.append(
            Case(
                "MB of a filter",
                megabytes,
                formula(lambda size=size: size),
                "a service design",
                f"n = {items:,}, p = 0.01",
                why=why,
            )
        )
    overhead = theory.bits_per_key(0.01) / theory.min_bits_per_key(0.01)
    cases.append(
        Case("bits over the lower bound log2(1/p)", "1.44", formula(lambda: overhead), "Pagh et al. 2005")
    )
    base = math.exp(-(math.log(2) ** 2))
    cases.append(Case("base of the rate, p = base^(m/n)", "0.6185", formula(lambda: base), "Fan et al. 2000"))
    return cases


def subject() -> Subject:
    """The cases."""
    cases = list_sizes()
    for fpr, per_key, hashes in RULES:
        cases.append(
            Case(
                f"bits per key for a rate of {fpr:.2%}",
                per_key,
                formula(partial(theory.bits_per_key, fpr)),
                "rule table",
            )
        )
        law = theory.classic_fpr(N, round(float(per_key) * N), hashes)
        cases.append(
            Case(
                "rate of a filter of that size",
                f"{fpr:#.3g}",
                rate(
                    partial(make, float(per_key), hashes),
                    N,
                    filters=20,
                    probes=min(5_000_000, round(1000 / fpr)),
                ),
                "rule table",
                f"m/n = {per_key}, k = {hashes}",
                law=law,
                why="the rule assumes a fraction of a hash; with a whole number of hashes the law is "
                f"{law:.4g}. The constructor adds the bits that this takes"
                if abs(law / fpr - 1) > 0.002
                else "",
            )
        )
    for per_key, hashes, published, what, source in WRONG:
        law = theory.classic_fpr(N, round(per_key * N), hashes)
        cases.append(
            Case(
                f"rate with {what}",
                published,
                rate(partial(make, per_key, hashes), N, filters=20, probes=200_000),
                source,
                f"m/n = {per_key:.4f}",
                law=law,
            )
        )
    return Subject("sizes", "Sizes and rules of thumb", TEXT, cases)
