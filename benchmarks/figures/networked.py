"""Filters on several machines: bits of a round of duplicate detection, messages, hops."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, pool
from benchmarks.figures.sampling import draw_hashes, formula, scale
from fullbloom import theory
from fullbloom.compose.networked import (
    AttenuatedNetwork,
    CountingElement,
    LocalElement,
    find_duplicates,
    replicate,
    run_local,
)

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.figures.model import Measure

TEXT = """Single-shot filters have one hash function and are spread over P processes; thrill, which has
them, uses 1/p = 8 and states n (2 + log2 8) bits. All figures here are of elements that are threads;
[networked filters](networked.md) has those of processes with 10 million keys."""

P, KEYS, FPR = 8, 80_000, 1 / 8
SHOT = "n = 80,000, P = 8, 1/p = 8, no duplicates"


def code(draw: np.random.Generator, share: float) -> Sample:
    """Bits per value of the hashes that one owner holds, as one list."""
    lists = [
        fullbloom.GolombSet.build_hashed(draw_hashes(draw, KEYS), fpr=FPR) for _ in range(scale(10, share))
    ]
    return pool([held.code_bits / held.num_added for held in lists])


def shoot(wanted: str) -> Measure:
    """A round over unique keys: bits of all messages per key, or the share of keys returned."""

    def one(draw: np.random.Generator) -> float:
        shards = draw_hashes(draw, KEYS).reshape(P, -1)
        reports = run_local(
            P,
            lambda element: find_duplicates(element, shards[element.rank].tolist(), fprs=(FPR,), exact=False),
        )
        if wanted == "bits":
            return sum(report.bits_sent for report in reports) / KEYS
        return sum(report.rounds[0].num_returned for report in reports) / KEYS

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(3, share))])

    return measure


def count_messages() -> float:
    """Messages of all elements that replicate a filter."""

    def job(element: LocalElement) -> int:
        counter = CountingElement(element)
        replicate(counter, fullbloom.BloomFilter(100))
        return counter.messages_sent

    return sum(run_local(P, job))


def walk() -> float:
    """Links that the query of the published example follows: bits 0, 1 and 3 of five, from n1 to n3."""
    empty = fullbloom.BloomFilter.with_shape(5, 3, layout="classic")
    names = (f"key {number}" for number in itertools.count())
    key = next(name for name in names if sorted(empty.positions(name)) == [0, 1, 3])
    network = AttenuatedNetwork(empty, depth=2)
    for name in ("n1", "n2", "n3", "n4"):
        network.add_node(name)
    network.connect(("n1", "n2"), ("n1", "n4"), ("n2", "n3"))
    network.add("n3", [key])
    return len(network.find("n1", key).walk) - 1


def subject() -> Subject:
    """The cases."""
    source = "Sanders et al. 2013; thrill"
    returned = theory.single_shot_fpr(FPR, P)
    bits = theory.single_shot_bits(KEYS, P, FPR) + theory.single_shot_answer_bits(KEYS, P, returned)
    cases = [
        Case(
            "bits per hash of one list, at most",
            "5",
            code,
            source,
            "1/p = 8",
            law=theory.golomb_bits_per_key(FPR, theory.rice_bits(FPR)),
            law_error=0.03,
            formula="2 + log2 8",
            why="a bound",
        ),
        Case(
            "bits per key of all messages of a round",
            "5",
            shoot("bits"),
            source,
            SHOT,
            law=bits / KEYS,
            law_error=0.05,
            formula="2 + log2 8",
            why="the bound counts the hashes of an owner as one list; they come from 8 senders, in packets "
            "8 times as sparse, which takes log2 8 bits more per hash. The figure includes the answers",
        ),
        Case(
            "unique keys that are returned, at most",
            "0.125",
            shoot("returned"),
            source,
            SHOT,
            law=returned,
            law_error=0.01,
            formula="p",
            why="a bound: an eighth of the hashes is one's own",
        ),
        Case(
            "messages that replicate a filter",
            "24",
            formula(count_messages),
            source,
            "P = 8",
            formula="P log2 P",
        ),
        Case(
            "accesses from which replication sends less, per key and log(1/p)",
            "3.85",
            formula(lambda: theory.replication_break_even(1, P, math.exp(-1))),
            source,
            "P = 8",
            formula="P / ln P",
        ),
        Case(
            "links that the query of the example follows",
            "2",
            formula(walk),
            "Koucheryavy et al. 2009",
            "bits 0, 1, 3 of 5; n1, n2, n3",
        ),
    ]
    return Subject("networked", "Filters on several machines", TEXT, cases)
