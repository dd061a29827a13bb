"""Bits of sums without double counting beside the formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.outcome import Outcome, Table
from fullbloom import theory
from fullbloom.compose.networked import AggregationNode, CountingElement, exchange_values

from .processes import run_processes

if TYPE_CHECKING:
    from fullbloom.compose.networked import ProcessingElement

#: Elements, and rounds in which each pair exchanges its values.
CASES = ((2, 1), (8, 1), (8, 3), (16, 3))


def add_up(element: ProcessingElement, rounds: int) -> tuple[int, int, int]:
    """Return bits sent, the sum, and the bytes that the node keeps."""
    counter = CountingElement(element)
    node = AggregationNode(f"node-{element.rank:02d}", [10 + element.rank])
    for _ in range(rounds):
        for step in range(1, element.size):
            other = element.rank ^ step
            exchange_values(counter, node, other, f"node-{other:02d}")
    return counter.bits_sent, int(node.total), node.nbytes


def measure() -> Outcome:
    """Sums over elements in processes."""
    rows, worst = [], 0.0
    for size, rounds in CASES:
        results = run_processes(size, add_up, rounds)
        if {total for _, total, _ in results} != {sum(10 + rank for rank in range(size))}:
            raise RuntimeError(f"a sum of {size} elements is wrong")
        sent, law = sum(bits for bits, *_ in results), theory.aggregation_bits(size, rounds, 7, 2)
        rows.append([str(size), str(rounds), f"{sent:,}", f"{law:,}", f"{sent / law - 1:+.1%}"])
        worst = max(worst, abs(sent / law - 1))
    columns = ["P", "rounds", "bits sent by all", "formula", "off"]
    return Outcome(
        {"name_bytes": 7, "value_bytes": 2},
        {"off": worst},
        [Table("sums", "networked.md", columns, rows)],
        {"off": (0.0, 0.001)},
    )
