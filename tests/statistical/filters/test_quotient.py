"""A quotient filter answers exactly as a set of fingerprints does, and its rate follows the law."""

from __future__ import annotations

import collections
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from support import SCALE, SIGMAS, Keys

import fullbloom
from fullbloom import FilterFull, IncompatibleFilters, QuotientFilter, theory


def fingerprints(f: QuotientFilter, keys: np.ndarray) -> np.ndarray:
    """The top bits of the hashes of ``keys``."""
    shift = np.uint64(64 - f.quotient_bits - f.remainder_bits)
    return np.asarray(fullbloom.hash_many(keys, seed=f.seed)) >> shift


@pytest.mark.parametrize("capacity", [1, 60, 61, 972, 973, 10_000, 62_259, 1_000_000])
@pytest.mark.parametrize("fpr", [0.3, 0.01, 1e-4, 1e-9])
def test_the_constructor_follows_theory(capacity: int, fpr: float) -> None:
    f, size = QuotientFilter(capacity, fpr), theory.quotient_size(capacity, fpr)
    assert (f.quotient_bits, f.remainder_bits, f.num_slots) == size[:3]
    assert size.load <= 0.95
    # The law written out a second time; theory has that of the constructor.
    with localcontext(prec=40):
        rates = [1 - (1 - Decimal(2) ** -bits) ** capacity for bits in (sum(size[:2]), sum(size[:2]) - 1)]
    assert rates[0] <= fpr
    assert rates[1] > fpr or f.remainder_bits == 1
    assert f.nbytes == QuotientFilter.nbytes_for(capacity, fpr)
    assert f.nbytes <= size.bits_per_key * capacity / 8 + 3 * 64
    counted = theory.quotient_size(capacity, fpr, counting=True)
    assert QuotientFilter(capacity, fpr, counting=True).nbytes <= counted.bits_per_key * capacity / 8 + 192


@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize("items", [500, 20_000, 62_259])
def test_results_equal_those_of_a_set_of_fingerprints(items: int, counting: bool) -> None:
    f = QuotientFilter(items, 0.01, counting=counting, seed=items)
    keys = Keys("random", items)
    members, absent = keys.take(items), keys.take(100_000)
    new = f.add_many(members)
    stored = fingerprints(f, members)
    first = np.zeros(items, bool)
    first[np.unique(stored, return_index=True)[1]] = True
    assert (new == first).all()
    assert f.num_added == len(np.unique(stored))
    assert f.contains_many(members).all()
    assert (f.contains_many(absent) == np.isin(fingerprints(f, absent), stored)).all()
    copies = collections.Counter(stored.tolist())
    expected = [copies[x] for x in fingerprints(f, members[:2000]).tolist()]
    assert f.count_many(members[:2000]).tolist() == expected


@pytest.mark.parametrize(
    ("items", "fpr", "bits"),
    # 3/4 full with remainders of 8 bits: 0.2925 % (Bender et al.).
    [(49_152, 0.003, 8), (1_000, 0.01, 6), (20_000, 0.05, 4), (996_147, 0.01, 7)],
)
def test_the_rate_follows_the_law(items: int, fpr: float, bits: int) -> None:
    hits, trials, filters = 0, 200_000 * SCALE, 4
    for seed in range(filters):
        f = QuotientFilter(items, fpr, seed=seed)
        assert f.remainder_bits == bits
        keys = Keys("random", seed)
        f.update(keys.take(items))
        hits += int(f.contains_many(keys.take(trials)).sum())
    law = theory.fingerprint_load_fpr(items / f.num_slots, bits)
    if items == 49_152:
        assert round(law, 6) == 0.002925
    exact = theory.fingerprint_fpr(items, f.quotient_bits + bits)
    assert law == pytest.approx(exact, rel=2.0**-f.quotient_bits)
    total = trials * filters
    # Binomial trials, and fingerprints that collide before: fewer than half of a standard deviation more.
    sd = math.sqrt(law * (1 - law) / total) + law / math.sqrt(2 * items * filters)
    assert abs(hits / total - law) <= SIGMAS * sd
    assert hits / total <= fpr + SIGMAS * sd
    # Of the fingerprints that this filter holds.
    assert f.fpr() == pytest.approx(f.num_added / 2.0 ** (f.quotient_bits + bits), rel=1e-9)


def test_a_table_fills_to_95_percent_and_then_warns() -> None:
    f = QuotientFilter(62_259, 0.01)
    assert f.num_slots == 65_536
    keys = Keys("random", 1)
    members, more = keys.take(62_259), keys.take(1000)
    f.update(members)
    assert f.used_slots == 62_259
    assert f.fill >= 0.9499
    with pytest.raises(FilterFull):
        f.update(more)
    with pytest.raises(FilterFull):
        f.add(int(more[0]))
    assert f.used_slots == 62_259
    assert f.contains_many(members).all()
    # Where a key went, another may come.
    f.remove(int(members[0]))
    f.add(int(more[0]))
    assert int(more[0]) in f
    f.discard_many(members[1:])
    assert f.used_slots == 1
    # What grows goes on.
    f.update(members[1:])
    f.grow()
    f.update(more[1:])
    assert f.contains_many(members[1:]).all()
    assert f.contains_many(more).all()


def test_copies_share_slots_when_counting() -> None:
    plain, counting = QuotientFilter(100), QuotientFilter(100, counting=True)
    for f in (plain, counting):
        f.update(["a"] * 30 + ["b"])
        assert (f.count("a"), f.count("b"), f.count("c"), f.num_added) == (30, 1, 0, 2)
    assert (plain.used_slots, counting.used_slots) == (31, 2)
    counting.update(["a"] * 1000)
    assert counting.count("a") == 1030
    assert counting.used_slots == 6
    assert counting.discard_many(["a"] * 1031 + ["b", "b"]) == [True] * 1030 + [False, True, False]
    assert (counting.used_slots, counting.num_added) == (0, 0)
    assert counting == QuotientFilter(100, counting=True)


def test_the_bytes_do_not_depend_on_the_order_of_keys() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 4000, 15_000)
    a, b = QuotientFilter(16_000), QuotientFilter(16_000)
    a.update(keys)
    a.discard_many(keys[:5000])
    b.update(rng.permutation(keys[5000:]))
    assert a == b
    assert a.to_bytes() == b.to_bytes()


@pytest.mark.parametrize("counting", [False, True])
def test_merging_and_growing_need_no_keys(counting: bool) -> None:
    keys = Keys("random", 9)
    left, right, absent = keys.take(3000), keys.take(2000), keys.take(100_000)
    # Slots may differ while fingerprints are as long.
    a = QuotientFilter(3000, 0.001, counting=counting)
    b = QuotientFilter(6000, 0.002, counting=counting)
    assert a.quotient_bits + a.remainder_bits == b.quotient_bits + b.remainder_bits
    a.update(left)
    b.update(right)
    b.update(left[:500])
    before = a.to_bytes()
    with pytest.raises(FilterFull):
        a.merge(b)
    assert a.to_bytes() == before
    answers = a.contains_many(absent)
    a.grow()
    assert (a.contains_many(absent) == answers).all()
    assert a.capacity == 6000
    a.merge(b)
    assert a.contains_many(left).all()
    assert a.contains_many(right).all()
    assert (a.count_many(left[:500]) >= 2).all()
    alone = QuotientFilter(6000, 0.002, counting=counting)
    alone.update(left)
    alone.update(right)
    alone.update(left[:500])
    assert (a.used_slots, a.num_added) == (alone.used_slots, alone.num_added)
    assert (a.contains_many(absent) == alone.contains_many(absent)).all()
    for other in (QuotientFilter(3000, 1e-6, counting=counting), QuotientFilter(6000, 0.002, seed=1)):
        with pytest.raises(IncompatibleFilters):
            a.merge(other)


def test_growing_ends_when_remainders_are_used_up() -> None:
    f = QuotientFilter(60, 0.2)
    f.update(range(60))
    for _ in range(f.remainder_bits - 1):
        f.grow()
        assert f.contains_many(list(range(60))) == [True] * 60
    with pytest.raises(FilterFull):
        f.grow()


def test_positions_are_pinned() -> None:
    found = {}
    for fpr in (0.1, 0.01, 0.001):
        f = QuotientFilter(10_000, fpr, seed=11)
        source = Keys("random", 3)
        f.update(source.take(10_000))
        found[fpr] = int(f.contains_many(source.take(100_000)).sum())
    # A file format: these counts never change.
    assert found == {0.1: 7211, 0.01: 955, 0.001: 68}
