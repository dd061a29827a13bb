"""Read and write the bit arrays of textbook code, whose k positions are digests of ``"seed:item"``.

Tutorials show a Bloom filter in twenty lines: probe i of a text is ``sha256(f"{i}:{text}")`` as a whole
number, modulo the number of bits. :func:`positions` computes these, and :class:`TextbookFilter` reads such an
array, so that you can check the data of such code, and the code itself.

It is not a ``hash=`` of :class:`~fullbloom.BloomFilter`. That class computes one 64-bit hash per key and all
positions from it, so that scalars, batches, files and other machines agree; this rule needs k digests of the
text, each with a different number in front. Every lookup costs k digests, some 0.5 us each. To migrate to a
:class:`~fullbloom.BloomFilter`, add the keys to a new one: an array does not contain its keys.

>>> f = TextbookFilter(1000, num_hashes=7)
>>> f.add("alice")
>>> "alice" in f, "bob" in f
(True, False)
>>> positions("alice", num_bits=1000, num_hashes=3)
[893, 821, 380]
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from fullbloom.errors import FormatError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Order", "TextbookFilter", "positions"]

#: Which bit of a byte is the first: the least significant, as in Python code, or the most, as in Redis.
Order = Literal["lsb", "msb"]


def positions(item: object, num_bits: int, num_hashes: int, digest: str = "sha256") -> list[int]:
    """Return the positions of ``item``, for each i below k.

    ``int(sha256(f"{i}:{item}").hexdigest(), 16) % num_bits``.

    item: converted as such code does, ``str(item)`` in UTF-8; so 1 and "1" are the same item, unlike keys
    elsewhere. digest: any name that ``hashlib.new`` knows. Positions may repeat. Raises ``ParameterError``
    unless num_bits and num_hashes are at least 1, and for an unknown digest. Costs k digests.

    >>> positions("alice", 1000, 2, digest="md5")
    [105, 293]
    """
    _check(num_bits, num_hashes)
    try:
        return [
            int.from_bytes(hashlib.new(digest, f"{i}:{item}".encode(), usedforsecurity=False).digest())
            % num_bits
            for i in range(num_hashes)
        ]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"digest must be a name that hashlib knows, got {digest!r} ({error})") from None


class TextbookFilter:
    """A bit array of textbook code: ``in``, ``add`` and the bytes.

    num_bits, num_hashes: m and k. bits: the array, as bytes of eight bits each or as flags; empty by default.
    order: which bit of a byte comes first. digest: as for :func:`positions`. Raises ``ParameterError`` for
    numbers below 1, ``FormatError`` for an array of another length, or with bits set beyond the last.
    """

    def __init__(
        self,
        num_bits: int,
        num_hashes: int,
        *,
        bits: bytes | bytearray | memoryview | Iterable[bool] | None = None,
        order: Order = "lsb",
        digest: str = "sha256",
    ) -> None:
        positions("", num_bits, num_hashes, digest)
        if order not in ("lsb", "msb"):
            raise ParameterError(f"order must be 'lsb' or 'msb', got {order!r}")
        self.num_bits, self.num_hashes, self.order, self.digest = num_bits, num_hashes, order, digest
        self._bits = bytearray(-(-num_bits // 8))
        if bits is not None:
            self._set_all(bits)

    def _set_all(self, bits: bytes | bytearray | memoryview | Iterable[bool]) -> None:
        if not isinstance(bits, (bytes, bytearray, memoryview)):
            flags = list(bits)
            if len(flags) != self.num_bits:
                raise FormatError(f"there must be {self.num_bits} flags, got {len(flags)}")
            for at in (at for at, flag in enumerate(flags) if flag):
                self._set(at)
            return
        data = bytes(bits)
        if len(data) != len(self._bits):
            raise FormatError(f"{self.num_bits} bits take {len(self._bits)} bytes, got {len(data)}")
        self._bits[:] = data
        if any(self._get(at) for at in range(self.num_bits, 8 * len(data))):
            raise FormatError(
                f"bits beyond the last of {self.num_bits} are set; check the order {self.order!r}"
            )

    def _place(self, at: int) -> tuple[int, int]:
        return at // 8, 1 << (at % 8 if self.order == "lsb" else 7 - at % 8)

    def _get(self, at: int) -> bool:
        byte, mask = self._place(at)
        return bool(self._bits[byte] & mask)

    def _set(self, at: int) -> None:
        byte, mask = self._place(at)
        self._bits[byte] |= mask

    def _positions(self, item: object) -> list[int]:
        return positions(item, self.num_bits, self.num_hashes, self.digest)

    def __contains__(self, item: object) -> bool:
        return all(map(self._get, self._positions(item)))

    def add(self, item: object) -> None:
        """Set the bits of ``item``."""
        for at in self._positions(item):
            self._set(at)

    def update(self, items: Iterable[object]) -> None:
        """Add many items; a single text is refused instead of being split into characters."""
        if isinstance(items, (str, bytes)):
            raise ParameterTypeError("update takes many items, got one text; use add()")
        for item in items:
            self.add(item)

    def to_bytes(self) -> bytes:
        """Return the array."""
        return bytes(self._bits)

    @property
    def fill(self) -> float:
        """Share of set bits; :func:`fullbloom.theory.estimate_items` estimates the items from them."""
        return int.from_bytes(self._bits).bit_count() / self.num_bits

    def __repr__(self) -> str:
        return f"TextbookFilter({self.num_bits}, num_hashes={self.num_hashes}, fill={self.fill:.3g})"


def _check(num_bits: int, num_hashes: int) -> None:
    for name, number in (("num_bits", num_bits), ("num_hashes", num_hashes)):
        if type(number) is not int:
            raise ParameterTypeError(f"{name} must be a whole number, got {number!r}")
        if number < 1:
            raise ParameterError(f"{name} must be at least 1, got {number}")
