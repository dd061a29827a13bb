"""Sorted numbers as messages: hashes in a range, and indexes into a list that both sides know.

Both are Golomb-coded sets of the native core, which checks every byte of a message that it reads. An empty
set is an empty message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fullbloom import theory
from fullbloom._core import GolombSet
from fullbloom.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HashPackets", "decode_indexes", "encode_indexes"]

_HASH_BITS = 64
#: A rate above this gives no shorter codes, and the codec takes rates below 1 only.
_MOST_RATE = 0.5


def _rice_bits(share: float) -> int:
    """Return the best remainder width for gaps of values that occupy this share of their range."""
    return theory.rice_bits(min(share, _MOST_RATE))


class HashPackets(NamedTuple):
    """Packets of hashes, each rounded to one of about ``universe`` values: the same in all elements.

    capacity: most hashes of a packet. The core rounds the number of values up to whole blocks;
    `compute_universe` returns it.
    """

    capacity: int
    universe: int

    @property
    def fpr(self) -> float:
        """Rate at which the codec creates a set with that many values."""
        return min(self.capacity / self.universe, _MOST_RATE)

    def compute_universe(self) -> int:
        """Return the number of values that a hash may have."""
        return GolombSet.build_hashed([], self.fpr, capacity=self.capacity).universe

    def encode(self, hashes: Sequence[int]) -> bytes:
        """Return the packet of these hashes."""
        if not hashes:
            return b""
        rice_bits = _rice_bits(len(hashes) / self.universe)
        return GolombSet.build_hashed(
            hashes, self.fpr, capacity=self.capacity, rice_bits=rice_bits
        ).to_bytes()

    def decode(self, packet: bytes) -> list[int]:
        """Return the values in a packet, ascending and distinct; raise ``FormatError`` for any other."""
        if not packet:
            return []
        values = GolombSet.from_bytes(packet)
        if (values.capacity, values.universe) != (self.capacity, self.compute_universe()):
            raise FormatError(
                f"a packet of {self.capacity} hashes below {self.compute_universe()} was due, "
                f"got one of {values.capacity} below {values.universe}"
            )
        return list(values.values())


def encode_indexes(indexes: Sequence[int], count: int) -> bytes:
    """Return ascending indexes below ``count`` as a message, about log2(count / len(indexes)) + 1.5 bits each."""
    if not indexes:
        return b""
    share = len(indexes) / count
    fpr, capacity = min(share, _MOST_RATE), len(indexes)
    # The set stores floor(hash * universe / 2^64): the smallest hash of an index is its quotient rounded up.
    universe = GolombSet.build_hashed([], fpr, capacity=capacity).universe
    hashes = [-((-index << _HASH_BITS) // universe) for index in indexes]
    return GolombSet.build_hashed(hashes, fpr, capacity=capacity, rice_bits=_rice_bits(share)).to_bytes()


def decode_indexes(message: bytes, count: int) -> list[int]:
    """Return the indexes in a message; raise ``FormatError`` unless all are below ``count``."""
    if not message:
        return []
    # A set takes at most one value per bit, so the list is bounded by the message.
    indexes = list(GolombSet.from_bytes(message).values())
    if indexes and indexes[-1] >= count:
        raise FormatError(f"indexes must be below {count}, got {indexes[-1]}")
    return indexes
