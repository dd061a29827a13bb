"""The dynamic cuckoo filter keeps its rate, its law and its keys through all its stages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support import SCALE, SIGMAS, chance

import fullbloom
from fullbloom import CapacityWarning, CuckooFilter, DynamicCuckooFilter, FilterFull, theory

PROBES = 400_000 * SCALE


def keys(count: int, seed: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2**63, count, dtype=np.int64)


def bound(rate: float, probes: int, held: int) -> float:
    """Deviation that chance alone seldom exceeds: the probes are a sample, and so are the fingerprints."""
    return chance(rate * probes) / probes + SIGMAS * rate / math.sqrt(held)


def plain(bits: int, compared: float) -> float:
    """The law written out a second time; theory has that of the filter itself."""
    return 1 - (1 - 1 / (2**bits - 1)) ** compared


def compute_fpr(instance: DynamicCuckooFilter) -> float:
    """The rate that the filter tells, of its keys in tables of one shape."""
    place = (2 - 1 / instance.num_buckets) / (instance.num_buckets * (2**instance.fingerprint_bits - 1))
    return -math.expm1(instance.num_added * math.log1p(-place))


@pytest.mark.parametrize("max_stages", [1, 4, 16, 50])
@pytest.mark.parametrize("fpr", [0.02, 0.001])
@pytest.mark.parametrize("capacity", [100, 2_000, 20_000])
def test_all_stages_full_keep_the_rate_and_the_law(capacity: int, fpr: float, max_stages: int) -> None:
    instance = DynamicCuckooFilter(capacity, fpr, max_stages=max_stages, seed=3)
    held = capacity * max_stages
    instance.update(keys(held, 1))
    assert (instance.stages, instance.capacity, instance.num_added) == (max_stages, held, held)
    assert instance.contains_many(keys(held, 1)).all()
    measured = float(instance.contains_many(keys(PROBES, 2)).mean())
    spread = bound(fpr, PROBES, held)
    assert measured <= fpr + spread
    load = capacity / (instance.num_buckets * instance.bucket_size)
    law = theory.dynamic_cuckoo_fpr(instance.fingerprint_bits, instance.bucket_size, load, max_stages)
    assert law <= fpr
    assert abs(measured - law) <= spread
    assert instance.fpr() == pytest.approx(compute_fpr(instance), rel=1e-9)


@pytest.mark.parametrize("bucket_size", [2, 4, 8])
@pytest.mark.parametrize("held", [500, 12_345, 40_000])
def test_the_law_holds_on_the_way_and_after_removals(held: int, bucket_size: int) -> None:
    instance = DynamicCuckooFilter(4_000, max_stages=20, bucket_size=bucket_size, fingerprint_bits=9, seed=5)
    source = keys(2 * held, 6)
    instance.update(source)
    assert instance.discard_many(source[::2]).all()
    for _ in range(2):
        measured = float(instance.contains_many(keys(PROBES, 7)).mean())
        # Items over the slots of one stage: the load of one, times their number.
        law = theory.dynamic_cuckoo_fpr(9, bucket_size, held / (instance.num_buckets * bucket_size))
        assert abs(measured - law) <= bound(law, PROBES, held)
        assert instance.fpr() == pytest.approx(compute_fpr(instance), rel=1e-9)
        instance.compact()
        assert instance.stages == max(1, math.ceil(held / 4_000))
        assert instance.contains_many(source[1::2]).all()


def test_a_stage_is_sized_for_its_share_of_the_rate() -> None:
    for stages in (1, 2, 16, 1024):
        instance = DynamicCuckooFilter(1000, 0.01, max_stages=stages)
        share = 1 - (1 - 0.01) ** (1 / stages)
        alone = CuckooFilter(1000, share)
        assert (instance.fingerprint_bits, instance.num_buckets) == (
            alone.fingerprint_bits,
            alone.num_buckets,
        )
        assert instance.stage_info()[0]["target_fpr"] == pytest.approx(share)
    given = DynamicCuckooFilter(1000, max_stages=8, fingerprint_bits=8)
    assert given.target_fpr == pytest.approx(plain(8, 8 * 2 * 1000 / given.num_buckets))


def test_the_law_of_the_filter_compounds_the_laws_of_its_stages() -> None:
    loads = [0.95, 0.95, 0.4]
    together = theory.dynamic_cuckoo_fpr(10, 4, sum(loads) / 3, 3)
    assert together == pytest.approx(1 - math.prod(1 - plain(10, 8 * load) for load in loads))
    assert theory.dynamic_cuckoo_fpr(10, 4, 0.95) == theory.cuckoo_fpr(10, 4, 0.95)
    assert theory.dynamic_cuckoo_fpr(10, 4, 0.95, 0) == 0.0
    for arguments in ({"stages": -1}, {"load": -0.1}, {"bucket_size": 3}):
        with pytest.raises(fullbloom.ParameterError):
            theory.dynamic_cuckoo_fpr(10, **arguments)


@pytest.mark.parametrize("options", [{}, {"bucket_size": 8}, {"bucket_size": 2, "max_stages": 20}])
def test_removing_in_any_order_denies_no_key_and_gives_back_stages(options: dict[str, Any]) -> None:
    draw = np.random.default_rng(4)
    for order in (lambda held: held, lambda held: held[::-1], draw.permutation):
        instance = DynamicCuckooFilter(1000, seed=5, **options)
        source = keys(10_000, 8)
        instance.update(source)
        assert instance.stages == 10
        left = order(source)
        seen = [instance.stages]
        while len(left):
            gone, left = left[:500], left[500:]
            assert instance.discard_many(gone).all()
            assert instance.contains_many(left).all()
            assert instance.num_added == len(left)
            seen.append(instance.stages)
        assert seen == sorted(seen, reverse=True)
        assert (
            instance.stages,
            instance.fill,
            instance.nbytes <= 2 * instance.stage_info()[0]["nbytes"],
        ) == (1, 0.0, True)


def test_a_filter_that_cannot_grow_further_warns_once_and_then_is_full() -> None:
    instance = DynamicCuckooFilter(500, max_stages=3, seed=2)
    source = keys(4000, 4)
    instance.update(source[:1500])
    with pytest.warns(CapacityWarning, match="1501") as warned:
        assert all(instance.add(key) in {True, False} for key in source[1500:1520].tolist())
    assert len(warned) == 1
    assert instance.stages == 3
    with pytest.raises(FilterFull, match="max_stages"):
        instance.update(source[1520:])
    assert instance.full
    held = source[: instance.num_added]
    assert len(held) > 1520
    assert instance.contains_many(held).all()
    before = instance.to_bytes()
    with pytest.raises(FilterFull):
        instance.add("one more")
    assert instance.to_bytes() == before
    instance.remove(int(held[0]))
    instance.discard_many(held[1:10])
    assert not instance.full
    assert instance.add("one more") is True
    assert instance.contains_many(held[10:]).all()


def test_copies_are_counted_through_all_stages() -> None:
    instance = DynamicCuckooFilter(1000, max_stages=3)
    instance.update(range(500))
    assert [instance.add("ada") for _ in range(24)] == [True] + [False] * 23
    assert (instance.count("ada"), instance.stages) == (24, 3)
    instance.discard_many(range(500))
    with pytest.raises(FilterFull, match="24 copies"):
        instance.add("ada")
    assert not instance.full
    assert instance.add("grace")
    assert instance.count_many(["ada", "grace", "alan"]) == [24, 1, 0]
    for copies in range(23, -1, -1):
        instance.remove("ada")
        assert instance.count("ada") == copies
    with pytest.raises(KeyError, match="ada"):
        instance.remove("ada")
    assert (instance.num_added, instance.stages) == (1, 1)


def test_a_merge_adds_the_keys_of_the_other_or_changes_nothing() -> None:
    a = DynamicCuckooFilter(1000, seed=1)
    b = DynamicCuckooFilter(1000, seed=1)
    a.update(range(4500))
    b.update(range(4500, 9000))
    a.merge(b)
    assert a.contains_many(np.arange(9000)).all()
    assert (a.num_added, a.stages) == (9000, 9)
    before = a.to_bytes()
    b.update(range(9000, 14_000))
    with pytest.raises(FilterFull, match="do not fit"):
        a.merge(b)
    assert a.to_bytes() == before
    with pytest.raises(fullbloom.IncompatibleFilters, match="num_buckets"):
        a.merge(DynamicCuckooFilter(500, seed=1))
