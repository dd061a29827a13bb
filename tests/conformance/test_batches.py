"""Batches of NumPy integers leave the bits and answers of one call a key, also when nearly full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import for_each
from support import Keys, Variant, every_variant, most_counted

import fullbloom

CAPACITIES = [1, 2, 10, 4000]


def nearly_full(variant: Variant, capacity: int, seed: int = 9) -> tuple[Any, Any, Any]:
    """Two equal filters at 95 % of their capacity, filled by batches and one by one, and their keys."""
    keys = Keys("random", capacity).take(max(1, capacity * 95 // 100))
    batch, single = (variant.make(capacity, 0.01, seed=seed) for _ in range(2))
    if variant.can("pairs"):
        for instance in (batch, single):
            variant.update(instance, keys.tolist())
        return batch, single, keys
    expected = [single.add(key) for key in keys.tolist()]
    assert batch.add_many(keys).tolist() == expected
    return batch, single, keys


@for_each("capacity", CAPACITIES)
@for_each("variant", every_variant("add"))
def test_batched_adds_and_lookups_equal_single_calls(variant: Variant, capacity: int) -> None:
    batch, single, keys = nearly_full(variant, capacity)
    assert batch.to_bytes() == single.to_bytes()
    assert batch == single
    assert batch.num_added == single.num_added
    probes = np.concatenate([keys, Keys("random", 77).take(5000)])
    found = batch.contains_many(probes)
    assert found.tolist() == [key in single for key in probes.tolist()]
    assert found.tolist() == batch.contains_many(probes, threads=3).tolist()
    assert found.tolist() == batch.contains_hashed(fullbloom.hash_many(probes, seed=9)).tolist()
    if variant.can("keeps"):
        assert found[: len(keys)].all()


@for_each("capacity", CAPACITIES)
@for_each("variant", every_variant("remove"))
def test_batched_removals_equal_single_calls(variant: Variant, capacity: int) -> None:
    batch, single, keys = nearly_full(variant, capacity)
    out = keys[::2]
    assert batch.discard_many(out).all()
    for key in out.tolist():
        single.remove(key)
    assert batch.to_bytes() == single.to_bytes()
    assert batch.contains_many(keys[1::2]).all()
    assert batch.discard_many(keys[1::2]).all()
    assert batch.fill == 0.0, "what is taken out leaves nothing behind"
    assert batch.num_added == 0
    assert not batch.contains_many(keys).any()


@for_each("capacity", CAPACITIES)
@for_each("variant", every_variant("count", "keys", "keeps"))
def test_batched_counts_equal_single_calls(variant: Variant, capacity: int) -> None:
    batch, single, keys = nearly_full(variant, capacity)
    probes = np.concatenate([keys, Keys("random", 77).take(2000)])
    counts = batch.count_many(probes)
    assert counts.tolist() == [single.count(key) for key in probes.tolist()]
    assert (counts[: len(keys)] >= min(1, most_counted(batch))).all()
    assert ((counts > 0) == batch.contains_many(probes)).all()


@for_each("variant", every_variant("add"))
def test_equal_seeds_give_equal_bytes(variant: Variant) -> None:
    instance = [nearly_full(variant, 1000, seed)[0].to_bytes() for seed in (5, 5, 6)]
    assert instance[0] == instance[1] != instance[2]


@for_each("capacity", CAPACITIES)
@for_each("variant", every_variant("keys", "keeps"))
def test_a_full_filter_keeps_returning_results(variant: Variant, capacity: int) -> None:
    """Past the capacity a filter either goes on or says FilterFull; no key that it took is lost."""
    bloom = variant.make(capacity, 0.01)
    taken: list[int] = []
    for key in Keys("random", 3).take(3 * capacity + 20).tolist():
        try:
            bloom.add(key)
        except fullbloom.FilterFull as error:
            assert len(taken) >= capacity, f"full after {len(taken)} of {capacity}"
            assert len(str(error)) < 300
            break
        except fullbloom.CapacityWarning:
            pass  # given after the key was taken
        taken.append(key)
    assert all(bloom.contains_many(taken))
    assert fullbloom.loads(bloom.to_bytes()) == bloom
    if variant.can("remove"):
        for _ in range(1 + len(taken) // 10):
            bloom.remove(taken.pop())
        bloom.add(-1)
        assert -1 in bloom
        assert all(bloom.contains_many(taken))


pytestmark = pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
