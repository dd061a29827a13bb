"""Guarantee: a value out of range is an error that names the value and the remedy, never a wrong number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from fullbloom import theory
from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: theory.num_bits(100, 1.5), "fpr must be between 0 and 1 (exclusive), got 1.5"),
    (lambda: theory.num_bits(100, 0), "fpr must be between 0 and 1 (exclusive), got 0"),
    (lambda: theory.num_bits(100, 1), "fpr must be between 0 and 1 (exclusive), got 1"),
    (lambda: theory.num_bits(0, 0.1), "capacity must be greater than 0, got 0"),
    (lambda: theory.num_bits(100, math.nan), "fpr must be finite, got nan"),
    (lambda: theory.num_bits(10**400, 0.1), "capacity must be below 1.8e308, got an integer beyond it"),
    (lambda: theory.fill(math.inf, 64, 3), "items must be finite, got inf"),
    (lambda: theory.fill(-1, 64, 3), "items must be at least 0, got -1"),
    (lambda: theory.fill(1, 0, 3), "num_bits must be at least 1, got 0"),
    (lambda: theory.fill(1, 64, 0), "num_hashes must be greater than 0, got 0"),
    (lambda: theory.exact_fpr(1.5, 64, 3), "items must be a whole number, got 1.5; use 1 or 2"),
    (lambda: theory.distinct_fpr(1, 2, 3), "num_hashes must be at most num_bits = 2, got 3"),
    (lambda: theory.goel_gupta_fpr(1, 1, 3), "num_bits must be at least 2, got 1"),
    (lambda: theory.intersection_fpr(5, 9, 6, 64, 3), "items_both must be at most items_a = 5, got 6"),
    (lambda: theory.blocked_limit_fpr(10, 7), "num_hashes must be 4, 8 or 12 for the blocked layout, got 7"),
    (
        lambda: theory.split_fpr(10, 1000),
        "num_bits must be a multiple of the block's 256 bits, got 1000; round up to 1024",
    ),
    (lambda: theory.estimate_items(65, 64, 3), "set_bits must be at most num_bits = 64, got 65"),
    (lambda: theory.stage_fpr(0.1, 1.0), "tightening must be between 0 and 1 (exclusive), got 1.0"),
    (lambda: theory.stage_capacity(10, 0.5), "growth must be at least 1, got 0.5"),
    (lambda: theory.compound_fpr([0.1, 2]), "fprs must be between 0 and 1, got 2"),
    (lambda: theory.stream_floor(8, 8, 1), "alphabet must be at least 2, got 1"),
]


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_the_message_names_the_value_and_the_remedy(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", ["0.1", None, [], {}, 1j, b"1"])
def test_a_value_that_is_not_a_number_is_a_type_error(value: Any) -> None:
    if value == []:
        assert theory.min_bits_per_key(value) == []
        return
    with pytest.raises(TypeError, match="fpr must be a number"):
        theory.min_bits_per_key(value)


def test_an_exact_law_that_would_run_for_hours_is_refused_with_an_alternative() -> None:
    with pytest.raises(ParameterError, match="use second_order_fpr"):
        theory.exact_fpr(10**6, 10**7, 7)
    with pytest.raises(ParameterError, match="use second_order_fpr"):
        theory.occupancy_law(10**9, 10**9)


def test_an_unreachable_rate_is_refused() -> None:
    with pytest.raises(ParameterError, match="fpr must be reachable"):
        theory.blocked_bits_per_key(1e-300, 4)
