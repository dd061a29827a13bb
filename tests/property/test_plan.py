"""Guarantee: the rate that `plan.choices` recommends is within 1.05 of the lowest rate that fits."""

from __future__ import annotations

from bisect import bisect
from random import Random
from typing import Any

import pytest
from support import SCALE

from fullbloom import registry
from fullbloom.errors import FilterMemoryError, ParameterError
from fullbloom.plan import choices

QUESTIONS = 40
#: Steps per power of two in the grid of rates: 4.4 % each.
STEPS = 16
NEEDS = [
    "remove",
    "count",
    "expire",
    "merge",
    "map",
    "estimate",
    "grow",
    "static",
    "label",
    "positions",
    "decode",
]


def fits(row: dict[str, Any], items: int, rate: float, memory: int) -> bool:
    try:
        return bool(registry.get_class(row).nbytes_for(items, rate) <= memory)
    except (ParameterError, FilterMemoryError):
        return False


def lowest_rate(row: dict[str, Any], items: int, memory: int, below: float) -> float:
    """Return the lowest rate of the grid that fits into memory; 1 if none is below ``below``."""
    # No structure of so many bits has a lower rate than the first: it could not distinguish its sets of keys.
    most = min(64 * STEPS, STEPS * (8 * memory // items + 1))
    grid = [rate for rate in (2.0 ** (-step / STEPS) for step in range(most, 0, -1)) if rate < below]
    if items < 1000:
        return next((rate for rate in grid if fits(row, items, rate, memory)), 1.0)
    # The size falls with the rate, except for a few keys, since sizes are whole lines.
    at = bisect(grid, False, key=lambda rate: fits(row, items, rate, memory))
    return grid[at] if at < len(grid) else 1.0


@pytest.mark.long
def test_plan_recommends_the_lowest_rate_that_fits() -> None:
    random, answered = Random(22), 0
    for _ in range(QUESTIONS * SCALE):
        items = int(10 ** random.uniform(0, 8))
        memory = max(64, int(items * 10 ** random.uniform(-0.5, 1.3)))
        needs = set(random.sample(NEEDS, random.choice([1, 1, 1, 2])))
        able = [row for row in registry.rows() if needs <= set(row["capabilities"])]
        static = "static" in needs
        rows = [
            row for row in able if registry.is_open(row, "key") or (static and registry.is_built(row, "key"))
        ]
        rows = [row for row in rows if not registry.is_forgetful(row)]
        try:
            first = choices(items, memory=memory, needs=needs)[0]
        except ParameterError:
            fitting = [row["name"] for row in rows if lowest_rate(row, items, memory, 0.51) <= 0.5]
            assert not fitting, (items, memory, needs, fitting)
            continue
        answered += first.recommended
        assert first.fits
        if not registry.is_forgetful(registry.get_row(first.structure)):
            bar = first.fpr / 1.05
            better = {row["name"]: lowest_rate(row, items, memory, bar) for row in rows}
            assert all(rate == 1.0 for rate in better.values()), (items, memory, needs, first, better)
    assert answered > QUESTIONS / 4


def test_layouts_are_ranked_by_rate_if_memory_is_given() -> None:
    random = Random(23)
    for _ in range(100 * SCALE):
        items = int(10 ** random.uniform(0, 8))
        memory = max(64, int(items * 10 ** random.uniform(-0.2, 1.0)))
        try:
            ranked = choices(items, memory=memory)
        except ParameterError:
            continue
        assert ranked[0].fpr <= 1.05 * min(choice.fpr for choice in ranked), (items, memory)


def test_removal_of_forty_thousand_keys_does_not_cost_a_rate_of_six_percent() -> None:
    first = choices(41_382, memory=123_120, needs="remove")[0]
    assert first.fpr < 2e-6
    assert first.nbytes <= 123_120


def test_exact_structures_are_compared_if_all_keys_are_known() -> None:
    exact = [c for c in choices(500, 0.01, universe=1 << 20, excluded=10_000, needs="map") if c.fpr == 0.0]
    assert {tuple(registry.get_row(c.structure)["entry"]) for c in exact} == {
        ("number",),
        ("included", "excluded"),
    }
    assert len(exact) == 3
    for choice in exact:
        row = registry.get_row(choice.structure)
        if registry.is_built(row, "included", "excluded"):
            built = registry.get_class(row).build(range(500), range(500, 10_500))
            assert 0.8 < built.nbytes / choice.nbytes < 1.25
        elif any(name == "universe" for name, _, _ in row["parameters"]):
            assert choice.nbytes == registry.get_class(row)(500, universe=1 << 20).nbytes
        else:
            assert choice.nbytes == registry.get_class(row)(1 << 20).nbytes
