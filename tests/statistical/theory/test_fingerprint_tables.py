"""Laws of fingerprint tables: figures of the literature, limits, and a simulation of linear probing."""

from __future__ import annotations

import random

import pytest
from support import scatter_of_mean

from fullbloom import theory
from fullbloom.errors import ParameterError


def test_laws_match_the_figures_of_the_literature() -> None:
    # Bender et al.: r = 8 at load 3/4.
    assert round(theory.fingerprint_load_fpr(0.75, 8), 6) == 0.002925
    # rsqf with remainders of 9 bits at one million keys.
    assert round(theory.quotient_bits_per_key(1_000_000 / 2**20, 9), 2) == 11.67
    assert theory.quotient_bits_per_key(0.75, 8, metadata_bits=3) == pytest.approx(11 / 0.75)


def test_sizes_out_of_range_are_refused() -> None:
    with pytest.raises(ParameterError):
        theory.quotient_size(2**50, 1e-9)
    with pytest.raises(ParameterError):
        theory.quotient_size(0, 0.01)


@pytest.mark.parametrize("load", [0.5, 0.75, 0.9])
def test_the_distance_to_a_free_slot_matches_linear_probing(load: float) -> None:
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
