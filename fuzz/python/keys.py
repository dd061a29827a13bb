"""Key objects: whatever Python can make of some bytes is a key with one hash, or a KeyTypeError."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any

from driver import Input, fuzz

import fullbloom  # after the driver, whose hooks it needs

if TYPE_CHECKING:
    from collections.abc import Callable

import numpy as np

FILTERS = [
    fullbloom.BloomFilter(1000),
    fullbloom.BloomFilter(1000, secret=b"sixteen secrets!"),
    fullbloom.CountingBloomFilter(1000),
    fullbloom.ScalableBloomFilter(1000),
]


class Text(str):
    """Not exactly a str."""

    __slots__ = ()


class Number(int):
    """Not exactly an int."""


class Real(float):
    """Not exactly a float."""


class Octets(bytes):
    """Not exactly bytes."""


class Pair(tuple):
    """Not exactly a tuple."""

    __slots__ = ()


class Day(dt.date):
    """Not exactly a date."""


class Moment(dt.datetime):
    """Not exactly a datetime."""


class Zone(dt.tzinfo):
    """A zone with the given offset, or none."""

    def __init__(self, offset: Any) -> None:
        self.offset = offset

    def utcoffset(self, _moment: dt.datetime | None) -> Any:
        """Return the given offset."""
        return self.offset


class Stranger:
    """No key, whatever it says of itself."""

    dtype = "int64"

    def item(self) -> Any:
        """Itself."""
        return self

    def __index__(self) -> int:
        return 5


SCALARS = [
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
    np.float64, np.longdouble, np.complex64, np.bool_,
]  # fmt: skip
FIELDS = ["i4", "S3", "U2", "O", "f8", "V2", "(2,)i2", "M8[s]", "m8[D]", "?", "S0"]
UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as"]
ZONES = [None, None, dt.UTC, dt.timezone(dt.timedelta(hours=-5, minutes=-30)), Zone(dt.timedelta(hours=1)),
         Zone(dt.timedelta(1, 0, -1)), Zone(None)]  # fmt: skip


def text(source: Input) -> str:
    """Any code points, half pairs included."""
    width = source.choice((1, 1, 2, 3))
    units = source.take(width * source.below(40))
    points = (int.from_bytes(units[i : i + width], "little") for i in range(0, len(units), width))
    return "".join(chr(point % 0x110000) for point in points)


#: Records that hold objects, and so perhaps themselves: the collector does not look into them.
HOLDING: list[Any] = []


def record(source: Input, stack: list[Any]) -> Any:
    """A NumPy record; objects in it may be keys, or itself."""
    names = [(f"f{i}", source.choice(FIELDS)) for i in range(source.below(4))]
    value = np.zeros(1, names)
    for name, kind in names:
        if kind == "O":
            value[name][0] = stack[-1] if stack and source.below(3) else value[0]
            HOLDING.append((value, name))
        elif kind[0] in "if?":
            value[name][0] = source.byte()
    return value[0]


def array(source: Input) -> Any:
    """An array of one value or none; arrays are not keys."""
    return np.array(source.byte(), source.choice(["i8", "O", "M8[ns]", "U1"])).reshape(
        source.choice([(), (1,), (1, 1)])
    )


def number(source: Input, edges: list[int]) -> int:
    """One of the edges, or any of 1 to 8 bytes."""
    which = source.below(12)
    return edges[which] if which < len(edges) else source.number(source.choice((1, 2, 4, 8)))


def moment(source: Input) -> Any:
    """A date, a time, a timestamp or a duration: as Python has them, and as NumPy has them in every unit."""
    kind = source.below(8)
    if kind < 2:
        count = number(source, [0, -1, 2**63 - 1, -(2**63), 2**62])
        unit = source.choice(UNITS)
        return np.datetime64(count, unit) if kind else np.timedelta64(count, unit)
    day = 1 + source.number(3, signed=False) % 3_652_059
    if kind == 2:
        return source.choice((dt.date, Day)).fromordinal(day)
    micros = source.number(5, signed=False) % 86_400_000_000
    if kind == 3:
        return dt.timedelta(source.choice((0, day, -day, 999_999_999, -999_999_999)), microseconds=micros)
    clock = (dt.datetime(1, 1, 1) + dt.timedelta(microseconds=micros)).time()  # noqa: DTZ001 - a time of day
    clock = clock.replace(tzinfo=source.choice(ZONES), fold=source.below(2))
    return (
        clock if kind == 4 else source.choice((dt.datetime, Moment)).combine(dt.date.fromordinal(day), clock)
    )


def real(source: Input) -> Any:
    """A decimal of any sign, digits and exponent; or what is no number."""
    if source.below(8) == 0:
        return decimal.Decimal(source.choice(["NaN", "sNaN1", "-Infinity", "Infinity", "-0", "0E+9"]))
    digits = tuple(byte % 10 for byte in source.take(source.below(40)))
    exponent = number(source, [0, -1, 1, 999999999999999999, -1999999999999999997, 6144])
    try:
        return decimal.Decimal((source.below(2), digits, exponent))
    except (decimal.InvalidOperation, OverflowError, ValueError):
        return decimal.Decimal(1)


def unfinished(source: Input, stack: list[Any]) -> Any:
    """A tuple of the last values; or of one value once or twice, nested to about the deepest level."""
    count = source.below(5)
    if source.below(8) == 0 and stack:
        value = stack.pop()
        width = source.choice((1, 1, 2))
        for _ in range(source.choice((1, 3, 10, 40, 63, 64, 65))):
            value = (value,) * width
        return value
    taken = tuple(stack[len(stack) - count :]) if count else ()
    del stack[len(stack) - len(taken) :]
    return Pair(taken) if source.below(8) == 0 else taken


MAKERS: list[Callable[[Input, list[Any]], Any]] = [
    lambda source, _: text(source),
    lambda source, _: source.take(source.below(80)),
    lambda source, _: bytearray(source.take(source.below(20))),
    lambda source, _: memoryview(source.take(24))[:: source.choice((1, 2, -1, 3))],
    lambda source, _: memoryview(bytes(16)).cast(source.choice("bBhiqdfc?lnN")),
    lambda source, _: source.number(source.choice((1, 2, 4, 8, 9, 16, 40))),
    lambda source, _: source.choice((1, -1)) << source.byte() * 5,
    lambda source, _: source.choice((True, False, None, ..., 1j, frozenset(), [], {}, 0.0, -0.0)),
    lambda source, _: float(np.frombuffer(source.take(8).ljust(8, b"\0"), "<f8")[0]),
    lambda source, _: uuid.UUID(bytes=source.take(16).ljust(16, b"\0")),
    unfinished,
    unfinished,
    unfinished,
    lambda source, _: source.choice(SCALARS)(source.byte() % 2 or source.byte() % 120),
    lambda source, _: np.str_(text(source)),
    lambda source, _: np.bytes_(source.take(source.below(9))),
    lambda source, _: moment(source),
    lambda source, _: moment(source),
    lambda source, _: real(source),
    lambda source, _: np.void(source.take(source.below(9)) or b"\0"),
    record,
    lambda source, _: array(source),
    lambda source, _: Text(text(source)),
    lambda source, _: Number(source.number(8)),
    lambda source, _: Real(source.byte()),
    lambda source, _: Octets(source.take(5)),
    lambda _source, _: Stranger(),
]


def read_keys(source: Input) -> list[Any]:
    """The objects that the input describes."""
    stack: list[Any] = []
    while source and len(stack) < 20:
        stack.append(source.choice(MAKERS)(source, stack))
    return stack


def check(filter_: Any, key: Any) -> bool:
    """Hold all ways to hand in ``key`` to each other; False where it is refused, by all of them."""
    try:
        hashed = filter_.hash_key(key) if hasattr(filter_, "hash_key") else fullbloom.hash_key(key)
    except fullbloom.KeyTypeError:
        for act in (filter_.add, filter_.__contains__, lambda key: filter_.update([key])):
            try:
                act(key)
            except fullbloom.KeyTypeError:
                continue
            raise AssertionError("refused by hash_key and taken by another") from None
        return False
    assert 0 <= hashed < 2**64
    filter_.add(key)
    assert key in filter_
    assert filter_.contains_many([key]) == [True]
    return True


def target(source: Input) -> None:
    """One input."""
    filter_ = source.choice(FILTERS)
    keys = read_keys(source)
    good = [key for key in keys if check(filter_, key)]
    assert all(filter_.contains_many(iter(good)))
    assert filter_.contains_many(tuple(good)) == [True] * len(good)
    try:
        filter_.update(keys)
    except fullbloom.KeyTypeError:
        assert len(good) < len(keys)
    if filter_.num_added > 900:
        filter_.clear()
    while HOLDING:
        holder, name = HOLDING.pop()
        holder[name][0] = None


if __name__ == "__main__":
    fuzz(target)
