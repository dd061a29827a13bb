"""The rows of Arrow's arrays as Python objects, read one by one: what columns are held to."""

from __future__ import annotations

import ctypes
import datetime as dt
import decimal
import struct
from typing import Any

import numpy as np

RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    """ArrowSchema."""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]


class Array(ctypes.Structure):
    """ArrowArray."""


Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]

WHOLE = dict(zip("cCsSiIlL", (1, 1, 2, 2, 4, 4, 8, 8), strict=True))
UNITS = {"s": 10**9, "m": 10**6, "u": 1000, "n": 1}
DAY = 86_400 * 10**9
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Nanoseconds before and after it that Python's calendar has.
CALENDAR = range(-700_000 * DAY, 2_900_000 * DAY)


def number(address: int, width: int, *, signed: bool = True) -> int:
    """The number of ``width`` bytes at ``address``."""
    return int.from_bytes(ctypes.string_at(address, width), "little", signed=signed)


def text(kind: str, array: Array, at: int) -> bytes:
    """Element ``at`` of a column of texts, by offsets or by views."""
    where = array.buffers[1] or 0
    if kind[0] == "v":
        length = number(where + 16 * at, 4)
        offset = number(where + 16 * at + 12, 4)
        return ctypes.string_at(where + 16 * at + 4 if length <= 12 else array.buffers[2] + offset, length)
    width = 8 if kind in "UZ" else 4
    start, end = (number(where + width * (at + more), width) for more in (0, 1))
    return ctypes.string_at((array.buffers[2] or 0) + start, end - start)


def moment(kind: str, array: Array, at: int) -> Any:
    """A date, a time, a timestamp or a duration; None where Python and NumPy have none such."""
    width = 4 if kind in {"tdD", "tts", "ttm"} else 8
    count = number((array.buffers[1] or 0) + width * at, width)
    if kind[:2] == "td":
        return np.datetime64(count if kind == "tdD" else count // 86_400_000, "D")
    nanoseconds = count * UNITS[kind[2]]
    if kind[:2] == "tD" or kind[3:] == ":":
        if count == -(2**63):  # what NumPy takes for none
            return None
        unit = f"{kind[2]}s".replace("ss", "s")
        return np.timedelta64(count, unit) if kind[1] == "D" else np.datetime64(count, unit)
    if nanoseconds % 1000 or nanoseconds not in CALENDAR:
        return None
    known = EPOCH + dt.timedelta(microseconds=nanoseconds // 1000)
    if kind[:2] == "ts":
        return known
    return known.time() if 0 <= nanoseconds < DAY else None


def element(kind: str, array: Array, at: int) -> Any:
    """Element ``at`` of a column that is neither a struct nor a dictionary; None if it is unknown."""
    where = array.buffers[1] or 0
    if kind in WHOLE:
        width = WHOLE[kind]
        return number(where + width * at, width, signed=kind.islower())
    if kind in "efg":
        width = {"e": 2, "f": 4, "g": 8}[kind]
        return struct.unpack(f"<{kind.replace('g', 'd')}", ctypes.string_at(where + width * at, width))[0]
    if kind == "b":
        return number(where + at // 8, 1, signed=False) >> at % 8 & 1
    if kind[0] == "w":
        width = int(kind[2:])
        return ctypes.string_at(where + width * at, width)
    if kind[0] == "d":
        _, scale, bits, *_ = (*map(int, kind[2:].split(",")), 128)
        value = number(where + bits // 8 * at, bits // 8)
        return decimal.Decimal((value < 0, [int(digit) for digit in str(abs(value))], -scale))
    return moment(kind, array, at) if kind[0] == "t" else text(kind, array, at)


def key(kind: Any, array: Array, row: int, values: str | None = None) -> Any:
    """Row ``row`` of a column, or None for a null and for what Python has no object for.

    ``kind`` is a list for a struct with such fields; ``values`` are those of a dictionary.
    """
    at, bits = array.offset + row, array.buffers[0]
    if kind == "n" or (bits and not number(bits + at // 8, 1, signed=False) >> at % 8 & 1):
        return None
    if values is not None:
        return key(values, array.dictionary.contents, element(kind, array, at))
    if isinstance(kind, str) and kind != "+s":
        return element(kind, array, at)
    fields = kind if isinstance(kind, list) else []
    children = (ctypes.POINTER(Array) * len(fields)).from_address(array.children) if fields else []
    result = [key(field, child.contents, at) for field, child in zip(fields, children, strict=True)]
    return None if any(part is None for part in result) else tuple(result)
