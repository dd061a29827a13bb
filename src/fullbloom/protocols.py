"""Protocols for the capabilities of filters: any class with these methods matches, native or not.

A class has only the methods that it supports, so ``isinstance(f, Removable)`` is True exactly if ``f``
supports removal. Run-time checks compare names only; a type checker compares signatures too. Methods that
return a result for each key accept any batch here, since the result type depends on the batch.

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
    """Supports lookups: False is certain, True is wrong at the rate ``fpr()``."""

    def __contains__(self, key: Key, /) -> bool:
        """Return whether ``key`` was probably added."""

    def contains_many(self, keys: Any) -> Any:
        """Look up each key; return the results in the batch's own container type."""

    @property
    def num_added(self) -> int:
        """Number of keys that were new when added, minus removed keys."""

    def fpr(self) -> float:
        """Return the false-positive rate at the current load."""


@runtime_checkable
class Addable(Filter, Protocol):
    """Supports adding keys."""

    def add(self, key: Key, /) -> bool:
        """Add ``key``; return True if it was certainly new."""

    def update(self, /, *keys: Keys) -> None:
        """Add the keys of each batch."""

    def add_many(self, keys: Any) -> Any:
        """Add many keys; return whether each was new."""

    def clear(self) -> None:
        """Remove all keys."""


@runtime_checkable
class Removable(Addable, Protocol):
    """Supports removing keys."""

    def remove(self, key: Key, /) -> None:
        """Remove one occurrence; raise ``KeyError`` if ``key`` is absent or cannot be removed."""

    def discard(self, key: Key, /) -> bool:
        """Remove one occurrence, if any; return whether there was one."""

    def remove_many(self, keys: Keys) -> None:
        """Remove many keys; raise ``KeyError`` for the first that is absent or cannot be removed."""

    def discard_many(self, keys: Any) -> Any:
        """Discard many keys; return whether each was present."""


@runtime_checkable
class Countable(Filter, Protocol):
    """Supports counting occurrences."""

    def count(self, key: Key, /) -> int:
        """Return the estimated number of occurrences of ``key``."""

    def count_many(self, keys: Any) -> Any:
        """Return the estimated number of occurrences of each key, in the batch's own container type."""


@runtime_checkable
class Mergeable(Filter, Protocol):
    """Supports merging another filter of the same class."""

    def merge(self, other: Self, /) -> None:
        """Merge ``other`` into this filter; raise ``IncompatibleFilters`` if their parameters differ."""


@runtime_checkable
class Estimating(Filter, Protocol):
    """Supports estimating the number of keys from the cells."""

    def approx_count(self) -> tuple[float, float]:
        """Return the estimated number of distinct keys and its standard deviation."""
