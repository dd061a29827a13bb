"""Buffers and records: every array of NumPy, array.array, memoryview and ctypes that some bytes describe."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
from driver import Input, fuzz

import fullbloom  # after the driver, whose hooks it needs

FILTER = fullbloom.CountingBloomFilter(4000)
KINDS = "bBhHiIqQefdgFD?SUVOMmT"
FIELDS = ["i4", "S3", "U2", "f8", "V2", "(2,)i2", "M8[s]", "m8[ms]", "?", "S0", "O", "U0"]
UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "25s", "7D"]
OBJECTS = ["a", 1, 2.5, b"x", None, ("t", 1)]
CASTS = "bBhHiIlLqQnNfd?c"


def dtype(source: Input) -> np.dtype[Any]:
    """A type of items, sizes of 0, swapped bytes and records included."""
    if source.below(6) == 0:
        fields = [
            (source.choice(["a", "b", "é", "c d"]) + str(i), source.choice(FIELDS))
            for i in range(source.below(4))
        ]
        return np.dtype(fields, align=bool(source.below(2)))
    kind = source.choice(KINDS)
    if kind in "SUV":
        return np.dtype(f"{source.choice('<>=')}{kind}{source.below(12)}")
    if kind in "Mm":
        return np.dtype(f"{kind}8[{source.choice(UNITS)}]")
    if kind == "T":  # texts of any length, missing ones among them or not
        return np.dtypes.StringDType(**source.choice([{}, {"na_object": None}, {"na_object": np.nan}]))
    instance: np.dtype[Any] = np.dtype(kind).newbyteorder(source.choice("<>=|"))
    return instance


def texts(kind: Any) -> list[str | None]:
    """What an array of texts may hold."""
    missing = [None] if hasattr(kind, "na_object") else []
    return ["", "a", "\u00e9", "sixteen letters!", "x" * 300, "\0", *missing]


def numpy(source: Input) -> Any:
    """An array in any shape, stride and order; objects in it are keys."""
    kind = dtype(source)
    rows = source.below(70)
    if kind.hasobject:
        instance = np.zeros(rows, kind)
        if kind.kind in "OT":
            instance[:] = [source.choice(OBJECTS if kind.kind == "O" else texts(kind)) for _ in range(rows)]
    else:
        data = source.take(rows * max(1, kind.itemsize))
        instance = np.zeros(rows, kind)
        if kind.itemsize:
            view = instance.view(np.uint8).reshape(-1)
            view[: len(data)] = np.frombuffer(data, np.uint8)[: len(view)]
            if kind.kind == "U":  # what is no code point, NumPy itself cannot show
                wide = view.view(np.uint32)
                if source.below(4):
                    np.remainder(wide, 0x110000, out=wide)
    return reshape(source, instance, rows)


def reshape(source: Input, instance: Any, rows: int) -> Any:
    """The array in another shape, stride or order, or one field of its records."""
    shape = source.below(12)
    if shape == 0:
        instance = instance.reshape(1, -1)
    elif shape == 1:
        instance = instance[:1].reshape(()) if rows else instance
    elif shape < 6:
        instance = instance[:: (-1, 2, 3, -2)[shape - 2]]
    elif shape == 6:
        instance = np.broadcast_to(instance[:1], (5,)) if rows else instance
    elif shape == 7:
        instance = np.ma.masked_array(instance, False) if instance.dtype.names is None else instance
    elif shape == 8:
        instance.flags.writeable = False
    elif instance.dtype.names:  # the only way to items of no width
        instance = instance[source.choice(instance.dtype.names)]
    return instance


def plain(source: Input) -> Any:
    """What the standard library offers."""
    which = source.below(6)
    if which == 0:
        code = source.choice("bBhHiIlLqQfd")
        width = array.array(code).itemsize
        return array.array(code, source.take(source.below(9) * width).ljust(8 * width, b"\1")[: 8 * width])
    if which == 1:
        return memoryview(source.take(16).ljust(16, b"\0")).cast(source.choice(CASTS))[
            :: source.choice((1, -1, 2))
        ]
    if which == 2:
        return memoryview(bytes(16)).cast("B", (4, 4))
    if which == 3:
        return (
            source.choice(
                [ctypes.c_int, ctypes.c_double, ctypes.c_char, ctypes.c_void_p, ctypes.c_longdouble]
            )
            * 5
        )()
    if which == 4:
        return memoryview(bytearray(source.take(9)))
    return memoryview(np.zeros(source.below(5), dtype(source)) if source.below(2) else b"")


def answers(act: Any, keys: Any) -> Any:
    """The answer, or None where keys are refused."""
    try:
        return act(keys)
    except fullbloom.FullbloomError:
        return None


def target(source: Input) -> None:
    """One input."""
    try:
        keys = numpy(source) if source.below(4) else plain(source)
    except (TypeError, ValueError, BufferError):  # Python or NumPy makes no such thing
        return
    FILTER.clear()
    hashes = answers(fullbloom.hash_many, keys)
    added = answers(FILTER.add_many, keys)
    found = answers(FILTER.contains_many, keys)
    assert (hashes is None) == (added is None) == (found is None)
    answers(FILTER.contains_hashed, keys)
    answers(FILTER.add_hashed, keys)
    if hashes is None:
        return
    assert len(found) == len(hashes) == len(keys)
    assert all(found)
    try:
        single = [fullbloom.hash_key(key) for key in keys]
    except (NotImplementedError, ValueError):  # what Python or NumPy itself cannot hand out
        return
    assert single == [int(hashed) for hashed in hashes]


if __name__ == "__main__":
    fuzz(target)
