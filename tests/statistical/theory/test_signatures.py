"""The laws of signatures: against exact fractions, simulation, and published figures."""

from __future__ import annotations

import random

import pytest
from cases import for_each

from fullbloom import theory


@for_each("seed", range(40))
def test_the_law_of_false_drops_equals_the_published_sum_in_fractions(seed: int) -> None:
    rng = random.Random(seed)
    num_bits = rng.randrange(2, 60)
    each, terms = rng.randrange(1, min(num_bits, 12) + 1), rng.randrange(30)
    probes = rng.randrange(min(num_bits, 25) + 1)
    exact = theory.rational_signature_fpr(num_bits, each, terms, probes)
    assert theory.signature_fpr(num_bits, each, terms, probes) == pytest.approx(
        float(exact), rel=1e-9, abs=1e-300
    )


def test_postgresql_measured_what_the_law_expects() -> None:
    # Its manual: 10M rows of six random columns, a query of two without a match.
    for num_bits, rechecked in ((80, 2439), (200, 55)):
        rows = 1e7 * theory.signature_fpr(num_bits, 1, 12, 4)
        # A query's bits are fixed and rows are independent, so that their number is nearly Poisson.
        assert abs(rechecked - rows) <= 3 * rows**0.5


@for_each("seed", range(10))
def test_the_chosen_size_keeps_the_rate_and_one_bit_less_in_a_hundred_does_not(seed: int) -> None:
    rng = random.Random(seed)
    terms, fpr, fill = rng.randrange(1, 300), 10 ** -rng.uniform(0.5, 6), rng.uniform(0.05, 0.7)
    bits, each = theory.signature_num_bits(terms, fpr, fill), theory.signature_bits_per_term(fpr, fill)
    assert theory.signature_fpr(bits, each, terms, each) <= fpr
    # The size follows from the fill unless the law asks for more: then it is nearly the least.
    if theory.signature_fill(bits, each, terms) < fill * 0.98:
        assert theory.signature_fpr(max(int(bits * 0.98), each), each, terms, each) > fpr


def test_the_fill_and_its_rank_are_those_of_grouped_rows() -> None:
    rng = random.Random(3)
    for _ in range(20):
        bits, terms, rank = rng.randrange(10, 500), rng.randrange(1, 20), rng.randrange(7)
        each = rng.randrange(1, 5)
        one = theory.signature_fill(bits, each, terms)
        assert theory.rank_fill(one, rank) == pytest.approx(
            theory.signature_fill(bits, each, terms * 2**rank)
        )
