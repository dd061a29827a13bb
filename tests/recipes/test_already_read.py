"""Guarantee: what a user has read is never recommended, and little else is withheld."""

from __future__ import annotations

import doctest
import random

import pytest

from fullbloom import FilterBank, ParameterError
from fullbloom.recipes import already_read


def test_read_articles_are_never_recommended():
    draw, bank = random.Random(1), FilterBank(200, 0.01)
    read = {f"user {u}": {draw.randrange(5000) for _ in range(draw.randrange(1, 400))} for u in range(60)}
    pairs = [(user, article) for user, articles in read.items() for article in articles]
    draw.shuffle(pairs)
    new = already_read.record(bank, iter(pairs))
    assert 0.99 * len(pairs) <= new <= len(pairs)
    assert already_read.record(bank, pairs) == 0
    rankings = {user: draw.sample(range(5000), 800) for user in read}
    lists = already_read.recommend_all(bank, rankings, 20)
    withheld = unread = 0
    for user, ranked in rankings.items():
        wanted = [article for article in ranked if article not in read[user]]
        got = list(already_read.unread(bank, user, iter(ranked)))
        assert not read[user].intersection(got)
        assert lists[user] == got[:20]
        assert got == [article for article in wanted if article in set(got)]  # in their order
        withheld, unread = withheld + len(wanted) - len(got), unread + len(wanted)
    # Some users read more than the capacity: their bound is twice the rate.
    assert withheld <= 0.02 * unread + 3 * (0.02 * unread) ** 0.5


def test_no_more_of_a_ranking_is_read_than_needed():
    bank, taken = FilterBank(100), []
    ranked = (taken.append(article) or article for article in range(10_000))
    assert already_read.recommend(bank, "ada", ranked, 5) == [0, 1, 2, 3, 4]
    assert len(taken) <= 64
    assert already_read.recommend(bank, "ada", [1, 2], 5) == [1, 2]
    assert already_read.recommend(bank, "ada", [1, 2], 0) == []


def test_users_may_be_tuples_and_items_must_be_pairs():
    bank = FilterBank(100)
    assert already_read.record(bank, [(("shop", 1), "a"), (("shop", 2), "b")]) == 2
    assert already_read.recommend(bank, ("shop", 1), "ab", 2) == ["b"]
    with pytest.raises(ValueError, match="unpack"):
        already_read.record(bank, [("ada", "a", 1)])


def test_the_examples_hold():
    assert doctest.testmod(already_read).failed == 0


def test_blocks_without_articles_are_refused():
    with pytest.raises(ParameterError, match="ahead"):
        list(already_read.unread(FilterBank(10), "ada", [1, 2], ahead=0))
