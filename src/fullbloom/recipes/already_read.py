"""Recommend what a user has not read yet, from a `fullbloom.FilterBank` of what each user has.

A list of the articles that each user has read takes 8 bytes or more for each; the bank takes 10 bits, in a
filter for each user. A read article is never recommended again. An unread one is withheld from a user by
mistake at the bank's rate, so that the list has the next best in its place.

>>> from fullbloom import FilterBank
>>> bank = FilterBank(5000, fpr=0.01)
>>> record(bank, [("ada", 1), ("ada", 2), ("alan", 2)])
3
>>> recommend(bank, "ada", [2, 3, 1, 4], count=2)
[3, 4]
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fullbloom import FilterBank

User = TypeVar("User")
Article = TypeVar("Article")

#: Pairs that are added at once.
_BATCH = 1 << 15
#: Candidates that are looked up at once, for each one that is wanted.
_LOOKED_UP = 4


def record(bank: FilterBank, reads: Iterable[tuple[Any, Any]]) -> int:
    """Add pairs of a user and an article that the user has read; return how many were new.

    Both are keys (texts, numbers, ...). An iterable of any length is read in batches. Raises the errors of
    ``bank.add_many``, and ValueError for an item that is not a pair.

    >>> from fullbloom import FilterBank
    >>> bank = FilterBank(100)
    >>> record(bank, [("ada", "a"), ("ada", "a")]), len(bank)
    (1, 1)
    """
    new, pairs = 0, iter(reads)
    while batch := list(islice(pairs, _BATCH)):
        users, articles = [user for user, _ in batch], [article for _, article in batch]
        new += sum(bank.add_many(users, articles))
    return new


def unread(
    bank: FilterBank, user: Any, articles: Iterable[Article], *, ahead: int = 256
) -> Iterator[Article]:
    """Yield the articles that the user has not read, in their order, without those withheld by mistake.

    ahead: articles that are taken from the iterable and looked up at once. Raises ``ParameterError`` if it
    is below 1, and the errors of ``bank.contains_many``.

    >>> from fullbloom import FilterBank
    >>> bank = FilterBank(100)
    >>> bank.update("ada", ["a", "c"])
    >>> list(unread(bank, "ada", "abcd"))
    ['b', 'd']
    """
    if ahead < 1:
        raise ParameterError(f"ahead must be at least 1, got {ahead}")
    ranked: Iterator[Any] = iter(articles)
    while block := list(islice(ranked, ahead)):
        # One owner a key: a tuple as owner would be taken for a batch of owners.
        known = bank.contains_many([user] * len(block), block)
        yield from (article for article, is_read in zip(block, known, strict=True) if not is_read)


def recommend(bank: FilterBank, user: Any, ranked: Iterable[Article], count: int) -> list[Article]:
    """Return the first ``count`` articles of a ranking that the user has not read, or all if there are fewer.

    ranked: best first; no more of it is read than needed, up to a block. Raises the errors of
    ``bank.contains_many``. Cost: 0.1 us an article of the ranking.

    >>> from fullbloom import FilterBank
    >>> bank = FilterBank(100)
    >>> bank.update("ada", range(10))
    >>> recommend(bank, "ada", range(1000), 3)
    [10, 11, 12]
    """
    if count <= 0:
        return []
    return list(islice(unread(bank, user, ranked, ahead=max(_LOOKED_UP * count, 64)), count))


def recommend_all(
    bank: FilterBank, rankings: Mapping[User, Iterable[Article]], count: int
) -> dict[User, list[Article]]:
    """Return the recommendations of many users: `recommend` for each of a mapping to rankings.

    >>> from fullbloom import FilterBank
    >>> bank = FilterBank(100)
    >>> bank.update(["ada", "alan"], [1, 2])
    >>> recommend_all(bank, {"ada": [1, 2, 3], "alan": [1, 2, 3]}, 1)
    {'ada': [2], 'alan': [1]}
    """
    return {user: recommend(bank, user, ranked, count) for user, ranked in rankings.items()}
