"""Guarantee: whatever two or three of n, p, m, k are given, the card keeps them and completes them."""

from __future__ import annotations

import math

import pytest
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
@given(capacity=keys, fpr=rates, num_hashes=st.none() | hash_counts)
def test_from_keys_and_rate(capacity: int, fpr: float, num_hashes: int | None) -> None:
    card = theory.reference_card(capacity=capacity, fpr=fpr, num_hashes=num_hashes)
    check(card)
    assert card.capacity == capacity
    assert card.fpr <= fpr * (1 + 1e-9)
    assert num_hashes in (None, card.num_hashes)


@always
@given(num_bits=st.integers(200, 10**12), fpr=rates, num_hashes=st.none() | st.integers(1, 8))
def test_from_bits_and_rate(num_bits: int, fpr: float, num_hashes: int | None) -> None:
    if num_hashes is not None and theory.bits_per_key(fpr, num_hashes) > num_bits:
        with pytest.raises(ParameterError, match="at least one key"):
            theory.reference_card(num_bits=num_bits, fpr=fpr, num_hashes=num_hashes)
        return
    card = theory.reference_card(num_bits=num_bits, fpr=fpr, num_hashes=num_hashes)
    check(card)
    assert card.num_bits == num_bits
    assert card.fpr <= fpr * (1 + 1e-9)
    assert theory.exponential_fpr(card.capacity + 1, num_bits, card.num_hashes) > fpr * (1 - 1e-9)


@always
@given(capacity=keys, num_bits=st.integers(1, 10**10), num_hashes=st.none() | hash_counts)
def test_from_keys_and_bits(capacity: int, num_bits: int, num_hashes: int | None) -> None:
    card = theory.reference_card(capacity=capacity, num_bits=num_bits, num_hashes=num_hashes)
    check(card)
    assert (card.capacity, card.num_bits) == (capacity, num_bits)
    assert card.num_hashes == (num_hashes or theory.num_hashes(num_bits, capacity))


@always
@given(many=st.integers(10_000, 10**9), num_hashes=hash_counts)
def test_a_number_of_hashes_alone_means_a_half_full_filter(many: int, num_hashes: int) -> None:
    for card in (
        theory.reference_card(capacity=many, num_hashes=num_hashes),
        theory.reference_card(num_bits=many, num_hashes=num_hashes),
    ):
        check(card)
        assert card.num_hashes == num_hashes
        # Rounding m or n moves the fill by at most one key's share.
        assert card.fill == pytest.approx(0.5, abs=num_hashes / card.num_bits)
        assert card.num_bits / card.capacity == pytest.approx(
            num_hashes / math.log(2), rel=1.01 / card.capacity
        )


@always
@given(capacity=st.integers(1, 10**6), bits_per_key=st.integers(1, 60), fpr=rates)
def test_from_keys_bits_and_rate_comes_the_smallest_number_of_hashes(
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


@pytest.mark.parametrize(
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
def test_a_card_that_cannot_be_filled_says_why(given_values: dict[str, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        theory.reference_card(**given_values)
