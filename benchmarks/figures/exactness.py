"""Exact answers: the zone without false positives, cascades, tables that list their keys, labels."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, exact, pool
from benchmarks.figures.sampling import draw_hashes, draw_seed, formula, scale
from fullbloom import theory

if TYPE_CHECKING:
    from benchmarks.figures.model import Measure

TEXT = """The zone filter has no false positives up to its capacity, checked here by trying every pair of
48 numbers. A cascade's size is that of the formula of CRLite (Larisch et al. 2017), 1.44 r log2(s/r) + 4.2
r. The invertible filter of Fullbloom has four cells per key. Tables of three cells per key are peeled over
the positions of its partitioned filter with three hashes, which are those that such a table would have.
Simulations without a stated number of runs are taken as one."""

#: universe, capacity, number of primes, cells.
ZONES = (
    (48, 2, "5", "28"),
    (1000, 2, "8", "77"),
    (100, 3, "8", "77"),
    (1 << 16, 2, "10", "129"),
    (10_000, 3, "12", "197"),
    (1_000_000, 3, "16", "381"),
    (1_000_000, 10, "37", "2584"),
    (1 << 32, 4, "27", "1264"),
)
CASCADES = (
    (10_000, 100_000, "89625", "89836"),
    (100_000, 1_000_000, "897993", "898358"),
    (10_000, 10_000_000, "185531", "185507"),
)
THRESHOLDS = ((3, "1.222"), (4, "1.295"), (5, "1.425"), (6, "1.570"), (7, "1.719"))
#: Items, cells per item, share of complete lists (of some 1,000 tables).
LISTED = (
    (50, 1.5, "0.93"),
    (50, 2.0, "0.997"),
    (50, 2.5, "0.999"),
    (100, 1.5, "0.98"),
    (10_000, 1.25, "0.00"),
    (10_000, 1.35, "1.00"),
)
#: The same for three cells per key.
PEELED = (
    (50, 1.5, "0.84"),
    (50, 2.0, "0.952"),
    (50, 3.0, "0.993"),
    (100, 1.4, "0.85"),
    (10_000, 1.20, "0.0"),
    (10_000, 1.25, "1.0"),
)
#: Areas 1 to 5 of 200 keys each: a-priori rates, simulated rates, expected promotions.
SPATIAL = (
    ("0.0113", "0.0059", "0.0022", "0.0005", "0.00002"),
    ("0.0118", "0.0057", "0.0022", "0.0004", "0.00003"),
    ("0.0086", "0.0027", "0.0005", "0.00002", "0"),
)
CELLS, HASHES = 8192, 5


def count_wrong(size: int) -> Measure:
    """False positives over all sets of so many of 48 numbers, in a zone of two."""

    def measure(_draw: np.random.Generator, _share: float) -> Sample:
        wrong = 0
        for members in itertools.combinations(range(48), size):
            held = fullbloom.ZoneFilter(2, universe=48)
            held.update(members)
            wrong += sum(held.contains_many(range(48))) - size
        return exact(wrong)

    return measure


def decode(which: int) -> float:
    """A member that the counting form lists."""
    held = fullbloom.ZoneFilter(2, universe=1000, counting=True)
    held.update([249, 807])
    return sorted(held.decode())[which]


def build_cascades(included: int, excluded: int, wanted: str) -> Measure:
    """The bits or the levels of a cascade that is built of random keys and checked."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        def one() -> float:
            keys = draw.permutation(np.arange(included + excluded)) + (1 << 40)
            built = fullbloom.FilterCascade.build(keys[:included], keys[included:], seed=draw_seed(draw))
            assert np.asarray(built.includes_many(keys[:included])).all()
            return float(getattr(built, wanted))

        return pool([one() for _ in range(scale(2 if excluded > 1_000_000 else 6, share))])

    return measure


def list_share(items: int, ratio: float) -> Measure:
    """The share of tables with so many cells per key that list all their keys."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        capacity = next(
            number
            for number in (*range(1, 400), *range(8000, 12_000, 10))
            if fullbloom.InvertibleBloomFilter(number).num_cells >= ratio * items
        )
        trials = scale(4000 if items < 1000 else 40, share, 20)
        hits = 0
        for _ in range(trials):
            held = fullbloom.InvertibleBloomFilter(capacity)
            held.add_hashed(draw_hashes(draw, items))
            hits += held.decode().complete
        return binomial(hits, trials)

    return measure


def peel_share(items: int, ratio: float) -> Measure:
    """The share of tables of three cells per key that peel: each key is alone in a cell at some time."""
    cells = 3 * math.floor(ratio * items / 3 + 1e-9)
    held: Any = fullbloom.BloomFilter.with_shape(
        cells, 3, capacity=items, layout="partitioned", scheme="seeded"
    )

    def measure(draw: np.random.Generator, share: float) -> Sample:
        trials = scale(4000 if items < 1000 else 40, share, 20)
        hits = sum(
            peel([held.positions(key) for key in draw.integers(0, 1 << 62, items).tolist()], cells)
            for _ in range(trials)
        )
        return binomial(hits, trials)

    return measure


def peel(places: list[list[int]], cells: int) -> bool:
    """Whether all keys can be taken out, one alone in a cell after the other."""
    counts, sums = [0] * cells, [0] * cells
    for key, chosen in enumerate(places):
        for at in chosen:
            counts[at] += 1
            sums[at] ^= key
    pure, left = [at for at in range(cells) if counts[at] == 1], len(places)
    while pure:
        at = pure.pop()
        if counts[at] != 1:
            continue
        left -= 1
        key = sums[at]
        for other in places[key]:
            counts[other] -= 1
            sums[other] ^= key
            if counts[other] == 1:
                pure.append(other)
    return left == 0


def label_rates(label: int, inside: bool) -> Measure:
    """The share of keys of no area, or of an area, that get a label, or a higher one.

    Few keys of area 4 do, so more filters are asked.
    """

    def one(draw: np.random.Generator) -> float:
        held: Any = fullbloom.SpatialBloomFilter(1000, 0.03, areas=5)
        keys = draw_hashes(draw, round(1000 * held.num_cells / CELLS) // 5 * 5).view(np.int64)
        areas = np.repeat(np.arange(1, 6), len(keys) // 5)
        held.update(keys, areas)
        if inside:
            return float((np.asarray(held.label_many(keys[areas == label])) > label).mean())
        return float((np.asarray(held.label_many(draw_hashes(draw, 100_000).view(np.int64))) == label).mean())

    def measure(draw: np.random.Generator, share: float) -> Sample:
        rates = [one(draw) for _ in range(scale(400 if inside and label > 3 else 60, share, least=4))]
        trials = len(rates) * (200 if inside else 100_000)
        return pool(rates, binomial(sum(rates) / len(rates) * trials, trials).error)

    return measure


def list_zones() -> list[Case]:
    """Zone filters."""
    source, cases = "Kiss et al. 2018", []
    for universe, capacity, primes, cells in ZONES:
        shape = f"universe {universe:,}, zone {capacity}"
        held = fullbloom.ZoneFilter(capacity, universe=universe)
        cases += [
            Case("primes", primes, formula(lambda held=held: held.num_hashes), source, shape),
            Case("bits", cells, formula(lambda held=held: held.num_cells), source, shape),
        ]
    shape = "universe 48, zone 2"
    return [
        *cases,
        Case("false positives of all sets of 2", "0", count_wrong(2), source, shape),
        Case("false positives of all sets of 3, one beyond the zone", "4300", count_wrong(3), source, shape),
        Case(
            "smaller of the members 249 and 807, decoded",
            "249",
            formula(partial(decode, 0)),
            source,
            "universe 1,000, zone 2, counters",
        ),
        Case(
            "larger of them", "807", formula(partial(decode, 1)), source, "universe 1,000, zone 2, counters"
        ),
        Case(
            "first symmetric polynomial of them, sigma 1",
            "1056",
            formula(lambda: decode(0) + decode(1)),
            source,
            "universe 1,000, zone 2, counters",
        ),
        Case(
            "second symmetric polynomial of them, sigma 2",
            "200943",
            formula(lambda: decode(0) * decode(1)),
            source,
            "universe 1,000, zone 2, counters",
        ),
    ]


def list_cascades() -> list[Case]:
    """Cascades."""
    cases, source = [], "Larisch et al. 2017"
    for included, excluded, simulated, published in CASCADES:
        shape = f"r = {included:,}, s = {excluded:,}"
        cases += [
            Case(
                "bits of a cascade: formula",
                published,
                formula(partial(theory.cascade_bits, included, excluded)),
                source,
                shape,
                why="the factor of r is 1.4427 * 2.914 = 4.204 here, 4.2 in the published form",
            ),
            Case(
                "bits of a cascade",
                simulated,
                build_cascades(included, excluded, "num_bits"),
                source,
                shape,
                law=theory.cascade_bits(included, excluded),
                law_error=0.02,
                runs=1,
                why="levels have whole numbers of hashes and lines; the formula has fractions",
            ),
        ]
    cases.append(
        Case(
            "levels of a cascade",
            "27",
            build_cascades(10_000, 100_000, "num_levels"),
            source,
            "r = 10,000, s = 100,000",
            runs=1,
            why="the number of levels is that of the last few false positives, which varies by a few",
        )
    )
    cases.append(
        Case(
            "MB for 12.7 of 30 million certificates",
            "7.7",
            formula(lambda: theory.cascade_bits(12.7e6, 17.3e6) / 8e6),
            source,
            why="CRLite's file was about 10 MB",
        )
    )
    return cases


def list_tables() -> list[Case]:
    """Invertible filters."""
    cases = [
        Case(
            "cells per key at the threshold",
            published,
            formula(partial(theory.peeling_threshold, hashes)),
            "Goodrich, Mitzenmacher 2011",
            f"k = {hashes}",
        )
        for hashes, published in THRESHOLDS
    ]
    for items, ratio, published in LISTED:
        cases.append(
            Case(
                "share of tables that list all keys",
                published,
                list_share(items, ratio),
                "a simulation",
                f"{items} keys, at least {ratio} cells per key, k = 4",
                runs=1000,
            )
        )
    cases += [
        Case(
            "share of tables of three cells per key that peel",
            published,
            peel_share(items, ratio),
            "a simulation",
            f"{items} keys, {ratio} cells per key, k = 3",
            runs=1000,
        )
        for items, ratio, published in PEELED
    ]
    return cases


def list_labels() -> list[Case]:
    """Spatial filters."""
    cases, items = [], [200] * 5
    laws = theory.spatial_fprs(items, CELLS, HASHES)
    promotions = theory.spatial_promotion(items, CELLS, HASHES)
    held = fullbloom.SpatialBloomFilter(1000, 0.03, areas=5)
    assert held.num_hashes == HASHES, held.num_hashes
    shape = f"five areas of 200 keys, m = 8,192, k = 5; here m = {held.num_cells:,}"
    for label in range(1, 6):
        priori, simulated, promoted = (row[label - 1] for row in SPATIAL)
        at = label - 1
        cases += [
            Case(
                f"rate of label {label}: law",
                priori,
                formula(partial(float, laws[at])),
                "Palmieri et al. 2014",
                shape,
            ),
            Case(
                f"rate of label {label}",
                simulated,
                label_rates(label, False),
                "a simulation",
                shape,
                law=laws[at],
                law_error=0.05,
                runs=1,
            ),
        ]
        cases.append(
            Case(
                f"keys of area {label} that get a higher label",
                promoted,
                label_rates(label, True),
                "Palmieri et al. 2014",
                shape,
                law=promotions[at],
                law_error=0.05,
            )
        )
    return cases


def subject() -> Subject:
    """The cases."""
    cases = [*list_zones(), *list_cascades(), *list_tables(), *list_labels()]
    return Subject("exactness", "Exact answers, lists and labels", TEXT, cases)
