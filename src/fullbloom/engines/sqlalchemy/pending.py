"""Keys of rows in open transactions, which a filter does not hold yet.

A lookup asks `PendingKeys` before it asks the filter, and a commit adds a key to the filter before it is
removed here. So there is no moment at which a committed key is in neither.

>>> keys = PendingKeys()
>>> transaction = Transaction()
>>> keys.add(transaction, ["ada"])
>>> "ada" in keys
True
>>> keys.remove(transaction.take()[0])
>>> "ada" in keys
False
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Savepoint:
    """The keys of rows written since a savepoint, or since the transaction began."""

    __slots__ = ("keys", "name", "unreadable")

    def __init__(self, name: str | None = None) -> None:
        """Create a savepoint; None is the beginning of the transaction."""
        self.name = name
        self.keys: list[Any] = []
        #: Statements that wrote keys which cannot be read from their parameters.
        self.unreadable = 0


class Transaction:
    """The savepoints of one connection's transaction, oldest first."""

    __slots__ = ("is_committing", "savepoints", "statement")

    def __init__(self) -> None:
        """Begin."""
        self.savepoints = [Savepoint()]
        #: A commit has been sent, and its outcome is not known.
        self.is_committing = False
        #: The last statement that was read, because large ones are reported in several parts.
        self.statement: object = None

    @property
    def last(self) -> Savepoint:
        """The savepoint that receives keys."""
        return self.savepoints[-1]

    def is_empty(self) -> bool:
        """Return whether nothing was written."""
        return not any(point.keys or point.unreadable for point in self.savepoints)

    def release(self, name: str) -> None:
        """Merge a savepoint and all later ones into the one before it."""
        keys, unreadable = self.take(name)
        self.last.keys += keys
        self.last.unreadable += unreadable

    def take(self, name: str | None = None) -> tuple[list[Any], int]:
        """Remove a savepoint and all later ones; return their keys and their number of unreadable statements.

        The beginning of the transaction, None, removes everything. An unknown name removes nothing.
        """
        places = [place for place, point in enumerate(self.savepoints) if point.name == name]
        if not places:
            return [], 0
        taken = self.savepoints[places[-1] :]
        del self.savepoints[places[-1] :]
        if not self.savepoints:
            self.savepoints.append(Savepoint())
        return [key for point in taken for key in point.keys], sum(point.unreadable for point in taken)


class PendingKeys:
    """The keys of all open transactions, counted, because several transactions may write one key."""

    def __init__(self) -> None:
        """Create an empty collection."""
        self._lock = threading.Lock()
        self._counts: Counter[Any] = Counter()
        self._unreadable = 0

    def __contains__(self, key: object) -> bool:
        """Return whether an open transaction may have written ``key``."""
        return self._unreadable > 0 or key in self._counts

    def __len__(self) -> int:
        """Return the number of distinct keys."""
        return len(self._counts)

    def add(self, transaction: Transaction, keys: Iterable[Any] = (), *, unreadable: int = 0) -> None:
        """Record keys, or statements whose keys cannot be read, in the last savepoint of a transaction."""
        with self._lock:
            for key in keys:
                self._counts[key] += 1
                transaction.last.keys.append(key)
            self._unreadable += unreadable
            transaction.last.unreadable += unreadable

    def remove(self, keys: Iterable[Any], unreadable: int = 0) -> None:
        """Remove keys and statements that a transaction has returned."""
        with self._lock:
            for key in keys:
                self._counts[key] -= 1
                if self._counts[key] <= 0:
                    del self._counts[key]
            self._unreadable -= unreadable
