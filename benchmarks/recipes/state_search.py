"""Share of the states found by bitstate search and hash compaction, beside its law."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.outcome import Outcome, Table
from benchmarks.recipes.models import PUZZLE, dine, is_deadlock, slide
from fullbloom.recipes.state_search import (
    ExactStates,
    expect_bitstate_omission,
    expect_compaction_omission,
    explore,
    make_bitstate_filter,
    make_compaction_table,
)

SEARCHES, PHILOSOPHERS, BITS = 5, 10, (2, 4, 8, 16)
COLUMNS = [
    "model and method",
    "bits per state",
    "states found",
    "by the law",
    "searches that find the deadlock",
]


def search(start: bytes, successors: Any, make: Any) -> tuple[list[int], float]:
    """The states found by searches with several seeds, and the bits of the filter."""
    found, bits = [], 0.0
    for seed in range(SEARCHES):
        seen = make(seed)
        found.append(explore([start], successors, seen).states)
        bits = seen.nbytes * 8
    return found, bits


def measure() -> Outcome:
    figures: dict[str, float] = {}
    rows = []
    models = (
        ("3 x 3 puzzle", "puzzle", PUZZLE, slide),
        ("10 philosophers", "philosophers", bytes(PHILOSOPHERS), dine),
    )
    for title, name, start, successors in models:
        exact = ExactStates()
        states = explore([start], successors, exact).states
        size = 8 * (sys.getsizeof(exact.states) + sum(map(sys.getsizeof, exact.states))) / states
        figures |= {f"{name}_states": states, f"{name}_exact_bits": size}
        rows.append(
            [f"{title}, set", f"{size:.0f}", f"{states:,}", "", deadlocks(name, lambda _: ExactStates())]
        )
        for bits in BITS:

            def make(seed: int, num_bits: int = bits * states) -> Any:
                return make_bitstate_filter(num_bits, seed=seed)

            found, _ = search(start, successors, make)
            law = 1 - expect_bitstate_omission(states, bits * states)
            share = sum(found) / SEARCHES / states
            figures |= {f"{name}_bitstate_{bits}": share, f"{name}_bitstate_{bits}_law": law}
            rows.append(
                [f"{title}, bitstate", f"{bits}", f"{share:.2%}", f"{law:.2%}", deadlocks(name, make)]
            )

        def make_table(seed: int, count: int = states) -> Any:
            return make_compaction_table(count, seed=seed)

        found, num_bits = search(start, successors, make_table)
        table = make_table(0)
        law = 1 - expect_compaction_omission(states, table.quotient_bits + table.remainder_bits)
        share = sum(found) / SEARCHES / states
        figures |= {f"{name}_compaction": share, f"{name}_compaction_bits": num_bits / states}
        rows.append(
            [
                f"{title}, hash compaction",
                f"{num_bits / states:.0f}",
                f"{share:.4%}",
                f"{law:.6%}",
                deadlocks(name, make_table),
            ]
        )
    return Outcome({"searches": SEARCHES}, figures, [Table("state search", "state-search.md", COLUMNS, rows)])


def deadlocks(name: str, make: Any) -> str:
    """How many searches of the philosophers end at the deadlock, by the path to it."""
    if name != "philosophers":
        return ""
    start = bytes(PHILOSOPHERS)
    paths = [explore([start], dine, make(seed), is_error=is_deadlock).error for seed in range(SEARCHES)]
    return f"{sum(path is not None and is_deadlock(path[-1]) for path in paths)} of {SEARCHES}"
