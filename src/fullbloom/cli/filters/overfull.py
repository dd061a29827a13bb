"""Filters that hold more lines than they were sized for, and new lines they treated as duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.report import complain
from fullbloom.recipes.dedup import Load
from fullbloom.recipes.seen import Clock

if TYPE_CHECKING:
    from fullbloom.cli.filters.kinds import Filter

#: If none of u new lines was kept, each with probability q, u is below 3 / q in 95 of 100 cases.
_NONE_KEPT = 3
#: Fewer lines than this count as 0.
_NO_LINE = 0.5
#: The rate is read again when a generation holds this share more: reading it scans the filter.
_STEP = 32


def is_overfull(seen: Filter) -> bool:
    """Return whether ``seen`` exceeds its capacity and its rate; False if it forgets lines by design."""
    return (
        bool(seen.num_added > seen.capacity)
        and not is_forgetful(seen)
        and Load(seen).rate() > seen.target_fpr
    )


def most_lost(seen: Filter, kept: int, lost: float, dropped: int) -> float:
    """Return how many of ``dropped`` lines may have been new, or 0 if --fpr allows as many.

    ``lost`` were expected beside ``kept``. A full filter keeps no line from which their number could be
    estimated, so the bound uses its rate now.
    """
    if not is_overfull(seen):
        return 0.0
    rate, lost = Load(seen).rate(), min(lost, float(dropped))
    most = float(dropped) if rate >= 1.0 else min(float(dropped), lost + _NONE_KEPT * rate / (1.0 - rate))
    return most if most > max(_NO_LINE, seen.target_fpr * (kept + lost)) else 0.0


class WindowClock:
    """The time of a filter with a window of seconds; does nothing for any other."""

    def __init__(self, seen: Filter) -> None:
        """Read the clock."""
        self._seen = seen
        self._clock = None if getattr(seen, "window", None) is None else Clock(seen)
        self._most = 0
        self._rate = 0.0

    @property
    def behind(self) -> float:
        """Seconds by which the clock is behind that of the filter."""
        return self._clock.behind if self._clock else 0.0

    def advance(self) -> None:
        """Forget lines older than the window."""
        if self._clock:
            self._clock.tick()

    def measure(self) -> None:
        """Measure the rate if the window contains more lines than it was sized for."""
        if self._clock is None:
            return
        most = max(self._seen.generation_counts())
        if most > self._seen.capacity and most > self._most + self._most // _STEP:
            self._most, self._rate = most, max(self._rate, self._seen.fpr())

    def warn_if_overfull(self) -> bool:
        """Warn, with ``--quiet`` too, if the rate was above --fpr at any time; return whether it was."""
        seen = self._seen
        if self._rate <= seen.target_fpr:
            return False
        text = f"{self._most:,} different lines came within a window that was sized for {seen.capacity:,}"
        complain(f"{text}: up to {self._rate:.2g} of new lines were treated as old; give more --expected")
        return True
