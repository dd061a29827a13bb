"""Finding out that a filter on a server holds more keys than it was sized for.

Only the cells show it, since other clients add keys, too. So an object asks the server for the number of set
bits, or reads some of the counters, now and then: with its first key, and again after at most a sixteenth of
the capacity in new or removed keys of its own, sooner near the capacity.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from fullbloom.engines.redis.protocol.manifest import MODULE
from fullbloom.errors import CapacityWarning

if TYPE_CHECKING:
    from fullbloom.engines.redis.protocol.manifest import Manifest
    from fullbloom.engines.redis.storage.strings import LoadEstimate

#: Parts of the capacity after which the server is asked: the largest part, and the smallest.
_PARTS, _MOST_PARTS = 16, 256
#: The estimate of the keys is within so many deviations in 999 of 1,000 filters.
_DEVIATIONS = 3
#: Frames above the warning: the method of this module, one of the filter's own, and a public one.
_STACK_LEVEL = 4


class LoadWatch:
    """What one client knows of the load of a filter."""

    def __init__(self, name: str, manifest: Manifest) -> None:
        """Watch the filter ``name``."""
        self._name, self._capacity, self._fpr = name, manifest.capacity, manifest.fpr
        # A filter of the server's own grows.
        self._is_watched = manifest.backend != MODULE
        self._due = 1
        self._is_asking = False
        self._has_warned = False
        #: True if the filter was over capacity when the server was asked last.
        self.is_over = False

    def start(self, num_new: int) -> bool:
        """Return whether to ask the server, once this client has added ``num_new`` new keys.

        Of the tasks that add keys together, one asks; it calls `end` when it is done.
        """
        if self._is_asking or not self._is_watched or num_new < self._due:
            return False
        self._is_asking = True
        return True

    def end(self) -> None:
        """Let others ask again."""
        self._is_asking = False

    def take(self, load: LoadEstimate, num_new: int) -> None:
        """Take the server's answer; warn if the filter is over capacity, once."""
        certain = load.keys - _DEVIATIONS * load.keys_sd if math.isfinite(load.keys) else math.inf
        self.is_over = certain > self._capacity and load.fpr > self._fpr
        step = self._capacity // _PARTS
        if load.keys < self._capacity:
            step = min(step, int(self._capacity - load.keys))
        elif not self.is_over:
            step = 0
        self._due = num_new + max(step, self._capacity // _MOST_PARTS, 1)
        if self.is_over and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"filter {self._name!r} holds more keys than its capacity {self._capacity:,}: its "
                f"false-positive rate is {load.fpr:.3g}, above {self._fpr:.3g}; create a larger one",
                CapacityWarning,
                stacklevel=_STACK_LEVEL,
            )

    def forget(self, num_new: int) -> None:
        """Ask the server with the next new key: the filter has other contents."""
        self.is_over = False
        self._due = num_new + 1
