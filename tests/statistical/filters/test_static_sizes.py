"""A set of keys of any size is built: also where one size of cells has just become too small for it."""

from __future__ import annotations

import random

import pytest

import bloomery

# Just before a segment is added to few, where cells are scarcest: half of all sets of 11,521 keys failed.
SCARCE = (3551, 11_504, 11_521, 12_372, 13_224, 37_454)


@pytest.mark.parametrize("arity", [3, 4])
@pytest.mark.parametrize("size", SCARCE)
def test_scarce_cells_place_every_set_of_keys(size, arity):
    for seed in range(10):
        keys = range(seed << 32, (seed << 32) + size)
        assert all(bloomery.BinaryFuseFilter.build(keys, bits=8, arity=arity).contains_many(list(keys)))


def test_sets_of_any_size_are_placed():
    draw = random.Random(5)
    for _ in range(40):
        size = round(10 ** draw.uniform(0.0, 4.7))
        built = bloomery.BinaryFuseFilter.build(range(size), bits=8)
        assert built.num_added == size
