"""The cells of a filter, read from the bytes of its file: which section holds them, how many, how wide.

A filter's file describes itself (docs/format.md): its parameters say how many cells each section has and how
many bits per cell. So one reader serves every structure, in memory and mapped, and names none of them.

It may import: the standard library, ``fullbloom.errors`` and ``fullbloom._core``.

>>> from fullbloom import CountingBloomFilter
>>> f = CountingBloomFilter(1000)
>>> f.add("cat")
True
>>> [cells] = read_cells(f.to_bytes())
>>> cells.section, cells.width, cells.count_set() == len(f.positions("cat"))
('counters', 4, True)
"""

from __future__ import annotations

import struct
import zlib
from array import array
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fullbloom import _core
from fullbloom.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableSequence, Sequence

__all__ = ["Cells", "Region", "map_cells", "read_cells", "split_regions", "unpack_cells"]

_MAGIC = b"\x89BLOOM\r\n"
_LINE = 64
#: version, variant, scheme, key rule; seed, fingerprint, length; flags, parameters, sections; checksum.
_HEADER = struct.Struct("<4H3QI2H12xI")
_PARAMETER = struct.Struct("<HHIQ")
_SECTION = struct.Struct("<IIQQII")
#: Cells in a multiple of this number end with a byte, whatever their width.
_STEP = 8
#: Bytes that are counted at a time.
_CHUNK = 1 << 18
#: Bytes that are unpacked at a time: a millisecond.
_PART = 1 << 14
_WORD = 64
#: Items of a view, by the bits that they hold.
_ITEMS: tuple[tuple[Literal["B", "H", "I", "Q"], int], ...] = (("B", 8), ("H", 16), ("I", 32), ("Q", _WORD))
#: Sections that hold positions of data, not cells.
_TABLES = frozenset({"apart", "levels", "note", "offsets", "quotient_offsets", "ribbons", "shards"})
#: Cells of one cache line of bits.
_LINE_BITS = 8 * _LINE

Parameters: TypeAlias = dict[str, int]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the cells of a section are arranged."""

    shape: tuple[int, ...]
    width: int
    #: Filters whose lines lie side by side.
    planes: int = 1
    #: Buckets of four fingerprints are stored as the rank of their sorted low digits, and their high parts.
    semi_sorted: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Cells ``first`` to ``last`` - 1, ``set`` of which are not zero."""

    first: int
    last: int
    set: int

    @property
    def fill(self) -> float:
        """The share of cells that are not zero."""
        return self.set / (self.last - self.first)


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one section: unsigned numbers of ``width`` bits, side by side, the lowest bits first.

    ``named`` is False if the section has no cells of one width, such as codes of variable length. Its single
    bits are then its cells.
    """

    #: The section, by its name in docs/format.md.
    section: str
    #: The stage it belongs to, from 0; always 0 for a filter without stages.
    stage: int
    named: bool
    width: int
    #: Number of cells.
    count: int
    data: memoryview
    _layout: _Layout

    def __getitem__(self, cell: int) -> int:
        """Return the value of a cell."""
        if not 0 <= cell < self.count:
            raise IndexError(f"cell must be between 0 and {self.count - 1}, got {cell}")
        bit = cell * self.width
        word = int.from_bytes(self.data[bit >> 3 : (bit + self.width + 7) >> 3], "little")
        return word >> (bit & 7) & ((1 << self.width) - 1)

    def count_set(self, first: int = 0, last: int | None = None) -> int:
        """Count the cells from ``first`` to ``last`` - 1 that are not zero; ``first`` is a multiple of 8.

        Costs one pass over them, about 2 s per GiB of single bits, and 1 MiB of memory.
        """
        last = self.count if last is None else min(last, self.count)
        step = max(_CHUNK // self.width, 1) * _STEP
        return sum(self._count_chunk(start, min(start + step, last)) for start in range(first, last, step))

    def _count_chunk(self, first: int, last: int) -> int:
        bits = (last - first) * self.width
        start = first * self.width >> 3
        value = int.from_bytes(self.data[start : start + ((bits + 7) >> 3)], "little")
        if bits & 7:
            value &= (1 << bits) - 1
        # Every bit of a cell is folded into its lowest.
        covered = 1
        while covered < self.width:
            more = min(covered, self.width - covered)
            value |= value >> more
            covered += more
        if self.width > 1:
            value &= _lowest_bits(self.width, last - first)
        return value.bit_count()

    def read_values(self) -> Sequence[int]:
        """Return the values in the order of the file, all at once: for small filters."""
        return _unpack(self.data, self.width, self.count)

    def unpack(self) -> memoryview:
        """Return the values as a read-only view of a copy: an item per cell, in the shape of the structure.

        Items are as wide as the cells need: 8, 16, 32 or 64 bits. A structure of several planes has a row for
        each, a table a row for each bucket. Costs 15 to 500 ns per cell.
        """
        layout = self._layout
        if layout.semi_sorted:
            values = _decode_buckets(self.data, layout.shape[0], layout.width)
            return _view(values, layout.shape)
        data: bytes | memoryview = self.data
        if layout.planes > 1:  # each plane has every `planes`-th line
            lines = [self.data[start : start + _LINE] for start in range(0, len(self.data), _LINE)]
            data = b"".join(line for plane in range(layout.planes) for line in lines[plane :: layout.planes])
        return _view(_unpack(data, self.width, self.count), layout.shape)


def read_cells(data: bytes | memoryview) -> list[Cells]:
    """Return the cells of each section of a filter's file that has some, without copying them.

    ``data`` is a file that was opened or loaded: only its header is verified here. Raises ``FormatError`` if
    that is damaged or contradicts the length of ``data``.
    """
    view = memoryview(data).toreadonly()
    parameters, sections = _read_tables(view)
    found = []
    for kind, stage, offset, length in sections:
        if kind in _TABLES:
            continue
        cells = view[offset : offset + length]
        rule = _LAYOUTS.get(kind)
        layout = rule(parameters.get(stage, {})) if rule else None
        named = layout is not None and not layout.semi_sorted
        layout = layout or _Layout((8 * length,), 1)
        width, count = (layout.width, prod(layout.shape)) if named else (1, 8 * length)
        if width < 1 or count < 0 or count * width > 8 * length:
            raise FormatError(f"{length} bytes of {kind} are too few for {count} cells of {width} bits")
        found.append(Cells(kind, stage, named, width, count, cells, layout))
    return found


def map_cells(path: str) -> list[Cells]:
    """Return the cells of a filter's file, which is mapped, not read; see `read_cells`."""
    with Path(path).open("rb") as file:
        return read_cells(memoryview(mmap(file.fileno(), 0, access=ACCESS_READ)))


def unpack_cells(data: bytes) -> memoryview:
    """Return the values of the first section of cells: ``bits()`` of every class calls this."""
    return read_cells(data)[0].unpack()


def split_regions(cells: Cells, regions: int) -> Iterator[Region]:
    """Yield at most ``regions`` regions of equal size, in order, with the cells that are set in each.

    A region is a multiple of 8 cells, the last one what is left.
    """
    size = max(-(-cells.count // (regions * _STEP)), 1) * _STEP
    for first in range(0, cells.count, size):
        last = min(first + size, cells.count)
        yield Region(first, last, cells.count_set(first, last))


def _read_tables(view: memoryview) -> tuple[dict[int, Parameters], list[tuple[str, int, int, int]]]:
    """Return the parameters by stage, and (kind, stage, offset, length) of each section."""
    if len(view) < _LINE or bytes(view[:8]) != _MAGIC:
        raise FormatError("not a fullbloom file")
    *_, length, _flags, parameters, sections, crc = _HEADER.unpack_from(view, 8)
    tables = _LINE + _PARAMETER.size * parameters
    end = tables + _SECTION.size * sections
    padded = -(-end // _LINE) * _LINE
    if length != len(view) or padded > length:
        raise FormatError("the file is cut short, or was replaced while it was read")
    if zlib.crc32(bytes(view[:60]) + bytes(4) + bytes(view[_LINE:padded])) != crc:
        raise FormatError("the file's header is damaged")
    tags, kinds = _names("tag"), _names("kind")
    found: dict[int, Parameters] = {}
    for tag, stage, _, value in _PARAMETER.iter_unpack(view[_LINE:tables]):
        found.setdefault(stage, {})[tags.get(tag, str(tag))] = value
    listed = []
    for kind, stage, offset, size, _, _ in _SECTION.iter_unpack(view[tables:end]):
        if offset + size > length:
            raise FormatError("a section ends beyond the file")
        listed.append((kinds.get(kind, str(kind)), stage, offset, size))
    return found, listed


@cache
def _names(which: str) -> dict[int, str]:
    return {number: name.lower() for number, name, _ in _core.format_numbers()[which]}


def _lay_out_bits(has: Parameters) -> _Layout | None:
    # A set of numbers has a bit for each, so its capacity is the number of its bits.
    count = has.get("num_bits", has.get("capacity"))
    return None if count is None else _Layout((count,), 1)


def _lay_out_counters(has: Parameters) -> _Layout:
    return _Layout((has["num_cells"],), has["cell_bits"])


def _lay_out_planes(has: Parameters) -> _Layout:
    return _Layout((has["planes"], has["lines"] * _LINE_BITS), 1, planes=has["planes"])


def _lay_out_cells(has: Parameters) -> _Layout | None:
    width = has.get("cell_bits")
    if not width:  # cells of a static structure, whose number is in its table of shards
        return None
    return _Layout((has["lines"] * _LINE_BITS // width if "lines" in has else has["num_bits"],), width)


def _lay_out_fingerprints(has: Parameters) -> _Layout:
    shape = (has["num_buckets"], has["bucket_size"])
    return _Layout(shape, has["fingerprint_bits"], semi_sorted=bool(has["semi_sort"]))


def _lay_out_counted(has: Parameters) -> _Layout:
    return _Layout((has["subtables"], has["buckets"], has["bucket_cells"]), has["remainder_bits"] + 2)


#: The arrangement of the cells of a section, by its name; single bits for those that are not here.
_LAYOUTS: dict[str, Callable[[Parameters], _Layout | None]] = {
    "bits": _lay_out_bits,
    "counters": _lay_out_counters,
    "planes": _lay_out_planes,
    "cells": _lay_out_cells,
    "fingerprints": _lay_out_fingerprints,
    "counted_fingerprints": _lay_out_counted,
    "collisions": lambda has: _Layout((has["regions"],), 1),
    "members": lambda has: _Layout((has["num_bits"],), 8),
    "false_positives": lambda has: _Layout((has["num_bits"],), 8),
    "sums": lambda has: _Layout((4 * has["table_cells"],), 128),
}


@cache
def _lowest_bits(width: int, count: int) -> int:
    """Return a number with the lowest bit of each of ``count`` cells."""
    return ((1 << width * count) - 1) // ((1 << width) - 1)


@cache
def _digits(width: int) -> list[bytes]:
    """Return the cells of each byte, for cells that divide one."""
    most = (1 << width) - 1
    return [bytes(byte >> shift & most for shift in range(0, 8, width)) for byte in range(256)]


def _unpack(data: bytes | memoryview, width: int, count: int) -> Sequence[int]:
    """Return the values of the first ``count`` cells, some at a time: other threads may run in between."""
    if width == 8:  # noqa: PLR2004 - a byte
        return bytes(data[:count])
    used = (count * width + 7) >> 3
    if width in {1, 2, 4}:
        digits = _digits(width).__getitem__
        parts = (data[start : min(start + _PART, used)] for start in range(0, used, _PART))
        return b"".join([b"".join(map(digits, part)) for part in parts])[:count]
    values = _new_items(width)
    most = (1 << width) - 1
    shifts = range(0, _STEP * width, width)  # eight cells are as many bytes as a cell has bits
    for start in range(0, used, width):
        block = int.from_bytes(data[start : start + width], "little")
        values.extend([block >> shift & most for shift in shifts])
    del values[count:]
    return values


def _new_items(width: int) -> MutableSequence[int]:
    """Return an empty array of the least items that hold ``width`` bits, a list if no item does."""
    return next((array(item) for item, most in _ITEMS if width <= most), [])


@cache
def _nibbles() -> list[tuple[int, ...]]:
    """Return the four low digits of a semi-sorted bucket, by their rank."""
    return sorted(combinations_with_replacement(range(16), 4), key=lambda four: four[::-1])


def _decode_buckets(data: memoryview, buckets: int, width: int) -> Sequence[int]:
    """Return the fingerprints of semi-sorted buckets: 12 bits of rank, then four high parts."""
    ranks, high = _nibbles(), width - 4
    values = _new_items(width)
    bits = 12 + 4 * high
    for bucket in range(buckets):
        first, last = bucket * bits >> 3, ((bucket + 1) * bits + 7) >> 3
        packed = int.from_bytes(data[first:last], "little") >> (bucket * bits & 7)
        rank = packed & 0xFFF
        if rank >= len(ranks):
            raise FormatError(f"bucket {bucket} has a rank of {rank}, of {len(ranks)}; the file is damaged")
        packed >>= 12
        for slot, low in enumerate(ranks[rank]):
            values.append((packed >> slot * high & ((1 << high) - 1)) << 4 | low)
    return values


def _view(values: Sequence[int], shape: tuple[int, ...]) -> memoryview:
    """Return a read-only view of values."""
    if isinstance(values, bytes):
        return memoryview(values).cast("B", shape)
    if isinstance(values, array):
        item = next(item for item, _ in _ITEMS if item == values.typecode)
        return memoryview(values.tobytes()).cast(item, shape)
    raise FormatError(f"the cells do not fit items of {_WORD} bits")
