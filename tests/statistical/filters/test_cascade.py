"""Guarantee: a cascade is right about every key of its world, and as small as its law."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from support import LONG, SECRET

import fullbloom
from fullbloom import FilterCascade, theory


def world(included: int, excluded: int, seed: int) -> tuple[Any, Any]:
    """Two sets of integers without a common one, mixed over all of them."""
    keys = np.random.default_rng(seed).permutation(included + excluded)
    return keys[:included], keys[included:]


SIZES = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000), (100_000, 10_000), (20_000, 20_000)]


@pytest.mark.parametrize(("r", "s"), [*SIZES, *([(10_000, 10_000_000)] if LONG else [])])
def test_no_key_of_the_world_is_mistaken_and_bits_follow_the_law(r: int, s: int) -> None:
    included, excluded = world(r, s, seed=r + s)
    cascade = FilterCascade.build(included, excluded, seed=r)
    assert cascade.verify(included, excluded) == 0
    assert cascade.includes_many(included).all()
    assert not cascade.includes_many(excluded, threads=2).any()
    assert (cascade.num_included, cascade.num_excluded, cascade.fpr()) == (r, s, 0.0)
    law = theory.cascade_bits(r, s)
    # What goes on to the next level scatters like its square root, and each key of it takes 4.2 bits in all;
    # whole numbers of probes cost 0.2 %.
    slack = 0.002 * law + 4.0 * 4.2 * math.sqrt(min(r, s))
    assert abs(cascade.num_bits - law) < slack
    if min(r, s) >= 10_000:
        assert abs(cascade.num_bits / law - 1) < 0.03
        assert len(cascade.to_bytes()) < 1.03 * law / 8 + 1024


def test_published_sizes_are_met() -> None:
    # Published with 1.44 and 4.2 for 1.4427 and 4.2044.
    for r, s, published in [(1e4, 1e5, 89_836), (1e5, 1e6, 898_358), (1e4, 1e7, 185_507)]:
        assert theory.cascade_bits(r, s) == pytest.approx(published, rel=0.002)
        assert theory.cascade_bits(s, r) == theory.cascade_bits(r, s)
    # 12.7 of 30 million certificates.
    assert theory.cascade_bits(12.7e6, 17.3e6) / 8e6 == pytest.approx(7.7, abs=0.05)


def test_smallest_worlds_are_told_apart() -> None:
    for r, s in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (0, 50), (50, 0), (1, 500)]:
        included, excluded = [f"in {i}" for i in range(r)], [f"out {i}" for i in range(s)]
        for options in ({}, {"seed": 5}, {"secret": SECRET}):
            cascade = FilterCascade.build([*included, *included[:1]], excluded, **options)
            assert cascade.includes_many(included) == [True] * r
            assert cascade.includes_many(excluded) == [False] * s
            assert cascade.num_included == r


def test_the_bytes_are_those_of_the_sets() -> None:
    included, excluded = world(3_000, 30_000, seed=2)
    made = FilterCascade.build(included, excluded, seed=9)
    again = FilterCascade.build(
        iter(included[::-1].tolist()),
        excluded[::-1],
        seed=9,
        threads=3,
        memory=1 << 24,
        progress=lambda *_: None,
    )
    assert made.to_bytes() == again.to_bytes()
    assert made == again
    assert made != FilterCascade.build(included, excluded, seed=8)


def test_a_world_that_is_not_closed_shows_in_verify() -> None:
    included, excluded = world(1_000, 10_000, seed=3)
    cascade = FilterCascade.build(included, excluded)
    strangers = np.arange(20_000, 30_000)
    # A first level at 7 % lets some through; of those half are then taken for included, or more.
    assert 0 < cascade.verify(included, strangers) < 2_000
    assert cascade.verify(excluded, included) == 11_000


def test_sets_that_overlap_are_refused_with_an_example() -> None:
    draw = random.Random(5)
    words = [f"word {i}" for i in range(3_000)]
    for _ in range(10):
        at, there = draw.randrange(1_000), draw.randrange(2_000)
        excluded = [*words[1_000:][:there], words[at], *words[1_000:][there:]]
        with pytest.raises(fullbloom.ParameterError, match=rf"key {at} of .* key {there} of excluded"):
            FilterCascade.build(words[:1_000], excluded)


def test_a_build_can_be_ended_and_is_told_of() -> None:
    told = []
    FilterCascade.build(
        range(1_000), range(1_000, 9_000), progress=lambda done, total: told.append((done, total))
    )
    assert told[-1] == (1, 1)

    def stop(done: int, total: int) -> None:
        raise InterruptedError(done, total)

    with pytest.raises(InterruptedError):
        FilterCascade.build(range(1_000), range(1_000, 9_000), progress=stop)
    with pytest.raises(fullbloom.FilterMemoryError, match="memory=100000"):
        FilterCascade.build(range(100_000), range(100_000, 200_000), memory=100_000)
