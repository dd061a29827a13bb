"""A rate limiter whose memory does not grow with the number of clients.

Counts are in spectral filters, one for each slice of the window. They are never too low, so no client gets
more than the limit; a client whose cells are shared with busy ones is, rarely, refused too early. Exim limits
rates of mail with a filter in the same way, and counts only *distinct* recipients if asked to.

>>> now = 0.0
>>> limiter = RateLimiter(limit=3, window=60.0, clients=10_000, clock=lambda: now)
>>> [limiter.allow("198.51.100.7") for _ in range(5)]
[True, True, True, False, False]
>>> now = 80.0
>>> limiter.allow("198.51.100.7")
True
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from fullbloom import BloomFilter, SpectralBloomFilter
from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.keys import Key

__all__ = ["RateLimiter"]

#: Widths of a counter, and slices of a window at most.
_COUNTER_BITS, _MOST_SLICES = (8, 16, 32), 64


class RateLimiter:
    """Allows each client at most ``limit`` events in any ``window`` seconds.

    clients: clients that have events in one slice. fpr: share of the clients whose count may be too high,
    while there are no more than that. slices: parts of the window, 1 to 64. One slice more than the window
    is counted, so a client with steady events gets ``slices / (slices + 1)`` of its limit. items: new items
    of all clients in one slice, if events have items; by default as many as ``clients`` may have. clock:
    seconds that never go back. The hash has a random secret, so no client can choose a name that shares the
    cells of another. Raises ``ParameterError`` for numbers out of range.

    Memory: ``slices + 1`` filters of some 80 bits per client for limits up to 255, 160 above. With items,
    ``slices + 1`` more of 10 bits per item at the default rate: by default 10 x ``limit`` bits per client,
    created at the first item. None of them grows. Threads may share it.
    """

    def __init__(
        self,
        limit: int,
        window: float,
        clients: int,
        *,
        fpr: float = 0.01,
        slices: int = 4,
        items: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 1 <= limit < 1 << _COUNTER_BITS[-1]:
            raise ParameterError(f"limit must be from 1 to 2**32 - 1, got {limit}")
        if not 0 < window < float("inf") or not 1 <= slices <= _MOST_SLICES:
            raise ParameterError(f"window must be positive and slices 1 to 64, got {window} and {slices}")
        self.limit, self.window, self.slices = limit, window, slices
        width = next(bits for bits in _COUNTER_BITS if limit < 1 << bits)
        self._clock, self._lock = clock, threading.Lock()
        self._counts = [
            SpectralBloomFilter(clients, fpr, counter_bits=width, secret=True) for _ in range(slices + 1)
        ]
        self._most_items, self._fpr = clients * limit if items is None else items, fpr
        self._items: list[BloomFilter] = []
        if items is not None:
            self._get_items()
        self._slice = self._find_slice()
        #: Events allowed and refused.
        self.allowed = self.refused = 0

    def allow(self, client: Key, item: Key | None = None) -> bool:
        """Return whether ``client`` may have an event now, and count it if so.

        item: what the event concerns, such as a recipient. An item of the present window is allowed again
        without being counted, and so is a new one by mistake, at the rate ``fpr`` in each slice. If there are
        more than ``items`` new ones in a slice, the rest are refused: in a filter beyond its capacity, nearly
        every item would seem known. Refused events are not counted. Raises ``KeyTypeError`` for a client that
        is not a key, ``FilterMemoryError`` if the filters of the items cannot be created.
        """
        with self._lock:
            self._advance()
            if item is not None and any((client, item) in seen for seen in self._get_items()):
                self.allowed += 1
                return True
            at = self._slice % (self.slices + 1)
            is_full = item is not None and self._items[at].num_added >= self._most_items
            if is_full or sum(counts.count(client) for counts in self._counts) >= self.limit:
                self.refused += 1
                return False
            self._counts[at].add(client)
            if item is not None:
                self._items[at].add((client, item))
            self.allowed += 1
            return True

    @property
    def nbytes(self) -> int:
        """Bytes of the filters."""
        return sum(part.nbytes for part in self._counts) + sum(part.nbytes for part in self._items)

    def _find_slice(self) -> int:
        return int(self._clock() * self.slices / self.window)

    def _advance(self) -> None:
        """Clear the slices that have left the window, which are at most all of them."""
        now = max(self._find_slice(), self._slice)
        for slice_ in range(max(self._slice, now - self.slices - 1) + 1, now + 1):
            self._counts[slice_ % (self.slices + 1)].clear()
            if self._items:
                self._items[slice_ % (self.slices + 1)].clear()
        self._slice = now

    def _get_items(self) -> list[BloomFilter]:
        if not self._items:  # their memory is only needed with items
            self._items = [BloomFilter(self._most_items, self._fpr, secret=True) for _ in self._counts]
        return self._items
