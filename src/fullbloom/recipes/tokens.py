"""Tokens that were revoked before they expire, such as the ``jti`` of a JWT.

A token needs to be remembered as revoked only until it expires by itself, so the filter has a window of the
longest lifetime. A lookup is local and takes no query, which is the point of such tokens.

>>> now = 1000.0
>>> revoked = RevokedTokens(10_000, lifetime=3600.0, clock=lambda: now)
>>> revoked.revoke("token-17")
>>> revoked.is_revoked("token-17"), revoked.is_revoked("token-18")
(True, False)
>>> now += 2 * 3600.0
>>> revoked.is_revoked("token-17")  # it expired, and was forgotten
False
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from fullbloom import RollingBloomFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.keys import Key

__all__ = ["RevokedTokens"]


class RevokedTokens:
    """The tokens revoked within the lifetime of a token.

    capacity: revocations within a lifetime. lifetime: seconds that a token is valid. fpr: share of the valid
    tokens that the filter finds by mistake, by default one in a million. is_listed: an exact query for those
    that the filter finds; without it, they count as revoked, and their owner must log in again. clock:
    seconds that never go back. Raises ``ParameterError`` for numbers out of range.

    A revoked token is always found. Remember one from a list of all servers on each of them.

    Threads may call ``revoke`` and ``is_revoked`` at the same time. Time moves in one step under a lock, and
    a token is found by every thread as soon as ``revoke`` has returned. The lock is not held during a call of
    ``is_listed``, which several threads may make at once.
    """

    def __init__(
        self,
        capacity: int,
        lifetime: float,
        *,
        fpr: float = 1e-6,
        is_listed: Callable[[Key], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.is_listed, self._clock, self._lock = is_listed, clock, threading.Lock()
        self.filter = RollingBloomFilter(capacity, fpr, window=lifetime, secret=True)
        self.filter.advance(clock())
        #: Tokens checked, and queries.
        self.checks = self.queries = 0

    def revoke(self, token: Key) -> None:
        """Revoke a token by its identifier."""
        self._tick()
        self.filter.add(token)

    def is_revoked(self, token: Key) -> bool:
        """Return whether a token was revoked. Raises the errors of ``is_listed``."""
        self._tick(checks=1)
        if token not in self.filter:
            return False
        if self.is_listed is None:
            return True
        with self._lock:
            self.queries += 1
        return self.is_listed(token)

    def _tick(self, checks: int = 0) -> None:
        """Advance the filter to the present, unless the clock went back; count checks."""
        with self._lock:
            # Reading the clock is part of the step: another thread may otherwise advance further meanwhile.
            now = self._clock()
            if self.filter.now is None or now > self.filter.now:
                self.filter.advance(now)
            self.checks += checks
