"""Removal from a filter that cannot remove, by a second filter that holds what was removed.

A key is present when the first filter finds it and the second does not. False positives of the second are
false negatives of the whole: a member is denied with the second filter's rate, on display as ``fnr()``.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from fullbloom.compose import folder as parts_of
from fullbloom.errors import KeyTypeError, RemovedKeyError
from fullbloom.protocols import Addable, Removable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WithRemovals"]

_everywhere: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _after_fork() -> None:
    for made in list(_everywhere.values()):
        made._unlock()  # noqa: SLF001 - the class stands below


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

K = TypeVar("K", bound=Addable)
R = TypeVar("R", bound=Addable)

_PARTS = ("kept", "removed")


class WithRemovals(Generic[K, R]):
    """Two filters as one from which keys can be removed once: present = ``kept`` and not ``removed``.

    kept: the filter of all keys ever added. removed: the filter of those taken out again; give it the rate at
    which members may be denied. Both are used as they are and not copied.

    False negatives: by design, a member is denied at the rate ``fnr()`` of the filter ``removed``, which is 0
    until something is removed. False positives: as ``kept``, lessened by what ``removed`` denies. A removed
    key can be added again only when ``removed`` can itself remove (a counting filter, a quotient filter);
    otherwise ``add`` raises ``RemovedKeyError`` for a key that seems to have been removed.

    Batches take any iterable of keys or a NumPy array. Calls of several threads do not mix. Cost: that of
    both filters.

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
            # A caller's filter may be of any class, whatever its annotation says.
            if not isinstance(cast("object", part), Addable):
                raise TypeError(f"{name} must have the methods of Addable, got {type(part).__name__}")
        if cast("object", kept) is removed:
            raise ValueError("kept and removed must be two filters, got one twice")
        self._kept = kept
        self._removed = removed
        self._unlock()
        _everywhere[id(self)] = self

    def _unlock(self) -> None:
        """Take a lock that nobody holds: in a forked child, the parent's may be held for ever."""
        self._lock = threading.RLock()

    @property
    def kept(self) -> K:
        """The filter of all keys ever added."""
        return self._kept

    @property
    def removed(self) -> R:
        """The filter of the keys that were taken out."""
        return self._removed

    def __contains__(self, key: Any, /) -> bool:
        """Tell whether ``key`` was probably added and not removed."""
        return key in self._kept and key not in self._removed

    def contains_many(self, keys: Any) -> Any:
        """Answer for each key: a list, or a NumPy mask for a NumPy array.

        Raises ``KeyTypeError`` for a key without canonical bytes, and for Arrow data.
        """
        keys = _twice(keys)
        found, denied = self._kept.contains_many(keys), self._removed.contains_many(keys)
        return _combine(found, denied, lambda f, d: f and not d, lambda f, d: f & ~d)

    def add(self, key: Any, /) -> bool:
        """Add ``key``; True when it was certainly not present.

        A key that was removed is taken out of the second filter again. Raises ``RemovedKeyError`` where that
        filter cannot remove; then nothing has changed. A new key that the second filter happens to find is
        added but denied, at the rate ``fnr()``.
        """
        with self._lock:
            if key in self._kept and key in self._removed:
                if not isinstance(self._removed, Removable) or not self._removed.discard(key):
                    raise _cannot_return(key)
                self._kept.add(key)
                return True
            return self._kept.add(key)

    def update(self, keys: Any) -> None:
        """Add many keys, removed ones as :meth:`add` does.

        Raises ``RemovedKeyError`` before anything is added if one of them cannot return; afterwards where
        ``removed`` can take out only some keys, and not this one.
        """
        keys = _twice(keys)
        with self._lock:
            found, denied = self._kept.contains_many(keys), self._removed.contains_many(keys)
            returning = list(itertools.compress(keys, map(operator.and_, found, denied)))
            if returning and not isinstance(self._removed, Removable):
                raise _cannot_return(returning[0])
            self._kept.update(keys)
            for key in returning:
                # One by one: a key that stands in the batch twice must be taken out once.
                if key in self._removed and not cast("Removable", self._removed).discard(key):
                    raise _cannot_return(key)

    def add_many(self, keys: Any) -> list[bool]:
        """Add keys one by one and answer, for each, whether it was certainly not present."""
        with self._lock:
            return [self.add(key) for key in keys]

    def remove(self, key: Any, /) -> None:
        """Remove ``key``; ``KeyError`` when it is certainly absent or was removed already."""
        if not self.discard(key):
            raise KeyError(key)

    def discard(self, key: Any, /) -> bool:
        """Remove ``key`` if it is present, and tell whether it was."""
        with self._lock:
            if key not in self:
                return False
            self._removed.add(key)
            return True

    def remove_many(self, keys: Any) -> None:
        """Remove many keys; a key that stands there twice is removed once.

        Raises ``KeyError`` with the first key that is not present; then nothing has changed.
        """
        keys = _twice(keys)
        with self._lock:
            present = self.contains_many(keys)
            for key in itertools.compress(keys, map(operator.not_, present)):
                raise KeyError(key)
            new = self._removed.add_many(keys)
            if isinstance(self._removed, Removable):
                # A second occurrence must not have to be taken out twice when the key returns.
                for key in itertools.compress(keys, map(operator.not_, new)):
                    self._removed.discard(key)

    def discard_many(self, keys: Any) -> list[bool]:
        """Discard keys one by one and answer, for each, whether it was present."""
        with self._lock:
            return [self.discard(key) for key in keys]

    def clear(self) -> None:
        """Forget every key, also that it was removed."""
        with self._lock:
            self._kept.clear()
            self._removed.clear()

    @property
    def num_added(self) -> int:
        """Keys that were new when they were added, less those removed."""
        with self._lock:
            return int(self._kept.num_added - self._removed.num_added)

    def fpr(self) -> float:
        """Rate at which a key that was never added is found: that of ``kept``, less what is denied."""
        return self._kept.fpr() * (1.0 - self._removed.fpr())

    def fnr(self) -> float:
        """Rate at which a member is denied: the false-positive rate of ``removed`` at its present load."""
        return self._removed.fpr()

    def info(self) -> dict[str, Any]:
        """Rates and both parts, as a dict of plain values."""
        facts: dict[str, Any] = {"class": "WithRemovals", "fpr": self.fpr(), "fnr": self.fnr()}
        for name, part in zip(_PARTS, self._both(), strict=True):
            facts[name] = cast("Any", part).info() if hasattr(part, "info") else repr(part)
        return facts

    def copy(self) -> WithRemovals[K, R]:
        """Return an independent copy in memory, also of mapped filters."""
        with self._lock:
            kept, removed = (cast("Any", part).copy() for part in self._both())
        return WithRemovals(kept, removed)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write both filters into ``folder``, which is made if need be: the old pair or the new one.

        The parts get new names, and a small file that names them is replaced last, atomically; then the parts
        that it named before are deleted, and nothing else but what a killed save has left. Of several that
        save into one folder each waits for the one before it.
        """
        with self._lock:
            parts_of.save(Path(folder), dict(zip(_PARTS, self._both(), strict=True)))

    @staticmethod
    def open(
        folder: str | os.PathLike[str],
        *,
        verify: str = "header",
        secret: bytes | None = None,
        max_bytes: int | None = None,
    ) -> WithRemovals[Any, Any]:
        """Open what ``save`` wrote, mapped read-only; ``copy()`` it to change it.

        During a save it is one pair or the other. verify, secret, max_bytes: as for ``fullbloom.open``, for
        each filter. Raises ``FormatError``, ``OSError``, ``FilterMemoryError``.
        """
        options = {"verify": verify, "secret": secret, "max_bytes": max_bytes}
        return WithRemovals(*parts_of.opened(Path(folder), _PARTS, options))

    def _both(self) -> tuple[K, R]:
        return self._kept, self._removed

    def __reduce__(self) -> tuple[type[WithRemovals[K, R]], tuple[K, R]]:
        return type(self), self._both()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WithRemovals):
            return NotImplemented
        return bool(self._both() == other._both())

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"WithRemovals({self._kept!r}, {self._removed!r})"


def _cannot_return(key: object) -> RemovedKeyError:
    return RemovedKeyError(
        f"the key {key!r} was removed (or seems to be) and cannot be added again; "
        "for that, let removed be a filter that can remove, such as QuotientFilter"
    )


def _twice(keys: Any) -> Any:
    """The keys as something that can be gone through more than once."""
    return keys if hasattr(keys, "__len__") else list(keys)


def _combine(
    found: Any, denied: Any, one: Callable[[bool, bool], bool], all_: Callable[[Any, Any], Any]
) -> Any:
    """Two answers of ``contains_many`` as one, in their kind."""
    if isinstance(found, list):
        return [one(*pair) for pair in zip(found, denied, strict=True)]
    if hasattr(found, "__invert__"):
        return all_(found, denied)
    raise KeyTypeError("keys must be an iterable or a NumPy array here; convert Arrow data to one of them")
