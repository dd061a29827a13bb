"""`regenerate` makes a filter of the same parameters and hash for other keys, capacity or rate."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from cases import for_each
from support import SECRET, Variant, every_variant

import fullbloom

EVERY = [*every_variant("keys"), *every_variant("numbers")]
#: What follows from keys, capacity or rate.
SIZED = {
    "num_bits", "num_counters", "num_cells", "num_added", "nbytes", "fill", "fpr", "approx_count",
    "approx_count_sd", "fnr", "capacity", "num_buckets", "num_bins", "num_slots", "used_slots",
    "quotient_bits", "buckets", "keys_per_generation", "stages", "seen", "spare_nbytes", "initial_capacity",
    "occurrences", "decrements", "window", "regions", "num_hashes", "remainder_bits", "full", "stash",
    "deletability", "collided", "stable_fpr", "stable_fill",
}  # fmt: skip


@pytest.mark.long
@for_each("variant", EVERY)
@for_each("options", [{"seed": 9}, {"secret": SECRET, "seed": 4}])
def test_regenerate_keeps_parameters_and_hash(variant: Variant, options: dict[str, Any]) -> None:
    if variant.can("numbers"):
        options = {"seed": options["seed"]}
    if variant.can("zones"):
        options |= {"counting": True}
    instance = variant.make(100, 0.02, **options)
    keys = list(range(90))
    instance.update(keys)
    again = instance.regenerate(keys)
    assert type(again) is variant.cls
    assert (again.seed, again.keyed, again.capacity) == (instance.seed, instance.keyed, instance.capacity)
    assert again.contains_many(keys) == [True] * 90 or not variant.can("keeps")
    larger = instance.regenerate(range(300), capacity=4000)
    result, now = instance.info(), larger.info()
    if variant.can("zones"):
        assert now.pop("counter_bits") > result.pop("counter_bits")
    assert {name: result.get(name) for name in result if name not in SIZED} == {
        name: now.get(name) for name in result if name not in SIZED
    }
    assert larger.capacity >= 4000
    assert larger.target_fpr == instance.target_fpr
    assert larger.contains_many(range(300)) == [True] * 300 or not variant.can("keeps")
    assert instance.contains_many(keys) == [True] * 90 or not variant.can("keeps"), "this one stays as it is"
    rated = any(name == "fpr" for name, _, _ in variant.row["parameters"])
    if rated:
        finer = instance.regenerate(keys, fpr=0.001)
        assert finer.target_fpr == 0.001
        assert finer.fpr() < 0.01
    else:
        with pytest.raises(fullbloom.ParameterError, match="no fpr"):
            instance.regenerate(keys, fpr=0.001)


@pytest.mark.parametrize("layout", ["classic", "split", "two-block"])
def test_regenerate_keeps_explicit_options(layout: str) -> None:
    instance = fullbloom.BloomFilter(100, layout=layout, strict=True, hash="sha256")
    again = instance.regenerate(range(500), capacity=500)
    assert (again.layout, again.strict, again.hash) == (layout, True, "sha256")
    with pytest.raises(fullbloom.FilterFull):
        instance.regenerate(range(500))
    window = fullbloom.RollingBloomFilter(100, window=30.0, generations=5)
    assert window.regenerate([1], capacity=10_000).generations == 5
    # Bits of a fingerprint follow from the rate, of those that were given from the one that they make.
    cuckoo = fullbloom.CuckooFilter(100, fingerprint_bits=20)
    assert cuckoo.regenerate([1], capacity=10_000).fingerprint_bits in {20, 21}
    assert cuckoo.regenerate([1], fpr=0.01).fingerprint_bits < 20


def test_the_capacity_warning_is_raised_after_the_keys_are_added() -> None:
    seen, batches = fullbloom.BloomFilter(1000, 0.001), [range(i, i + 300) for i in range(0, 3000, 300)]
    kept: list[int] = []
    for batch in batches:
        kept.extend(batch)
        with warnings.catch_warnings():
            warnings.simplefilter("error", fullbloom.CapacityWarning)
            try:
                seen.update(batch)
            except fullbloom.CapacityWarning:
                # No lock is held: the filter answers, and its keys are in.
                assert all(seen.contains_many(batch))
                seen = seen.regenerate(kept, capacity=4 * len(kept))
    assert all(seen.contains_many(kept))
    assert seen.capacity == 4800
    assert seen.fpr() <= 0.001


def test_impossible_arguments_are_refused() -> None:
    instance = fullbloom.BloomFilter(100)
    for options in ({"capacity": 0}, {"capacity": "7"}, {"fpr": 2.0}, {"fpr": "x"}):
        with pytest.raises((fullbloom.ParameterError, fullbloom.ParameterTypeError)):
            instance.regenerate([1], **options)
    with pytest.raises(fullbloom.KeyTypeError):
        instance.regenerate("abc")
    assert not hasattr(fullbloom.XorFilter, "regenerate")
