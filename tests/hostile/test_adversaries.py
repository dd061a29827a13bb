"""Chosen keys: who knows the hash can crowd a table; he harms his own keys, and nobody else's."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from benchmarks.attacks import search
from cases import for_each
from support import SECRET, bits_of

import fullbloom
from fullbloom import CuckooFilter, DLeftCountingFilter, DynamicCuckooFilter, FilterFull, QuotientFilter

ABSENT = np.arange(1 << 50, (1 << 50) + 20_000)


def crowd_of(instance: Any, count: int, region: int) -> Any:
    """Keys both of whose buckets are among the first `region`."""
    return search.cuckoo(instance.num_buckets, instance.fingerprint_bits, count, region).keys


def others(instance: Any, count: int, region: int) -> Any:
    """Keys that may lie elsewhere: of those that nobody chose, (region / buckets)^2 may not."""
    keys = np.arange(2 * count)
    shares = search.sharing(instance.num_buckets, instance.fingerprint_bits, region)(
        fullbloom.hash_many(keys)
    )
    return keys[~shares][:count]


def at_home(instance: Any, count: int, homes: int) -> Any:
    """Ready hashes at home in the first `homes` slots, all fingerprints different."""
    each = np.arange(count, dtype=np.uint64)
    home, remainder = each % np.uint64(homes), each // np.uint64(homes)
    bits = instance.quotient_bits + instance.remainder_bits
    return (home << np.uint64(instance.remainder_bits) | remainder) << np.uint64(64 - bits)


def offer(instance: Any, keys: Any) -> tuple[list[int], list[str]]:
    """Adds what is taken, one by one: the keys taken, and why others were refused."""
    taken, refusals = [], []
    for key in np.asarray(keys).tolist():
        before = instance.num_added
        try:
            instance.add(key)
            taken.append(key)
        except FilterFull as refusal:
            assert instance.num_added == before
            refusals.append(str(refusal))
    return taken, refusals


CUCKOO = [{}, {"semi_sort": True}, {"bucket_size": 2}, {"bucket_size": 8}, {"fingerprint_bits": 24}]


@pytest.mark.parametrize("options", CUCKOO)
def test_keys_that_crowd_a_few_buckets_do_not_fill_a_cuckoo_filter_for_others(
    options: dict[str, Any],
) -> None:
    instance = CuckooFilter(3000, **options)
    region = 40 // instance.bucket_size + 8
    crowd = crowd_of(instance, 250, region)
    taken, refusals = offer(instance, crowd)
    assert len(taken) <= 41 + 8 * instance.bucket_size
    assert refusals
    assert all("secret=" in refusal for refusal in refusals)
    assert not instance.full
    honest = others(instance, 3000 - len(taken), region)
    instance.update(honest)
    assert instance.contains_many(np.array(taken)).all()
    assert instance.contains_many(honest).all()
    assert instance.num_added == 3000


@pytest.mark.parametrize("options", CUCKOO)
def test_a_refused_crowding_key_changes_no_byte(options: dict[str, Any]) -> None:
    instance = CuckooFilter(3000, **options)
    instance.update(others(instance, 1500, 40 // instance.bucket_size + 8))
    crowd = crowd_of(instance, 250, 40 // instance.bucket_size + 8)
    refused = 0
    for key in crowd.tolist():
        before = instance.to_bytes()
        try:
            instance.add(key)
        except FilterFull:
            refused += 1
            assert instance.to_bytes() == before
    assert refused > 50
    assert fullbloom.loads(instance.to_bytes()) == instance


def test_a_removal_makes_space_for_crowding_keys() -> None:
    instance = CuckooFilter(3000)
    crowd = crowd_of(instance, 250, 20)
    taken, _ = offer(instance, crowd)
    for key in taken:
        instance.remove(key)
    assert instance.num_added == 0
    assert len(offer(instance, crowd)[0]) == len(taken)


@for_each("homes", [1, 64, 4096])
@for_each("counting", [False, True])
def test_keys_at_home_in_few_slots_do_not_make_a_quotient_filter_slow(homes: int, counting: bool) -> None:
    instance = QuotientFilter(500_000, 1e-6, counting=counting)
    crowd = at_home(instance, 20_000, homes)
    refused = 0
    for at in range(0, len(crowd), 100):
        try:
            instance.add_hashed(crowd[at : at + 100])
        except FilterFull as refusal:
            refused += 1
            assert "secret=" in str(refusal)
    assert refused
    # The way of an add up to a quarter full, and the homes of the crowd: one cluster.
    taken = instance.used_slots
    assert 1024 <= taken <= 1024 + homes
    assert int(np.sum(instance.contains_hashed(crowd))) == instance.num_added == taken
    elsewhere = np.arange(500_000 - taken)
    elsewhere = elsewhere[fullbloom.hash_many(elsewhere) >> np.uint64(64 - instance.quotient_bits) > 8192]
    instance.update(elsewhere)
    assert instance.contains_many(elsewhere).all()
    assert int(np.sum(instance.contains_hashed(crowd))) >= taken


def test_copies_in_a_quotient_filter_are_bounded_and_counting_takes_more() -> None:
    plain, counting = QuotientFilter(500_000), QuotientFilter(500_000, counting=True)
    with pytest.raises(FilterFull, match="counting=True"):
        plain.update(["ada"] * 100_000)
    assert plain.num_added == 1
    assert plain.count("ada") == plain.used_slots == 1024
    assert plain.add("grace")
    counting.update(["ada"] * 100_000)
    assert counting.count("ada") == 100_000


def test_a_d_left_filter_refuses_only_crowded_keys_and_says_why() -> None:
    instance = DLeftCountingFilter(2000, 1e-5, subtables=2)
    remainders = np.arange(1 << instance.remainder_bits, dtype=np.uint64)
    mixed = (remainders + np.uint64(1)) * np.uint64(0xD1342543DE82EF95 * 3 & 2**64 - 1)
    turned = (mixed << np.uint64(32) | mixed >> np.uint64(32)) * np.uint64(0xBF58476D1CE4E5B9)
    near = remainders[search.fastrange(turned, instance.buckets) < 2][:200].tolist()
    values = instance.buckets << instance.remainder_bits
    crowd = [-(-fingerprint * 2**64 // values) for fingerprint in near]
    refusals = []
    for hashed in crowd:
        try:
            instance.add_hashed([hashed])
        except FilterFull as refusal:
            refusals.append(str(refusal))
    assert refusals
    assert "secret=" in refusals[0]
    taken = instance.num_added
    instance.update(np.arange(2000 - taken))
    assert instance.contains_many(np.arange(2000 - taken)).all()
    assert sum(instance.contains_hashed(crowd)) == taken


def test_crowding_keys_open_no_stages_of_a_growing_cuckoo_filter() -> None:
    instance = DynamicCuckooFilter(3000, max_stages=64)
    one = instance.nbytes
    crowd = crowd_of(instance, 700, 20)
    taken, refusals = offer(instance, crowd)
    assert refusals
    assert "secret=" in refusals[0]
    assert instance.nbytes <= 2 * one, "one stage more than the keys need"
    honest = others(instance, 9000, 20)
    instance.update(honest)
    assert instance.contains_many(honest).all()
    assert instance.contains_many(np.array(taken)).all()
    assert instance.stages <= 4


def test_copies_of_one_key_open_no_stages() -> None:
    instance = DynamicCuckooFilter(1000, max_stages=64)
    with pytest.raises(FilterFull, match="copies"):
        instance.update(["ada"] * 500)
    assert instance.stages <= 2
    instance.update(np.arange(5000))
    assert instance.contains_many(np.arange(5000)).all()


def test_crowding_keys_open_no_stages_of_a_scalable_filter() -> None:
    instance, batches = (fullbloom.ScalableBloomFilter(1000, kind="cuckoo") for _ in range(2))
    refusals = []
    for _ in range(4):
        newest = instance.stage_info()[-1]
        region = newest["num_buckets"] // 60
        crowd = search.cuckoo(newest["num_buckets"], newest["fingerprint_bits"], 12 * region, region).keys
        refusals += offer(instance, crowd)[1]
        for key in crowd:
            with contextlib.suppress(FilterFull):
                batches.update([int(key)])
    assert refusals
    assert "secret=" in refusals[0]
    assert instance.stages <= 2
    assert batches == instance
    instance.update(np.arange(6000))
    assert instance.contains_many(np.arange(6000)).all()


def test_a_quotient_stage_opens_no_other_for_a_crowd() -> None:
    instance = fullbloom.ScalableBloomFilter(100_000, 0.001, kind="quotient")
    crowd = at_home(type("Stage", (), instance.stage_info()[0]), 6000, 64)
    for hashed in crowd.tolist():
        with contextlib.suppress(FilterFull):
            instance.add_hashed([hashed])
    assert instance.stages <= 2


@for_each("home", [0, 5000, -1])
@for_each("grown", [0, 2])
def test_a_merge_puts_no_key_further_from_home_than_adds_would(home: int, grown: int) -> None:
    """Up to a quarter full, 1024 slots: as many keys of one home as either takes do not fit together."""
    instance, other = (QuotientFilter(20_000, 1e-5) for _ in range(2))
    crowd = at_home(instance, 2000, 1) + np.uint64(
        (home % instance.num_slots) << (64 - instance.quotient_bits)
    )
    instance.add_hashed(crowd[:1000])
    other.add_hashed(crowd[1000:])
    for _ in range(grown):
        other.grow()
    before = instance.to_bytes()
    with pytest.raises(FilterFull, match=r"1024.*secret="):
        instance.merge(other)
    assert instance.to_bytes() == before
    # With few of them it fits, and is the table that adds make.
    few = other.copy()
    few.clear()
    few.add_hashed(crowd[1000:1020])
    instance.merge(few)
    added = QuotientFilter(20_000, 1e-5)
    added.add_hashed(crowd[:1020])
    assert bits_of(instance) == bits_of(added)


@pytest.mark.parametrize("cls", [CuckooFilter, QuotientFilter, DynamicCuckooFilter])
def test_with_a_secret_chosen_keys_behave_like_others(cls: Any) -> None:
    instance, twin = cls(3000, secret=SECRET), cls(3000)
    if cls is QuotientFilter:
        crowd = search.quotient(twin.quotient_bits, 2500, homes=64).keys
    else:
        crowd = crowd_of(twin, 700, 20)
    instance.update(crowd)
    assert instance.contains_many(crowd).all()
    assert getattr(instance, "stages", 1) == 1
    assert float(instance.contains_many(ABSENT).mean()) < 0.02


def early_refusal(buckets: int, bucket_size: int, capacity: int) -> float:
    """Bound on the chance that two stages refuse a key before there are half as many keys as one is for.

    Some k buckets would have to be all that so many keys may go to, two stashes included.
    """

    def choose(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    keys, total = -(-capacity // 2), 0.0
    for k in range(1, buckets + 1):
        needed = 2 * (bucket_size * k + 1) + 1
        if needed > keys:
            break
        total += math.exp(choose(buckets, k) + choose(keys, needed) + 2 * needed * math.log(k / buckets))
    return total


@for_each("seed", range(24))
def test_honest_keys_of_growing_filters_are_never_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    capacity = int(10 ** random.uniform(0, 3.5))
    bucket_size = int(random.choice([1, 2, 4, 8]))
    stages = int(random.integers(1, 20))
    instance = DynamicCuckooFilter(
        capacity, float(random.choice([0.05, 0.01])), max_stages=stages, bucket_size=bucket_size, seed=seed
    )
    assert early_refusal(instance.num_buckets, bucket_size, capacity) < 2e-17
    keys = random.integers(0, 2**62, capacity * stages)
    instance.update(keys)
    assert instance.contains_many(keys).all()
    # Every other goes and others come: no stage is opened that is not needed.
    instance.discard_many(keys[::2])
    instance.update(random.integers(0, 2**62, len(keys[::2])))
    assert instance.contains_many(keys[1::2]).all()
    assert instance.stages <= stages
