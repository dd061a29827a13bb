"""The key rule, version 1, in plain Python: canonical bytes, XXH3-64 (by the xxhash package), SipHash-1-3.

This is the file another language would translate. It shares no code with the core.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
import uuid
from typing import Any

import numpy as np
import xxhash

TEXT, INTEGER, FLOAT, TUPLE, DATE, TIME, LOCAL_TIMESTAMP, TIMESTAMP, DURATION, DECIMAL = range(10)
GOLDEN_RATIO = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


def canonical(key: Any) -> tuple[int, bytes]:
    """Domain and canonical bytes of a key."""
    if isinstance(key, str):
        return TEXT, key.encode()
    if isinstance(key, (bytes, bytearray, memoryview)):
        return TEXT, bytes(key)
    if isinstance(key, uuid.UUID):
        return TEXT, key.bytes
    if isinstance(key, tuple):
        return TUPLE, b"".join(part_bytes(part) for part in key)
    return number(key)


def number(key: Any) -> tuple[int, bytes]:
    """Domain and canonical bytes of a number, or of a moment."""
    if isinstance(key, int):
        return INTEGER, integer_bytes(int(key))
    if isinstance(key, float):
        return FLOAT, float_bytes(key)
    if isinstance(key, decimal.Decimal):
        return DECIMAL, decimal_bytes(key)
    domain, count = moment(key)
    return domain, integer_bytes(count)


def moment(key: Any) -> tuple[int, int]:
    """Domain and count of a date (in days), a time, a timestamp or a duration (in nanoseconds)."""
    if isinstance(key, (np.datetime64, np.timedelta64)):
        return moment_of_numpy(key)
    day = 86_400 * 10**9
    if isinstance(key, dt.datetime):
        local = (key.toordinal() - dt.date(1970, 1, 1).toordinal()) * day + moment(key.time())[1]
        offset = key.utcoffset()
        return (LOCAL_TIMESTAMP, local) if offset is None else (TIMESTAMP, local - moment(offset)[1])
    if isinstance(key, dt.date):
        return DATE, key.toordinal() - dt.date(1970, 1, 1).toordinal()
    if isinstance(key, dt.time):
        return TIME, (((key.hour * 60 + key.minute) * 60 + key.second) * 10**6 + key.microsecond) * 1000
    if isinstance(key, dt.timedelta):
        return DURATION, key.days * day + (key.seconds * 10**6 + key.microseconds) * 1000
    raise TypeError(type(key).__name__)


def moment_of_numpy(key: Any) -> tuple[int, int]:
    """As ``moment``, for a scalar of NumPy's of a week, a day or a finer unit."""
    units = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
    units |= {"D": 24 * units["h"], "W": 7 * 24 * units["h"]}
    unit, steps = np.datetime_data(key.dtype)
    count = int(key.view("int64")) * steps * units[unit]
    if isinstance(key, np.timedelta64):
        return DURATION, count
    return (DATE, count // units["D"]) if unit in {"D", "W"} else (LOCAL_TIMESTAMP, count)


def decimal_bytes(value: decimal.Decimal) -> bytes:
    """Sign, digits without zeros at their ends, the letter e, exponent."""
    negative, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("not finite")
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short:
        return b"0e0"
    return f"{'-' * negative}{short}e{exponent + len(text) - len(short)}".encode()


def integer_bytes(value: int) -> bytes:
    """8 bytes in the signed 64-bit range, else the shortest two's complement of 9 or more."""
    length = 8
    while not -(1 << (8 * length - 1)) <= value < 1 << (8 * length - 1):
        length += 1
    return value.to_bytes(length, "little", signed=True)


def float_bytes(value: float) -> bytes:
    """IEEE-754 binary64, one zero and one NaN."""
    if math.isnan(value):
        return bytes.fromhex("000000000000f87f")
    return struct.pack("<d", 0.0 if value == 0.0 else value)


def part_bytes(part: Any) -> bytes:
    """One part of a tuple: domain, length in 8 bytes, canonical bytes."""
    domain, data = canonical(part)
    return bytes([domain]) + struct.pack("<Q", len(data)) + data


def hash_bytes(domain: int, data: bytes, seed: int = 0, secret: bytes | None = None) -> int:
    """The 64-bit hash of canonical bytes."""
    if secret is None:
        return xxhash.xxh3_64_intdigest(data, seed ^ (domain * GOLDEN_RATIO & WORD))
    halves = [siphash13(struct.pack("<QBB", seed, domain, half), secret) for half in (0, 1)]
    return siphash13(data, struct.pack("<QQ", *halves))


def hash_key(key: Any, seed: int = 0, secret: bytes | None = None) -> int:
    """The 64-bit hash of a key."""
    return hash_bytes(*canonical(key), seed, secret)


def fingerprint(secret: bytes) -> int:
    """The fingerprint of a secret in a file. The label is frozen: it has the project's first name."""
    return siphash13(b"bloomery secret fingerprint", secret)


def _rotate(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & WORD


def _rounds(v: list[int], count: int) -> None:
    for _ in range(count):
        v[0] = (v[0] + v[1]) & WORD
        v[1] = _rotate(v[1], 13) ^ v[0]
        v[0] = _rotate(v[0], 32)
        v[2] = (v[2] + v[3]) & WORD
        v[3] = _rotate(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & WORD
        v[3] = _rotate(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & WORD
        v[1] = _rotate(v[1], 17) ^ v[2]
        v[2] = _rotate(v[2], 32)


def siphash13(data: bytes, key: bytes) -> int:
    """SipHash with one compression and three finalisation rounds (Aumasson and Bernstein, 2012)."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    padded = data + b"\0" * (7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        _rounds(v, 1)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 3)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
