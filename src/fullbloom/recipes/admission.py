"""Caches that store an object on its second request, because most objects are requested only once.

In Akamai's network three of four objects were requested once and never again. With a filter in front of the
cache, such objects are no longer written to disk, and do not push out others. A filter with a window forgets
old requests, so memory stays bounded.

After Bruce Maggs and Ramesh Sitaraman, "Algorithmic nuggets in content delivery", SIGCOMM CCR 45(3), 2015.

>>> cache = SecondRequestCache(100)
>>> [cache.get("page", load=str.upper) for _ in range(3)]
['PAGE', 'PAGE', 'PAGE']
>>> cache.info()
CacheInfo(hits=1, misses=2, writes=1, maxsize=100, currsize=1)
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from fullbloom import RollingBloomFilter
from fullbloom.errors import ParameterError
from fullbloom.recipes.dedup import add_new

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CacheInfo", "CachedFunction", "SecondRequestCache", "second_request_cache"]

K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
P = ParamSpec("P")

#: Requests that the filter remembers by default, for each object of the cache.
_REQUESTS_PER_OBJECT = 30


class CacheInfo(NamedTuple):
    """Counts of a cache: those of ``functools.lru_cache``, and the objects that were stored."""

    hits: int
    misses: int
    writes: int
    maxsize: int
    currsize: int


class SecondRequestCache(Generic[K, V]):
    """The least recently used objects among those that were requested at least twice.

    maxsize: objects in the cache, at least 1. window: requests of objects that are not in the cache, over
    which a second request counts; by default 30 for each object. fpr: share of the objects that are stored
    on their first request, which does no harm. seen: a filter to use in place of a new one, such as one that
    several servers share; ``clear`` leaves it as it is. Raises ``ParameterError`` for a number below 1.

    Threads may share the cache. Objects are loaded outside its lock, so two threads may load the same object.
    """

    def __init__(
        self, maxsize: int, *, window: int | None = None, fpr: float = 0.01, seen: Any = None
    ) -> None:
        if maxsize < 1:
            raise ParameterError(f"maxsize must be at least 1, got {maxsize}")
        self.maxsize = maxsize
        self._owns_seen = seen is None
        if seen is None:
            seen = RollingBloomFilter(_REQUESTS_PER_OBJECT * maxsize if window is None else window, fpr)
        #: Keys that were requested and are not in the cache.
        self.seen = seen
        self._objects: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = self._misses = self._writes = 0

    def get(self, key: K, load: Callable[[K], V]) -> V:
        """Return the object of ``key``; on a miss, load it, and store it if this is a second request.

        Raises the errors of ``load``; the request counts all the same. Raises ``KeyTypeError`` for a key that
        the filter does not accept.
        """
        with self._lock:
            if key in self._objects:
                self._hits += 1
                self._objects.move_to_end(key)
                return self._objects[key]
            self._misses += 1
            is_second = not add_new([key], self.seen)[0]
        value = load(key)
        if is_second:
            with self._lock:
                self._store(key, value)
        return value

    def _store(self, key: K, value: V) -> None:
        if key not in self._objects and len(self._objects) >= self.maxsize:
            self._objects.popitem(last=False)
        self._objects[key] = value
        self._writes += 1

    def info(self) -> CacheInfo:
        """Return the counts so far."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._writes, self.maxsize, len(self._objects))

    def clear(self) -> None:
        """Remove all objects and counts, and all requests unless their filter was given as ``seen``."""
        with self._lock:
            self._objects.clear()
            # Others may use a filter that was given.
            if self._owns_seen:
                self.seen.clear()
            self._hits = self._misses = self._writes = 0


class CachedFunction(Protocol[P, V_co]):
    """A function with the attributes that ``functools.lru_cache`` gives to one."""

    __wrapped__: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> V_co:
        """Return the result, from the cache if it is there."""

    def cache_info(self) -> CacheInfo:
        """Return the counts of the cache."""

    def cache_clear(self) -> None:
        """Remove all results, requests and counts."""


def second_request_cache(
    maxsize: int = 128,
    *,
    window: int | None = None,
    fpr: float = 0.01,
    key: Callable[..., Any] | None = None,
) -> Callable[[Callable[P, V]], CachedFunction[P, V]]:
    """Return a decorator like ``functools.lru_cache`` that stores a result on the second call.

    key: computes the key of a call from its arguments; by default the positional arguments and the sorted
    keyword arguments, which must then be keys, such as texts, numbers and tuples of these. The rest is as for
    `SecondRequestCache`. Raises ``ParameterError`` for a number below 1; a call raises ``KeyTypeError`` for
    arguments that are not keys. An exception is not cached.

    >>> @second_request_cache(maxsize=1000)
    ... def square(number):
    ...     return number * number
    >>> [square(3), square(3), square(3), square(4)]
    [9, 9, 9, 16]
    >>> square.cache_info()
    CacheInfo(hits=1, misses=3, writes=1, maxsize=1000, currsize=1)
    """

    def decorate(function: Callable[P, V]) -> CachedFunction[P, V]:
        cache: SecondRequestCache[Any, V] = SecondRequestCache(maxsize, window=window, fpr=fpr)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> V:
            name = (args, tuple(sorted(kwargs.items()))) if key is None else key(*args, **kwargs)
            return cache.get(name, lambda _: function(*args, **kwargs))

        call.cache_info = cache.info  # type: ignore[attr-defined]
        call.cache_clear = cache.clear  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
