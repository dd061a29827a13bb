"""Removal from a filter that cannot remove, with a second filter of the removed keys.

A key is present if the first filter finds it and the second does not. A false positive of the second filter
is a false negative of the pair; its rate is ``fnr()``.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from fullbloom.compose import folder as _folder
from fullbloom.errors import KeyTypeError, RemovedKeyError
from fullbloom.protocols import Addable, Removable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WithRemovals"]

_instances: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _reset_locks() -> None:
    """Give every instance a new lock in a forked child."""
    for instance in list(_instances.values()):
        instance._reset_lock()  # noqa: SLF001 - the class is in this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_locks)

K = TypeVar("K", bound=Addable)
R = TypeVar("R", bound=Addable)

_PARTS = ("kept", "removed")


class WithRemovals(Generic[K, R]):
    """Two filters that act as one with one-time removal: present = in ``kept`` and not in ``removed``.

    kept: the filter of all keys ever added. removed: the filter of removed keys; its false-positive rate is
    the false-negative rate of the pair. The object uses both filters and does not copy them.

    False negatives: by design, at the rate ``fnr()`` of the filter ``removed``, which is 0 until a key is
    removed. False positives: as ``kept``, minus those that ``removed`` finds. A removed key can be added
    again only if ``removed`` supports removal (a counting filter, a quotient filter); otherwise ``add``
    raises ``RemovedKeyError`` for a key that seems to have been removed.

    Batches are any iterable of keys or a NumPy array. Methods are thread-safe. Each operation costs as much
    as on both filters.

    Raises ``TypeError`` for parts without the methods of ``fullbloom.protocols.Addable``.

    >>> from fullbloom import BloomFilter, QuotientFilter
    >>> issued = WithRemovals(BloomFilter(1000, 0.001), QuotientFilter(100, 1e-6))
    >>> issued.update(["ada", "grace"])
    >>> issued.remove("ada")
    >>> "ada" in issued, "grace" in issued
    (False, True)
    >>> issued.add("ada"), "ada" in issued
    (True, True)
    """

    __slots__ = ("__weakref__", "_kept", "_lock", "_removed")

    def __init__(self, kept: K, removed: R) -> None:
        for name, part in (("kept", kept), ("removed", removed)):
            # The annotation does not bind callers, so check the type at run time.
            if not isinstance(cast("object", part), Addable):
                raise TypeError(f"{name} must have the methods of Addable, got {type(part).__name__}")
        if cast("object", kept) is removed:
            raise ValueError("kept and removed must be two filters, got one twice")
        self._kept = kept
        self._removed = removed
        self._reset_lock()
        _instances[id(self)] = self

    def _reset_lock(self) -> None:
        """Create a new lock: in a forked child, the parent's lock may never be released."""
        self._lock = threading.RLock()

    @property
    def kept(self) -> K:
        """The filter of all keys ever added."""
        return self._kept

    @property
    def removed(self) -> R:
        """The filter of the removed keys."""
        return self._removed

    def __contains__(self, key: Any, /) -> bool:
        """Return whether ``key`` was probably added and not removed."""
        return key in self._kept and key not in self._removed

    def contains_many(self, keys: Any) -> Any:
        """Look up each key; return a list, or a NumPy mask for a NumPy array.

        Raises ``KeyTypeError`` for a key without canonical bytes, and for Arrow data.
        """
        keys = _materialize(keys)
        found, denied = self._kept.contains_many(keys), self._removed.contains_many(keys)
        return _combine(found, denied, lambda f, d: f and not d, lambda f, d: f & ~d)

    def add(self, key: Any, /) -> bool:
        """Add ``key``; return True if it was certainly not present.

        A key that was removed before is removed from the second filter. Raises ``RemovedKeyError`` if that
        filter does not support removal; then nothing has changed. If the second filter finds a new key by a
        false positive, at the rate ``fnr()``, the key is added but not found.
        """
        with self._lock:
            if key in self._kept and key in self._removed:
                if not isinstance(self._removed, Removable) or not self._removed.discard(key):
                    raise _cannot_return(key)
                self._kept.add(key)
                return True
            return self._kept.add(key)

    def update(self, keys: Any) -> None:
        """Add many keys; removed keys return as with :meth:`add`.

        Raises ``RemovedKeyError`` for a removed key that cannot be added again: before any key is added if
        ``removed`` does not support removal, afterwards if it cannot remove this one key.
        """
        keys = _materialize(keys)
        with self._lock:
            found, denied = self._kept.contains_many(keys), self._removed.contains_many(keys)
            returning = list(itertools.compress(keys, map(operator.and_, found, denied)))
            if returning and not isinstance(self._removed, Removable):
                raise _cannot_return(returning[0])
            self._kept.update(keys)
            for key in returning:
                # One by one: a key that occurs twice in the batch must be removed once.
                if key in self._removed and not cast("Removable", self._removed).discard(key):
                    raise _cannot_return(key)

    def add_many(self, keys: Any) -> list[bool]:
        """Add keys one by one; return whether each was certainly not present."""
        with self._lock:
            return [self.add(key) for key in keys]

    def remove(self, key: Any, /) -> None:
        """Remove ``key``; raise ``KeyError`` if it is certainly absent or was removed before."""
        if not self.discard(key):
            raise KeyError(key)

    def discard(self, key: Any, /) -> bool:
        """Remove ``key`` if it is present; return whether it was."""
        with self._lock:
            if key not in self:
                return False
            self._removed.add(key)
            return True

    def remove_many(self, keys: Any) -> None:
        """Remove many keys; a key that occurs twice is removed once.

        Raises ``KeyError`` for the first key that is not present; then nothing has changed.
        """
        keys = _materialize(keys)
        with self._lock:
            present = self.contains_many(keys)
            for key in itertools.compress(keys, map(operator.not_, present)):
                raise KeyError(key)
            new = self._removed.add_many(keys)
            if isinstance(self._removed, Removable):
                # Keep one occurrence only, so that adding the key again removes it completely.
                for key in itertools.compress(keys, map(operator.not_, new)):
                    self._removed.discard(key)

    def discard_many(self, keys: Any) -> list[bool]:
        """Discard keys one by one; return whether each was present."""
        with self._lock:
            return [self.discard(key) for key in keys]

    def clear(self) -> None:
        """Clear both filters."""
        with self._lock:
            self._kept.clear()
            self._removed.clear()

    @property
    def num_added(self) -> int:
        """Number of keys that were new when added, minus removed keys."""
        with self._lock:
            return int(self._kept.num_added - self._removed.num_added)

    def fpr(self) -> float:
        """Return the false-positive rate: that of ``kept``, minus the share that ``removed`` finds."""
        return self._kept.fpr() * (1.0 - self._removed.fpr())

    def fnr(self) -> float:
        """Return the false-negative rate: the false-positive rate of ``removed`` at its current load."""
        return self._removed.fpr()

    def info(self) -> dict[str, Any]:
        """Return the rates and both parts as a dict of plain values."""
        facts: dict[str, Any] = {"class": "WithRemovals", "fpr": self.fpr(), "fnr": self.fnr()}
        for name, part in zip(_PARTS, self._both(), strict=True):
            facts[name] = cast("Any", part).info() if hasattr(part, "info") else repr(part)
        return facts

    def copy(self) -> WithRemovals[K, R]:
        """Return an independent copy in memory; mapped filters are read into memory too."""
        with self._lock:
            kept, removed = (cast("Any", part).copy() for part in self._both())
        return WithRemovals(kept, removed)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write both filters into ``folder`` atomically; create the folder if it is missing.

        The parts get new names. A small manifest that names them is replaced last, atomically; then the
        previous parts and the leftovers of a killed save are deleted, and no other file. Concurrent saves
        into one folder wait for each other.
        """
        with self._lock:
            _folder.save(Path(folder), dict(zip(_PARTS, self._both(), strict=True)))

    @staticmethod
    def open(
        folder: str | os.PathLike[str],
        *,
        verify: str = "header",
        secret: bytes | None = None,
        max_bytes: int | None = None,
    ) -> WithRemovals[Any, Any]:
        """Open a folder that ``save`` wrote, mapped read-only; use ``copy()`` to change it.

        During a save you get the old pair or the new pair. verify, secret, max_bytes: as for
        ``fullbloom.open``, for each filter. Raises ``FormatError``, ``OSError``, ``FilterMemoryError``.
        """
        options = {"verify": verify, "secret": secret, "max_bytes": max_bytes}
        return WithRemovals(*_folder.load(Path(folder), _PARTS, options))

    def _both(self) -> tuple[K, R]:
        return self._kept, self._removed

    def __reduce__(self) -> tuple[type[WithRemovals[K, R]], tuple[K, R]]:
        return type(self), self._both()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WithRemovals):
            return NotImplemented
        return bool(self._both() == other._both())

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"WithRemovals({self._kept!r}, {self._removed!r})"


def _cannot_return(key: object) -> RemovedKeyError:
    return RemovedKeyError(
        f"the key {key!r} was removed (or seems to be) and cannot be added again; "
        "pass a filter that supports removal, such as QuotientFilter, as removed"
    )


def _materialize(keys: Any) -> Any:
    """Return ``keys`` as a container that can be iterated more than once."""
    return keys if hasattr(keys, "__len__") else list(keys)


def _combine(
    found: Any, denied: Any, one: Callable[[bool, bool], bool], all_: Callable[[Any, Any], Any]
) -> Any:
    """Combine two results of ``contains_many`` into one of the same container type."""
    if isinstance(found, list):
        return [one(*pair) for pair in zip(found, denied, strict=True)]
    if hasattr(found, "__invert__"):
        return all_(found, denied)
    raise KeyTypeError("keys must be an iterable or a NumPy array here; convert Arrow data to one of them")
