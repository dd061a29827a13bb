"""Bits of distributed duplicate detection beside the formulas, and whether its result is exact."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.outcome import Outcome, Table
from fullbloom import theory
from fullbloom.compose.networked import find_duplicates

from .processes import run_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.compose.networked import ProcessingElement

#: Bytes of a key, and of a key in a message: a domain and a length more.
KEY_BYTES = 14
SENT_BYTES = KEY_BYTES + 2
SHARES = (0.0, 0.02, 0.1, 0.3)


class Case(NamedTuple):
    """n keys in P elements, a share of which is held by exactly two elements."""

    elements: int
    items: int
    duplicates: float
    fprs: tuple[float, ...]

    @property
    def shared(self) -> int:
        return round(self.items * self.duplicates / 2)


class Bits(NamedTuple):
    """Bits of the filters, and of the comparison of keys behind them."""

    filters: float
    comparison: float


PAGE = "networked.md"
LARGE, SEED = Case(8, 10_000_000, 0.1, (1 / 8,)), 28


def identify(case: Case, rank: int) -> Iterator[int]:
    """Numbers of the keys of an element; below ``shared``, exactly one other element has the key."""
    size = case.elements
    for number in range(case.shared if size > 1 else 0):
        first = number % size
        if rank in (first, (first + 1 + number // size % (size - 1)) % size):
            yield number
    own = (case.items - 2 * case.shared) // size
    start = case.shared + rank * own
    yield from range(start, start + own)


def detect(element: ProcessingElement, case: Case, seed: int) -> tuple[int, int, bool, float]:
    """Return the bits sent in filters and in the comparison, whether the mask is right, and seconds."""
    numbers = list(identify(case, element.rank))
    random.Random(element.rank).shuffle(numbers)
    keys = [f"user-{number:09d}" for number in numbers]
    element.barrier()
    begun = time.perf_counter()
    report = find_duplicates(element, keys, fprs=case.fprs, seed=seed)
    element.barrier()
    seconds = time.perf_counter() - begun
    right = report.mask == [number < case.shared for number in numbers]
    *filters, comparison = report.rounds
    return sum(each.bits_sent for each in filters), comparison.bits_sent, right, seconds


def compute(case: Case) -> Bits:
    """Return the bits that all elements send by the formulas; headers and indexes are left out."""
    size, left, true, filters = case.elements, float(case.items), float(2 * case.shared), 0.0
    for fpr in case.fprs:
        unique = left - true
        # Of the keys elsewhere, those of two other elements have one value.
        others = (left - true / 2 * (size - 2) / max(1, size - 1)) * (size - 1) / size
        wrong = -math.expm1(-fpr * others / left)
        returned = true + unique * wrong
        values = left * -math.expm1(-fpr / size) / (fpr / size)
        filters += theory.single_shot_bits(left, size, fpr)
        filters += theory.single_shot_answer_bits(values, size, returned / left)
        left = returned
    comparison = left * (size - 1) / size * 8 * SENT_BYTES
    comparison += theory.single_shot_answer_bits(left, size, true / left if left else 0.0)
    return Bits(filters, comparison)


def draw(source: random.Random) -> Case:
    size = source.choice([2, 3, 4, 5, 6, 7, 8, 12])
    items = round(math.exp(source.uniform(math.log(200_000), math.log(1_500_000))))
    fprs = tuple(2.0 ** -source.uniform(1.5, 9) for _ in range(source.choice([1, 1, 2])))
    return Case(size, items, source.choice(SHARES), tuple(sorted(fprs, reverse=True)))


class Measured(NamedTuple):
    """Bits that all elements sent beside those of the formulas, the share of keys compared, and seconds."""

    case: Case
    sent: Bits
    law: Bits
    seconds: float

    @property
    def off(self) -> Bits:
        """How far the bits of the filters, and all bits, are from the formula."""
        whole = sum(self.sent) / sum(self.law) - 1
        return Bits(self.sent.filters / self.law.filters - 1, whole)


def run(case: Case, seed: int) -> Measured:
    """Measure a case in processes; raise ``RuntimeError`` unless the result is exact."""
    results = run_processes(case.elements, detect, case, seed)
    if not all(right for *_, right, _ in results):
        raise RuntimeError(f"{case} gave a wrong result")
    sent = Bits(sum(result[0] for result in results), sum(result[1] for result in results))
    return Measured(case, sent, compute(case), max(result[3] for result in results))


def measure_large() -> Outcome:
    """Ten million keys in eight processes, each tenth of them in two."""
    found = run(LARGE, SEED)
    (filters, whole), items = found.off, found.case.items
    rows = [
        [
            "filter: hashes and answers",
            f"{found.sent.filters / items:.2f}",
            f"{found.law.filters / items:.2f}",
            f"{filters:+.1%}",
        ],
        [
            "with the comparison of the keys that were returned",
            f"{sum(found.sent) / items:.2f}",
            f"{sum(found.law) / items:.2f}",
            f"{whole:+.1%}",
        ],
        ["repartition of all keys", "", f"{repartition_bits(LARGE) / items:.0f}", ""],
    ]
    figures = {"filters_off": filters, "whole_off": whole, "exact": 1.0, "seconds": round(found.seconds, 1)}
    figures |= {"bits_per_key": sum(found.sent) / items, "filter_bits_per_key": found.sent.filters / items}
    bars = {"filters_off": (-0.05, 0.05), "whole_off": (-0.05, 0.05), "exact": (1.0, 1.0)}
    columns = ["", "bits per key", "formula", "off"]
    return Outcome(
        {**LARGE._asdict(), "seed": SEED},
        figures,
        [Table("large duplicates", PAGE, columns, rows)],
        bars,
    )


def repartition_bits(case: Case) -> float:
    """Bits if every element sends its keys to their owners, without a filter."""
    return case.items * (case.elements - 1) / case.elements * 8 * SENT_BYTES


def measure(count: int = 8, seed: int = 1) -> Outcome:
    """Random cases, each with a seed of its own."""
    rows, worst = [], Bits(0.0, 0.0)
    for number in range(seed, seed + count):
        found = run(draw(random.Random(number)), number)
        case, off, items = found.case, found.off, found.case.items
        rows.append(
            [
                str(case.elements),
                f"{items:,}",
                f"{case.duplicates:.0%}",
                ", ".join(f"{fpr:.3g}" for fpr in case.fprs),
                f"{found.sent.filters / items:.3f}",
                f"{found.law.filters / items:.3f}",
                f"{off.filters:+.1%}",
                f"{sum(found.sent) / items:.2f}",
                f"{sum(found.law) / items:.2f}",
                f"{off.comparison:+.1%}",
            ]
        )
        worst = Bits(*(max(a, abs(b)) for a, b in zip(worst, off, strict=True)))
    figures = {"filters_off": worst.filters, "whole_off": worst.comparison}
    bars = dict.fromkeys(figures, (0.0, 0.05))
    columns = ["P", "n", "duplicates", "rates", "filter, bits per key", "formula", "off"]
    columns += ["in all, bits per key", "formula", "off"]
    parameters = {"cases": count, "seed": seed}
    return Outcome(parameters, figures, [Table("random duplicates", PAGE, columns, rows)], bars)
