"""Guarantee: a store with filters answers as a dict does, and reads as few tables as its rates say."""

from __future__ import annotations

import math
import random

import pytest

from fullbloom import FilterMemoryError, KeyTypeError, ParameterError, theory
from fullbloom.recipes import lsm
from fullbloom.recipes.lsm import Store

SEED = 1970


@pytest.mark.parametrize("rates", ["uniform", "monkey"])
def test_a_store_answers_as_a_dict_whatever_is_put_and_deleted(rates):
    draw = random.Random(SEED)
    for _ in range(5):
        store = Store(
            memtable=draw.randint(1, 30),
            ratio=draw.randint(2, 5),
            bits_per_key=draw.uniform(0.1, 15),
            rates=rates,
        )
        truth: dict[int, int] = {}
        for step in range(3000):
            key = draw.randrange(500)
            if draw.random() < 0.2:
                store.delete(key)
                truth.pop(key, None)
            else:
                store.put(key, step)
                truth[key] = step
            probe = draw.randrange(1000)
            assert store.get(probe) == truth.get(probe), (SEED, step)
        store.flush()
        assert all(store.get(key) == truth.get(key) for key in range(600)), SEED


@pytest.mark.parametrize("rates", ["uniform", "monkey"])
def test_a_flush_that_fails_loses_nothing_and_can_be_repeated(rates, monkeypatch):
    draw = random.Random(SEED)
    store, truth, failures, raised = Store(memtable=7, ratio=2, rates=rates), {}, 0, []

    class Failing(lsm.Table):
        def __init__(self, entries, fpr):
            super().__init__(entries, fpr)
            # One of the several tables that a flush creates.
            if draw.random() < 0.1:
                raised.append(fpr)
                raise FilterMemoryError("no memory")

    for step in range(2000):
        monkeypatch.setattr(lsm, "Table", Failing)
        key = draw.randrange(300)
        try:
            if draw.random() < 0.2:
                truth.pop(key, None)
                store.delete(key)
            else:
                truth[key] = step
                store.put(key, step)
        except FilterMemoryError:
            failures += 1
        monkeypatch.undo()
        if step % 50 == 0:
            assert {key: store.get(key) for key in range(300)} == {key: truth.get(key) for key in range(300)}
    store.flush()
    assert {key: store.get(key) for key in range(300)} == {key: truth.get(key) for key in range(300)}
    # More than 200 tables are created, so none fails with probability 0.9^200 = 7e-10.
    assert failures == len(raised) > 0, SEED


@pytest.mark.parametrize("rates", ["uniform", "monkey"])
def test_absent_keys_read_as_many_tables_as_the_rates_sum_to(rates):
    draw = random.Random(SEED)
    store = Store(memtable=200, ratio=draw.randint(3, 5), bits_per_key=draw.uniform(3, 9), rates=rates)
    for _ in range(20_000):
        store.put(draw.getrandbits(60), 0)
    trials = 50_000
    for _ in range(trials):
        assert store.get(draw.getrandbits(60) | 1 << 61) is None
    assert store.reads == store.wasted_reads
    expected = store.expect_reads() * trials
    # fpr() is that of the bits as they are, so only the lookups are random.
    assert abs(store.reads - expected) < 5 * (expected + 1) ** 0.5 + 0.03 * expected, SEED


def test_monkeys_rates_read_fewer_tables_in_no_more_memory():
    draw = random.Random(SEED)
    for _ in range(3):
        bits, ratio = draw.uniform(3, 10), draw.randint(3, 6)
        stores = {
            rates: Store(memtable=100, ratio=ratio, bits_per_key=bits, rates=rates)
            for rates in ("uniform", "monkey")
        }
        # A level passes on all it has with the load that it has no space for, so these fill three levels.
        loads = [ratio, (ratio - 1) * (ratio + 1), (ratio - 1) * ratio * (ratio + 1)]
        for _ in range(100 * sum(loads)):
            key = draw.getrandbits(60)
            for store in stores.values():
                store.put(key, 0)
        uniform, monkey = stores["uniform"], stores["monkey"]
        assert [len(table.entries) for table in uniform.levels] == [100 * load for load in loads]
        assert monkey.expect_reads() < 0.9 * uniform.expect_reads(), (SEED, bits, ratio)
        assert monkey.filter_bits_per_key <= uniform.filter_bits_per_key * 1.1, (SEED, bits, ratio)


def test_no_other_rates_of_the_same_bits_read_less():
    draw = random.Random(SEED)
    for _ in range(200):
        sizes = [draw.uniform(1, 1e6) for _ in range(draw.randint(2, 6))]
        best = theory.level_fprs(sizes, draw.uniform(0.1, 12) * sum(sizes))
        one, other = draw.sample(range(len(sizes)), 2)
        # Move bits from one filter to the other; their product of rates to the power of sizes stays.
        factor = draw.uniform(0.5, 0.999)
        moved = best.copy()
        moved[one] *= factor
        growth = -math.log(factor) * sizes[one] / sizes[other]
        if math.log(best[other]) + growth <= 0:
            moved[other] *= math.exp(growth)
            assert sum(moved) >= sum(best) * (1 - 1e-12), (SEED, sizes)


def test_a_deleted_key_leaves_the_last_level():
    store = Store(memtable=2, ratio=2)
    store.put("a", 1)
    store.put("b", 2)
    store.delete("a")
    store.delete("b")
    store.flush()
    assert store.get("a") is None
    assert sum(len(table.entries) for table in store.levels) == 0


@pytest.mark.parametrize("rates", ["uniform", "monkey"])
@pytest.mark.parametrize("bits_per_key", [100, 5000])
def test_more_memory_than_hashes_can_use_loses_no_entry(bits_per_key, rates):
    store = Store(memtable=10, bits_per_key=bits_per_key, rates=rates)
    for number in range(100):
        store.put(number, -number)
    assert [store.get(number) for number in range(100)] == [-number for number in range(100)]


def test_what_is_not_a_key_is_refused_before_it_is_stored():
    store = Store(memtable=2)
    store.put("a", 1)
    with pytest.raises(KeyTypeError):
        store.put(None, 2)
    store.put("b", 3)
    assert (store.get("a"), store.get("b")) == (1, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"memtable": 0},
        {"ratio": 1},
        {"ratio": 1.5},
        {"bits_per_key": 0},
        {"bits_per_key": float("nan")},
        {"rates": "x"},
    ],
)
def test_values_out_of_range_are_refused(options):
    with pytest.raises(ParameterError):
        Store(**options)
