"""The compact filters of Bitcoin's blocks, BIP 158: static sets of scripts as Golomb-Rice codes.

>>> from fullbloom.formats.bip158 import BlockFilter
>>> block = bytes.fromhex("43497fd7f826957108f4a30fd9cec3aeba79972084e90ead01ea330900000000")
>>> scripts = BlockFilter.build([b"script one", b"script two"], block)
>>> scripts.match(b"script one"), scripts.match_any([b"another", b"and another"])
(True, False)
>>> len(scripts), BlockFilter(scripts.to_bytes(), block) == scripts
(2, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BlockFilter"]

#: Bytes of a block's hash, and those of them that are the key of SipHash.
HASH_BYTES, KEY_BYTES = 32, 16


class BlockFilter:
    """A set of byte strings, with false positives at a rate of 1 in 784,931.

    data: the bytes of a block's basic filter, all of which are checked. block_hash: the 32 bytes of the
    hash of the block, in the order of the network protocol, which is the reverse of the one that block
    explorers print. Nothing can be added. Raises FormatError, naming the field, ParameterError.
    """

    __slots__ = ("_count", "_data", "_key")

    def __init__(self, data: bytes | bytearray | memoryview, block_hash: bytes) -> None:
        """See the class."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ParameterTypeError(f"data must be bytes, got {type(data).__name__}")
        self._key = _read_key(block_hash)
        self._data = bytes(data)
        self._count = _core.bip158_count(self._data)

    @classmethod
    def build(cls, elements: Iterable[bytes], block_hash: bytes) -> BlockFilter:
        r"""Return the filter of ``elements``; repeated ones count once.

        What belongs into a block's filter is the caller's: BIP 158 leaves out empty scripts and those of
        outputs that begin with OP_RETURN. Raises ParameterTypeError for an element that is not bytes.

        >>> BlockFilter.build([], bytes(32)).to_bytes()
        b'\x00'
        """
        key = _read_key(block_hash)
        return cls(_core.bip158_build(key, list(dict.fromkeys(_read_elements(elements)))), block_hash)

    def __len__(self) -> int:
        """Return the number of distinct elements."""
        return self._count

    def match(self, element: bytes) -> bool:
        """Return True if the set may have ``element``. Decodes the whole set: ask for many at once."""
        return self.match_many([element])[0]

    __contains__ = match

    def match_many(self, elements: Iterable[bytes]) -> list[bool]:
        """Return one result per element, in one pass over the set, without the GIL."""
        return _core.bip158_matches(self._data, self._key, _read_elements(elements))

    def match_any(self, elements: Iterable[bytes]) -> bool:
        """Return True if the set may have any of ``elements``, as a wallet asks before it fetches a block."""
        return any(self.match_many(elements))

    def to_bytes(self) -> bytes:
        """Return the filter's bytes, as nodes send them."""
        return self._data

    def __eq__(self, other: object) -> bool:
        """Compare bytes and keys."""
        return isinstance(other, BlockFilter) and (self._data, self._key) == (other._data, other._key)

    def __hash__(self) -> int:
        """Filters with equal bytes and keys have equal hashes."""
        return hash((self._data, self._key))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as bytes."""
        return type(self), (self._data, self._key.ljust(HASH_BYTES, b"\0"))

    def __repr__(self) -> str:
        """Name the number of elements."""
        return f"BlockFilter({self._count} elements, {len(self._data)} bytes)"


def _read_key(block_hash: bytes) -> bytes:
    if not isinstance(block_hash, bytes):
        raise ParameterTypeError(f"block_hash must be bytes, got {type(block_hash).__name__}")
    if len(block_hash) != HASH_BYTES:
        raise ParameterError(f"block_hash must have {HASH_BYTES} bytes, got {len(block_hash)}")
    return block_hash[:KEY_BYTES]


def _read_elements(elements: Iterable[bytes]) -> list[bytes]:
    if isinstance(elements, (bytes, bytearray, memoryview, str)):
        raise ParameterTypeError(f"elements must be many, got one {type(elements).__name__}")
    found = list(elements)
    for element in found:
        if not isinstance(element, bytes):
            raise ParameterTypeError(f"an element must be bytes, got {type(element).__name__}")
    return found
