"""Guarantee: names and tokens get the right answer, with queries only for what the filter finds."""

from __future__ import annotations

import itertools
import random
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest

from fullbloom import ParameterError, ParameterTypeError
from fullbloom.recipes.names import NameCheck, normalize
from fullbloom.recipes.tokens import RevokedTokens

SEED = 1970


def test_answers_are_those_of_the_query_and_few_free_names_cost_one():
    draw = random.Random(SEED)
    fpr = draw.choice([0.05, 0.01])
    taken = {f"user{number}" for number in range(20_000)}
    check = NameCheck(taken, taken.__contains__, fpr=fpr)
    assert not any(check.is_free(name.upper()) for name in draw.sample(sorted(taken), 500))
    before = check.queries
    assert all(check.is_free(f"new {number}") for number in range(10_000))
    assert check.queries - before <= 10_000 * fpr + 5 * (10_000 * fpr) ** 0.5, SEED


def test_a_name_that_was_taken_meanwhile_is_queried():
    taken = set()
    check = NameCheck(taken, taken.__contains__)
    assert check.is_free("Zoë")
    taken.add(normalize("Zoë"))
    check.add("Zoë")
    assert not check.is_free(unicodedata.normalize("NFD", " ZOË "))


def test_normal_forms_are_stable():
    draw = random.Random(SEED)
    for _ in range(5000):
        name = "".join(
            chr(draw.choice([draw.randrange(32, 0xD800), draw.randrange(32, 400)])) for _ in range(5)
        )
        try:
            normal = normalize(name)
        except ParameterError:
            continue
        assert normalize(normal) == normal, ascii(name)


@pytest.mark.parametrize("name", ["", "  ", "\u3000", "x" * 257])
def test_names_without_letters_or_too_long_are_refused(name):
    with pytest.raises(ParameterError):
        normalize(name)


def test_a_single_text_is_no_collection_of_names():
    with pytest.raises(ParameterTypeError, match="one str"):
        NameCheck("ada", lambda _: True)


def test_a_revoked_token_is_found_for_its_whole_lifetime_and_forgotten_later():
    draw = random.Random(SEED)
    now = draw.uniform(0, 1e9)
    revoked = RevokedTokens(20_000, lifetime=100.0, fpr=1e-6, clock=lambda: now)
    times = {}
    for number in range(5000):
        now += draw.expovariate(10)
        revoked.revoke(number)
        times[number] = now
        probe = draw.randrange(number + 1)
        if now - times[probe] <= 100:
            assert revoked.is_revoked(probe), SEED
    now += 300
    assert sum(revoked.is_revoked(number) for number in times) <= 1


def test_valid_tokens_are_refused_at_the_rate_only_and_never_with_a_list():
    draw = random.Random(SEED)
    revoked = RevokedTokens(1000, lifetime=100.0, fpr=0.02, clock=lambda: 0.0)
    exact = {draw.getrandbits(100) for _ in range(1000)}
    for token in exact:
        revoked.revoke(token)
    wrong = sum(revoked.is_revoked(draw.getrandbits(101) | 1 << 100) for _ in range(20_000))
    assert wrong <= 400 + 5 * 20, SEED
    revoked.is_listed = exact.__contains__
    assert not any(revoked.is_revoked(draw.getrandbits(101) | 1 << 100) for _ in range(5000))
    assert all(map(revoked.is_revoked, exact))
    assert revoked.queries >= 1000


def test_a_clock_that_goes_back_forgets_nothing():
    now = 1000.0
    revoked = RevokedTokens(100, lifetime=10.0, clock=lambda: now)
    revoked.revoke("a")
    now = 0.0
    assert revoked.is_revoked("a")


def test_threads_may_share_revoked_tokens():
    draw = random.Random(SEED)
    clock = itertools.count(1000).__next__  # each reading is later than the one before, in any thread
    revoked = RevokedTokens(100_000, lifetime=1e6, fpr=1e-9, is_listed=lambda _: True, clock=clock)
    seeds = [draw.getrandbits(30) for _ in range(8)]

    def work(seed):
        own = [(seed, number) for number in range(2000)]
        for token in own:
            revoked.revoke(token)
            assert revoked.is_revoked(token)
        return sum(map(revoked.is_revoked, own))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, seeds)) == [2000] * 8
    finally:
        sys.setswitchinterval(interval)
    assert (revoked.checks, revoked.queries) == (32_000, 32_000)
    assert revoked.filter.now == clock() - 1


@pytest.mark.parametrize("options", [{"capacity": 0}, {"lifetime": 0.0}, {"fpr": 0.0}])
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(ParameterError):
        RevokedTokens(**{"capacity": 10, "lifetime": 1.0} | options)
