"""Sorted numbers as messages: hashes in a range, and indexes into a list that both sides know.

Long lists are Golomb-coded sets of the native core, short ones the same codes without a container; both
decoders check every byte. An empty list is an empty message, any other begins with a byte for its form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom._core import GolombSet
from fullbloom.errors import FormatError, FullbloomError

from .rice import MOST_VALUES, choose_rice_bits, decode_list, encode_list

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HashPackets", "decode_indexes", "encode_indexes"]

_HASH_BITS = 64
#: The core creates sets at rates below 1; a higher rate gives no shorter codes.
_MOST_RATE = 0.5
#: From this number of values on, a container is at most 2 % larger, and the core is ten times as fast.
_LONG = MOST_VALUES + 1
#: Bits of the first byte: the list is a container; a list of indexes names those that are not meant.
_CONTAINER, _OMITTED = 1, 2


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

    def round_hashes(self, hashes: Sequence[int]) -> list[int]:
        """Return the value of each hash."""
        return [hashed * self._universe >> _HASH_BITS for hashed in hashes]

    def encode(self, hashes: Sequence[int]) -> bytes:
        """Return the packet of these ascending hashes."""
        if not hashes:
            return b""
        if len(hashes) < _LONG:
            values = list(dict.fromkeys(self.round_hashes(hashes)))
            return bytes([0]) + encode_list(values, self._universe)
        width = choose_rice_bits(len(hashes), self._universe)
        packet = GolombSet.build_hashed(hashes, self._fpr, capacity=self._capacity, rice_bits=width)
        return bytes([_CONTAINER]) + packet.to_bytes()

    def decode(self, packet: bytes, most: int) -> list[int]:
        """Return the values in a packet, ascending and distinct; raise ``FormatError`` for any other.

        most: values that the packet may have. A value takes 40 bytes here, and a quarter of one in a packet.
        """
        if not packet:
            return []
        if _read_form(packet, _CONTAINER) == 0:
            return decode_list(packet[1:], self._universe, most)
        values = _read_container(packet[1:])
        if values.num_added > most:
            raise FormatError(f"a packet of at most {most} hashes was due, got one of {values.num_added}")
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
    form, listed = 0, indexes
    if 2 * len(indexes) > count:
        meant = set(indexes)
        form, listed = _OMITTED, [index for index in range(count) if index not in meant]
    if len(listed) < _LONG:
        return bytes([form]) + encode_list(listed, count)
    return bytes([form | _CONTAINER]) + _build_container(listed, count)


def decode_indexes(message: bytes, count: int) -> list[int]:
    """Return the indexes in a message; raise ``FormatError`` unless it is one for this ``count``."""
    if not message:
        return []
    form = _read_form(message, _CONTAINER | _OMITTED)
    if form & _CONTAINER:
        packed = _read_container(message[1:])
        if packed.num_added > count:
            raise FormatError(f"{packed.num_added} indexes cannot all be below {count}")
        listed = list(packed.values())
        if listed and listed[-1] >= count:
            raise FormatError(f"values must be below {count}, got {listed[-1]}")
    else:
        listed = decode_list(message[1:], count, count)
    if not form & _OMITTED:
        return listed
    omitted = set(listed)
    return [index for index in range(count) if index not in omitted]


def _read_form(message: bytes, allowed: int) -> int:
    """Return the first byte; raise ``FormatError`` if it has other bits than those allowed."""
    if message[0] & ~allowed:
        raise FormatError(f"a packet must start with a byte up to {allowed}, got {message[0]}")
    return message[0]


def _read_container(data: bytes) -> GolombSet:
    """Return the set in ``data``; raise ``FormatError`` for any other bytes, and for a set under a secret."""
    try:
        return GolombSet.from_bytes(data)
    except FormatError:
        raise
    except FullbloomError as error:
        raise FormatError(f"the container cannot be read: {error}") from error


def _build_container(indexes: Sequence[int], count: int) -> bytes:
    fpr, capacity = len(indexes) / count, len(indexes)
    # The set stores floor(hash * universe / 2^64): the smallest hash of an index is its quotient rounded up.
    universe = GolombSet.build_hashed([], fpr, capacity=capacity).universe
    hashes = [-((-index << _HASH_BITS) // universe) for index in indexes]
    width = choose_rice_bits(capacity, count)
    return GolombSet.build_hashed(hashes, fpr, capacity=capacity, rice_bits=width).to_bytes()
