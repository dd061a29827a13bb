"""Time, for a filter whose window is one of seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.report import complain
from fullbloom.recipes.seen import Clock

if TYPE_CHECKING:
    from fullbloom.cli.filters.kinds import Seen

#: The rate is looked up anew when a generation holds this share more: it is a pass over the filter.
_STEP = 32


class Time:
    """Passes for filters with a window of seconds, and stands still for all others."""

    def __init__(self, seen: Seen) -> None:
        """Read the clock."""
        self._seen = seen
        self._clock = None if getattr(seen, "window", None) is None else Clock(seen)
        self._most = 0
        self._rate = 0.0

    @property
    def behind(self) -> float:
        """Seconds by which the clock is behind that of the filter."""
        return self._clock.behind if self._clock else 0.0

    def pass_by(self) -> None:
        """Forget what has become too old."""
        if self._clock:
            self._clock.tick()

    def look(self) -> None:
        """See whether more lines came within the window than it was made for."""
        if self._clock is None:
            return
        most = max(self._seen.generation_counts())
        if most > self._seen.capacity and most > self._most + self._most // _STEP:
            self._most, self._rate = most, max(self._rate, self._seen.fpr())

    def crowded(self) -> bool:
        """Say, with ``--quiet`` too, that the rate was above --fpr at a time; return whether."""
        seen = self._seen
        if self._rate <= seen.target_fpr:
            return False
        text = f"{self._most:,} different lines came within a window that was sized for {seen.capacity:,}"
        complain(f"{text}: up to {self._rate:.2g} of new lines were taken for old; give more --expected")
        return True
