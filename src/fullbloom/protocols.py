"""What a filter can do, as types: any class with these methods fits, native or not.

A class has exactly the methods it can honour, so ``isinstance(f, Removable)`` tells whether keys can be taken
out of ``f``. Only names are compared at run time; a type checker compares signatures too. What answers a
batch takes anything here, as a class may answer each kind of batch in its own way.

>>> from fullbloom import BloomFilter
>>> isinstance(BloomFilter(100), Addable), isinstance(BloomFilter(100), Removable)
(True, False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import Self

    from fullbloom.keys import Key, Keys

__all__ = ["Addable", "Countable", "Estimating", "Filter", "Mergeable", "Removable"]


@runtime_checkable
class Filter(Protocol):
    """Answers membership: False is certain, True is probable at the rate ``fpr()``."""

    def __contains__(self, key: Key, /) -> bool:
        """Tell whether ``key`` was probably added."""

    def contains_many(self, keys: Any) -> Any:
        """Answer for each key, in the caller's kind."""

    @property
    def num_added(self) -> int:
        """Keys that were new when they were added, less those removed."""

    def fpr(self) -> float:
        """Model rate of false positives at the present load."""


@runtime_checkable
class Addable(Filter, Protocol):
    """Takes new keys."""

    def add(self, key: Key, /) -> bool:
        """Add ``key``; True when it was certainly new."""

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch."""

    def add_many(self, keys: Any) -> Any:
        """Add many keys and answer, for each, whether it was new."""

    def clear(self) -> None:
        """Forget every key."""


@runtime_checkable
class Removable(Addable, Protocol):
    """Takes keys out again."""

    def remove(self, key: Key, /) -> None:
        """Remove one occurrence; ``KeyError`` when ``key`` is absent or cannot be taken out."""

    def discard(self, key: Key, /) -> bool:
        """Remove one occurrence, and tell whether there was one."""

    def remove_many(self, keys: Keys) -> None:
        """Remove many keys; ``KeyError`` at the first that is absent or cannot be taken out."""

    def discard_many(self, keys: Any) -> Any:
        """Discard many keys and answer, for each, whether it was there."""


@runtime_checkable
class Countable(Filter, Protocol):
    """Tells how often a key was added."""

    def count(self, key: Key, /) -> int:
        """Estimated number of occurrences of ``key``."""

    def count_many(self, keys: Any) -> Any:
        """Estimated number of occurrences of each key, in the caller's kind."""


@runtime_checkable
class Mergeable(Filter, Protocol):
    """Takes in another filter of its own kind."""

    def merge(self, other: Self, /) -> None:
        """Merge ``other`` into this filter; ``IncompatibleFilters`` when the two do not fit."""


@runtime_checkable
class Estimating(Filter, Protocol):
    """Tells from its cells how many keys it holds."""

    def approx_count(self) -> tuple[float, float]:
        """Estimate the number of distinct keys, with its standard deviation."""
