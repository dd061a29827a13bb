"""Numbers of keys from numbers of bits: one filter, a union, an intersection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import fullbloom
from benchmarks.figures.model import Case, Subject
from benchmarks.figures.sampling import average, deviation, draw_hashes, fill, formula
from fullbloom import theory

if TYPE_CHECKING:
    import numpy as np

TEXT = """The number of keys in a filter follows from its set bits (Swamidass and Baldi 2007).
`approx_count()`, `union_count()` and `intersection_count()` return these estimates. The published means
and deviations are of a simulation that does not state its runs."""

BITS = 10_000
FILTERS = 600


def estimate(draw: np.random.Generator, items: int) -> float:
    """The number of keys of a new filter, by its bits."""
    make = partial(fullbloom.BloomFilter.with_shape, BITS, 7, capacity=items, scheme="seeded")
    return float(fill(make, draw, items).approx_count()[0])


def share_keys(
    draw: np.random.Generator, only_a: int, only_b: int, both: int
) -> tuple[fullbloom.BloomFilter, ...]:
    """Two filters with common keys."""
    pair = [fullbloom.BloomFilter.with_shape(BITS, 4, capacity=2000, scheme="seeded") for _ in range(2)]
    common = draw_hashes(draw, both)
    for held, own in zip(pair, (only_a, only_b), strict=True):
        held.add_hashed(common)
        held.add_hashed(draw_hashes(draw, own))
    return tuple(pair)


def intersect(draw: np.random.Generator) -> float:
    """The estimate by the bits of the union."""
    a, b = share_keys(draw, 500, 1000, 500)
    return float(a.intersection_count(b)[0])


def intersect_naively(draw: np.random.Generator) -> float:
    """The estimate by the bits that both have, which counts bits of different keys, too."""
    a, b = share_keys(draw, 500, 1000, 500)
    return float(theory.estimate_items(sum((a & b).bits()), BITS, 4)[0])


def unite(draw: np.random.Generator) -> float:
    """The estimate of a union of 2,000 keys."""
    a, b = share_keys(draw, 500, 1000, 500)
    return float(a.union_count(b)[0])


def subject() -> Subject:
    """The cases."""
    source, text = "Swamidass, Baldi 2007", f"m = {BITS:,}, k = 7"
    cases = [
        Case(
            "mean estimate of 1,000 keys",
            "999.7",
            average(partial(estimate, items=1000), FILTERS),
            source,
            text,
            law=1000.0,
            law_error=0.001,
            runs=FILTERS,
        ),
        Case(
            "deviation of the estimate of 1,000 keys",
            "8.00",
            deviation(partial(estimate, items=1000), FILTERS),
            source,
            text,
            law=theory.estimate_std(1000, BITS, 7),
            law_error=0.01,
            runs=FILTERS,
        ),
        Case(
            "deviation of the estimate of 2,000 keys",
            "18.7",
            deviation(partial(estimate, items=2000), FILTERS),
            source,
            text,
            law=theory.estimate_std(2000, BITS, 7),
            law_error=0.05,
            runs=FILTERS,
        ),
        Case(
            "mean estimate of a union of 2,000 keys",
            "2000",
            average(unite, FILTERS),
            source,
            f"m = {BITS:,}, k = 4",
            law=2000.0,
            law_error=0.002,
        ),
        Case(
            "mean estimate of 500 common keys",
            "500.1",
            average(intersect, FILTERS),
            "Papapetrou et al. 2010",
            "1,000 and 1,500 keys, m = 10,000, k = 4",
            law=500.0,
            law_error=0.003,
            runs=FILTERS,
        ),
        Case(
            "deviation of that estimate",
            "9.8",
            deviation(intersect, FILTERS),
            "Papapetrou et al. 2010",
            "1,000 and 1,500 keys, m = 10,000, k = 4",
            runs=FILTERS,
        ),
        Case(
            "the same from the bits of the AND alone",
            "654",
            average(intersect_naively, 200),
            "a warning",
            "1,000 and 1,500 keys, m = 10,000, k = 4",
            runs=200,
        ),
    ]
    cases += [
        Case(
            f"deviation of the estimate of {items:,} keys: law",
            published,
            formula(partial(theory.estimate_std, items, BITS, 7)),
            source,
            text,
        )
        for items, published in ((1000, "8.00"), (2000, "18.4"))
    ]
    return Subject("estimates", "The number of keys in a filter", TEXT, cases)
