"""Sorted numbers as messages: hashes in a range, and indexes into a list that both sides know.

Both are Golomb-coded sets of the native core, which checks every byte of a message that it reads. An empty
set is an empty message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import theory
from fullbloom._core import GolombSet
from fullbloom.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HashPackets", "decode_indexes", "encode_indexes"]

_HASH_BITS = 64
#: A rate above this gives no shorter codes, and the codec takes rates below 1 only.
_MOST_RATE = 0.5
#: The least width of a remainder that the codec takes.
_LEAST_RICE_BITS = 1
#: First byte of a message of indexes: whether it lists those meant, or all others.
_LISTED, _OMITTED = b"\x00", b"\x01"


def _rice_bits(share: float) -> int:
    """Return the best remainder width for gaps of values that occupy this share of their range."""
    return max(theory.rice_bits(min(share, _MOST_RATE)), _LEAST_RICE_BITS)


class HashPackets:
    """Packets of hashes, each rounded to one of ``universe`` values: the same in all elements.

    capacity: most hashes of a packet. values: least number of values; the core rounds it up to whole blocks.
    """

    def __init__(self, capacity: int, values: int) -> None:
        self._capacity = capacity
        self._fpr = min(capacity / values, _MOST_RATE)
        self._universe = GolombSet.build_hashed([], self._fpr, capacity=capacity).universe

    @property
    def universe(self) -> int:
        """Number of values that a hash may have."""
        return self._universe

    def encode(self, hashes: Sequence[int]) -> bytes:
        """Return the packet of these hashes."""
        if not hashes:
            return b""
        rice_bits = _rice_bits(len(hashes) / self._universe)
        return GolombSet.build_hashed(
            hashes, self._fpr, capacity=self._capacity, rice_bits=rice_bits
        ).to_bytes()

    def decode(self, packet: bytes) -> list[int]:
        """Return the values in a packet, ascending and distinct; raise ``FormatError`` for any other."""
        if not packet:
            return []
        values = GolombSet.from_bytes(packet)
        if (values.capacity, values.universe) != (self._capacity, self._universe):
            raise FormatError(
                f"a packet of {self._capacity} hashes below {self._universe} was due, "
                f"got one of {values.capacity} below {values.universe}"
            )
        return list(values.values())


def encode_indexes(indexes: Sequence[int], count: int) -> bytes:
    """Return ascending indexes below ``count`` as a message: those listed, or all others if these are fewer.

    Takes about log2(count / listed) + 1.5 bits per listed index.
    """
    if not indexes:
        return b""
    if 2 * len(indexes) <= count:
        return _LISTED + _encode_list(indexes, count)
    meant = set(indexes)
    return _OMITTED + _encode_list([index for index in range(count) if index not in meant], count)


def decode_indexes(message: bytes, count: int) -> list[int]:
    """Return the indexes in a message; raise ``FormatError`` unless it is one for this ``count``."""
    if not message:
        return []
    listed = list(GolombSet.from_bytes(message[1:]).values()) if len(message) > 1 else []
    if listed and listed[-1] >= count:
        raise FormatError(f"indexes must be below {count}, got {listed[-1]}")
    if message[:1] == _LISTED:
        return listed
    if message[:1] != _OMITTED:
        raise FormatError(f"a message of indexes must start with 0 or 1, got {message[0]}")
    omitted = set(listed)
    return [index for index in range(count) if index not in omitted]


def _encode_list(indexes: Sequence[int], count: int) -> bytes:
    if not indexes:
        return b""
    share, capacity = len(indexes) / count, len(indexes)
    fpr = min(share, _MOST_RATE)
    # The set stores floor(hash * universe / 2^64): the smallest hash of an index is its quotient rounded up.
    universe = GolombSet.build_hashed([], fpr, capacity=capacity).universe
    hashes = [-((-index << _HASH_BITS) // universe) for index in indexes]
    return GolombSet.build_hashed(hashes, fpr, capacity=capacity, rice_bits=_rice_bits(share)).to_bytes()
