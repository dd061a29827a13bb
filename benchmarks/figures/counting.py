"""Counters: overflow, variable increments, thresholds, spectral counts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, pool
from benchmarks.figures.sampling import draw_hashes, formula, rate, scale
from fullbloom import theory

if TYPE_CHECKING:
    from benchmarks.figures.model import Measure

TEXT = """Rates of the variable-increment filter depend on m/n and k only, so they are measured with
filters of the same k that hold m/10 or m/5 keys. Spectral counts are those of 1,000 keys in 15,000 events,
by Zipf's law with exponent 0.5, as in the published simulation (4 runs); a filter of fewer counters gets
fewer keys in proportion. `SpectralBloomFilter` marks the keys of its second filter. Without a marker, as the
method was published, counts can be too low; that form is measured with two of its filters."""

#: m/n, k, increments (0: a plain counting filter), published rate, and a target rate that gives that k.
INCREMENTS = (
    (10, 4, 0, "0.011815", 0.0),
    (10, 4, 2, "1.274e-3", 0.05),
    (10, 4, 4, "2.088e-4", 0.02),
    (10, 4, 8, "5.54e-5", 0.01),
    (5, 3, 0, "0.091869", 0.0),
    (5, 3, 4, "6.73e-3", 0.05),
    (5, 3, 8, "3.17e-3", 0.05),
)
#: Increments, and the rates of a simulation of m/n = 5, k = 3.
SIMULATED = ((4, "6.9e-3"), (8, "2.9e-3"))
THRESHOLDS = ((1, 7, "8.2e-3"), (2, 9, "1.63e-6"), (3, 12, "9.4e-12"), (4, 14, "1.7e-18"), (5, 16, "9.7e-27"))
#: The share of wrong counts by mode, for each gamma = nk/m.
SPECTRAL = {
    1.0: ("0.1009", "0.110", "0.058", "0.059"),
    0.7: ("0.0323", "0.032", "0.014", "0.015"),
    0.5: ("0.0094", "0.010", "0.005", "0.004"),
}
MODES = ("minimum-selection", "minimal-increase", "recurring-minimum")
#: For each gamma: keys whose least counter occurs twice; wrong counts of a recurring minimum without a
#: marker, and those of them that are too low.
UNMARKED = {1.0: ("0.61", "0.097", "0.039"), 0.7: ("0.81", "0.024", "0.010"), 0.5: ("0.92", "0.008", "0.004")}
HASHES = 5


def count_wrongly(gamma: float, mode: str) -> Measure:
    """The share of keys whose count is not exact."""

    def one(draw: np.random.Generator) -> float:
        counting: Any = fullbloom.SpectralBloomFilter(1000, 0.03, mode=mode)  # k = 5
        items = round(gamma * counting.num_counters / HASHES)
        stream = draw_events(draw, items)
        keys = draw_hashes(draw, items)
        counting.update(keys[stream])
        return float((counting.count_many(keys) != np.bincount(stream)).mean())

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(60, share))])

    return measure


def draw_events(draw: np.random.Generator, items: int) -> Any:
    """The numbers of keys in the order of their events: each once, then by Zipf's law."""
    weights = np.arange(1, items + 1) ** -0.5
    drawn = draw.choice(items, 14 * items, p=weights / weights.sum())
    stream = np.concatenate([np.arange(items), drawn])
    draw.shuffle(stream)
    return stream


def count_unmarked(gamma: float, wanted: int) -> Measure:
    """Recurring minimum as published, which does not mark the keys of its second filter.

    Two filters of Fullbloom give the positions; the counters are lists, since the rule looks at them between
    two events. wanted: 0 for keys whose least counter recurs, 1 for wrong counts, 2 for those too low.
    """

    def one(draw: np.random.Generator) -> float:
        primary: Any = fullbloom.SpectralBloomFilter(1000, 0.03, mode=MODES[0])
        secondary: Any = fullbloom.SpectralBloomFilter(500, 0.03, mode=MODES[0], seed=1)
        items = round(gamma * primary.num_counters / HASHES)
        stream = draw_events(draw, items)
        keys = draw.integers(0, 1 << 62, items).tolist()
        places = [[held.positions(key) for key in keys] for held in (primary, secondary)]
        counters = [[0] * held.num_counters for held in (primary, secondary)]
        least: list[Any] = [
            lambda at, c=c, p=p: [c[i] for i in p[at]] for c, p in zip(counters, places, strict=True)
        ]
        for at in stream.tolist():
            for i in places[0][at]:
                counters[0][i] += 1
            values = least[0](at)
            smallest = min(values)
            if values.count(smallest) > 1:
                continue
            found = min(least[1](at))
            for i in places[1][at]:
                counters[1][i] = counters[1][i] + 1 if found else max(counters[1][i], smallest)
        primary.update(np.asarray(keys)[stream])
        assert counters[0] == primary.bits().tolist(), "the counters are those of the filter"
        truth = np.bincount(stream)
        recurs = wrong = low = 0
        for at in range(items):
            values = least[0](at)
            count = min(values)
            if values.count(count) > 1:
                recurs += 1
            else:
                count = min(least[1](at)) or count
            wrong += count != truth[at]
            low += count < truth[at]
        return (recurs, wrong, low)[wanted] / items

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(16, share))])

    return measure


def count_absent(hashes: int, threshold: int) -> Measure:
    """The share of absent keys whose count is at least a threshold."""
    probes = 100_000 if threshold == 1 else 1_000_000

    def one(draw: np.random.Generator) -> float:
        held = fullbloom.CountingBloomFilter.with_shape(10_000, hashes, capacity=1000)
        held.add_hashed(draw_hashes(draw, 1000))
        return (
            float(np.count_nonzero(held.contains_many_at_least(draw_hashes(draw, probes), threshold)))
            / probes
        )

    def measure(draw: np.random.Generator, share: float) -> Sample:
        rates = [one(draw) for _ in range(scale(60, share))]
        trials = probes * len(rates)
        return pool(rates, binomial(sum(rates) * probes, trials).error)

    return measure


def list_increments() -> list[Case]:
    """Variable increments beside plain counters."""
    cases = []
    for per_key, hashes, increments, published, target in INCREMENTS:
        if increments:
            make: Any = partial(
                fullbloom.VariableIncrementFilter, 1000, target, increments=increments, counter_bits=10
            )
        else:
            make = partial(fullbloom.CountingBloomFilter.with_shape, 5000, hashes, capacity=5000 // per_key)
        cells = make().num_counters
        assert make().num_hashes == hashes
        items = round(cells / per_key)
        if increments:
            law = theory.variable_increment_fpr(items, cells, hashes, increments)
        else:
            law = theory.classic_fpr(items, cells, hashes)
        what = (
            f"rate with increments from {increments} to {2 * increments - 1}"
            if increments
            else "rate with counters"
        )
        cases.append(
            Case(
                what,
                published,
                rate(make, items, filters=150, probes=200_000),
                "Rottenstreich et al. 2014",
                f"m/n = {per_key}, k = {hashes}; here m = {cells:,}",
                law=law,
                law_error=0.03,
            )
        )
    for increments, published in SIMULATED:
        make = partial(fullbloom.VariableIncrementFilter, 1000, 0.05, increments=increments, counter_bits=10)
        cells = make().num_counters
        cases.append(
            Case(
                f"the same with increments from {increments} to {2 * increments - 1}, against a simulation",
                published,
                rate(make, round(cells / 5), filters=150, probes=20_000),
                "a simulation",
                f"m = 5,000, n = 1,000, k = 3; here m = {cells:,}",
                law=theory.variable_increment_fpr(round(cells / 5), cells, 3, increments),
                law_error=0.03,
                runs=1,
            )
        )
    return cases


def list_unmarked() -> list[Case]:
    """Recurring minimum without a marker."""
    what = (
        "keys whose least counter recurs",
        "share of wrong counts, recurring-minimum without a marker",
        "counts that are too low, recurring-minimum without a marker",
    )
    return [
        Case(
            what[at],
            published,
            count_unmarked(gamma, at),
            "Cohen, Matias 2003",
            f"gamma = {gamma}, k = {HASHES}",
            runs=4,
        )
        for gamma, figures in UNMARKED.items()
        for at, published in enumerate(figures)
    ]


def subject() -> Subject:
    """The cases."""
    cases = [
        Case(
            "bound on a counter of 4 bits that overflows, per counter",
            "1.37e-15",
            formula(partial(theory.counter_overflow_bound, 1)),
            "Fan et al. 2000",
        ),
        Case(
            "chance of it, half full",
            "6.8e-17",
            formula(partial(theory.counter_overflow, 0.6931471805599453, 4)),
            "Broder, Mitzenmacher 2004",
            why="the published figure is the chance of exactly 16",
        ),
        *list_increments(),
    ]
    for threshold, hashes, published in THRESHOLDS:
        shape = f"m/n = 10, n = 1,000, count at least {threshold}"
        cases += [
            Case(
                "best number of hashes",
                str(hashes),
                formula(partial(theory.best_threshold_hashes, 1000, 10_000, threshold)),
                "Kim et al. 2019",
                shape,
            ),
            Case(
                "rate at that number: law",
                published,
                formula(partial(theory.threshold_fpr, 1000, 10_000, hashes, threshold)),
                "Kim et al. 2019",
                shape,
            ),
        ]
    for threshold, hashes, published in THRESHOLDS[:2]:
        cases.append(
            Case(
                "rate of filters",
                published,
                count_absent(hashes, threshold),
                "Kim et al. 2019",
                f"m/n = 10, k = {hashes}, count at least {threshold}",
                law=theory.threshold_fpr(1000, 10_000, hashes, threshold),
                law_error=0.01,
            )
        )
    cells = fullbloom.SpectralBloomFilter(1000, 0.03).num_counters
    for gamma, (bloom, *modes) in SPECTRAL.items():
        law = theory.exponential_fpr(gamma, HASHES, HASHES)
        cases.append(
            Case(
                "Bloom error (1 - e^-gamma)^k",
                bloom,
                formula(lambda law=law: law),
                "Cohen, Matias 2003",
                f"gamma = {gamma}",
            )
        )
        for mode, published in zip(MODES, modes, strict=True):
            cases.append(
                Case(
                    f"share of wrong counts, {mode}",
                    published,
                    count_wrongly(gamma, mode),
                    "Cohen, Matias 2003",
                    f"gamma = {gamma}, k = {HASHES}",
                    runs=4,
                    law=theory.second_order_fpr(round(gamma * cells / HASHES) - 1, cells, HASHES)
                    if mode == MODES[0]
                    else None,
                )
            )
    return Subject("counting", "Counters", TEXT, [*cases, *list_unmarked()])
