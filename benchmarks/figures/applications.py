"""What applications report: accesses avoided, rows kept, states left out."""

from __future__ import annotations

import math
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, exact, pool
from benchmarks.figures.sampling import average, draw_hashes, draw_seed, formula, rate, scale
from benchmarks.recipes.policies import Lru
from fullbloom import theory
from fullbloom.recipes.admission import SecondRequestCache
from fullbloom.recipes.traces import draw_zipf, measure_one_hit_share

if TYPE_CHECKING:
    from benchmarks.figures.model import Measure

TEXT = """Bloom's own example of 1970: one word in ten of 500,000 needs an access to a dictionary of
exceptions on disk, and a filter avoids the accesses of the others, 0.9 (1 - P). The two figures that texts
quote, 85 % at 15 % of the area and 87 % at 18 %, are rows of one table."""

#: PostgreSQL's bloom index: bits of a row's signature; rows rechecked, their expected number and deviation.
SIGNATURES = ((80, "2439", "2372", "49"), (200, "55", "68.5", "8"))
#: Bits of a query for two columns; rows, and queries that are asked of our index.
PROBED, ROWS, QUERIES = 4, 10_000_000, 100
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
    """Rows of 10 million that an index of six columns returns for a query that no row matches.

    The queries are those whose two values have no bit in common, as the published one.
    """

    def measure(draw: np.random.Generator, share: float) -> Sample:
        names, rows = [f"column {number}" for number in range(6)], scale(ROWS, share, 400_000)
        index = fullbloom.SignatureIndex(bits, 2, columns=names)
        for start in range(0, rows, 1 << 20):
            count = min(1 << 20, rows - start)
            index.add_table({name: draw.integers(0, 1 << 62, count) for name in names})
        found: list[float] = []
        while len(found) < QUERIES:
            query = dict(zip(names[:2], draw.integers(0, 1 << 62, 2).tolist(), strict=True))
            if len({*index.positions(query)}) == PROBED:
                found.append(index.count_candidates(query) * (ROWS / rows))
        return pool(found)

    return measure


def admit(wanted: str) -> Measure:
    """What admission on the second request does to an LRU cache of 3,000 objects."""

    def one(draw: np.random.Generator) -> float:
        trace = list(islice(draw_zipf(600_000, 0.9, seed=draw_seed(draw)), 300_000))
        if wanted == "one-hit":
            return measure_one_hit_share(trace)
        lru, admitted = Lru(3000), SecondRequestCache[int, None](3000)
        for key in trace:
            lru.request(key)
            admitted.get(key, lambda _: None)
        found = admitted.info()
        values = {
            "writes": 1 - found.writes / lru.writes,
            "before": lru.hits / len(trace),
            "after": found.hits / len(trace),
        }
        return values[wanted]

    return average(one, 3)


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


def list_admission() -> list[Case]:
    """What Akamai reports about admission on the second request."""
    why = (
        "a figure of Akamai's traffic and caches; here the trace is of Zipf's law with exponent 0.9, and all "
        "objects are of one size"
    )
    return [
        Case(what, published, admit(wanted), "Maggs, Sitaraman 2015", shape, why=why)
        for what, published, wanted, shape in (
            ("objects that are requested once", "0.74", "one-hit", "300,000 requests"),
            ("writes saved by admission on the second request", "0.44", "writes", "cache of 3,000 objects"),
            ("hit ratio before", "0.74", "before", "cache of 3,000 objects; bytes there, requests here"),
            ("hit ratio after", "0.83", "after", "cache of 3,000 objects; bytes there, requests here"),
        )
    ]


def list_stores() -> list[Case]:
    """What storage engines and joins report."""
    tables = {fpr: fullbloom.BloomFilter(100_000, fpr, layout="classic").num_bits for fpr in (0.01, 0.1)}
    return [
        Case(
            "bits at 1 % over bits at 10 %",
            "3",
            formula(lambda: tables[0.01] / tables[0.1]),
            "Cassandra's manual",
            "its defaults, 0.01 and 0.1 for leveled compaction",
            why="the manual is wrong: log(0.01) / log(0.1) is 2",
        ),
        Case(
            "KB of the filter of a join",
            "200",
            formula(lambda: fullbloom.BloomFilter.nbytes_for(100_000, 0.01) / 1000),
            "an essay",
            "100,000 keys at 1 %",
            why="a rounded figure: 120 KB are enough for 1 %, 126 in the blocked layout; 200 KB give 0.05 %",
        ),
        Case(
            "GB of the lists of articles that users have read",
            "800",
            formula(lambda: 10_000_000 * 5_000 * len(UUID(int=0).bytes) / 1e9),
            "an essay",
            "10M users, 5,000 articles of 16 bytes each",
        ),
        Case(
            "GB of a filter for each of these users",
            "60",
            formula(lambda: fullbloom.FilterBank.nbytes_for(10_000_000, 5000, 0.01) / 1e9),
            "an essay",
            "`FilterBank`, 5,000 articles at 1 %",
            why="a rounded figure; the bank has whole lines and a table of owners",
        ),
    ]


def list_signatures() -> list[Case]:
    """PostgreSQL's experiment: 10 million rows, six columns, a query for two, no true match."""
    source, cases = "PostgreSQL's manual", []
    for bits, published, expected, deviation in SIGNATURES:
        shape = f"signatures of {bits} bits, 6 columns, a query for 2"
        independent = partial(theory.signature_fpr, bits, 1, 12, PROBED)
        cases += [
            Case(
                "rows of 10 million that a signature index checks in vain",
                published,
                recheck(bits),
                source,
                shape,
                law=ROWS * theory.signature_fpr(bits, 2, 6, PROBED),
                law_error=0.01,
                runs=1,
                why="one query there, whose rows scatter by the deviation below",
            ),
            Case(
                "the same, bits thrown independently as PostgreSQL does: law",
                expected,
                formula(lambda independent=independent: ROWS * independent()),
                "the exact law",
                shape,
            ),
            Case(
                "its deviation from one query to the next: law",
                deviation,
                formula(lambda independent=independent: math.sqrt(ROWS * independent())),
                "the exact law",
                shape,
            ),
        ]
    cases.append(
        Case(
            "the same, assuming independent bits: law",
            "3853",
            formula(lambda: ROWS * theory.classic_fpr(12, 80, 1) ** PROBED),
            "the textbook rate, a warning",
            "signatures of 80 bits, 6 columns, a query for 2",
        )
    )
    return cases


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
    for per_state, omitted in ((10.0, "0.00476"), (30.0, "0.000222")):
        cases.append(
            Case(
                "states that a bitstate search leaves out",
                omitted,
                omit(per_state),
                "Holzmann 1998",
                f"k = 3, {per_state:g} bits per state, 100,000 states",
                law=expect_omitted(per_state),
                law_error=0.01,
                formula="mean of (1 - e^(-k i/m))^k",
            )
        )
    cases += [
        *list_signatures(),
        *list_admission(),
        *list_stores(),
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
