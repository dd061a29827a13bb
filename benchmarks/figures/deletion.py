"""Removal: deletable filters, d-left tables, retouched filters."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, pool
from benchmarks.figures.sampling import draw_hashes, draw_seed, formula, rate_of, scale
from fullbloom import theory

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.figures.model import Measure

TEXT = """The published form of deletability (Rothenberg et al. 2010) takes a key's own bit as possibly
empty and is too high. The law conditioned on that bit agrees with filters, where regions are small. The
d-left design is the published one: 4 sub-tables of buckets of 8 cells with 14-bit remainders, 6 keys per
bucket."""

#: m, n, k, regions; the share of keys that can be removed: simulated (2,000 runs), as published, conditioned.
DELETABLE = (
    (1000, 100, 7, 50, "0.129", "0.214", "0.131"),
    (1000, 100, 7, 100, "0.552", "0.759", "0.552"),
    (1024, 50, 5, 16, "0.550", "0.660", "0.572"),
    (1024, 50, 5, 64, "0.976", "0.996", "0.978"),
    (4096, 200, 5, 128, "0.886", "0.945", "0.887"),
)
LOADS = ((5, "0.121"), (6, "0.749"), (7, "0.127"))
KEYS, BUCKETS = 240_000, 40_000
#: Cells in use: keys that share a fingerprint take one.
STORED = KEYS * (1 - theory.dleft_fpr(KEYS, BUCKETS // 4, 14) / 2)


def remove_share(bits: int, items: int, hashes: int, regions: int) -> Measure:
    """The share of keys that `discard` removes, each from the full filter."""

    def one(draw: np.random.Generator) -> float:
        held = fullbloom.DeletableBloomFilter.with_shape(bits, hashes, regions=regions, capacity=items)
        keys = draw.integers(0, 1 << 63, items)
        held.update(keys)
        return sum(held.copy().discard(int(key)) for key in keys[:20]) / 20

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(1500, share, least=40))])

    return measure


def fill_table(draw: np.random.Generator) -> fullbloom.DLeftCountingFilter:
    """The published design, with 240,000 keys."""
    table = fullbloom.DLeftCountingFilter(KEYS, 0.0015, cells=8)
    table.add_hashed(draw_hashes(draw, KEYS))
    return table


def find_absent(draw: np.random.Generator, share: float) -> Sample:
    """The rate of the d-left table."""
    probes = scale(8_000_000, share, 400_000)
    return binomial(rate_of(fill_table(draw), draw, probes) * probes, probes)


def share_load(load: int) -> Measure:
    """The share of buckets with so many keys. Loads repel each other, so that the error is an upper bound."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        count = scale(20, share)
        return pool(
            [fill_table(draw).bucket_loads()[load] / BUCKETS for _ in range(count)],
            math.sqrt(0.2 / BUCKETS / count),
        )

    return measure


def retouch(wanted: str) -> Measure:
    """After a tenth of the set bits was cleared: the rate over that before, or the share of members "
    "missed."""

    def one(draw: np.random.Generator) -> float:
        held = fullbloom.RetouchedBloomFilter(20_000, 0.01, seed=draw_seed(draw))
        keys = draw_hashes(draw, 20_000)
        held.add_hashed(keys)
        absent = draw_hashes(draw, 400_000)
        before = float(held.contains_hashed(absent).mean())
        held.clear_random(0.1)
        if wanted == "missed":
            return 1 - float(held.contains_hashed(keys).mean())
        lost = 1 - float(held.contains_hashed(absent).mean()) / before
        return lost / (1 - float(held.contains_hashed(keys).mean()))

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(20, share, least=4))])

    return measure


def subject() -> Subject:
    """The cases."""
    cases = []
    for bits, items, hashes, regions, simulated, published, conditioned in DELETABLE:
        shape = f"m = {bits:,}, n = {items}, k = {hashes}, r = {regions}"
        args = (items, bits, hashes, regions)
        law = theory.deletability(*args)
        cases += [
            Case(
                "removable keys, published form",
                published,
                formula(partial(theory.published_deletability, *args)),
                "Rothenberg et al. 2010",
                shape,
            ),
            Case(
                "removable keys, conditioned law",
                conditioned,
                formula(partial(theory.deletability, *args)),
                "Fullbloom",
                shape,
            ),
            Case(
                "removable keys of filters",
                simulated,
                remove_share(bits, items, hashes, regions),
                "a simulation",
                shape,
                law=law,
                law_error=0.05,
                runs=2000,
            ),
        ]
    design = "d = 4, 6 keys per bucket of 8 cells, r = 14"
    cases += [
        Case(
            "rate of the d-left design: law",
            "0.001465",
            formula(partial(theory.dleft_load_fpr, 4, 6, 14)),
            "Bonomi et al. 2006",
            design,
        ),
        Case(
            "rate of the d-left table",
            "0.001465",
            find_absent,
            "Bonomi et al. 2006",
            design,
            law=theory.dleft_fpr(KEYS, 10_000, 14),
        ),
        Case(
            "bits per key",
            "21.33",
            formula(partial(theory.dleft_bits_per_key, 6, 8, 14)),
            "Bonomi et al. 2006",
            design,
        ),
    ]
    cases.append(
        Case(
            "rate of a counting filter of 2.5 times the space: law",
            "0.001529",
            formula(partial(theory.exponential_fpr, 1, 13.5, 9)),
            "Bonomi et al. 2006",
            "13.5 counters of 4 bits per key, k = 9",
        )
    )
    cases += [
        Case(
            f"buckets with {load} keys",
            published,
            share_load(load),
            "Bonomi et al. 2006",
            design,
            law=theory.dleft_loads(4, STORED / BUCKETS)[load],
            law_error=0.02,
            runs=1,
            why="keys that share a fingerprint take one cell, so buckets are a little emptier; the "
            "published loads are of one simulation without such keys",
        )
        for load, published in LOADS
    ]
    shape = "a tenth of the set bits cleared at random, k = 7"
    cases += [
        Case(
            "members missed",
            f"{theory.retouched_fnr(0.1, 7):.4f}",
            retouch("missed"),
            "Donnet et al. 2006",
            shape,
            law=theory.retouched_fnr(0.1, 7),
        ),
        Case(
            "share of false positives lost over share of members lost",
            "1.00",
            retouch("ratio"),
            "Donnet et al. 2006",
            shape,
            law=1.0,
        ),
    ]
    return Subject("deletion", "Removal", TEXT, cases)
