"""The difference of two sets: exact, from coded symbols, or approximate, from filters.

- `RatelessEncoder`, `RatelessDecoder`, `StrataEstimator`: exact; messages proportional to the difference
- `CharacteristicSketch`: exact up to a bound, in one message of 8 bytes per difference
- `ReconciliationTree`: most keys that the other side lacks, from one message, without visiting shared keys
- `count_differences`: the number of keys of a filter that are not local, by removing the local keys
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom._core import (
    BloomFilter,
    CharacteristicSketch,
    RatelessDecoder,
    RatelessEncoder,
    SetDifference,
    StrataEstimator,
    hash_many,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "CharacteristicSketch",
    "RatelessDecoder",
    "RatelessEncoder",
    "ReconciliationTree",
    "SetDifference",
    "StrataEstimator",
    "TreeSummary",
    "count_differences",
]

_BITS = 64
#: Seed of the values in node labels, so that they are independent of the positions in the tree.
_VALUES = 0x5851F42D4C957F2D


def count_differences(theirs: Any, own: Iterable[object]) -> int:
    """Return the approximate number of keys in the filter ``theirs`` that are not in ``own``.

    theirs: a filter that supports removal, to which each key was added once; it is not changed. The function
    removes each own key from a copy and returns the number of remaining keys. The result is exact if no key
    shares its cells with others, otherwise too small by up to the number of false positives among the own
    keys that the filter lacks. The opposite difference needs a filter of the other set. Raises
    ``AttributeError`` for a filter that cannot remove. Costs one copy and one removal per key.

    Source: Agarwal and Trachtenberg, "Approximating the number of differences between remote sets", ITW 2006.

    >>> from fullbloom import CountingBloomFilter
    >>> theirs = CountingBloomFilter(1000, fpr=0.001)
    >>> theirs.update(range(500))
    >>> count_differences(theirs, range(20, 500))
    20
    """
    rest = theirs.copy()
    rest.discard_many(list(own))
    left: int = rest.num_added
    return left


@dataclass(frozen=True)
class TreeSummary:
    """The message about a tree: a filter of its node labels and a filter of its leaf labels."""

    nodes: BloomFilter
    leaves: BloomFilter

    @property
    def nbytes(self) -> int:
        """Bytes of both filters."""
        return self.nodes.nbytes + self.leaves.nbytes


class ReconciliationTree:
    """A trie of hashes, each node labelled with the xor of its subtree; equal subtrees are skipped.

    One side sends its ``summary()``; with ``missing()`` the other finds which of its own keys the sender
    lacks. A false positive of a label would hide its subtree, so the descent stops only after ``correction``
    + 1 matching labels in a row. Every listed key is missing there for certain; some missing keys are not
    listed.

    keys: as for `hash_many`; duplicates count once. seed, secret: as for filters, the same on both sides.
    Costs some 5 us per key to build and send; a comparison takes O(differences * log(keys)) steps. Source:
    Byers, Considine, Mitzenmacher, Rost, "Informed content delivery across adaptive overlay networks",
    SIGCOMM 2002.

    >>> here, there = ReconciliationTree(range(2000)), ReconciliationTree(range(5, 2000))
    >>> from fullbloom import hash_key
    >>> found = here.missing(there.summary(fpr=0.001))
    >>> set(found) == {hash_key(number) for number in range(5)}
    True
    """

    def __init__(self, keys: Any, *, seed: int = 0, secret: bytes | None = None) -> None:
        """Hash and sort the keys."""
        hashes = hash_many(keys, seed=seed, secret=secret)
        self._hashes = sorted({int(each) for each in hashes if each is not None})
        self._sums = [0]
        for value in hash_many(self._hashes, seed=_VALUES):
            self._sums.append(self._sums[-1] ^ value)

    def __len__(self) -> int:
        """Return the number of distinct keys."""
        return len(self._hashes)

    def summary(self, *, fpr: float = 0.01, leaf_fpr: float | None = None) -> TreeSummary:
        """Return the labels in filters with these false-positive rates (``leaf_fpr`` defaults to ``fpr``).

        A missing key stays unlisted with a probability of at least ``leaf_fpr``, plus a part from the nodes
        above it.
        """
        nodes = [self._label(low, high) for low, high in self._nodes()]
        leaves = [self._label(at, at + 1) for at in range(len(self))]
        filters = [
            (nodes, BloomFilter(max(len(nodes), 1), fpr)),
            (leaves, BloomFilter(max(len(leaves), 1), fpr if leaf_fpr is None else leaf_fpr)),
        ]
        for labels, filter_ in filters:
            filter_.add_hashed(labels)
        return TreeSummary(*(filter_ for _, filter_ in filters))

    def missing(self, summary: TreeSummary, *, correction: int = 3) -> list[int]:
        """Return the hashes of most local keys that the sender of ``summary`` lacks, and of no others."""
        found, pending = [], [(0, len(self), 0)] if self._hashes else []
        while pending:
            low, high, matches = pending.pop()
            if high - low == 1:
                if not summary.leaves.contains_hashed(self._label(low, high)):
                    found.append(self._hashes[low])
                continue
            matches = matches + 1 if summary.nodes.contains_hashed(self._label(low, high)) else 0
            if matches <= correction:
                middle = self._middle(low, high)
                pending += [(low, middle, matches), (middle, high, matches)]
        return sorted(found)

    def _label(self, low: int, high: int) -> int:
        return self._sums[high] ^ self._sums[low]

    def _middle(self, low: int, high: int) -> int:
        """Return the index at which the first bit that differs between the hashes becomes 1."""
        first, last = self._hashes[low], self._hashes[high - 1]
        bit = 1 << ((first ^ last).bit_length() - 1)
        return bisect_left(self._hashes, last & ~(bit - 1) & ((1 << _BITS) - 1), low, high)

    def _nodes(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of all inner nodes."""
        pending = [(0, len(self))]
        while pending:
            low, high = pending.pop()
            if high - low > 1:
                yield low, high
                middle = self._middle(low, high)
                pending += [(low, middle), (middle, high)]
