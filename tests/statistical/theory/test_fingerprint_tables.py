"""Laws of fingerprint tables: figures of the literature, limits, and a simulation of linear probing."""

from __future__ import annotations

import math
import random

import pytest
from support import scatter_of_mean

from fullbloom import theory
from fullbloom.errors import ParameterError


def test_figures_of_the_literature() -> None:
    # Bender et al.: r = 8 at load 3/4.
    assert round(theory.fingerprint_load_fpr(0.75, 8), 6) == 0.002925
    # rsqf with remainders of 9 bits at one million keys.
    assert round(theory.quotient_bits_per_key(1_000_000 / 2**20, 9), 2) == 11.67
    assert theory.quotient_bits_per_key(0.75, 8, metadata_bits=3) == pytest.approx(11 / 0.75)


@pytest.mark.parametrize("items", [1, 100, 10_000, 10_000_000])
@pytest.mark.parametrize("fpr", [0.5, 0.01, 1e-6])
def test_bits_and_rate_are_inverses(items: int, fpr: float) -> None:
    bits = theory.fingerprint_bits(items, fpr)
    for whole, below in ((math.ceil(bits), True), (math.floor(bits - 1e-9), False)):
        if whole >= 1:
            assert (theory.fingerprint_fpr(items, whole) <= fpr * (1 + 1e-9)) == below
    assert bits <= math.log2(items) + math.log2(1 / fpr) + 1e-9


@pytest.mark.parametrize("load", [0.1, 0.5, 0.95])
def test_the_rate_has_its_limits(load: float) -> None:
    for bits in (1, 4, 9, 20):
        law = theory.fingerprint_load_fpr(load, bits)
        assert law <= 2.0**-bits
        assert law == pytest.approx(theory.fingerprint_fpr(load * 2**30, 30 + bits), rel=1e-6)


def test_a_size_is_the_smallest_that_keeps_the_rate() -> None:
    for capacity in (1, 60, 61, 121, 122, 5000, 996_147, 996_148):
        for fpr in (0.3, 0.01, 1e-6):
            size = theory.quotient_size(capacity, fpr)
            assert capacity <= 0.95 * size.num_slots
            assert size.num_slots == 64 or capacity > math.floor(0.95 * size.num_slots / 2)
            assert size.fpr <= fpr
            bits = size.quotient_bits + size.remainder_bits
            assert size.remainder_bits == 1 or theory.fingerprint_fpr(capacity, bits - 1) > fpr
            assert size.bits_per_key >= theory.succinct_bits_per_key(fpr) - 1.0
    with pytest.raises(ParameterError):
        theory.quotient_size(2**50, 1e-9)
    with pytest.raises(ParameterError):
        theory.quotient_size(0, 0.01)


@pytest.mark.parametrize("load", [0.5, 0.75, 0.9])
def test_the_distance_to_a_free_slot_is_that_of_linear_probing(load: float) -> None:
    slots, rng, ways = 1 << 14, random.Random(3), []
    for _ in range(8):
        taken = bytearray(slots)
        for _ in range(int(load * slots)):
            at = rng.randrange(slots)
            while taken[at]:
                at = (at + 1) % slots
            taken[at] = 1
        # From every home: the distance to the next free slot.
        way, total = 0, 0
        for at in range(2 * slots - 1, -1, -1):
            way = way + 1 if taken[at % slots] else 0
            total += way if at < slots else 0
        ways.append(total / slots)
    mean, off = scatter_of_mean(ways, cases=3)
    assert abs(mean - theory.quotient_probe_slots(load)) <= off
