"""Guarantee: whatever two or three of n, p, m, k are given, the card keeps them and completes them."""

from __future__ import annotations

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from fullbloom import theory
from fullbloom.errors import ParameterError

always = settings(derandomize=True, deadline=None)
keys = st.integers(1, 10**9)
rates = st.floats(1e-12, 0.5)
hash_counts = st.integers(1, 30)


def check(card: theory.Card) -> None:
    assert card.fpr == theory.exponential_fpr(card.capacity, card.num_bits, card.num_hashes)
    assert card.fill == theory.fill(card.capacity, card.num_bits, card.num_hashes)
    assert card.bits_per_key == card.num_bits / card.capacity
    assert 8 * (card.num_bytes - 1) < card.num_bits <= 8 * card.num_bytes


@always
@given(capacity=st.integers(1, 10**6), bits_per_key=st.integers(1, 60), fpr=rates)
def test_keys_bits_and_rate_give_the_smallest_number_of_hashes(
    capacity: int, bits_per_key: int, fpr: float
) -> None:
    num_bits = capacity * bits_per_key
    fitting = [k for k in range(1, 50) if theory.exponential_fpr(capacity, num_bits, k) <= fpr]
    if fitting:
        card = theory.reference_card(capacity=capacity, num_bits=num_bits, fpr=fpr)
        check(card)
        assert card.num_hashes == fitting[0]
    else:
        with pytest.raises(ParameterError, match="fpr must be at least"):
            theory.reference_card(capacity=capacity, num_bits=num_bits, fpr=fpr)


@for_each(
    ("given_values", "message"),
    [
        ({}, "two or three"),
        ({"capacity": 10}, "two or three"),
        ({"capacity": 10, "fpr": 0.1, "num_bits": 100, "num_hashes": 3}, "two or three"),
        ({"fpr": 0.1, "num_hashes": 3}, "capacity or num_bits"),
        ({"num_bits": 3, "fpr": 1e-9}, "at least one key"),
        ({"capacity": 0, "fpr": 0.1}, "capacity must be at least 1"),
        ({"capacity": 10, "fpr": 1.5}, "fpr must be between 0 and 1"),
        ({"capacity": 10.5, "fpr": 0.5}, "capacity must be a whole number"),
    ],
)
def test_an_impossible_card_is_refused_with_the_reason(given_values: dict[str, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        theory.reference_card(**given_values)
