"""Keys as bytes that an owner can compare, and lists of them as messages."""

from __future__ import annotations

import math
import operator
import struct
from typing import TYPE_CHECKING, SupportsIndex
from uuid import UUID

from fullbloom.errors import FormatError, KeyTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode_keys", "encode_key", "encode_keys"]

_COUNT = struct.Struct("<QQ")
_LENGTH_BITS = 7
_MORE = 1 << _LENGTH_BITS
_MORE_BYTES = bytes(range(_MORE, 256))


def encode_key(key: object) -> bytes:
    """Return bytes that are equal for equal keys only, by the rule of docs/keys.md: a domain, then the key.

    Raises ``KeyTypeError`` for a key that is not text, bytes, a UUID, an integer or a float.
    """
    if isinstance(key, str):
        return b"t" + key.encode()
    if isinstance(key, (bytes, bytearray, memoryview)):
        return b"t" + bytes(key)
    if isinstance(key, UUID):
        return b"t" + key.bytes
    if isinstance(key, float):
        return b"f" + struct.pack("<d", math.nan if key != key else key + 0.0)  # noqa: PLR0124 - finds NaN
    if isinstance(key, SupportsIndex):
        number = operator.index(key)
        # One bit more than the magnitude: the sign.
        return b"i" + number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    raise KeyTypeError(
        f"an exact comparison takes text, bytes, UUIDs, integers and floats, got {type(key).__name__}; "
        "give encode= a function that returns the bytes of a key"
    )


def encode_keys(keys: Sequence[bytes]) -> bytes:
    """Return distinct keys as a message: their number, their total length, each length, their bytes."""
    if not keys:
        return b""
    lengths = bytearray()
    for key in keys:
        rest = len(key)
        while rest >= _MORE:
            lengths.append(rest % _MORE | _MORE)
            rest >>= _LENGTH_BITS
        lengths.append(rest)
    return b"".join([_COUNT.pack(len(keys), len(lengths)), lengths, *keys])


def decode_keys(message: bytes, most: int) -> list[bytes]:
    """Return the keys in a message; raise ``FormatError`` unless they are distinct and fill it exactly.

    most: keys that the message may have. A short key takes some 100 bytes here, and 3 in a message.
    """
    if not message:
        return []
    if len(message) < _COUNT.size:
        raise FormatError(f"a list of keys has at least {_COUNT.size} bytes, got {len(message)}")
    count, taken = _COUNT.unpack_from(message)
    at = _COUNT.size + taken
    lengths = message[_COUNT.size : at]
    if not 0 < count <= min(taken, most) or taken > len(message) - _COUNT.size:
        raise FormatError(
            f"{count} keys (at most {most}) with lengths of {taken} bytes do not fit in {len(message)} bytes"
        )
    # The last byte of a length is below _MORE.
    if len(lengths.translate(None, _MORE_BYTES)) != count:
        raise FormatError(f"the lengths of {taken} bytes are not those of {count} keys")
    keys: list[bytes] = []
    length = shift = 0
    for byte in lengths:
        length |= byte % _MORE << shift
        shift += _LENGTH_BITS
        if length > len(message) - at:
            raise FormatError("a key ends beyond its message")
        if byte < _MORE:
            keys.append(message[at : at + length])
            at += length
            length = shift = 0
    if shift or at != len(message):
        raise FormatError(f"{count} keys must fill {len(message)} bytes, got {len(keys)} keys to byte {at}")
    if len(set(keys)) != count:
        raise FormatError("a list of keys holds a key twice")
    return keys
