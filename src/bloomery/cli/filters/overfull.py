"""What a filter that holds more than it was made for may have taken for known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomery.cli.filters.kinds import forgets
from bloomery.recipes.dedup import Load

if TYPE_CHECKING:
    from bloomery.cli.filters.kinds import Seen

#: None kept of u new lines, each with probability q: u is below 3 / q in 95 of 100 cases.
_NONE_KEPT = 3


def is_overfull(seen: Seen) -> bool:
    """Tell whether ``seen`` holds more lines than it was sized for, and none of them by design."""
    return bool(seen.num_added > seen.capacity) and not forgets(seen)


def most_lost(seen: Seen, kept: int, dropped: int) -> float:
    """Return how many of ``dropped`` lines may have been new ones, at the rate of ``seen`` as it is now.

    A full filter keeps nothing, so what is kept alone would say that nothing was lost.
    """
    rate = min(Load(seen).rate(), 1.0)
    return float(dropped) if rate == 1.0 else min(dropped, (kept + _NONE_KEPT) * rate / (1.0 - rate))
