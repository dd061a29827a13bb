"""Guarantee: no client gets more than its limit in any window, and few get less than they may."""

from __future__ import annotations

import random
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

from fullbloom import KeyTypeError, ParameterError
from fullbloom.recipes.rate_limit import RateLimiter

SEED = 1970


class Clock:
    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


def test_no_client_exceeds_its_limit_in_any_window():
    draw = random.Random(SEED)
    for _ in range(10):
        limit, window, slices = draw.randint(1, 300), draw.uniform(0.5, 100), draw.randint(1, 8)
        clock = Clock(draw.uniform(0, 1e6))
        limiter = RateLimiter(limit, window, clients=draw.randint(1, 50), slices=slices, clock=clock)
        times = defaultdict(list)
        for _ in range(5000):
            clock.now += draw.expovariate(20 * limit / window)
            if draw.random() < 0.001:
                clock.now += draw.choice([window / slices, window, 10 * window])
            client = draw.randrange(10)
            if limiter.allow(client):
                times[client].append(clock.now)
        for found in times.values():
            pairs = zip(found, found[limit:], strict=False)
            # Times of this size are exact to a billionth of the window.
            assert all(later - first >= window * (1 - 1e-6) for first, later in pairs), SEED
        assert limiter.allowed + limiter.refused == 5000


def test_a_client_within_its_share_is_refused_at_most_at_the_rate_of_the_filters():
    draw = random.Random(SEED)
    clock = Clock()
    limiter = RateLimiter(10, 60.0, clients=5000, fpr=0.01, clock=clock)
    refused = 0
    for step in range(25_000):
        clock.now = step * 60.0 / 25_000
        refused += not limiter.allow(draw.randrange(5000))  # 5 each on average, and Poisson
    # The chance of 11 or more among 5,000 clients is 1.4 %; few of their events are beyond the limit.
    assert refused < 25_000 * 0.02, SEED


def test_a_steady_client_gets_its_share():
    clock = Clock()
    slices = random.Random(SEED).randint(1, 10)
    limiter = RateLimiter(100, 10.0, clients=10, slices=slices, clock=clock)
    for step in range(100_000):
        clock.now = step * 0.01
        limiter.allow("client")
    assert limiter.allowed >= 0.99 * 100 * 100 * slices / (slices + 1), slices
    assert limiter.allowed <= 100 * 101


def test_items_of_the_window_are_counted_once():
    clock = Clock()
    limiter = RateLimiter(5, 60.0, clients=100, fpr=1e-6, clock=clock)
    assert all(limiter.allow("sender", item=number % 5) for number in range(100))
    assert not limiter.allow("sender", item=5)
    assert limiter.allow("other", item=5)
    clock.now = 200.0
    assert limiter.allow("sender", item=5)


def test_a_clock_that_goes_back_gives_nothing_away():
    clock = Clock(1000.0)
    limiter = RateLimiter(2, 10.0, clients=10, clock=clock)
    assert [limiter.allow("a") for _ in range(3)] == [True, True, False]
    clock.now = 0.0
    assert not limiter.allow("a")


def test_memory_does_not_grow_with_clients():
    limiter = RateLimiter(2, 60.0, clients=100, clock=Clock())
    before = limiter.nbytes
    for number in range(2000):
        limiter.allow(number)
    assert limiter.nbytes == before


def test_memory_does_not_grow_with_items():
    limiter = RateLimiter(100, 60.0, clients=100, items=50, clock=Clock())
    before = limiter.nbytes
    for number in range(5000):
        limiter.allow(number % 100, item=number)
    assert limiter.nbytes == before
    assert before < RateLimiter(100, 60.0, clients=100, items=500, clock=Clock()).nbytes


def test_items_of_very_many_clients_give_nobody_more_than_the_limit():
    """Filters of items beyond their capacity would find new items, which are then not counted."""
    limiter = RateLimiter(2, 60.0, clients=1000, fpr=0.001, items=200, clock=Clock())
    for number in range(900):
        limiter.allow(f"attacker {number}", item=number)
    assert sum(limiter.allow("victim", item=f"item {number}") for number in range(2000)) <= 2 + 5
    # What the filters know is allowed as before.
    assert limiter.allow("attacker 0", item=0)


def test_the_room_for_items_returns_with_the_window():
    clock = Clock()
    limiter = RateLimiter(5, 40.0, clients=10, items=3, clock=clock)
    assert [limiter.allow("a", item=number) for number in range(5)] == [True] * 3 + [False] * 2
    clock.now = 10.0
    assert limiter.allow("a", item=3)  # the next of four slices
    clock.now = 100.0
    assert limiter.allow("a", item=4)


def test_threads_together_stay_within_the_limit():
    limiter = RateLimiter(500, 1e6, clients=10, clock=Clock())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: limiter.allow("client"), range(4000)))
    assert sum(found) == 500


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 1.0, 10),
        (1 << 32, 1.0, 10),
        (1, 0.0, 10),
        (1, float("inf"), 10),
        (1, float("nan"), 10),
        (1, 1.0, 0),
    ],
)
def test_numbers_out_of_range_are_refused(arguments):
    with pytest.raises(ParameterError):
        RateLimiter(*arguments)
    with pytest.raises(ParameterError):
        RateLimiter(1, 1.0, 10, slices=0)
    with pytest.raises(ParameterError):
        RateLimiter(1, 1.0, 10, items=0)


def test_a_client_must_be_a_key():
    with pytest.raises(KeyTypeError):
        RateLimiter(1, 1.0, 10).allow(object())
