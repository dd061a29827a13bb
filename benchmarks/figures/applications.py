"""What applications report: accesses avoided, rows kept, states left out."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, exact, pool
from benchmarks.figures.sampling import draw_hashes, formula, rate, scale
from fullbloom import theory

if TYPE_CHECKING:
    from benchmarks.figures.model import Measure

TEXT = """Bloom's own example of 1970: one word in ten of 500,000 needs an access to a dictionary of
exceptions on disk, and a filter avoids the accesses of the others, 0.9 (1 - P). The two figures that texts
quote, 85 % at 15 % of the area and 87 % at 18 %, are rows of one table."""

#: PostgreSQL's bloom index: bits of a row's signature, and of a query for two columns.
SIGNATURES, PROBED = ((80, "2439"), (200, "55")), 4
WORDS, EXCEPTIONS, AREA = 500_000, 50_000, 2_000_000
#: Hashes k, for P = 2^-k; disk accesses avoided; bits.
HYPHENATION = (
    (1, "0.450", "72"),
    (2, "0.675", "144"),
    (3, "0.7875", "216"),
    (4, "0.844", "289"),
    (5, "0.872", "361"),
    (6, "0.886", "433"),
)


def avoid(bits: int, hashes: int) -> Measure:
    """The share of all words that need no access to the dictionary on disk."""

    def one(draw: np.random.Generator) -> float:
        words = draw_hashes(draw, WORDS)
        held = fullbloom.BloomFilter.with_shape(bits, hashes, capacity=EXCEPTIONS)
        held.add_hashed(words[:EXCEPTIONS])
        return 1 - float(held.contains_hashed(words).mean())

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(20, share, least=4))])

    return measure


def join(draw: np.random.Generator, share: float) -> Sample:
    """The share of rows that a filter of the other side's keys keeps."""
    held = fullbloom.BloomFilter.with_shape(round(9.5851 * 100_000), 7, capacity=100_000)
    keys = draw_hashes(draw, 100_000)
    held.add_hashed(keys)
    rows = scale(4_000_000, share, 200_000)
    kept = int(held.contains_hashed(draw.choice(keys, rows // 20)).sum())
    kept += int(held.contains_hashed(draw_hashes(draw, rows - rows // 20)).sum())
    return binomial(kept, rows)


def omit(per_state: float) -> Measure:
    """The share of states that a bitstate search leaves out: each that the filter already seems to hold."""

    def one(draw: np.random.Generator) -> float:
        states = 100_000
        held = fullbloom.BloomFilter.with_shape(round(per_state * states), 3, capacity=states)
        new = np.asarray(held.add_many(draw.integers(0, 1 << 62, states)))
        return 1 - float(new.mean())

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(10, share, least=3))])

    return measure


def recheck(bits: int) -> Measure:
    """Rows of 10 million whose signatures of six columns hold both values of a query by chance."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        rows, step = scale(400_000, share, 40_000), 10_000
        hits = 0
        signature = fullbloom.BloomFilter.with_shape(bits, 2, capacity=6, scheme="seeded")
        for _ in range(0, rows, step):
            query: list[int] = []
            while len({bit for value in query for bit in signature.positions(value)}) < PROBED:
                query = draw.integers(0, 1 << 62, 2).tolist()
            for values in draw.integers(0, 1 << 62, (step, 6)).tolist():
                signature.clear()
                signature.update(values)
                hits += query[0] in signature and query[1] in signature
        found = binomial(hits, rows)
        return Sample(1e7 * found.mean, 1e7 * found.error, 1e7 * found.spread, rows)

    return measure


def expect_recheck(bits: int) -> float:
    """The exact law: all probed bits are among those that 12 throws set."""
    return 1e7 * sum((-1) ** j * math.comb(PROBED, j) * (1 - j / bits) ** 12 for j in range(PROBED + 1))


def expect_omitted(per_state: float) -> float:
    """The mean of (1 - e^(-3i/m))^3 over the states."""
    steps = 10_000
    return sum((-math.expm1(-3 * (i + 0.5) / steps / per_state)) ** 3 for i in range(steps)) / steps


def save_space(_draw: np.random.Generator, _share: float) -> Sample:
    """How many times smaller a filter at 1 % is than a set of a million texts."""
    import sys

    keys = {f"user-{number}" for number in range(1_000_000)}
    size = sys.getsizeof(keys) + sum(map(sys.getsizeof, keys))
    return exact(size / fullbloom.BloomFilter.nbytes_for(1_000_000, 0.01))


def subject() -> Subject:
    """The cases."""
    cases = []
    for hashes, avoided, kilobits in HYPHENATION:
        fpr = 2.0**-hashes
        size = EXCEPTIONS * math.log2(1 / fpr) / math.log(2)
        bits = round(size)
        law = 0.9 * (1 - theory.exponential_fpr(EXCEPTIONS, bits, hashes))
        shape = f"P = 1/{2**hashes}, {bits:,} of {AREA:,} bits"
        cases += [
            Case("thousand bits", kilobits, formula(lambda size=size: size / 1000), "Bloom 1970", shape),
            Case("accesses avoided", avoided, avoid(bits, hashes), "Bloom 1970", shape, law=law),
        ]
    cases += [
        Case(
            "accesses avoided at 15 % of the area",
            "0.8495",
            avoid(300_000, 4),
            "Bloom 1970",
            "300,000 of 2,000,000 bits, k = 4",
            law=0.9 * (1 - theory.exponential_fpr(EXCEPTIONS, 300_000, 4)),
        ),
        Case(
            "accesses avoided at 18 % of the area",
            "0.872",
            avoid(360_000, 5),
            "Bloom 1970",
            "360,000 of 2,000,000 bits, k = 5",
            law=0.9 * (1 - theory.exponential_fpr(EXCEPTIONS, 360_000, 5)),
        ),
        Case(
            "rate of a cache digest",
            "0.092",
            rate(
                partial(fullbloom.BloomFilter.with_shape, 500_000, 4, capacity=100_000),
                100_000,
                filters=20,
                probes=100_000,
            ),
            "Squid",
            "5 bits per entry, k = 4",
            law=theory.exponential_fpr(1, 5, 4),
        ),
        Case(
            "rows that a join filter keeps",
            "0.0595",
            join,
            "an essay",
            "5 % of the rows match, filter at 1 %",
            law=0.05 + 0.95 * theory.exponential_fpr(1, 9.5851, 7),
        ),
    ]
    for per_state in (10.0, 30.0):
        law = expect_omitted(per_state)
        cases.append(
            Case(
                "states that a bitstate search leaves out",
                f"{law:.3g}",
                omit(per_state),
                "Holzmann 1998",
                f"k = 3, {per_state:g} bits per state, 100,000 states",
                law=law,
                law_error=0.01,
            )
        )
    cases += [
        *(
            Case(
                "rows of 10 million that a signature index checks in vain",
                published,
                recheck(bits),
                "PostgreSQL's manual",
                f"signatures of {bits} bits, 6 columns, a query for 2",
                law=expect_recheck(bits),
                runs=10_000_000,
            )
            for bits, published in SIGNATURES
        ),
        Case(
            "GB for the articles that users have read",
            "60",
            formula(lambda: theory.size_for("classic", 50_000_000_000, 0.01).num_bits / 8e9),
            "Medium",
            "10M users, 5,000 articles, 1 %",
            why="a rounded figure; 5e10 keys at 9.59 bits",
        ),
        Case(
            "GB for a billion URLs",
            "1.2",
            formula(lambda: fullbloom.BloomFilter.nbytes_for(1_000_000_000, 0.01) / 1e9),
            "an essay",
            "1 %",
            why="the default layout is blocked: 5 % larger",
        ),
        Case(
            "times smaller than a hash set",
            "7",
            save_space,
            "an essay",
            "1,000,000 texts of 11 bytes, 1 %",
            why="the set of CPython holds objects: the ratio depends on the keys and on the language",
        ),
    ]
    return Subject("applications", "Applications", TEXT, cases)
