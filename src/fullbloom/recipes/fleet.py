"""A filter that a fleet shares in Redis, and one in memory for the time its server is away."""

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
    """What `add` needs to be told of a key seen by any process: a ``RedisBloomFilter`` and a spare.

    While the server cannot be asked, or has lost the filter, keys go to a filter in memory that grows, so
    that this process still tells its own repetitions; what it adds then, others do not hear of, nor does
    the server. The log says when that begins and ends. Costs a round trip an add, during an outage up to
    the client's timeout as well.
    """

    def __init__(self, shared: RedisBloomFilter) -> None:
        """Take the filter."""
        self.shared = shared
        self._spare: Any = None
        self._away = False
        #: Keys that were told by the spare.
        self.alone = 0

    @classmethod
    def open(cls, url: str, name: str, capacity: int, fpr: float) -> Self:
        """Open the filter ``name``, or make it, with a seed that nobody can guess.

        Raises what ``RedisBloomFilter`` does, ``ValueError`` for a URL that is none.
        """
        from fullbloom.engines.redis import RedisBloomFilter
        from fullbloom.engines.redis.transport import connect

        client = connect(url, name, timeout=_TIMEOUT)
        try:
            RedisBloomFilter(client, name)
        except FilterLost:  # there is none
            with suppress(IncompatibleFilters):  # somebody else was quicker
                RedisBloomFilter(client, name, capacity, fpr, seed=secrets.randbits(64))
        return cls(RedisBloomFilter(client, name, capacity, fpr))

    def add(self, key: Any) -> bool:
        """Add a key; True when it was certainly new."""
        try:
            new = self.shared.add(key)
        except EngineError as error:
            self._tell(away=True, why=str(error))
            self.alone += 1
            return bool(self._alone().add(key))
        self._tell(away=False)
        return new

    def _alone(self) -> Any:
        if self._spare is None:
            make = registry.class_of(registry.with_role("growing"))
            self._spare = make(100_000, self.target_fpr)
        return self._spare

    def _tell(self, *, away: bool, why: str = "") -> None:
        if away != self._away:
            self._away = away
            if away:
                _LOG.error("%s; this process goes on with what it sees itself", why)
            else:
                _LOG.warning("the server answers again; it does not know %d keys told without it", self.alone)

    @property
    def capacity(self) -> int:
        """Keys that the filter was sized for."""
        return self.shared.capacity

    @property
    def target_fpr(self) -> float:
        """The rate that it was made for."""
        return self.shared.manifest.fpr

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        return -(-self.shared.manifest.num_bits // 8)

    @property
    def num_added(self) -> int:
        """Keys of all processes, as estimated from its bits; 0 while the server is away."""
        try:
            return round(self.shared.approx_count()[0])
        except EngineError:
            return 0

    def fpr(self) -> float:
        """Rate at its present load; that at capacity while the server is away."""
        try:
            return self.shared.fpr()
        except EngineError:
            return self.target_fpr
