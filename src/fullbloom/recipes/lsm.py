"""A log-structured store with a filter for each table, and its reads counted.

New entries are in memory. When there are enough, they are merged into the first level, and a level that is
full into the next, which is ``ratio`` times as large. A lookup must try all levels, unless filters say that a
table does not have the key. Bigtable, Cassandra, RocksDB and others work this way.

With ``rates="uniform"`` all filters have the same bits per key. ``rates="monkey"`` gives the same memory to
the levels so that lookups of absent keys read least (`fullbloom.theory.level_fprs`).

After Dayan, Athanassoulis and Idreos, "Monkey: optimal navigable key-value store", SIGMOD 2017.

>>> store = Store(memtable=100, bits_per_key=10)
>>> for number in range(2000):
...     store.put(number, str(number))
>>> store.get(17), store.get(-1), len(store.levels)
('17', None, 3)
>>> store.reads < 3
True
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from fullbloom import BloomFilter, _core, hash_key, theory
from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fullbloom.keys import Key

__all__ = ["Store", "Table"]

#: Stored in place of a value that was deleted, until the last level.
_DELETED: Any = object()
#: A level that is hardly larger than the one before would be merged all the time.
_LEAST_RATIO = 2
#: From this rate on, a filter is not worth its bits.
_NO_FILTER = 0.9


class Table:
    """A table that is never changed, with a filter of its keys at the rate ``fpr``, or without one.

    A rate below what 64-bit hashes allow is raised to that.
    """

    def __init__(self, entries: Mapping[Any, Any], fpr: float) -> None:
        self.entries = entries
        self.filter: BloomFilter | None = None
        if fpr < _NO_FILTER:
            capacity = max(len(entries), 1)
            self.filter = BloomFilter(capacity, max(fpr, _core.least_fpr(capacity)), layout="classic")
            self.filter.update(list(entries))

    def may_contain(self, key: Key) -> bool:
        """Return whether the table must be read for ``key``."""
        return self.filter is None or key in self.filter

    @property
    def fpr(self) -> float:
        """Chance that an absent key reads the table."""
        return 1.0 if self.filter is None else self.filter.fpr()


class Store:
    """Entries in memory, and levels of tables that stand for files on disk.

    memtable: entries in memory, at least 1. ratio: how much larger each level is than the one before, at
    least 2. bits_per_key: memory of all filters, on average. rates: "uniform" or "monkey". Raises
    ``ParameterError`` for other values.
    """

    def __init__(
        self,
        *,
        memtable: int = 1000,
        ratio: int = 4,
        bits_per_key: float = 10.0,
        rates: Literal["uniform", "monkey"] = "monkey",
    ) -> None:
        if memtable < 1 or ratio < _LEAST_RATIO or not 0 < bits_per_key < math.inf:
            raise ParameterError("memtable must be at least 1, ratio 2, and bits_per_key positive and finite")
        if rates not in ("uniform", "monkey"):
            raise ParameterError(f"rates must be 'uniform' or 'monkey', got {rates!r}")
        self.memtable, self.ratio, self.bits_per_key, self.rates = memtable, ratio, bits_per_key, rates
        #: Levels, from the newest and smallest on.
        self.levels: list[Table] = []
        #: Tables read by lookups, and those read in vain.
        self.reads = self.wasted_reads = 0
        self._newest: dict[Any, Any] = {}

    def put(self, key: Key, value: object) -> None:
        """Store ``value``; the ``memtable``-th new entry is merged into the levels.

        Raises ``KeyTypeError`` for a key that the filters do not accept, and then stores nothing, and the
        errors of `flush`.
        """
        hash_key(key)
        self._newest[key] = value
        if len(self._newest) >= self.memtable:
            self.flush()

    def delete(self, key: Key) -> None:
        """Delete ``key``, whether it is there or not."""
        self.put(key, _DELETED)

    def get(self, key: Key) -> Any:
        """Return the newest value, or None; counts the tables that are read."""
        if key in self._newest:
            return _hide(self._newest[key])
        for table in self.levels:
            if table.may_contain(key):
                self.reads += 1
                if key in table.entries:
                    return _hide(table.entries[key])
                self.wasted_reads += 1
        return None

    def flush(self) -> None:
        """Merge the entries in memory into the levels.

        Raises the errors of a filter's construction, such as ``FilterMemoryError``; nothing has changed then.
        """
        levels, moving, at = list(self.levels), self._newest, 0
        while moving:
            if at == len(levels):
                levels.append(Table({}, 1.0))
            merged = {**levels[at].entries, **moving}
            if at == len(levels) - 1:
                merged = {key: value for key, value in merged.items() if value is not _DELETED}
            is_full = len(merged) > self._capacity(at)
            levels[at] = self._make_table(at, len(levels), {} if is_full else merged)
            moving = merged if is_full else {}
            at += 1
        # Entries leave their old place only when all tables of the new one exist.
        self.levels, self._newest = levels, {}

    def expect_reads(self) -> float:
        """Return the tables that a lookup of an absent key reads on average: the sum of the rates."""
        return sum(table.fpr for table in self.levels if table.entries)

    @property
    def filter_bits_per_key(self) -> float:
        """Bits of all filters for each entry in the levels."""
        entries = sum(len(table.entries) for table in self.levels)
        return (
            sum(table.filter.num_bits for table in self.levels if table.filter) / entries if entries else 0.0
        )

    def _capacity(self, at: int) -> int:
        return int(self.memtable * self.ratio ** (at + 1))

    def _make_table(self, at: int, num_levels: int, entries: dict[Any, Any]) -> Table:
        capacities = [self._capacity(level) for level in range(num_levels)]
        if self.rates == "uniform":
            capacities, at = [1], 0
        return Table(entries, theory.level_fprs(capacities, self.bits_per_key * sum(capacities))[at])


def _hide(value: Any) -> Any:
    return None if value is _DELETED else value
