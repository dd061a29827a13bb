"""Is this block there, and which block has this key? Filters in front of an archive and of its parts.

`Archive` stores each block of data once, under its hash, as Venti does: a filter says that a block is new
without a lookup in the index on disk. `BlockFilters` has a filter of the keys of each large block, as Grafana
Tempo has one of the traces in each, and returns the few blocks that a key may be in.

>>> archive = Archive({})
>>> [archive.write(data) == archive.write(data) for data in (b"one", b"two")]
[True, True]
>>> archive.written, archive.lookups, archive.skipped
(2, 2, 2)
>>> traces = BlockFilters()
>>> traces.add("block 1", [b"a", b"b"]); traces.add("block 2", [b"c"])
>>> traces.find(b"c")
['block 2']
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fullbloom import BinaryFuseFilter, ScalableBloomFilter

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from fullbloom.keys import Key, Keys

__all__ = ["Archive", "BlockFilters"]


class Archive:
    """Blocks of data by their hash, each stored once, over an index that is slow to look up.

    index: where blocks are by their hash, such as a ``dbm`` file; those that are there are in the archive.
    fpr: share of the new blocks that cost a lookup in the index.
    """

    def __init__(self, index: MutableMapping[bytes, bytes], *, fpr: float = 0.01) -> None:
        self.index = index
        self.filter = ScalableBloomFilter(fpr=fpr)
        self.filter.update(list(index))
        #: Blocks written, lookups in the index, and lookups that the filter saved.
        self.written = self.lookups = self.skipped = 0

    def write(self, data: bytes) -> bytes:
        """Store ``data`` unless it is there; return its hash, by which `read` finds it.

        Raises the errors of the index and of a filter that grows; the block is then not in the archive.
        """
        score = hashlib.sha256(data).digest()
        if score in self.filter:
            self.lookups += 1
            if score in self.index:
                return score
        else:
            self.skipped += 1
        # The filter first: a block that it does not find would be lost, and stored again. A hash without a
        # block costs a lookup.
        self.filter.add(score)
        self.index[score] = data
        self.written += 1
        return score

    def read(self, score: bytes) -> bytes:
        """Return the block of a hash. Raises ``KeyError`` for any other, mostly without a lookup."""
        if score not in self.filter:
            self.skipped += 1
            raise KeyError(score)
        self.lookups += 1
        return self.index[score]


class BlockFilters:
    """A static filter of the keys of each block; blocks are never changed.

    bits: of each fingerprint: a lookup in one block errs once in ``2**bits``, for about 1.13 times as many
    bits per key.
    """

    def __init__(self, *, bits: int = 8) -> None:
        self.bits = bits
        self._filters: dict[str, BinaryFuseFilter] = {}

    def add(self, name: str, keys: Keys) -> None:
        """Add a block with its keys, or replace it."""
        self._filters[name] = BinaryFuseFilter.build(keys, bits=self.bits)

    def remove(self, name: str) -> None:
        """Remove a block, for example after it was merged into another. Raises ``KeyError``."""
        del self._filters[name]

    def find(self, key: Key) -> list[str]:
        """Return the blocks that probably have ``key``, in the order of their addition."""
        return [name for name, keys in self._filters.items() if key in keys]

    @property
    def nbytes(self) -> int:
        """Bytes of all filters."""
        return sum(keys.nbytes for keys in self._filters.values())
