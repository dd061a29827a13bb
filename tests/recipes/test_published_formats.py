"""Guarantee: digests of Squid, filters of Venti and prefix sets of Chromium are the same, bit for bit."""

from __future__ import annotations

import hashlib
import random
import struct
from itertools import pairwise
from typing import Any

import pytest

from fullbloom import FormatError, ParameterError
from fullbloom.recipes.prefix_set import PrefixSet, hash_prefix
from fullbloom.recipes.squid import SquidDigest, hash_request
from fullbloom.recipes.venti import VentiFilter, score

SEED = 1970
#: A digest as Squid 5.7 sent it, after twenty pages; its own icons are in its cache, too.
SQUID = bytes.fromhex(
    "000500030000004800000047000000000000002d0504"
    + "00" * 106
    + "efb6944b2e8460013fb7b7bef413cf0cd990a5f38857"
    "a3a2a4742c5b7c454311df7d51f54fa8c20d197c4e01ff"
)
ICONS = """application arrow_up bomb box bricks bullet_red cd chart_line compress computer_link css cup
database database_table drive_disk film film_key folder folder_table image information layers
layout link music package package_go page_code page_excel page_green page_white
page_white_acrobat page_white_c page_white_cplusplus page_white_flash page_white_magnify
page_white_picture page_white_powerpoint page_white_stack page_white_text page_white_word
page_white_zip page_world photo picture plugin plugin_add script script_gear script_palette"""
HOST = "http://localhost:33128/squid-internal-static/icons"
OBJECTS = [
    *(f"http://127.0.0.1:33180/page/{number}" for number in range(20)),
    f"{HOST}/SN.png",
    *(f"{HOST}/silk/{icon}.png" for icon in ICONS.split()),
]


def test_a_digest_of_squid_is_read_and_written_bit_for_bit() -> None:
    read = SquidDigest.from_bytes(SQUID)
    assert (read.capacity, read.count, read.bits_per_entry, read.num_bits) == (72, 71, 5, 360)
    assert all(url in read for url in OBJECTS)
    written = SquidDigest(72)
    for url in OBJECTS:
        written.add(url)
    assert written.to_bytes() == read.to_bytes() == SQUID


def test_a_digest_has_the_rate_of_five_bits_and_four_positions() -> None:
    draw = random.Random(SEED)
    digest = SquidDigest(10_000)
    for _ in range(10_000):
        digest.add(f"http://example.org/{draw.getrandbits(64)}")
    found = sum(f"http://example.com/{draw.getrandbits(64)}" in digest for _ in range(20_000))
    assert abs(found / 20_000 - 0.0919) < 5 * (0.092 * 0.908 / 20_000) ** 0.5 + 0.003, SEED
    assert hash_request("http://a/", "HEAD") != hash_request("http://a/")
    with pytest.raises(ParameterError, match="method"):
        hash_request("http://a/", "POST")


def build_venti(size: int, num_hashes: int, blocks: list[bytes]) -> bytes:
    """The same bytes by 32-bit words, as the archive has them."""
    words = [0] * (size // 4)
    for block in blocks:
        numbers = [int.from_bytes(block[at : at + 4], "little") for at in range(0, 20, 4)]
        a, b = numbers[1] ^ numbers[3], numbers[2] ^ numbers[4]
        for _ in range(num_hashes):
            at = max(a, 128) & (8 * size - 1)
            words[at >> 5] |= 1 << (at & 31)
            a = (a + b) & 0xFFFFFFFF
    head = struct.pack(">4I", 0xB1004EAD, 1, num_hashes, size)
    return head + struct.pack(f"<{len(words)}I", *words)[16:]


@pytest.mark.parametrize("size", [32, 4096, 1 << 16])
def test_a_filter_of_venti_is_read_and_written_bit_for_bit(size: int) -> None:
    draw = random.Random(SEED)
    num_hashes = draw.randint(1, 32)
    blocks = [score(draw.randbytes(50)) for _ in range(size // 8)]
    golden = build_venti(size, num_hashes, blocks)
    own = VentiFilter(size, num_hashes)
    for block in blocks:
        own.add(block)
    assert own.to_bytes() == golden, SEED
    read = VentiFilter.from_bytes(golden)
    assert read.to_bytes() == golden
    assert all(block in read for block in blocks)


def test_the_bytes_of_a_small_filter_of_venti_stay_as_they_are() -> None:
    own = VentiFilter(32, 3)
    for data in (b"", b"one", b"two"):
        own.add(score(data))
    assert own.to_bytes().hex() == "b1004ead00000001000000030000002080000000000000000008000008000400"


def build_prefixes(prefixes: list[int]) -> bytes:
    """The same bytes, prefix by prefix."""
    index, differences = b"", b""
    run: list[int] = []
    for prefix in [*prefixes, None]:
        if run and (prefix is None or len(run) == 101 or prefix - run[-1] > 0xFFFF):
            index += struct.pack("<II", run[0], len(differences) // 2)
            differences += b"".join(struct.pack("<H", b - a) for a, b in pairwise(run))
            run = []
        if prefix is not None:
            run.append(prefix)
    sizes = struct.pack("<IIIII", 0x864088DD, 3, len(index) // 8, len(differences) // 2, 0)
    data = sizes + index + differences
    return data + hashlib.md5(data, usedforsecurity=False).digest()


@pytest.mark.parametrize("count", [0, 1, 101, 102, 5000, 200_000])
def test_a_prefix_set_is_read_and_written_bit_for_bit(count: int) -> None:
    draw = random.Random(SEED)
    prefixes = sorted(draw.sample(range(1 << 32), count))
    golden = build_prefixes(prefixes)
    own = PrefixSet(draw.sample(prefixes, count))
    assert own.to_bytes() == golden, SEED
    read = PrefixSet.from_bytes(golden)
    assert list(read) == prefixes
    assert len(read) == count
    listed = set(prefixes)
    for prefix in (*prefixes[:50], *prefixes[-50:], *(draw.getrandbits(32) for _ in range(200)), 0, 1 << 32):
        assert (prefix in read) == (prefix in listed)


def test_dense_and_distant_prefixes_end_a_run() -> None:
    assert PrefixSet(range(303)).num_runs == 3
    assert PrefixSet([0, 65_535, 131_071]).num_runs == 2
    assert hash_prefix("evil.example/") in PrefixSet([hash_prefix("evil.example/")])
    for wrong in (-1, 1 << 32):
        with pytest.raises(ParameterError, match="prefix"):
            PrefixSet([wrong])


def forge(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed[: draw.choice([len(changed), draw.randrange(len(changed))])])


def sign(data: bytes) -> bytes:
    """A prefix set whose digest is right whatever else is wrong."""
    return data[:-16] + hashlib.md5(data[:-16], usedforsecurity=False).digest()


@pytest.mark.parametrize("kind", [SquidDigest, VentiFilter, PrefixSet], ids=lambda kind: kind.__name__)
def test_any_other_bytes_are_refused_or_read_as_they_are(kind: Any) -> None:
    draw = random.Random(SEED)
    golden = {
        SquidDigest: SQUID,
        VentiFilter: build_venti(64, 3, [score(b"x")]),
        PrefixSet: build_prefixes([1, 5, 70_000, 4_000_000_000]),
    }[kind]
    for data in (b"", golden[:-1], golden + b"x", golden[:3] + b"x" + golden[4:]):
        with pytest.raises(FormatError):
            kind.from_bytes(data)
    for _ in range(3000):
        data = forge(golden, draw)
        if kind is PrefixSet and draw.random() < 0.8 and len(data) > 16:
            data = sign(data)
        try:
            found = kind.from_bytes(data)
        except FormatError:
            continue
        assert found.to_bytes()[20:] == data[20:] or kind is SquidDigest
        assert kind.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (SquidDigest, [(0,), (-1,), (1 << 31,), (10, 0), (10, 256)]),
        (VentiFilter, [(16, 3), (48, 3), (1 << 30, 3), (64, 0), (64, 33)]),
    ],
)
def test_numbers_out_of_range_are_refused(kind: Any, numbers: list[tuple[int, ...]]) -> None:
    for arguments in numbers:
        with pytest.raises(ParameterError):
            kind(*arguments)
