"""Guarantee: a search visits only real states, as many as its law says, and every reported path is real."""

from __future__ import annotations

import random

import pytest
from benchmarks.recipes.models import PUZZLE, PUZZLE_STATES, dine, is_deadlock, slide

from fullbloom import CuckooFilter, FilterFull, ParameterError, QuotientFilter
from fullbloom.recipes.state_search import (
    ExactStates,
    expect_bitstate_omission,
    expect_compaction_omission,
    explore,
    make_bitstate_filter,
    make_compaction_table,
)

SEED = 1970


def count_up(limits):
    def successors(state):
        for place, number in enumerate(state):
            if number < limits[place]:
                yield (*state[:place], number + 1, *state[place + 1 :])

    return successors


def test_an_exact_search_visits_each_state_once():
    draw = random.Random(SEED)
    for _ in range(20):
        limits = [draw.randint(0, 5) for _ in range(draw.randint(1, 5))]
        states = 1
        for limit in limits:
            states *= limit + 1
        seen = ExactStates()
        found = explore([tuple(0 for _ in limits)], count_up(limits), seen)
        assert found.states == len(seen.states) == states, (SEED, limits)
        assert found.depth == 1 + sum(limits)
        assert found.complete


def test_bitstate_coverage_matches_its_law():
    draw = random.Random(SEED)
    bits, num_hashes = draw.randint(8, 14), draw.randint(2, 4)
    seen = make_bitstate_filter(bits * PUZZLE_STATES, num_hashes, seed=draw.getrandbits(64))
    found = explore([PUZZLE], slide, seen)
    rate = expect_bitstate_omission(PUZZLE_STATES, bits * PUZZLE_STATES, num_hashes)
    error = (rate * (1 - rate) / PUZZLE_STATES) ** 0.5
    omitted = 1 - found.states / PUZZLE_STATES
    # An omitted state may cut off a few others: by less than the square of the rate, times its neighbours.
    assert rate - 5 * error <= omitted <= rate + 5 * error + 4 * rate**2, (SEED, bits, num_hashes)


def test_a_search_with_less_memory_never_visits_states_that_do_not_exist():
    draw = random.Random(SEED)
    real = ExactStates()
    explore([bytes(6)], dine, real)
    for _ in range(10):
        visited = []

        def step(state, visited=visited):
            visited.append(state)
            return dine(state)

        num_bits = draw.randint(64, 20_000)
        found = explore([bytes(6)], step, make_bitstate_filter(num_bits, seed=draw.getrandbits(64)))
        assert len(visited) == found.states == len(set(visited))
        assert real.states.issuperset(visited)


def test_a_compaction_table_omits_no_more_than_it_was_made_for():
    draw = random.Random(SEED)
    for _ in range(20):
        states, omitted = draw.randint(1, 10**6), 10 ** draw.uniform(-3, 2)
        table = make_compaction_table(states, omitted)
        length = table.quotient_bits + table.remainder_bits
        assert states * expect_compaction_omission(states, length) <= omitted * 1.01, (SEED, states, omitted)


def test_short_signatures_omit_states_as_the_law_says():
    draw = random.Random(SEED)
    table = QuotientFilter(20_000, 0.2, seed=draw.getrandbits(64))
    numbers = range(20_000)
    found = explore(numbers, lambda _: (), table)
    rate = expect_compaction_omission(20_000, table.quotient_bits + table.remainder_bits)
    error = (20_000 * rate) ** 0.5
    assert abs(20_000 - found.states - 20_000 * rate) < 5 * error, SEED


@pytest.mark.parametrize(
    "make", [lambda: make_bitstate_filter(10**6), lambda: make_compaction_table(10**5), ExactStates]
)
def test_the_path_to_an_error_can_be_followed(make):
    found = explore([bytes(7)], dine, make(), is_error=is_deadlock)
    assert found.error[0] == bytes(7)
    assert all(
        after in set(dine(before)) for before, after in zip(found.error, found.error[1:], strict=False)
    )
    assert is_deadlock(found.error[-1])
    assert not found.complete


def test_an_infinite_space_ends_at_its_bound():
    found = explore([0], lambda state: [state + 1], make_bitstate_filter(10**6), max_states=1000)
    assert (found.states, found.complete) == (1000, False)
    with pytest.raises(ParameterError):
        explore([0], lambda _: [], ExactStates(), max_states=0)


def test_a_full_table_is_an_error():
    with pytest.raises(FilterFull):
        explore(range(10**5), lambda _: (), CuckooFilter(100))


@pytest.mark.parametrize("arguments", [(0, 0.01), (10, 0.0), (10, -1.0)])
def test_tables_for_no_states_are_refused(arguments):
    with pytest.raises(ParameterError):
        make_compaction_table(*arguments)


@pytest.mark.parametrize("arguments", [(0, 10), (10, 0)])
def test_laws_of_nothing_are_refused(arguments):
    with pytest.raises(ParameterError):
        expect_bitstate_omission(*arguments)
    with pytest.raises(ParameterError):
        expect_compaction_omission(*arguments)
