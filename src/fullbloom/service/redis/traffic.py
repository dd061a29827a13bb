"""What was asked of a filter here: counted in memory, and handed to the registry now and then."""

from __future__ import annotations

import threading


class Traffic:
    """Counters since this node opened the filter; any thread may count."""

    NAMES = ("hits", "misses", "adds", "new")

    def __init__(self) -> None:
        """Begin at zero."""
        self._totals = dict.fromkeys(self.NAMES, 0)
        self._handed = dict.fromkeys(self.NAMES, 0)
        self._one = threading.Lock()

    def looked(self, keys: int, found: int) -> None:
        """Count keys that were looked for."""
        with self._one:
            self._totals["hits"] += found
            self._totals["misses"] += keys - found

    def added(self, keys: int, new: int) -> None:
        """Count keys that were added."""
        with self._one:
            self._totals["adds"] += keys
            self._totals["new"] += new

    def totals(self) -> dict[str, int]:
        """Return the counters."""
        with self._one:
            return dict(self._totals)

    def waiting(self) -> dict[str, int]:
        """Return what was not handed over yet."""
        with self._one:
            return {name: self._totals[name] - self._handed[name] for name in self.NAMES}

    def taken(self) -> dict[str, int]:
        """Return what was not handed over yet, as handed over now; nothing where all of it was."""
        with self._one:
            waiting = {name: self._totals[name] - self._handed[name] for name in self.NAMES}
            self._handed = dict(self._totals)
        return {name: count for name, count in waiting.items() if count}
