"""Keys of a request as hashes, held against the limits as the native half does."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

from fullbloom.service.engine import hash_body

if TYPE_CHECKING:
    from fullbloom.service.settings import Limits


def hashes(
    form: str, body: bytes, limits: Limits, seed: int, secret: bytes | None, base: str
) -> tuple[memoryview, str]:
    """Return a number a key, and what the body held: "one" key or "many"."""
    found, what = hash_body(
        form,
        body,
        seed=seed,
        secret=secret,
        hash=base,
        most_keys=limits.batch_keys,
        key_bytes=limits.key_bytes,
    )
    words = array("Q", bytes(found))
    if sys.byteorder == "big":
        words.byteswap()
    return memoryview(words), what


def packed(answers: bytes) -> bytes:
    r"""Return eight answers a byte, the first in its lowest bit.

    >>> packed(bytes([1, 0, 0, 0, 0, 0, 0, 0, 1]))
    b'\x01\x01'
    """
    missing = -len(answers) % 8
    bits = (answers + bytes(missing))[::-1].translate(_DIGITS)
    return int(bits, 2).to_bytes(len(bits) // 8, "little") if bits else b""


_DIGITS = bytes(49 if number else 48 for number in range(256))
