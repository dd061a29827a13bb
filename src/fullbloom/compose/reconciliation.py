"""What two sets have not in common: exactly by coded symbols, or nearly, from filters.

- `RatelessEncoder`, `RatelessDecoder`, `StrataEstimator`: exact; messages as long as the difference
- `CharacteristicSketch`: exact up to a bound, in one message of 8 bytes a difference
- `ReconciliationTree`: most of what the other side lacks, from one message, without looking at what is shared
- `count_differences`: how many keys a filter holds that are not here, by taking one's own out
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom._core import (
    BloomFilter,
    CharacteristicSketch,
    Decoded,
    RatelessDecoder,
    RatelessEncoder,
    StrataEstimator,
    hash_many,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "CharacteristicSketch",
    "Decoded",
    "RatelessDecoder",
    "RatelessEncoder",
    "ReconciliationTree",
    "StrataEstimator",
    "TreeSummary",
    "count_differences",
]

_BITS = 64
#: Parts the values under a node from the places of the keys in the tree.
_VALUES = 0x5851F42D4C957F2D


def count_differences(theirs: Any, own: Iterable[object]) -> int:
    """Return about how many keys the filter ``theirs`` holds that are not among ``own``.

    theirs: a filter that removes, in which each key was added once; it is not changed. Each own key that it
    finds is taken out of a copy, and what is left is the answer: exact where no key shares its cells with
    others, else too small by up to the false positives among the own keys that it lacks. The mirrored
    question needs the mirrored filter. Raises ``AttributeError`` for a filter that cannot remove. Costs a
    copy and a removal a key.

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
    """What is sent of a tree: the labels of its nodes and of its leaves, in a filter each."""

    nodes: BloomFilter
    leaves: BloomFilter

    @property
    def nbytes(self) -> int:
        """Bytes of both."""
        return self.nodes.nbytes + self.leaves.nbytes


class ReconciliationTree:
    """A trie of hashes, each node labelled with the xor of what is under it: those that agree need no look.

    One side sends its ``summary()``, the other learns by ``missing()`` which of its own keys the sender
    lacks. A label that is found by accident would hide what is under it, so that only ``correction`` + 1
    labels in a row end the way down. What is listed is missing there for certain; some of what is missing
    is not listed.

    keys: what `hash_many` takes; repeated ones count once. seed, secret: as for filters, the same on both
    sides. Costs some 5 us a key to build and send; looking takes O(differences * log(keys)) steps. Source:
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
        """Return the labels, at these rates of false positives (``leaf_fpr`` is ``fpr`` where it is None).

        Of a missing key the share that is not listed is at least ``leaf_fpr``, and some more by the nodes
        above.
        """
        nodes = [self._label(low, high) for low, high in self._nodes()]
        leaves = [self._label(at, at + 1) for at in range(len(self))]
        made = [
            (nodes, BloomFilter(max(len(nodes), 1), fpr)),
            (leaves, BloomFilter(max(len(leaves), 1), fpr if leaf_fpr is None else leaf_fpr)),
        ]
        for labels, filter_ in made:
            filter_.add_hashed(labels)
        return TreeSummary(*(filter_ for _, filter_ in made))

    def missing(self, summary: TreeSummary, *, correction: int = 3) -> list[int]:
        """Return hashes of keys here that the sender of ``summary`` certainly lacks: most of them."""
        found, ways = [], [(0, len(self), 0)] if self._hashes else []
        while ways:
            low, high, matches = ways.pop()
            if high - low == 1:
                if not summary.leaves.contains_hashed(self._label(low, high)):
                    found.append(self._hashes[low])
                continue
            matches = matches + 1 if summary.nodes.contains_hashed(self._label(low, high)) else 0
            if matches <= correction:
                middle = self._middle(low, high)
                ways += [(low, middle, matches), (middle, high, matches)]
        return sorted(found)

    def _label(self, low: int, high: int) -> int:
        return self._sums[high] ^ self._sums[low]

    def _middle(self, low: int, high: int) -> int:
        """Return where the first bit in which the hashes differ turns to 1."""
        first, last = self._hashes[low], self._hashes[high - 1]
        bit = 1 << ((first ^ last).bit_length() - 1)
        return bisect_left(self._hashes, last & ~(bit - 1) & ((1 << _BITS) - 1), low, high)

    def _nodes(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of all nodes that are no leaves."""
        ways = [(0, len(self))]
        while ways:
            low, high = ways.pop()
            if high - low > 1:
                yield low, high
                middle = self._middle(low, high)
                ways += [(low, middle), (middle, high)]
