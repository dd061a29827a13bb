"""Sets of hash digits that machines exchange to find duplicates, in about log2(universe / size) + 2 bits.

Each partition sends the leading digits of its keys' hashes to their owners, sorted and compressed as by Elias
and Fano: low bits as they are, high bits as the positions of ones. A dense set is a bitmap. Integers of a
small range are digits themselves, exact in one round. An owner answers which digits occur more
than once (Sanders, Schlag and Mueller, "Communication efficient algorithms for fundamental big data
problems", 2013). Needs NumPy, which pyarrow's and Dask's users have.

>>> import numpy as np
>>> here, there = Collector(bits=16), Collector(bits=16)
>>> here.add(np.array([1 << 48, 5 << 48], np.uint64))
>>> there.add(np.array([5 << 48, 9 << 48], np.uint64))
>>> parts = [(sent, repeated) for one in (here, there) for _, sent, repeated in one.split()]
>>> decode(find_repeated(parts, bits=16)).tolist()
[5]
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fullbloom.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Size, bits of the universe, low bits.
_HEADER = struct.Struct("<QBB")
#: In place of the low bits: a bitmap of the universe up to the last value.
_BITMAP = 255
_HASH_BITS = 64
#: Values of digits per row, at least, in the first round, and in those of fewer rows: one row of these is a
#: candidate by chance. Four times as many cost each row two bits more.
SPREAD, LATER_SPREAD = 8, 64
#: Rate of the filter of repeated digits.
REPEATED_FPR = 0.001
#: Rows of which a task sorts the digits, about 0.5 GB with all copies, where tasks share a machine.
ROWS_PER_SET = 1 << 24
#: Rows per owner, at most, and owners.
_ROWS_PER_OWNER, _MOST_OWNERS = 1 << 22, 1 << 10
#: Bits of an owner's universe that it marks, in two arrays of 64 MiB; it sorts the digits of a larger one.
_MARKED_BITS = 26
#: Bits of an owner's universe, at least.
_LEAST_OWNED_BITS = 16


class Shape(NamedTuple):
    """How many digits of each hash are sent, and how many of these choose the owner."""

    bits: int
    owner_bits: int


def choose_shape(rows: int, spread: int) -> Shape:
    """Return the shape for so many rows, with at least ``spread`` values of digits per row.

    >>> choose_shape(20_000_000, SPREAD)
    Shape(bits=28, owner_bits=3)
    """
    owners = min(_MOST_OWNERS, max(1, -(-rows // _ROWS_PER_OWNER)))
    return Shape(max(8, math.ceil(math.log2(spread * max(1, rows)))), (owners - 1).bit_length())


def choose_exact_shape(rows: int, values: int) -> Shape | None:
    """Return the shape of digits that are integers of so many consecutive values themselves.

    None if digits of hashes have fewer values in the first round.

    >>> choose_exact_shape(20_000_000, 19_800_000)
    Shape(bits=25, owner_bits=3)
    """
    shape = choose_shape(rows, SPREAD)
    bits = max(8, (values - 1).bit_length())
    if bits > shape.bits:
        return None
    return Shape(bits, min(shape.owner_bits, max(0, bits - _LEAST_OWNED_BITS)))


class Collector:
    """Collects the digits of hashes: ``bits`` of them after the first ``shift``."""

    def __init__(self, *, bits: int, shift: int = 0) -> None:
        self._bits, self._shift = bits, shift
        self._parts: list[Any] = []

    def add(self, hashes: Any) -> None:
        """Add an array of 64-bit hashes."""
        digits = take_digits(hashes, self._bits, self._shift)
        self._parts.append(digits.astype(_choose_type(self._bits)))

    def split(self, owner_bits: int = 0) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield each owner with the set of digits for it, and the set of those that were added repeatedly."""
        if not self._parts:
            return
        digits = np.concatenate(self._parts)
        self._parts.clear()
        digits.sort()
        unique, repeated = _split_repeated(digits)
        rest = self._bits - owner_bits
        starts = np.arange(1 << owner_bits, dtype=np.uint64) << np.uint64(rest)
        places = [[*np.searchsorted(values, starts).tolist(), len(values)] for values in (unique, repeated)]
        for owner, start in enumerate(starts):
            begin, end = places[0][owner : owner + 2]
            if begin == end:
                continue
            again = slice(*places[1][owner : owner + 2])
            base = unique.dtype.type(start)
            yield owner, encode(unique[begin:end] - base, rest), encode(repeated[again] - base, rest)


def read_size(data: bytes) -> int:
    """Return the number of values of `encode` without reading them."""
    return int(_HEADER.unpack_from(data)[0])


def create_marks(count: int) -> Any:
    """Return an array of so many marks, all False."""
    return np.zeros(count, bool)


def read_hashes(hashes: Any) -> Any:
    """Return hashes as an array of unsigned 64-bit integers."""
    return np.asarray(hashes, np.uint64)


def take_digits(hashes: Any, bits: int, shift: int = 0) -> Any:
    """Return ``bits`` digits of an array of 64-bit hashes after the first ``shift``, as 64-bit integers."""
    return ((hashes.view(np.uint64) << np.uint64(shift)) >> np.uint64(_HASH_BITS - bits)).astype(np.int64)


def find_repeated(parts: Iterable[tuple[bytes, bytes]], bits: int) -> bytes:
    """Return the set of digits that occur in several parts, or repeatedly in one; a part is as of `split`."""
    if bits <= _MARKED_BITS:
        return encode(_mark_repeated(parts, bits), bits)
    sent, found = [], []
    for once, again in parts:
        sent.append(_decode_below(once, bits))
        found.append(_decode_below(again, bits))
    if not sent:
        return encode(np.empty(0, _choose_type(bits)), bits)
    digits = np.concatenate(sent)
    digits.sort()
    found.append(_split_repeated(digits)[1])
    return encode(np.unique(np.concatenate(found)), bits)


def _mark_repeated(parts: Iterable[tuple[bytes, bytes]], bits: int) -> Any:
    """Return the repeated digits: in memory for one part and the universe, however many parts there are."""
    is_known, is_repeated = np.zeros(1 << bits, bool), np.zeros(1 << bits, bool)
    for once, again in parts:
        digits = _decode_below(once, bits)
        is_repeated[digits[is_known[digits]]] = True
        is_known[digits] = True
        is_repeated[_decode_below(again, bits)] = True
    return np.flatnonzero(is_repeated).astype(_choose_type(bits))


def encode(values: Any, bits: int) -> bytes:
    """Return sorted, distinct values below ``2**bits`` as bytes: a bitmap if that is shorter."""
    size = len(values)
    low = max(0, bits - max(1, size).bit_length() + 1)
    last = int(values[-1]) + 1 if size else 0
    if size and last <= size * (low + 1) + (1 << (bits - low)):
        marks = np.zeros(last, bool)
        marks[values] = True
        return _HEADER.pack(size, bits, _BITMAP) + np.packbits(marks).tobytes()
    highs = (values >> values.dtype.type(low)).astype(np.int64) + np.arange(size)
    ones = np.zeros(size + (1 << (bits - low)), bool)
    ones[highs] = True
    planes = [
        np.packbits(((values >> values.dtype.type(bit)) & values.dtype.type(1)).astype(bool))
        for bit in range(low)
    ]
    return b"".join(
        [_HEADER.pack(size, bits, low), np.packbits(ones).tobytes(), *(p.tobytes() for p in planes)]
    )


def decode(data: bytes) -> Any:
    """Return the sorted values of `encode` as an array; raise FormatError for other bytes."""
    size, bits, low = _HEADER.unpack_from(data) if len(data) >= _HEADER.size else (0, 0, 1)
    if low == _BITMAP and bits <= _HASH_BITS:
        marked = np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8, offset=_HEADER.size)))
        if len(marked) != size or (size and int(marked[-1]) >> bits):
            raise FormatError(f"a bitmap of {size} values below 2**{bits} has {len(marked)} of them")
        return marked.astype(_choose_type(bits))
    plane = -(-size // 8)
    if not low <= bits <= _HASH_BITS or bits - low > size.bit_length():
        raise FormatError("the bytes are not a set of hash digits")
    places = size + (1 << (bits - low))
    upper = -(-places // 8)
    if len(data) != _HEADER.size + upper + low * plane:
        raise FormatError(f"a set of {size} hash digits has other bytes than these {len(data)}")
    content = np.frombuffer(data, np.uint8, offset=_HEADER.size)
    ones = np.flatnonzero(np.unpackbits(content[:upper], count=places))
    if len(ones) != size:
        raise FormatError(f"a set of {size} hash digits has {len(ones)} of them")
    kind = _choose_type(bits)
    values = (ones - np.arange(size)).astype(kind) << kind(low)
    for bit in range(low):
        begin = upper + bit * plane
        ones_of_bit = np.unpackbits(content[begin : begin + plane], count=size).astype(kind)
        values |= ones_of_bit << kind(bit)
    return values


def _decode_below(data: bytes, bits: int) -> Any:
    """Return the values of `encode`; raise FormatError if the greatest is not below ``2**bits``."""
    values = decode(data)
    if len(values) and int(values[-1]) >> bits:
        raise FormatError(f"a set of hash digits below 2**{bits} has the value {values[-1]}")
    return values


def _split_repeated(digits: Any) -> tuple[Any, Any]:
    """Return the distinct ones of sorted digits, and those that occur repeatedly."""
    is_first = np.ones(len(digits), bool)
    is_first[1:] = digits[1:] != digits[:-1]
    return digits[is_first], np.unique(digits[~is_first])


def _choose_type(bits: int) -> Any:
    return np.uint32 if bits <= 32 else np.uint64  # noqa: PLR2004 - sorting half the bytes takes half the time


def join(answers: Iterable[tuple[int, bytes]], bits: int, owner_bits: int) -> Any:
    """Return the digits of all owners' answers as one array of signed 64-bit integers."""
    parts = [
        decode(data).astype(np.int64) | np.int64(owner << (bits - owner_bits)) for owner, data in answers
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
