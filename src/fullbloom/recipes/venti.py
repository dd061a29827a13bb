"""The filter of a Venti archive, in its bytes: positions a + i b from the score of a block.

Venti stores each block under its score, the SHA-1 of its data, and asks a filter before it looks one up on
disk. The words of the score give two numbers a and b; position i is a + i b, modulo 2^32 and then modulo the
number of bits. The first 16 bytes are a header, so positions below 128 become 128. Words have the little end
first, as on the machines that Venti runs on. After the sources of Plan 9 from User Space. `Archive` in
`fullbloom.recipes.blocks` has a filter of ours.

>>> filter_ = VentiFilter(size=4096, num_hashes=8)
>>> filter_.add(score(b"a block"))
>>> score(b"a block") in filter_, score(b"another") in filter_
(True, False)
"""

from __future__ import annotations

import hashlib
import struct

from fullbloom.errors import FormatError, ParameterError

__all__ = ["VentiFilter", "score"]

#: Magic, version, number of hashes, bytes.
_HEAD = struct.Struct("!4I")
_MAGIC, _VERSION = 0xB1004EAD, 1
_WORDS = struct.Struct("<5I")
_MOST_HASHES, _MOST_BYTES = 32, 1 << 29
_MASK = (1 << 32) - 1


def score(data: bytes) -> bytes:
    """Return the score of a block of data, its SHA-1.

    >>> score(b"").hex()
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    """
    return hashlib.sha1(data, usedforsecurity=False).digest()


class VentiFilter:
    """A filter of scores.

    size: bytes, a power of two from 32 to 2^29, of which 16 are a header. num_hashes: 1 to 32. Raises
    ``ParameterError`` for other numbers.
    """

    def __init__(self, size: int, num_hashes: int) -> None:
        if not 2 * _HEAD.size <= size <= _MOST_BYTES or size & (size - 1):
            raise ParameterError(f"size must be a power of two from 32 to 2**29, got {size}")
        if not 1 <= num_hashes <= _MOST_HASHES:
            raise ParameterError(f"num_hashes must be from 1 to {_MOST_HASHES}, got {num_hashes}")
        self.num_hashes = num_hashes
        self._data = bytearray(size)

    @property
    def num_bits(self) -> int:
        """Bits, with those of the header."""
        return 8 * len(self._data)

    def positions(self, block: bytes) -> list[int]:
        """Return the positions of a score of 20 bytes.

        >>> VentiFilter(4096, 3).positions(score(b""))
        [3019, 6504, 9989]
        """
        _, first, second, third, fourth = _WORDS.unpack(block)
        a, b = first ^ third, second ^ fourth
        least = 8 * _HEAD.size
        # As there: a position may still fall into the header by the second remainder.
        return [max((a + i * b) & _MASK, least) % self.num_bits for i in range(self.num_hashes)]

    def add(self, block: bytes) -> None:
        """Add a score."""
        for at in self.positions(block):
            self._data[at >> 3] |= 1 << (at & 7)

    def __contains__(self, block: bytes) -> bool:
        """Return whether the archive may have the block of a score.

        A position in the header counts as set, since there the header takes the place of the bits. Venti
        reads the header's own bits, so it may miss a block.
        """
        return all(at < 8 * _HEAD.size or self._data[at >> 3] >> (at & 7) & 1 for at in self.positions(block))

    def to_bytes(self) -> bytes:
        """Return the filter as Venti writes it to its partition."""
        head = _HEAD.pack(_MAGIC, _VERSION, self.num_hashes, len(self._data))
        return head + bytes(self._data[_HEAD.size :])

    @classmethod
    def from_bytes(cls, data: bytes) -> VentiFilter:
        """Return the filter of a partition. Raises ``FormatError`` for any other bytes."""
        if len(data) < _HEAD.size:
            raise FormatError(f"a filter of Venti has at least {_HEAD.size} bytes, got {len(data)}")
        magic, version, num_hashes, size = _HEAD.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION):
            raise FormatError("the bytes are not a filter of Venti, or one of another version")
        if size != len(data):
            raise FormatError(f"a filter of {size} bytes was due, got {len(data)}")
        try:
            found = cls(size, num_hashes)
        except ParameterError as error:
            raise FormatError(f"Venti has no such filter: {error}") from error
        found._data[_HEAD.size :] = data[_HEAD.size :]
        return found
