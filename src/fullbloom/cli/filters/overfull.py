"""What a filter that holds more than it was made for may have taken for known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.filters.kinds import forgets
from fullbloom.recipes.dedup import Load

if TYPE_CHECKING:
    from fullbloom.cli.filters.kinds import Seen

#: None kept of u new lines, each with probability q: u is below 3 / q in 95 of 100 cases.
_NONE_KEPT = 3
#: Fewer lines than this are none.
_NO_LINE = 0.5


def is_overfull(seen: Seen) -> bool:
    """Tell whether ``seen``, which keeps all lines, holds more than it was sized for at too high a rate."""
    return bool(seen.num_added > seen.capacity) and not forgets(seen) and Load(seen).rate() > seen.target_fpr


def most_lost(seen: Seen, kept: int, lost: float, dropped: int) -> float:
    """Return how many of ``dropped`` lines may have been new, or 0 where --fpr allows as many.

    ``lost`` were expected beside ``kept``. A full filter keeps nothing that would tell of others: so many
    more may have come at its rate as it is now.
    """
    if not is_overfull(seen):
        return 0.0
    rate, lost = Load(seen).rate(), min(lost, float(dropped))
    most = float(dropped) if rate >= 1.0 else min(float(dropped), lost + _NONE_KEPT * rate / (1.0 - rate))
    return most if most > max(_NO_LINE, seen.target_fpr * (kept + lost)) else 0.0
