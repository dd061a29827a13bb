"""Guarantee: dumps of RedisBloom are read, continued and written byte for byte; lies are refused."""

from __future__ import annotations

import copy
import pickle
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import for_each

import fullbloom
from fullbloom import (
    FilterFull,
    FilterMemoryError,
    ForeignCuckooFilter,
    ForeignScalableFilter,
    FormatError,
    IncompatibleFilters,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
)
from fullbloom.formats import detect, open_foreign
from fullbloom.formats.conversion import convert

#: Of RESERVE a 0.01 100 and ADD x, by RedisBloom.
HEADER = bytes.fromhex(
    "0100000000000000 01000000 05000000 02000000 9000000000000000 8004000000000000"
    "0100000000000000 7b14ae47e17a743f e9862fb2350e2640 08000000 6400000000000000 00"
)
WORD = 2**64 - 1
#: Seed, and hashes of RedisBloom for it: of a key, and of the key with the first as seed.
SEED = 0xC6A4A7935BD1E995
VECTORS = {
    "": (0x1AB11EA5A7B2C56E, 0xBBDDCB5AB56DD547),
    "a": (0x4292CEE227B9150A, 0x7E9B527031F50C11),
    "hello": (0x5BA5B8A59803E699, 0xA7D451D588A0C2A4),
    "foobarbaz12345678": (0x807D95B6180F603A, 0xC0BFD206FCDFF85C),
}


def murmur64a(data: bytes, seed: int) -> int:
    factor, h = 0xC6A4A7935BD1E995, (seed ^ len(data) * 0xC6A4A7935BD1E995) & WORD
    whole = len(data) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        k = word * factor & WORD
        h = (h ^ (k ^ k >> 47) * factor & WORD) * factor & WORD
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * factor & WORD
    h = (h ^ h >> 47) * factor & WORD
    return h ^ h >> 47


def positions(key: str, bits: int, k: int) -> list[int]:
    h1 = murmur64a(key.encode(), SEED)
    h2 = murmur64a(key.encode(), h1)
    return [(h1 + i * h2 & WORD) % bits for i in range(k)]


def bloom(count: int = 500) -> ForeignScalableFilter:
    made = ForeignScalableFilter(100, 0.01)
    made.update(f"key {i}" for i in range(count))
    return made


def cuckoo(count: int = 500) -> ForeignCuckooFilter:
    made = ForeignCuckooFilter(64, expansion=2)
    made.update(f"key {i}" for i in range(count))
    return made


MADE = [pytest.param(bloom, id="bloom"), pytest.param(cuckoo, id="cuckoo")]


def test_the_hash_and_the_bits_are_those_of_the_program() -> None:
    for key, (first, second) in VECTORS.items():
        assert (murmur64a(key.encode(), SEED), murmur64a(key.encode(), first)) == (first, second)
    assert murmur64a(b"hello", 0) == 0x1E68D17C457BF117
    made = ForeignScalableFilter(100, 0.01)
    cells = bytearray(144)
    for key in [*VECTORS, "x"]:
        assert made.add(key)
        for at in positions(key, 1152, 8):
            cells[at >> 3] |= 1 << (at & 7)
    assert made.to_foreign()[73:] == cells


def test_the_golden_header_leads_back() -> None:
    cells = bytearray(144)
    for at in positions("x", 1152, 8):
        cells[at >> 3] |= 1 << (at & 7)
    theirs = HEADER + cells
    read = open_foreign(theirs)
    assert isinstance(read, ForeignScalableFilter)
    assert ("x" in read, b"x" in read, "y" in read) == (True, True, False)
    assert (read.num_added, read.capacity, read.expansion, read.target_fpr) == (1, 100, 2, 0.01)
    assert read.to_foreign() == theirs
    own = ForeignScalableFilter(100, 0.01)
    own.add("x")
    assert own == read
    assert list(own.chunks()) == [(1, HEADER), (145, bytes(cells))]
    still = ForeignScalableFilter(100, 0.01, scaling=False)
    assert (still.nbytes, still.expansion, still.to_foreign()[12]) == (120, None, 13)
    shape = struct.pack("<QQQQHHH", 1, 512, 0, 1, 2, 20, 1)
    single = ForeignCuckooFilter(1024)
    single.add("x")
    assert single.to_foreign()[:38] == shape


@pytest.mark.parametrize("make", MADE)
def test_a_dump_is_the_filter(make: Any, tmp_path: Path) -> None:
    made = make()
    assert made.num_stages > 1
    data = made.to_foreign()
    assert detect(data) == made.format
    path = tmp_path / "dump"
    path.write_bytes(data)
    assert detect(path) == made.format
    pieces = list(made.chunks())
    assert b"".join(piece for _, piece in pieces) == data
    assert pieces[0][0] == 1
    for read in (
        open_foreign(data),
        open_foreign(path, made.format),
        fullbloom.open(path),
        type(made).from_chunks(iter(pieces)),
        type(made).from_chunks([*pieces, (0, b"")]),
    ):
        assert type(read) is type(made)
        assert read == made
        assert read.to_foreign() == data
        assert list(read.chunks()) == pieces
        more = [f"more {i}" for i in range(1000)]
        copied = made.copy()
        assert read.add_many(more) == copied.add_many(more)
        assert read.to_foreign() == copied.to_foreign() != data


@pytest.mark.parametrize("make", MADE)
def test_it_is_a_filter_like_any_other(make: Any, tmp_path: Path) -> None:
    made = make()
    keys = [f"key {i}" for i in range(700)]
    found = [key in made for key in keys]
    assert all(found[:500])
    assert made.contains_many(keys) == made.contains_many(iter(keys)) == found
    assert made.contains_many(pa.array([None, *keys])).to_pylist() == [None, *found]
    assert made.contains_many([key.encode() for key in keys]) == found
    path = tmp_path / "own.bloom"
    made.save(path)
    for again in (
        fullbloom.open(path),
        type(made).open(path),
        fullbloom.loads(path.read_bytes()),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
    ):
        assert type(again) is type(made)
        assert again == made
        assert again.to_bytes() == path.read_bytes()
        assert again.add("new") is True
        assert again != made
    assert fullbloom.open(path).path == str(path)
    info = made.info()
    assert (info["format"], info["num_added"], info["nbytes"]) == (made.format, made.num_added, made.nbytes)
    assert 0 < made.fill < 1
    assert 0 < made.fpr() < 0.6
    assert convert(made, made.format) == made.to_foreign()
    assert convert(made, "fullbloom") == made.to_bytes()
    for to in ("spark", "md5-double", "redisbloom" if make is cuckoo else "redisbloom-cuckoo"):
        with pytest.raises(IncompatibleFilters, match="MurmurHash64A"):
            convert(made, to)
    with pytest.raises(IncompatibleFilters, match="MurmurHash64A"):
        convert(fullbloom.BloomFilter(10), made.format)
    for key in (1, 1.5, None, ("a",)):
        with pytest.raises(KeyTypeError):
            made.add(key)
    with pytest.raises(ParameterError, match="without a secret"):
        fullbloom.open(path, secret=bytes(16))
    with pytest.raises(ParameterError, match="key_type must be bytes"):
        open_foreign(made.to_foreign(), key_type="long")
    with pytest.raises(ParameterError, match="num_bits and num_hashes are for bits alone"):
        open_foreign(made.to_foreign(), num_bits=10, num_hashes=2)


def test_estimates_and_counts_follow_the_keys() -> None:
    made = bloom(5000)
    items, deviation = made.approx_count()
    assert abs(items - made.num_added) < 6 * deviation
    absent = sum(made.contains_many([f"absent {i}" for i in range(50_000)]))
    assert absent < 50_000 * 0.01 * 1.3
    full = ForeignScalableFilter(50, 0.01, scaling=False)
    with pytest.raises(FilterFull):
        full.update(f"{i}" for i in range(60))
    table = cuckoo(0)
    assert (table.add("a"), table.add("a"), table.count("a"), table.num_added) == (True, False, 2, 2)
    assert (table.discard("a"), table.discard("a"), table.discard("a"), "a" in table) == (
        True,
        True,
        False,
        False,
    )
    with pytest.raises(KeyError):
        table.remove("a")


def test_pieces_are_at_most_16_mib_and_end_at_layers() -> None:
    made = ForeignScalableFilter(20_000_000, 0.01)
    made.add("x")
    numbers = [number for number, piece in made.chunks() if len(piece) <= 16 << 20]
    assert numbers == [1, 16_777_217, made.nbytes + 1]
    assert made.scan_dump(made.nbytes + 1) == (0, b"")
    held = []

    def streamed() -> Iterator[tuple[int, bytes]]:
        for piece in made.chunks():
            held.append(len(piece[1]))
            yield piece

    assert ForeignScalableFilter.from_chunks(streamed()) == made
    assert len(held) == len(numbers) > 2


def assert_refused(load: Any, match: str | None = None) -> None:
    with pytest.raises(FormatError, match=match):
        load()


@pytest.mark.parametrize("make", MADE)
def test_every_piece_that_lies_is_refused(make: Any) -> None:
    made = make()
    cls, pieces = type(made), list(made.chunks())
    named = f'format "{made.format}"'
    for lost in range(len(pieces)):
        assert_refused(lambda lost=lost: cls.from_chunks(pieces[:lost] + pieces[lost + 1 :]), named)
        assert_refused(lambda lost=lost: cls.from_chunks([*pieces[: lost + 1], *pieces[lost:]]), named)
    assert_refused(lambda: cls.from_chunks(pieces[::-1]), named)
    assert_refused(lambda: cls.from_chunks([]), "no header")
    assert_refused(lambda: cls.from_chunks([*pieces, (0, b""), pieces[-1]]), "ends the dump")
    for number in (-(2**63), -1, 0, 1, 2, pieces[1][0] + 1, 2**63 - 1):
        assert_refused(
            lambda number=number: cls.from_chunks([pieces[0], (number, pieces[1][1]), *pieces[2:]]), named
        )
    number, piece = pieces[-1]
    assert_refused(lambda: cls.from_chunks([*pieces[:-1], (number, piece[1:])]), named)
    assert_refused(lambda: cls.from_chunks([*pieces[:-1], (number + 1, piece + b"\0")]), named)
    for wrong in (None, [1], [(1,)], [("1", b"")], [(1, "text")], [(2**64, b"")]):
        with pytest.raises(ParameterTypeError):
            cls.from_chunks(wrong)


@pytest.mark.parametrize("make", MADE)
def test_every_length_that_lies_is_refused(make: Any, tmp_path: Path) -> None:
    made = make(60)
    data, path = made.to_foreign(), tmp_path / "lie"
    for cut in (*range(0, len(data), 7), len(data) - 1):
        path.write_bytes(data[:cut])
        assert_refused(lambda cut=cut: open_foreign(data[:cut], made.format), f'format "{made.format}"')
        assert_refused(lambda: open_foreign(path, made.format), f'format "{made.format}"')
        # A cut can have the length of a format that does not record the type of its keys.
        with pytest.raises((FormatError, ParameterError)):
            fullbloom.open(path)
        # These formats have no magic: a cut dump may have the length that its first bytes state in one.
        assert detect(data[:cut]) in {None, "bip37", "xor8"}
    assert_refused(lambda: open_foreign(data + b"\0", made.format), "follow it")
    with pytest.raises(FilterMemoryError):
        open_foreign(data, max_bytes=made.nbytes - 1)
    with pytest.raises(FilterMemoryError):
        type(made).from_chunks(made.chunks(), max_bytes=made.nbytes - 1)


@pytest.mark.parametrize("make", MADE)
def test_headers_that_lie_are_refused_or_lead_back(make: Any) -> None:
    made = make(60)
    data = made.to_foreign()
    head = len(next(iter(made.chunks()))[1])
    draw, accepted = random.Random(3), 0
    for _ in range(3000):
        lie = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            lie[draw.randrange(head)] = draw.choice([0, 1, 127, 255, draw.randrange(256)])
        try:
            read = open_foreign(bytes(lie), made.format, max_bytes=1 << 30)
        except (FormatError, FilterMemoryError):
            continue
        accepted += 1
        assert read.nbytes <= len(data)
        assert read.to_foreign()[:8] == lie[:8]
    assert accepted


@for_each(
    ("at", "form", "value", "field"),
    [
        (0, "Q", 2, "number of items"),
        (8, "I", 0, "number of layers"),
        (8, "I", 2**32 - 1, "number of layers"),
        (12, "I", 4, "options"),
        (20, "Q", 2**61, "bytes of layer 1"),
        (28, "Q", 1153, "bits of layer 1"),
        (36, "Q", 7, "number of items"),
        (44, "d", 0.0, "error of layer 1"),
        (44, "d", float("nan"), "error of layer 1"),
        (52, "d", 1.0, "bits per entry of layer 1"),
        (60, "I", 9, "number of hashes of layer 1"),
        (64, "Q", 110, "entries of layer 1"),
        (72, "B", 1, "rounding of layer 1"),
    ],
)
def test_errors_name_the_field(at: int, form: str, value: float, field: str) -> None:
    lie = bytearray(HEADER + bytes(144))
    struct.pack_into(f"<{form}", lie, at, value)
    assert_refused(lambda: open_foreign(bytes(lie), "redisbloom"), f'format "redisbloom": .*{field}')


def test_a_header_that_claims_gigabytes_takes_no_memory() -> None:
    import resource

    lie = bytearray(HEADER)
    (per_entry,) = struct.unpack_from("<d", lie, 52)
    entries = 2**43 / per_entry
    struct.pack_into("<QQ", lie, 20, 1 << 40, 1 << 43)
    struct.pack_into("<Q", lie, 64, int(entries))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(lambda: open_foreign(bytes(lie) + bytes(144), "redisbloom"), "states 1099511627776 bytes")
    assert_refused(
        lambda: ForeignScalableFilter.from_chunks([(1, bytes(lie)), (145, bytes(144))]), "ends after 144 of"
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
