"""Guarantee: a zone makes no mistake up to its capacity, and its counters list what is in."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from support import chance

import fullbloom
from fullbloom import ZoneFilter, theory

# Published, and computed by the rule: universe, zone, primes, cells.
SHAPES = [
    (48, 2, 5, 28),
    (1000, 2, 8, 77),
    (100, 3, 8, 77),
    (2**16, 2, 10, 129),
    (10**4, 3, 12, 197),
    (10**6, 3, 16, 381),
    (10**6, 10, 37, 2584),
    (2**32, 4, 27, 1264),
]


@pytest.mark.parametrize(("universe", "zone", "primes", "cells"), SHAPES)
def test_published_shapes_are_met(universe: int, zone: int, primes: int, cells: int) -> None:
    for counting in (False, True):
        instance = ZoneFilter(zone, universe=universe, counting=counting)
        assert (instance.num_hashes, instance.num_cells, instance.capacity, instance.universe) == (
            primes,
            cells,
            zone,
            universe,
        )
        assert (instance.fpr(), instance.target_fpr, instance.counting) == (0.0, 0.0, counting)


@pytest.mark.parametrize(("universe", "zone"), [(48, 2), (10**6, 10), (2**32, 4), (2**40, 30), (997, 1)])
def test_the_law_equals_the_rate_of_the_class(universe: int, zone: int) -> None:
    for counting in (False, True):
        instance = ZoneFilter(zone, universe=universe, counting=counting)
        assert instance.num_cells == theory.zone_cells(universe, zone)
        assert instance.num_hashes == theory.zone_num_hashes(universe, zone)
        assert instance.counter_bits == (theory.zone_counter_bits(zone) if counting else 1)
    with pytest.raises(fullbloom.ParameterError, match="binary logarithm"):
        theory.zone_cells(2**40, 2**30)


def test_no_pair_of_the_published_universe_is_a_false_positive() -> None:
    for pair in itertools.combinations(range(48), 2):
        instance = ZoneFilter(2, universe=48)
        instance.update(pair)
        assert [number for number in range(48) if number in instance] == list(pair)


@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize(("universe", "zone"), [(1000, 2), (10**4, 3), (50_000, 12), (10**6, 3)])
def test_no_number_is_a_false_positive_within_the_zone(universe: int, zone: int, counting: bool) -> None:
    draw = random.Random(universe + zone)
    for held in {0, 1, zone // 2, zone}:
        members = draw.sample(range(universe), held)
        instance = ZoneFilter(zone, universe=universe, counting=counting, seed=draw.randrange(2**64))
        instance.update(members)
        assert np.flatnonzero(instance.contains_many(np.arange(universe))).tolist() == sorted(members)
        assert (instance.num_added, instance.fpr()) == (held, 0.0)
        assert instance.contains_many([-1, universe, universe + 5, 2**62, "7", 7.0]) == [False] * 6
        if counting:
            assert instance.decode() == sorted(members)


def test_beyond_the_zone_members_are_found_and_the_rate_is_stated() -> None:
    instance = ZoneFilter(3, universe=10**6)
    with pytest.warns(fullbloom.CapacityWarning):
        instance.update(range(0, 10**6, 100_003))
    found = instance.contains_many(np.arange(10**6))
    members = len(range(0, 10**6, 100_003))
    assert found[::100_003].all()
    law = 1e6 * instance.fpr()
    assert law > 0
    assert abs(found.sum() - members - law) < chance(law) + members


def test_counters_decode_to_the_remaining_members() -> None:
    draw = random.Random(9)
    instance, held = ZoneFilter(12, universe=2**40, counting=True), []
    for _ in range(300):
        if len(held) == 12 or (held and draw.random() < 0.4):
            instance.remove(held.pop(draw.randrange(len(held))))
        else:
            held.append(draw.choice([draw.randrange(2**40), *held]))
            instance.add(held[-1])
        assert instance.decode() == sorted(held)
        assert instance.num_added == len(held)
    assert fullbloom.loads(instance.to_bytes()).decode() == sorted(held)
    with pytest.raises(KeyError):
        instance.remove(5)


def test_the_published_pair_is_decoded() -> None:
    instance = ZoneFilter(2, universe=1000, counting=True)
    instance.update([249, 807])
    assert instance.decode() == [249, 807]
    assert (sum(instance.decode()), np.prod(instance.decode())) == (1056, 200_943)


def test_sets_that_cannot_be_listed_or_removed_from_are_refused() -> None:
    bits = ZoneFilter(2, universe=1000)
    bits.update([1, 2])
    with pytest.raises(fullbloom.ParameterError, match="counting=True"):
        bits.decode()
    with pytest.raises(KeyError) as caught:
        bits.remove(1)
    assert "stays" in caught.value.__notes__[0]
    assert 1 in bits
    full = ZoneFilter(2, universe=1000, counting=True)
    with pytest.warns(fullbloom.CapacityWarning):
        full.update([1, 2, 3])
    with pytest.raises(fullbloom.ParameterError, match="capacity=2"):
        full.decode()
    full.remove(3)
    assert full.decode() == [1, 2]


def test_numbers_outside_the_universe_are_refused() -> None:
    instance = ZoneFilter(5, universe=100)
    for strange in (100, -1, "7", 2**64):
        with pytest.raises(fullbloom.ParameterError, match="must be a whole number"):
            instance.add(strange)


@pytest.mark.parametrize("zone", range(1, 18))
def test_counters_count_all_members_of_a_zone_in_one_cell(zone: int) -> None:
    instance = ZoneFilter(zone, universe=1000, counting=True)
    instance.update([6] * zone)
    for held in range(zone, 0, -1):
        assert (instance.decode(), instance.num_added) == ([6] * held, held)
        instance.remove(6)
    assert 6 not in instance
    assert instance == ZoneFilter(zone, universe=1000, counting=True)


def test_saturated_counters_report_that_they_may_be_wrong() -> None:
    instance = ZoneFilter(2, universe=1000, counting=True)
    with pytest.warns(fullbloom.CapacityWarning):
        instance.update([6] * 20)
    instance.remove_many([6] * 20)
    # They stay at the maximum: a key is never lost, and this one is still found.
    assert (instance.num_added, 6 in instance, 7 in instance) == (0, True, False)
    assert instance.fpr() > 0
    assert fullbloom.loads(instance.to_bytes()) == instance
    with pytest.raises(fullbloom.ParameterError, match="capacity=2"):
        instance.decode()
    instance.clear()
    assert instance.fpr() == 0
