"""Bits of replication by hypercube exchange beside the formula."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from benchmarks.outcome import Outcome, Table
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


def measure(seed: int = 28, count: int = 4) -> Outcome:
    """Random cases, the first of eight elements."""
    source, rows, cells = random.Random(seed), [], 0.0
    for size in [8, *(source.randint(2, 13) for _ in range(count - 1))]:
        items, fpr = round(10 ** source.uniform(3, 6)), 10.0 ** -source.uniform(1, 4)
        results = run_processes(size, exchange, items, fpr)
        if not all(right for *_, right in results):
            raise RuntimeError(f"an element of {size} lacks a key")
        sent, bits = sum(result[1] for result in results), results[0][2]
        law, messages = theory.replication_bits(bits, size), theory.replication_bits(1, size)
        rows.append(
            [
                str(size),
                f"{items:,}",
                f"{fpr:.2g}",
                f"{bits:,}",
                str(max(result[0] for result in results)),
                f"{sent:,}",
                f"{law:,}",
                f"{sent / law - 1:+.1%}",
            ]
        )
        # What is left beside the cells are headers.
        cells = max(cells, (sent - law) / 8 / messages)
    columns = ["P", "n", "rate", "bits of the filter", "messages of an element, at most"]
    columns += ["bits sent by all", "formula", "off"]
    return Outcome(
        {"cases": count, "seed": seed},
        {"header_bytes": cells},
        [Table("replication", "networked.md", columns, rows)],
        {"header_bytes": (0.0, 512.0)},
    )
