"""Operations per second of each listed filter: the difference between two readings of its counters."""

from __future__ import annotations

from typing import Any

#: Counters whose sum is a filter's operations: keys that were looked up, added or removed.
COUNTED = ("hits", "misses", "adds", "removed")
#: Seconds between two readings of a rate: a shorter span shows noise, and a longer one no longer the present.
_SHORTEST, _LONGEST = 1.0, 60.0
#: Filters whose last readings are kept, 200 bytes each.
_MOST = 100_000


class Meter:
    """The last reading of each filter that was listed lately; from any thread.

    A rate is a difference to the reading before, so the first reading of a filter has none. Two threads that
    read the same filter at once may lose one reading, which makes the next span longer.
    """

    def __init__(self) -> None:
        """Know no filter yet."""
        self._last: dict[int | str, tuple[float, int, float | None]] = {}

    def measure(self, info: dict[str, Any], now: float) -> float | None:
        """Return the operations per second since the last reading; None for a first reading.

        ``now`` is in seconds, of a clock that never goes back.

        >>> meter, info = Meter(), {"id": 1, "hits": 5, "misses": 0, "adds": 0, "removed": 0}
        >>> meter.measure(info, 10.0), meter.measure({**info, "adds": 30}, 12.0)
        (None, 15.0)
        """
        # Filters in Redis are numbered by the registry, those in memory by the store.
        key = info.get("place") or info["id"]
        total: int = sum(info[name] for name in COUNTED)
        known = self._last.get(key)
        if known is not None:
            at, before, rate = known
            if now - at < _SHORTEST:
                return rate
            if total >= before and now - at <= _LONGEST:
                rate = (total - before) / (now - at)
                self._last[key] = (now, total, rate)
                return rate
        elif len(self._last) >= _MOST:
            self._last.clear()
        self._last[key] = (now, total, None)
        return None
