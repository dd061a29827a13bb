"""Dumps of RedisBloom whose header lies: no field decides how much memory an add takes."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from cases import for_each
from hostile.limits import MIB, bounded

import fullbloom
from fullbloom import FilterMemoryError, ForeignCuckooFilter, ForeignScalableFilter, FormatError
from fullbloom.formats import detect, open_foreign

#: Where fields of the header of a Bloom filter are: the growth, and the entries of the first layer.
GROWTH, ENTRIES = 16, 64


def scalable(*, growth: int = 2, entries: int | None = None) -> bytes:
    """A dump of a full layer of 100 entries."""
    filter_ = ForeignScalableFilter(100, 0.01)
    number = 0
    while filter_.num_added < 100:
        filter_.add(f"key {number}")
        number += 1
    data = bytearray(filter_.to_foreign())
    struct.pack_into("<I", data, GROWTH, growth)
    if entries is not None:
        struct.pack_into("<Q", data, ENTRIES, entries)
    return bytes(data)


def cuckoo(*, tables: int = 1, buckets: int = 2, size: int = 1, expansion: int = 1, cell: int = 1) -> bytes:
    """A dump of tables whose slots all have one fingerprint."""
    factor = max(expansion, 1)
    slots = sum(buckets * factor**table * size for table in range(tables))
    head = struct.pack("<QQQQHHH", slots, buckets, 0, tables, size, 20, expansion)
    return head + bytes([cell]) * slots


@for_each("entries", [0, 1, 90, 110, 10_000, 2**32, 2**63, 2**64 - 1])
@pytest.mark.timed
def test_entries_that_do_not_fit_the_bits_are_refused(entries: int) -> None:
    with bounded(0), pytest.raises(FormatError, match="entries of layer 1"):
        open_foreign(scalable(entries=entries), "redisbloom")


@for_each("growth", [10_000, 10**8, 2**31, 2**32 - 1])
@pytest.mark.timed
def test_a_stated_growth_takes_no_memory_beyond_a_multiple_of_the_file(growth: int) -> None:
    opened = open_foreign(scalable(growth=growth))
    for each in (opened, opened.copy(), fullbloom.loads(opened.to_bytes())):
        with bounded(0), pytest.raises(FilterMemoryError, match="max_bytes"):
            each.update(f"more {i}" for i in range(100))
        assert each.nbytes == 144


@for_each("expansion", [2**13, 2**15])
@pytest.mark.timed
def test_a_stated_expansion_takes_no_memory_beyond_a_multiple_of_the_file(expansion: int) -> None:
    opened = open_foreign(cuckoo(buckets=1 << 13, size=2, expansion=expansion))
    with bounded(0), pytest.raises(FilterMemoryError, match="max_bytes"):
        opened.update(f"more {i}" for i in range(100))
    assert opened.nbytes == 1 << 14


def test_a_limit_that_the_caller_gives_replaces_the_multiple() -> None:
    opened = open_foreign(scalable(growth=10_000), max_bytes=8 * MIB)
    opened.update(f"more {i}" for i in range(100))
    assert 1 * MIB < opened.nbytes < 8 * MIB
    direct = ForeignScalableFilter(100, 0.01, expansion=10_000)
    direct.update(f"key {i}" for i in range(200))
    assert direct.num_stages == 2


@for_each("growth", [1, 2, 10, 30])
def test_an_opened_filter_grows_as_one_in_memory_does(growth: int) -> None:
    opened = open_foreign(scalable(growth=growth))
    keys = [f"more {i}" for i in range(20_000 if growth > 1 else 2_000)]
    opened.update(keys)
    assert opened.num_stages > 2
    assert all(opened.contains_many(keys))


@for_each("expansion", [3, 5, 6, 7, 12, 1000, 2**15 - 1, 2**15 + 1, 2**16 - 1])
def test_an_expansion_that_is_no_power_of_two_is_refused(expansion: int) -> None:
    with pytest.raises(FormatError, match=f"its expansion is {expansion}"):
        open_foreign(cuckoo(expansion=expansion), "redisbloom-cuckoo")


@pytest.mark.timed
def test_many_tables_are_read_in_time_that_their_bytes_justify(tmp_path: Any) -> None:
    whole = cuckoo(tables=32_767)
    path = tmp_path / "dump"
    for data in (whole[:38], whole[:-1], whole + b"\1", whole):
        path.write_bytes(data)
        with bounded(len(data)):
            assert (detect(data) == "redisbloom-cuckoo") == (data is whole)
        with bounded(len(data)):
            assert (detect(path) == "redisbloom-cuckoo") == (data is whole)
        if data is not whole:
            for source in (data, path):
                with bounded(len(data)), pytest.raises(FormatError, match="its header states 65534 bytes"):
                    open_foreign(source, "redisbloom-cuckoo")
    with bounded(len(whole)):
        opened = ForeignCuckooFilter.from_foreign(whole)
    with bounded(len(whole)):
        assert opened.to_foreign() == whole
    # Each piece is a tuple of a number and bytes.
    with bounded(len(whole) + 256 * 32_768):
        pieces = list(opened.chunks())
    assert len(pieces) == 32_768
    with bounded(len(whole)):
        assert ForeignCuckooFilter.from_chunks(pieces) == opened
    with bounded(len(whole)):
        assert fullbloom.loads(opened.to_bytes()) == opened
