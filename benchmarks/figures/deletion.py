"""Removal: deletable filters, d-left tables, retouched filters."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, pool
from benchmarks.figures.sampling import draw_hashes, draw_seed, formula, rate, rate_of, scale
from fullbloom import theory

if TYPE_CHECKING:
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


def share_loads(wanted: str) -> Measure:
    """The share of buckets with at most four keys, or with all eight cells in use."""
    chosen = slice(0, 5) if wanted == "low" else slice(8, None)

    def measure(draw: np.random.Generator, share: float) -> Sample:
        count = scale(20, share)
        shares = [sum(fill_table(draw).bucket_loads()[chosen]) / BUCKETS for _ in range(count)]
        mean = sum(shares) / count
        return pool(shares, math.sqrt(max(mean, 1 / (count * BUCKETS)) / (count * BUCKETS)))

    return measure


def make_counters() -> fullbloom.CountingBloomFilter:
    """The counting filter that the d-left design is compared with, for 20,000 keys."""
    return fullbloom.CountingBloomFilter.with_shape(round(13.5 * 20_000), 9, capacity=20_000)


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


def retouch_chosen(draw: np.random.Generator, share: float) -> Sample:
    """The share of false positives lost over that of members lost, if bits are chosen for known ones."""

    def one() -> float:
        held: Any = fullbloom.RetouchedBloomFilter(2000, 0.01, seed=draw_seed(draw))
        keys, absent = draw.integers(0, 1 << 62, 2000), draw.integers(1 << 62, 1 << 63, 100_000)
        held.update(keys)
        wrong = absent[np.asarray(held.contains_many(absent))]
        held.add_false_positives(wrong)
        for key in wrong[:50].tolist():
            held.retouch(key, "ratio")
        removed = 1 - float(np.asarray(held.contains_many(wrong)).mean())
        return removed / max(1 - float(np.asarray(held.contains_many(keys)).mean()), 1 / len(keys))

    return pool([one() for _ in range(scale(20, share, least=4))])


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
    counters = "13.5 counters of 4 bits per key, k = 9"
    cases += [
        Case(
            "rate of a counting filter",
            "0.001529",
            rate(make_counters, 20_000, filters=30, probes=200_000),
            "Bonomi et al. 2006",
            counters,
            law=theory.classic_fpr(20_000, round(13.5 * 20_000), 9),
        ),
        Case(
            "bits per key of a counting filter",
            "54",
            formula(lambda: 8 * make_counters().nbytes / 20_000),
            "Bonomi et al. 2006",
            counters,
        ),
        Case(
            "times as large as the d-left table",
            "2.5",
            formula(lambda: 54 / (8 * fullbloom.DLeftCountingFilter(KEYS, 0.0015, cells=8).nbytes / KEYS)),
            "Bonomi et al. 2006",
            counters,
        ),
    ]
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
    cases += [
        Case(
            "buckets with at most 4 keys",
            "0.003",
            share_loads("low"),
            "Bonomi et al. 2006",
            design,
            law=sum(theory.dleft_loads(4, STORED / BUCKETS)[:5]),
            law_error=0.05,
            runs=1,
        ),
        Case(
            "buckets with 8 keys or more",
            "0.000",
            share_loads("full"),
            "Bonomi et al. 2006",
            design,
            law=sum(theory.dleft_loads(4, STORED / BUCKETS)[8:]),
            law_error=0.05,
        ),
    ]
    shape = "a tenth of the set bits cleared at random, k = 7"
    cases += [
        Case(
            "members missed",
            "0.5217",
            retouch("missed"),
            "Donnet et al. 2006",
            shape,
            law=theory.retouched_fnr(0.1, 7),
            formula="1 - (1 - x)^k",
        ),
        Case(
            "share of false positives lost over share of members lost",
            "1.00",
            retouch("ratio"),
            "Donnet et al. 2006",
            shape,
            law=1.0,
        ),
        Case(
            "the same, bits chosen to remove most of them, at least",
            "1",
            retouch_chosen,
            "Donnet et al. 2006",
            "2,000 keys at 1 %, 50 false positives removed by `ratio`",
            why="a bound: a chosen bit has many false positives and few members",
        ),
    ]
    return Subject("deletion", "Removal", TEXT, cases)
