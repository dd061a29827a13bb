"""Filters that grow and filters that forget."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, pool
from benchmarks.figures.sampling import draw_hashes, draw_seed, formula, rate_of, scale
from fullbloom import theory

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.figures.model import Measure

TEXT = """The published rate of the stable filter uses the mean share of zeros. Because the rate is a power
of that share, the real rate is higher by a few percent; `StableBloomFilter` is sized by the law with that
variation."""

#: K, Max, and the decrements P that give a rate of 1 % in the long run.
DECREMENTS = (
    (1, 1, "99.0"),
    (2, 1, "18.0"),
    (3, 1, "10.9"),
    (4, 1, "8.65"),
    (6, 1, "6.93"),
    (3, 3, "35.6"),
    (3, 7, "85.1"),
)
#: K, Max, bits of a cell, the rate asked for, which gives the published P, and the published simulation of
#: 1,000 cells: the share of zeros, and the rate, if it is stated; else the rate that P is for.
STABLE = ((3, 3, 2, 0.01, "0.787", "0.0101"), (2, 1, 1, 0.0102, "0.898", "0.0100"))


def settle(make: Callable[..., Any], wanted: str) -> Measure:
    """The share of zeros, or the rate, of a stable filter after 30 times its capacity."""

    def one(draw: np.random.Generator) -> float:
        held = make(seed=draw_seed(draw))
        held.add_hashed(draw_hashes(draw, 30 * held.capacity))
        return 1 - held.fill if wanted == "zeros" else rate_of(held, draw, 100_000)

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(120, share, least=8))])

    return measure


def pass_stream(draw: np.random.Generator, share: float) -> Sample:
    """False-positive plus false-negative rate of a window of 1,024 bits over a stream of 2^16 symbols."""
    window, symbols = 100_000, 1 << 16

    def one() -> float:
        held = fullbloom.AgingBloomFilter(30, 0.3)
        assert held.num_bits == 1024
        stream = draw.integers(0, symbols, 300_000)
        new = np.asarray(held.add_many(stream))
        last = np.full(symbols, -window - 1)
        known = np.zeros(len(stream), bool)
        for at, symbol in enumerate(stream.tolist()):
            known[at] = at - last[symbol] <= window
            last[symbol] = at
        after = slice(2 * window, None)
        return float((~new[after])[~known[after]].mean() + new[after][known[after]].mean())

    return pool([one() for _ in range(scale(12, share))])


def grow(draw: np.random.Generator, share: float) -> Sample:
    """The rate of a scalable filter of several stages, relative to the requested rate."""

    def one() -> float:
        held = fullbloom.ScalableBloomFilter(1000, 0.001, tightening=0.5)
        held.add_hashed(draw_hashes(draw, 60_000))
        return rate_of(held, draw, 500_000) / 0.001

    return pool([one() for _ in range(scale(20, share, least=4))])


def window_rate(kind: type, fpr: float) -> Measure:
    """The rate of a full window relative to the requested rate."""

    def one(draw: np.random.Generator) -> float:
        held = kind(10_000, fpr)
        count = round(held.keys_per_generation * len(held.generation_counts()) * 3)
        held.add_hashed(draw_hashes(draw, count))
        return rate_of(held, draw, 300_000)

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(20, share, least=4))])

    return measure


def list_growth() -> list[Case]:
    """Scalable filters."""
    source, text = "Almeida et al. 2007", "P = 0.1 %, r = 0.9"
    return [
        Case(
            "rate of the first stage",
            "0.0001",
            formula(partial(theory.stage_fpr, 0.001, 0.9, 0)),
            source,
            text,
        ),
        Case(
            "hashes of the first stage",
            "14",
            formula(partial(theory.stage_num_hashes, 0.001, 0.9, 0)),
            source,
            text,
        ),
        Case(
            "hashes of the first stage",
            "11",
            formula(partial(theory.stage_num_hashes, 0.001, 0.5, 0)),
            source,
            "P = 0.1 %, r = 0.5",
        ),
        Case(
            "keys of 6 stages",
            "63000",
            formula(partial(theory.scalable_capacity, 1000, 2, 6)),
            source,
            "first stage 1,000, growth 2",
        ),
        Case(
            "rate of a filter of 6 stages over P, at most",
            "1.00",
            grow,
            source,
            "P = 0.1 %, r = 0.5, 60,000 keys",
            why="1 is a bound: later stages are not full, and stages to come have not spent their rate",
        ),
    ]


def list_stable() -> list[Case]:
    """Stable filters."""
    cases = [
        Case(
            "decrements for a rate of 1 %",
            published,
            formula(partial(theory.stable_decrements, 0.01, hashes, most)),
            "Deng, Rafiei 2006",
            f"K = {hashes}, Max = {most}",
        )
        for hashes, most, published in DECREMENTS
    ]
    shape = "K = 3, P = 10, Max = 1"
    cases += [
        Case(
            "zeros in the long run",
            "0.7692",
            formula(partial(theory.stable_zeros, 1e18, 3, 10, 1)),
            "Deng, Rafiei 2006",
            shape,
        ),
        Case(
            "bound of the rate",
            "0.0123",
            formula(partial(theory.stable_fpr, 1e18, 3, 10, 1)),
            "Deng, Rafiei 2006",
            shape,
        ),
        Case(
            "zeros in the long run",
            "0.786",
            formula(partial(theory.stable_zeros, 1000, 3, 36, 3)),
            "Deng, Rafiei 2006",
            "m = 1,000, K = 3, P = 36, Max = 3",
        ),
    ]
    for hashes, most, cell_bits, fpr, zeros, rate in STABLE:
        make = partial(fullbloom.StableBloomFilter, 100, fpr, cell_bits=cell_bits, num_hashes=hashes)
        held = make()
        args = (held.num_cells, held.num_hashes, held.decrements, most)
        shape = f"K = {hashes}, P = {held.decrements}, Max = {most}"
        cases += [
            Case(
                "zeros of filters",
                zeros,
                settle(make, "zeros"),
                "a simulation",
                f"m = 1,000, {shape}; here m = {held.num_cells:,}",
                law=theory.stable_zeros(*args),
                runs=1,
            ),
            Case(
                "rate of filters",
                rate,
                settle(make, "rate"),
                "a simulation" if most > 1 else "Deng, Rafiei 2006",
                f"m = 1,000, {shape}; here m = {held.num_cells:,}",
                law=theory.stable_limit_fpr(*args),
                law_error=0.01,
                runs=1 if most > 1 else None,
                why="the published form leaves out the variation of the zeros, which adds to the rate",
            ),
        ]
    cases += [
        Case(
            f"{what}: law",
            published,
            formula(partial(law, 1000, *args)),
            "Deng, Rafiei 2006",
            f"m = 1,000, K = {args[0]}, P = {args[1]}, Max = {args[2]}",
        )
        for what, published, law, args in (
            ("bound of the rate", "0.0098", theory.stable_fpr, (3, 36, 3)),
            ("zeros in the long run", "0.900", theory.stable_zeros, (2, 18, 1)),
        )
    ]
    return cases


def subject() -> Subject:
    """The cases."""
    cases = [*list_growth(), *list_stable()]
    for fpr, hashes, share in ((0.01, "7", "0.0495"), (0.001, "10", "0.0347")):
        cases += [
            Case(
                "hashes of two buffers",
                hashes,
                formula(partial(theory.aging_num_hashes, fpr)),
                "Yoon 2010",
                f"p = {fpr:g}",
            ),
            Case(
                "capacity of a buffer per bit",
                share,
                formula(lambda fpr=fpr: theory.aging_capacity(10_000_000, fpr) / 1e7),
                "Yoon 2010",
                f"p = {fpr:g}",
            ),
        ]
    for kind in (fullbloom.AgingBloomFilter, fullbloom.RollingBloomFilter):
        cases.append(
            Case(
                f"rate of a full `{kind.__name__}`, at most",
                "0.0100",
                window_rate(kind, 0.01),
                "Yoon 2010" if "Aging" in kind.__name__ else "Bitcoin Core",
                "10,000 keys, 1 %",
                why="a bound: planes are whole cache lines, and generations not always full",
            )
        )
    cases.append(
        Case(
            "false positives plus false negatives over a stream, at least",
            "0.9802",
            pass_stream,
            "Geraud-Stewart et al. 2019",
            "2^16 symbols, window 100,000, 1,024 bits",
            why="a lower bound: no filter of this size can come below it",
        )
    )
    return Subject("streams", "Growth and windows", TEXT, cases)
