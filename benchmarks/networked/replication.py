"""Bits of replication by hypercube exchange beside the formula."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from fullbloom import BloomFilter, theory
from fullbloom.compose.networked import CountingElement, replicate

from .processes import run_processes

if TYPE_CHECKING:
    from fullbloom.compose.networked import ProcessingElement


def exchange(element: ProcessingElement, items: int, fpr: float) -> tuple[int, int, int, bool]:
    """Return messages, bits sent, bits of the filter, and whether the result holds all keys of all."""
    own = BloomFilter(items, fpr)
    part = items // element.size
    own.update(range(element.rank * part, (element.rank + 1) * part))
    counter = CountingElement(element)
    everything = replicate(counter, own)
    right = all(everything.contains_many(range(part * element.size)))
    return counter.messages_sent, counter.bits_sent, own.num_bits, right


def report(seed: int, count: int) -> None:
    """Print a row for each random case."""
    print("| P | n | rate | bits of the filter | messages of an element | bits sent | formula | off |")
    print("|---|---|---|---|---|---|---|---|")
    source = random.Random(seed)
    for size in [8, *(source.randint(2, 13) for _ in range(count - 1))]:
        items, fpr = round(10 ** source.uniform(3, 6)), 10.0 ** -source.uniform(1, 4)
        results = run_processes(size, exchange, items, fpr)
        if not all(right for *_, right in results):
            raise RuntimeError(f"an element of {size} lacks a key")
        sent, bits = sum(result[1] for result in results), results[0][2]
        law = theory.replication_bits(bits, size)
        print(
            f"| {size} | {items:,} | {fpr:.2g} | {bits:,} | {max(result[0] for result in results)} "
            f"| {sent:,} | {law:,} | {sent / law - 1:+.3%} |",
            flush=True,
        )
