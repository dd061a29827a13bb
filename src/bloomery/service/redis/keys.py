"""Keys of a request as hashes, held against the limits as the native half does."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

import bloomery
from bloomery.service.failures import Refused

if TYPE_CHECKING:
    from bloomery.service.settings import Limits

_HASH = 8


def hashes(form: str, body: bytes, limits: Limits, seed: int, secret: bytes | None, base: str) -> memoryview:
    """Return a number a key; ``form`` is "lines", a text each, or "hashes", ready ones."""
    if form == "hashes":
        if len(body) % _HASH:
            raise Refused("invalid", f"hashes have {_HASH} bytes each, got {len(body)} bytes")
        _check(len(body) // _HASH, limits)
        return _words(body)
    lines = body.split(b"\n")
    if not lines[-1]:
        lines.pop()
    _check(len(lines), limits)
    keys = [line.removesuffix(b"\r") for line in lines] if b"\r" in body else lines
    longest = max(map(len, keys), default=0)
    if longest > limits.key_bytes:
        text = f"a key of {longest} bytes is longer than {limits.key_bytes}, the most allowed"
        raise Refused("limit", text)
    return memoryview(array("Q", bloomery.hash_many(keys, seed=seed, secret=secret, hash=base)))


def _words(body: bytes) -> memoryview:
    words = array("Q", body)
    if sys.byteorder == "big":
        words.byteswap()
    return memoryview(words)


def _check(keys: int, limits: Limits) -> None:
    if keys > limits.batch_keys:
        raise Refused("limit", f"a request may hold {limits.batch_keys} keys; send them in several")


def packed(answers: bytes) -> bytes:
    r"""Return eight answers a byte, the first in its lowest bit.

    >>> packed(bytes([1, 0, 0, 0, 0, 0, 0, 0, 1]))
    b'\x01\x01'
    """
    missing = -len(answers) % 8
    bits = (answers + bytes(missing))[::-1].translate(_DIGITS)
    return int(bits, 2).to_bytes(len(bits) // 8, "little") if bits else b""


_DIGITS = bytes(49 if number else 48 for number in range(256))
