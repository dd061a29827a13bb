"""Cache digests in the bytes of Squid: the four words of an MD5 digest as positions.

`SquidDigest` reads what a Squid proxy publishes at ``/squid-internal-periodic/store_digest``, and writes the
same. The key of an object is the MD5 digest of the number of the request's method and of its URL; its four
words, big end first, are the positions, modulo the number of bits. Bits of a byte count from the least
significant. `fullbloom.recipes.digests` has digests with our own hash, which need half the bits.

>>> digest = SquidDigest(capacity=1000)
>>> digest.add("http://example.org/")
>>> "http://example.org/" in digest, "http://example.com/" in digest
(True, False)
>>> len(digest.to_bytes())
753
"""

from __future__ import annotations

import hashlib
import struct

from fullbloom.errors import FormatError, ParameterError

__all__ = ["SquidDigest", "hash_request"]

#: The control block: version, least version that can read it, capacity, objects added, objects deleted, bytes
#: of the mask, bits per object, hashes; the rest of 128 bytes is reserved.
_BLOCK = struct.Struct("!HHIIIIBB106x")
_VERSION, _LEAST_VERSION = 5, 3
_WORDS = struct.Struct("!4I")
_MOST_BITS_PER_ENTRY = 255
_MOST_CAPACITY = (1 << 31) - 1
#: The methods that Squid caches, by the numbers that go into a key.
_METHODS = {"GET": 1, "HEAD": 4}


def hash_request(url: str | bytes, method: str = "GET") -> bytes:
    """Return the key of a request, 16 bytes. Raises ``ParameterError`` for another method than GET and HEAD.

    >>> hash_request("http://www.example.com/").hex()
    'f3299be15c55cda929c4ad1fbc90f5c2'
    """
    if method not in _METHODS:
        raise ParameterError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    data = url.encode() if isinstance(url, str) else url
    return hashlib.md5(bytes([_METHODS[method]]) + data, usedforsecurity=False).digest()


class SquidDigest:
    """A digest of the objects of a Squid cache.

    capacity: objects. bits_per_entry: bits for each, 5 in Squid's configuration by default, which gives a
    rate of 9.2 %. Raises ``ParameterError`` for numbers out of range.
    """

    def __init__(self, capacity: int, bits_per_entry: int = 5) -> None:
        if not 1 <= capacity <= _MOST_CAPACITY:
            raise ParameterError(f"capacity must be from 1 to {_MOST_CAPACITY}, got {capacity}")
        if not 1 <= bits_per_entry <= _MOST_BITS_PER_ENTRY:
            raise ParameterError(f"bits_per_entry must be from 1 to 255, got {bits_per_entry}")
        self.capacity, self.bits_per_entry = capacity, bits_per_entry
        self._mask = bytearray(-(-capacity * bits_per_entry // 8))
        #: Objects added, and deleted since: Squid counts these and leaves their bits.
        self.count = self.deleted = 0

    @property
    def num_bits(self) -> int:
        """Bits of the mask, a multiple of 8."""
        return 8 * len(self._mask)

    def positions(self, key: bytes) -> list[int]:
        """Return the four positions of a key of 16 bytes, as `hash_request` computes it."""
        return [word % self.num_bits for word in _WORDS.unpack(key)]

    def add(self, url: str | bytes, method: str = "GET") -> None:
        """Add an object."""
        for at in self.positions(hash_request(url, method)):
            self._mask[at >> 3] |= 1 << (at & 7)
        self.count += 1

    def __contains__(self, url: str | bytes) -> bool:
        """Return whether the cache probably has the object that a GET of ``url`` returns."""
        return all(self._mask[at >> 3] >> (at & 7) & 1 for at in self.positions(hash_request(url)))

    def to_bytes(self) -> bytes:
        """Return the digest as Squid sends it: 128 bytes, then the mask."""
        head = _BLOCK.pack(
            _VERSION,
            _LEAST_VERSION,
            self.capacity,
            self.count,
            self.deleted,
            len(self._mask),
            self.bits_per_entry,
            _WORDS.size // 4,
        )
        return head + bytes(self._mask)

    @classmethod
    def from_bytes(cls, data: bytes) -> SquidDigest:
        """Return the digest that a Squid sent. Raises ``FormatError`` for any other bytes."""
        if len(data) < _BLOCK.size:
            raise FormatError(f"a digest of Squid has at least {_BLOCK.size} bytes, got {len(data)}")
        version, least, capacity, count, deleted, size, bits, hashes = _BLOCK.unpack_from(data)
        if least > _VERSION or version < _LEAST_VERSION:
            raise FormatError(f"the digest has version {version}, and version {least} is its oldest reader")
        mask = data[_BLOCK.size :]
        # Before the mask is allocated: all of it must be there.
        if size != len(mask) or bits == 0 or size != -(-capacity * bits // 8) or hashes != _WORDS.size // 4:
            raise FormatError(
                f"a digest of {capacity} objects, {bits} bits each, {hashes} hashes and a mask of {size} "
                f"bytes is not one of Squid, or not whole: {len(mask)} bytes follow"
            )
        digest = cls(capacity, bits)
        digest._mask[:] = mask
        digest.count, digest.deleted = count, deleted
        return digest
