"""A filter in Redis that many processes share, with a fallback in memory while the server is unreachable."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fullbloom import registry
from fullbloom.errors import EngineError, FilterLost, IncompatibleFilters

if TYPE_CHECKING:
    from typing import Self

    from fullbloom.engines.redis import RedisBloomFilter

__all__ = ["Fleet"]

_LOG = logging.getLogger(__name__)
#: Seconds for the server to answer.
_TIMEOUT = 5.0


class Fleet:
    """A ``RedisBloomFilter`` shared by many processes, and a fallback in memory.

    While the server is unreachable, or has lost the filter, keys go to a growing filter in memory, so this
    process still finds its own duplicates, also when the server responds again. Neither the other processes
    nor the server learn of these keys until they are added again. The log records when that begins and ends.
    Costs one round trip per add, and during an outage up to the client's timeout.
    """

    def __init__(self, shared: RedisBloomFilter) -> None:
        """Take the filter."""
        self.shared = shared
        self._memory: Any = None
        self._away = False
        #: Number of keys that only the fallback received.
        self.alone = 0

    @classmethod
    def open(cls, url: str, name: str, capacity: int, fpr: float) -> Self:
        """Open the filter ``name``, or create it with a random seed.

        Raises the errors of ``RedisBloomFilter``, and ``ValueError`` for an invalid URL.
        """
        from fullbloom.engines.redis import RedisBloomFilter
        from fullbloom.engines.redis.transport import connect

        client = connect(url, name, timeout=_TIMEOUT)
        try:
            RedisBloomFilter(client, name)
        except FilterLost:  # it does not exist
            with suppress(IncompatibleFilters):  # another process created it first
                RedisBloomFilter(client, name, capacity, fpr, seed=secrets.randbits(64))
        return cls(RedisBloomFilter(client, name, capacity, fpr))

    def add(self, key: Any) -> bool:
        """Add a key; return True if it was certainly new."""
        try:
            new = self.shared.add(key)
        except EngineError as error:
            self._log_state(away=True, reason=str(error))
            self.alone += 1
            return bool(self._fallback().add(key))
        self._log_state(away=False)
        return new and (self._memory is None or key not in self._memory)

    def _fallback(self) -> Any:
        if self._memory is None:
            make = registry.get_class(registry.find_by_role("growing"))
            self._memory = make(100_000, self.target_fpr)
        return self._memory

    def _log_state(self, *, away: bool, reason: str = "") -> None:
        if away != self._away:
            self._away = away
            if away:
                _LOG.error("%s; this process continues with a filter in memory", reason)
            else:
                _LOG.warning("the server responds again; %d keys are only in memory", self.alone)

    @property
    def capacity(self) -> int:
        """Number of keys that the filter was sized for."""
        return self.shared.capacity

    @property
    def target_fpr(self) -> float:
        """False-positive rate that the filter was sized for."""
        return self.shared.manifest.fpr

    @property
    def nbytes(self) -> int:
        """Bytes of the cells."""
        return -(-self.shared.manifest.num_bits // 8)

    @property
    def num_added(self) -> int:
        """Number of keys of all processes, estimated from the bits; 0 while the server is unreachable."""
        try:
            return round(self.shared.approx_count()[0])
        except EngineError:
            return 0

    def fpr(self) -> float:
        """Return the rate at the current load; while the server is unreachable, the rate at capacity."""
        try:
            return self.shared.fpr()
        except EngineError:
            return self.target_fpr
