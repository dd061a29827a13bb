"""Guarantee: tables are listed as often as peeling says, and lookups are wrong as often as the law says."""

from __future__ import annotations

import math
import random

import pytest
from support import SCALE, SIGMAS, binomial_sd, chance

import fullbloom
from fullbloom import theory

#: Cells a key of B.32's thresholds, published for k from 3 to 7.
THRESHOLDS = {3: 1.222, 4: 1.295, 5: 1.425, 6: 1.570, 7: 1.719}


def peeled(draw: random.Random, items: int, each: int, tables: int) -> bool:
    """Whether so many keys in so many sub-tables come out one after the other; an independent simulation."""
    keys = [[table * each + draw.randrange(each) for table in range(tables)] for _ in range(items)]
    cells = [set() for _ in range(each * tables)]
    for key, places in enumerate(keys):
        for place in places:
            cells[place].add(key)
    ready = [cell for cell in cells if len(cell) == 1]
    left = items
    while ready:
        cell = ready.pop()
        if len(cell) != 1:
            continue
        (key,) = cell
        left -= 1
        for place in keys[key]:
            cells[place].discard(key)
            if len(cells[place]) == 1:
                ready.append(cells[place])
    return left == 0


@pytest.mark.parametrize(("tables", "published"), THRESHOLDS.items())
def test_tables_below_the_threshold_are_listed_and_above_it_not(tables, published):
    threshold = theory.peeling_threshold(tables)
    assert round(threshold, 3) == published
    draw, items = random.Random(tables), 4000
    # At 4,000 keys the window of the threshold is some 3 % wide.
    for factor, succeeds in ((0.92, False), (1.08, True)):
        each = math.ceil(factor * threshold * items / tables)
        assert all(peeled(draw, items, each, tables) is succeeds for _ in range(3 * SCALE))


@pytest.mark.parametrize(
    ("items", "tables", "ratio", "published"),
    [
        (50, 3, 1.5, 0.84),
        (50, 3, 2.0, 0.952),
        (50, 4, 1.5, 0.78),
        (50, 4, 2.0, 0.997),
        (100, 3, 1.4, 0.85),
        (100, 4, 1.5, 0.98),
    ],
)
def test_small_tables_are_listed_as_often_as_published(items, tables, ratio, published):
    draw, trials = random.Random(items * tables), 600 * SCALE
    each = int(ratio * items) // tables
    share = sum(peeled(draw, items, each, tables) for _ in range(trials)) / trials
    # The figures are themselves of some 1,000 trials, and rounded.
    sd = math.hypot(binomial_sd(published, trials), binomial_sd(published, 1000))
    assert abs(share - published) <= 4.5 * sd + 0.005


@pytest.mark.parametrize(("capacity", "load"), [(10, 2.0), (60, 1.6), (60, 2.0), (500, 1.15), (2000, 1.08)])
def test_a_table_is_listed_as_often_as_the_simulation(capacity, load):
    """At loads beyond the capacity, where many are not."""
    table = fullbloom.InvertibleBloomFilter(capacity)
    items, each = int(load * capacity), table.num_cells // 4
    trials = max(60, 40_000 // items) * SCALE
    draw = random.Random(capacity)
    simulated = sum(peeled(draw, items, each, 4) for _ in range(trials))
    listed = 0
    for _ in range(trials):
        table.clear()
        table.add_hashed([draw.getrandbits(64) for _ in range(items)])
        decoded = table.decode()
        assert not decoded.theirs
        assert decoded.complete == (len(decoded.mine) == items)
        listed += decoded.complete
    pooled = (simulated + listed) / (2 * trials)
    assert abs(simulated - listed) / trials <= 4.5 * math.sqrt(2) * binomial_sd(pooled, trials) + 1 / trials


@pytest.mark.parametrize("load", [0.96, 1.0, 1.03, 1.06])
@pytest.mark.parametrize("items", [300, 1000, 3000])
def test_tables_near_the_threshold_fail_as_often_as_the_law_says(items, load):
    table = fullbloom.InvertibleBloomFilter(max(8, round(items * theory.peeling_threshold(4) * load / 1.4)))
    while table.num_cells < items * theory.peeling_threshold(4) * load:
        table = fullbloom.InvertibleBloomFilter(table.capacity + max(1, table.capacity // 100))
    law, trials, failed = theory.peeling_failure(items, table.num_cells), 240_000 // items * SCALE, 0
    draw = random.Random(items)
    for _ in range(trials):
        table.clear()
        table.add_hashed([draw.getrandbits(64) for _ in range(items)])
        failed += not table.decode().complete
    assert abs(failed / trials - law) <= 0.02 + 4.5 * binomial_sd(max(law, 1 / trials), trials)


@pytest.mark.parametrize("tables", [3, 5, 6])
@pytest.mark.parametrize("items", [300, 600, 1200])
def test_simulations_of_other_numbers_of_cells_fail_likewise(items, tables):
    draw, trials = random.Random(items * tables), 60_000 // items * SCALE
    each = round(items * (theory.peeling_threshold(tables) + 0.7 * items**-0.5) / tables)
    law = theory.peeling_failure(items, each * tables, tables)
    failed = sum(not peeled(draw, items, each, tables) for _ in range(trials))
    assert abs(failed / trials - law) <= 0.02 + 4.5 * binomial_sd(law, trials)


@pytest.mark.parametrize("items", [20, 50, 200])
def test_with_many_cells_only_keys_that_share_all_cells_fail(items):
    draw, trials = random.Random(items), 3000 * SCALE * 20 // items
    each = math.ceil(2 * theory.peeling_threshold(3) * items / 3)
    expected = theory.twin_chance(items, 3 * each, 3)
    failed = sum(not peeled(draw, items, each, 3) for _ in range(trials))
    assert failed >= trials * expected - 4.5 * math.sqrt(trials * expected) - 1
    assert failed <= 1.5 * trials * expected + 4.5 * math.sqrt(1.5 * trials * expected) + 1


@pytest.mark.parametrize(("capacity", "fpr"), [(100, 0.5), (1000, 0.05), (5000, 0.01)])
def test_the_rate_follows_the_law_and_the_cells(capacity, fpr):
    draw, found, result, probes = random.Random(capacity), 0, 0.0, 5000
    rounds = 5 * SCALE
    for seed in range(rounds):
        table = fullbloom.InvertibleBloomFilter(capacity, fpr, seed=seed)
        table.add_hashed([draw.getrandbits(64) for _ in range(capacity)])
        hits = sum(table.contains_hashed([draw.getrandbits(64) for _ in range(probes)]))
        result += table.fpr()
        assert abs(hits / probes - table.fpr()) <= (SIGMAS + 1.5) * binomial_sd(table.fpr(), probes)
        found += hits
    law = theory.invertible_fpr(capacity, table.num_cells)
    assert law <= fpr
    assert found <= rounds * probes * fpr + chance(rounds * probes * fpr)
    # The cells of one table scatter: its rate by 4 q^3 sd(q), q the share of a sub-table of n/4 cells or so.
    share = law**0.25
    scatter = 4 * share**3 * math.sqrt(share * (1 - share) / (table.num_cells / 4)) / 2
    assert abs(result / rounds - law) <= 4.5 * scatter / math.sqrt(rounds) + 2 * law / capacity
