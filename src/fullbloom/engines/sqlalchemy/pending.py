"""Keys of rows in open transactions, which a filter does not hold yet.

A lookup asks `PendingKeys` before it asks the filter, and a commit adds a key to the filter before it is
removed here. So there is no moment at which a committed key is in neither.

>>> keys = PendingKeys()
>>> transaction = Transaction()
>>> keys.add(transaction.last, ["ada"])
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
    import weakref
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

    __slots__ = (
        "has_unread_statement",
        "is_committing",
        "is_rolling_back",
        "is_seen_whole",
        "may_commit",
        "savepoints",
        "statement",
        "xid",
    )

    def __init__(self) -> None:
        """Begin."""
        self.savepoints = [Savepoint()]
        #: Its begin was seen. Otherwise it may have written rows before.
        self.is_seen_whole = False
        #: A commit has been sent, and its outcome is not known.
        self.is_committing = False
        #: Rows may be committed, whatever the connection reports: autocommit, commits in text, preparation.
        self.may_commit = False
        #: The rollback of a prepared transaction has been sent, and its outcome is not known.
        self.is_rolling_back = False
        #: The name of a transaction in two phases.
        self.xid: str | None = None
        #: The last statement that was read: large ones are reported in several parts. The reference is
        #: weak: a statement has its connection, which could not return to the pool by itself otherwise.
        self.statement: weakref.ref[Any] | None = None
        #: The keys of that statement could not be read.
        self.has_unread_statement = False

    @property
    def last(self) -> Savepoint:
        """The savepoint that receives keys."""
        return self.savepoints[-1]

    @property
    def first(self) -> Savepoint:
        """The beginning of the transaction, which no rollback to a savepoint removes."""
        return self.savepoints[0]

    def is_last(self, statement: object) -> bool:
        """Return whether a statement is the last one that was read."""
        return self.statement is not None and self.statement() is statement

    def is_empty(self) -> bool:
        """Return whether nothing was written."""
        return not any(point.keys or point.unreadable for point in self.savepoints)

    def end(self) -> tuple[list[Any], int]:
        """Return the keys and the number of unreadable statements, and be the next transaction."""
        self.is_committing = self.may_commit = self.is_rolling_back = self.has_unread_statement = False
        self.statement = self.xid = None
        return self.take()

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

    def reset_lock(self) -> None:
        """Replace the lock, which another thread of the parent may hold forever in a forked child."""
        self._lock = threading.Lock()

    def __contains__(self, key: object) -> bool:
        """Return whether an open transaction may have written ``key``."""
        return self._unreadable > 0 or key in self._counts

    def __len__(self) -> int:
        """Return the number of distinct keys."""
        return len(self._counts)

    def add(self, savepoint: Savepoint, keys: Iterable[Any] = (), *, unreadable: int = 0) -> None:
        """Record keys, or statements whose keys cannot be read, in a savepoint."""
        with self._lock:
            for key in keys:
                self._counts[key] += 1
                savepoint.keys.append(key)
            self._unreadable += unreadable
            savepoint.unreadable += unreadable

    def remove(self, keys: Iterable[Any], unreadable: int = 0) -> None:
        """Remove keys and statements that a transaction has returned."""
        with self._lock:
            for key in keys:
                self._counts[key] -= 1
                if self._counts[key] <= 0:
                    del self._counts[key]
            self._unreadable -= unreadable
