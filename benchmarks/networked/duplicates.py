"""Bits of distributed duplicate detection beside the formulas, and whether its result is exact."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, NamedTuple

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
    filters: float
    comparison: float


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


def row(case: Case, seed: int) -> str:
    results = run_processes(case.elements, detect, case, seed)
    if not all(right for *_, right, _ in results):
        raise RuntimeError(f"{case} gave a wrong result")
    filters, comparison = (sum(result[at] for result in results) for at in (0, 1))
    law = compute(case)
    rates = ", ".join(f"{fpr:.3g}" for fpr in case.fprs)
    whole, expected = filters + comparison, law.filters + law.comparison
    return (
        f"| {case.elements} | {case.items:,} | {case.duplicates:.0%} | {rates} "
        f"| {filters / case.items:.3f} | {law.filters / case.items:.3f} | {filters / law.filters - 1:+.2%} "
        f"| {whole / case.items:.2f} | {expected / case.items:.2f} | {whole / expected - 1:+.2%} "
        f"| exact | {max(result[3] for result in results):.1f} s |"
    )


def report(seed: int, *, large: bool, count: int) -> None:
    """Print a row for each random case, or the one of ten million keys."""
    print(
        "| P | n | duplicates | rates | filter bits per key | formula | off | all bits per key | formula "
        "| off | result | time |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    source = random.Random(seed)
    cases = [Case(8, 10_000_000, 0.1, (1 / 8,))] if large else [draw(source) for _ in range(count)]
    for case in cases:
        print(row(case, seed), flush=True)
