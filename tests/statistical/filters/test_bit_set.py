"""A set of whole numbers is exact: over its universe, for keys of other types, and in what plan says."""

from __future__ import annotations

import random

import numpy as np
import pytest

import fullbloom
from fullbloom.plan import choices

UNIVERSES = [1, 2, 63, 64, 65, 511, 512, 513, 1000, *random.Random(19).choices(range(2000, 200_000), k=4)]


@pytest.mark.parametrize("universe", UNIVERSES)
def test_a_bit_set_equals_a_set_of_integers(universe):
    rng = random.Random(universe)
    instance, truth = fullbloom.BitSet(universe, seed=rng.getrandbits(64)), set()
    for _ in range(2000):
        number = rng.randrange(universe)
        if rng.random() < 0.6:
            assert instance.add(number) == (number not in truth)
            truth.add(number)
        else:
            assert instance.discard(number) == (number in truth)
            truth.discard(number)
    everything = np.arange(-universe, 2 * universe)
    assert set(everything[instance.contains_many(everything)].tolist()) == truth
    assert instance.num_added == len(truth)
    assert instance.approx_count() == (len(truth), 0.0)
    assert fullbloom.loads(instance.to_bytes()) == instance


def test_keys_of_other_types_are_not_members():
    # A million keys, each one a member by chance with 2^20 / 2^64: one is expected in 17,000 runs.
    instance = fullbloom.BitSet(1 << 20)
    instance.update(range(1 << 20))
    assert not any(instance.contains_many([f"key-{i}" for i in range(500_000)]))
    assert not instance.contains_many(np.random.default_rng(3).random(500_000)).any()
    assert 1.0 not in instance
    assert "1" not in instance


@pytest.mark.parametrize("key", [-1, 100, 2**63, 2**70, "7", 7.0, b"7", (7,)])
def test_numbers_outside_the_universe_are_refused(key):
    instance = fullbloom.BitSet(100)
    with pytest.raises(fullbloom.ParameterError, match="from 0 to 99"):
        instance.add(key)
    with pytest.raises(fullbloom.ParameterError, match="from 0 to 99"):
        instance.update([5, key, 6])
    assert instance.num_added == 1
    assert 5 in instance
    with pytest.raises(KeyError):
        instance.remove(key)


@pytest.mark.parametrize("seed", range(5))
def test_plan_recommends_it_where_it_is_smaller(seed):
    rng = random.Random(seed)
    items, fpr = rng.randrange(10_000, 10_000_000), 10 ** rng.uniform(-4, -1)
    least = min(choice.bits_per_key for choice in choices(items, fpr))
    smaller = choices(items, fpr, universe=max(items, int(items * least / 2)))
    assert (smaller[0].structure, smaller[0].fpr, smaller[0].recommended) == ("bit-set", 0.0, True)
    assert choices(items, fpr, universe=int(items * least * 2))[0].structure == "bloom"
    assert "bit-set" not in {choice.structure for choice in choices(items, fpr)}
    with pytest.raises(fullbloom.ParameterError, match="universe must be at least"):
        choices(items, fpr, universe=items - 1)
