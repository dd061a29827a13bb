"""A set of keys of any size is built: also where one size of cells has just become too small for it."""

from __future__ import annotations

import random

import pytest

import fullbloom
from fullbloom import theory

# Just before a segment is added to few, where cells are scarcest: half of all sets of 11,521 keys failed.
SCARCE = (3551, 11_504, 11_521, 12_372, 13_224, 37_454)


@pytest.mark.parametrize("arity", [3, 4])
@pytest.mark.parametrize("size", SCARCE)
def test_scarce_cells_place_every_set_of_keys(size, arity):
    for seed in range(10):
        keys = range(seed << 32, (seed << 32) + size)
        assert all(fullbloom.BinaryFuseFilter.build(keys, bits=8, arity=arity).contains_many(list(keys)))


def test_sets_of_any_size_are_placed():
    draw = random.Random(5)
    for _ in range(40):
        size = round(10 ** draw.uniform(0.0, 4.7))
        built = fullbloom.BinaryFuseFilter.build(range(size), bits=8)
        assert built.num_added == size


SIZES = (1, 2, 100, 10_000, 300_000)


@pytest.mark.parametrize("size", SIZES)
def test_cells_are_those_of_the_law(size):
    for arity in (3, 4):
        fuse = fullbloom.BinaryFuseFilter.build(range(size), bits=8, arity=arity)
        assert fuse.num_cells == theory.fuse_cells(size, arity)
        for mutable in (False, True):
            made = fullbloom.BloomierMap.build(
                range(size), 1, value_bits=9, check_bits=7, arity=arity, mutable=mutable
            )
            assert made.num_cells == theory.fuse_cells(size, arity)
            assert made.fpr() == pytest.approx(theory.bloomier_fpr(7, arity, mutable, size))
            bits = theory.bloomier_bits_per_key(size, 9, 7, arity, mutable) * size
            # Lines of 512 bits: cells, values, the table of shards.
            assert bits <= 8 * made.nbytes <= bits + 4 * 512
    assert fullbloom.XorFilter.build(range(size), bits=8).num_cells == theory.xor_cells(size)


def test_overheads_are_those_published_and_lie_above_what_peeling_needs():
    million = 1_000_000
    for arity, published in ((3, 1.125), (4, 1.075)):
        overhead = theory.fuse_cells(million, arity) / million
        assert published <= overhead < published + 0.01
        # A fuse needs fewer cells than any cells anywhere do.
        assert overhead < theory.peeling_threshold(arity)
        for size in (1_000, 10_000, 100_000):
            assert theory.fuse_cells(size, arity) / size > published
    assert theory.peeling_threshold(3) < theory.xor_cells(million) / million < 1.2301


@pytest.mark.parametrize("size", [200, 1000, 5000])
def test_xor_filters_of_any_size_are_solved_at_the_first_attempt_mostly(size):
    """The law of peeling tells how often: 32 cells beside 1.23 a key help few keys."""
    cells = theory.xor_cells(size)
    failure = theory.peeling_failure(size, cells, 3)
    assert failure < {200: 0.1, 1000: 0.25, 5000: 0.3}[size]
    draw, trials = random.Random(size), 100_000 // size
    failed = 0
    for _ in range(trials):
        keys = [[t * (cells // 3) + draw.randrange(cells // 3) for t in range(3)] for _ in range(size)]
        failed += not peels(keys, cells)
    assert abs(failed - trials * failure) <= 4.5 * max(1.0, trials * failure) ** 0.5 + 0.03 * trials


def peels(keys, cells):
    """Whether keys come out one after the other, each by a cell that is its own."""
    held = [set() for _ in range(cells)]
    for key, places in enumerate(keys):
        for place in places:
            held[place].add(key)
    ready, left = [place for place in range(cells) if len(held[place]) == 1], len(keys)
    while ready:
        place = ready.pop()
        if len(held[place]) != 1:
            continue
        (key,) = held[place]
        left -= 1
        for other in keys[key]:
            held[other].discard(key)
            if len(held[other]) == 1:
                ready.append(other)
    return left == 0
