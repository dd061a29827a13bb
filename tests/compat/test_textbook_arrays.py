"""Guarantee: arrays of textbook code, whose positions are digests of "seed:item", are read and written."""

from __future__ import annotations

import hashlib

import pytest

from fullbloom import BloomFilter, FormatError, ParameterError, ParameterTypeError
from fullbloom.recipes.textbook import TextbookFilter, positions

# By `printf '0:alice' | sha256sum`; the last digits of these numbers of 78 are 893, 821 and 380.
BY_HAND = {
    "0:alice": "5be0c0a459e03edf0b065281d06bd8c0a0bbddd4a82e5b2d1eb82d97dab4ffa5",
    "1:alice": "4cb3513c5c555820ef3dbf1a726c597e3c1b645a05a3bb4c75e878070447f5cd",
    "2:alice": "41e7cc814029e9bbbcde164473979b1fc5d6167fb88fea9d0bce47aa8fdb9534",
}


def textbook(items: list[str], num_bits: int, num_hashes: int) -> bytearray:
    """Such code, as in many tutorials."""
    bits = bytearray((num_bits + 7) // 8)
    for item in items:
        for seed in range(num_hashes):
            digest = hashlib.sha256(f"{seed}:{item}".encode()).hexdigest()
            index = int(digest, 16) % num_bits
            bits[index // 8] |= 1 << (index % 8)
    return bits


def test_positions_match_the_textbook_formula() -> None:
    assert [int(digest, 16) % 1000 for digest in BY_HAND.values()] == [893, 821, 380]
    assert positions("alice", 1000, 3) == [893, 821, 380]
    whole = hashlib.sha256(b"1:caf\xc3\xa9").digest()
    # The remainder of 32 bytes in base 256, digit by digit.
    rest = 0
    for byte in whole:
        rest = (256 * rest + byte) % 12_345
    assert positions("café", 12_345, 2)[1] == rest
    assert positions(7, 100, 2) == positions("7", 100, 2)
    assert positions("alice", 1000, 2, digest="md5") == [
        int(hashlib.md5(b"%d:alice" % i).hexdigest(), 16) % 1000 for i in range(2)
    ]


@pytest.mark.parametrize(("num_bits", "num_hashes"), [(1, 1), (7, 2), (1000, 7), (95_851, 6)])
def test_a_textbook_array_is_read_and_written(num_bits: int, num_hashes: int) -> None:
    items = [f"item {i}" for i in range(num_bits // 20 + 1)]
    theirs = textbook(items, num_bits, num_hashes)
    read = TextbookFilter(num_bits, num_hashes, bits=theirs)
    assert all(item in read for item in items)
    instance = TextbookFilter(num_bits, num_hashes)
    instance.update(items)
    assert instance.to_bytes() == read.to_bytes() == theirs
    assert instance.fill == sum(byte.bit_count() for byte in theirs) / num_bits
    flags = [bool(theirs[i // 8] >> i % 8 & 1) for i in range(num_bits)]
    assert TextbookFilter(num_bits, num_hashes, bits=flags).to_bytes() == theirs
    # Redis writes the first bit as the most significant one.
    turned = bytes(int(f"{byte:08b}"[::-1], 2) for byte in theirs)
    other = TextbookFilter(num_bits, num_hashes, bits=turned, order="msb")
    assert all(item in other for item in items)
    assert other.to_bytes() == turned


def test_invalid_arrays_are_refused() -> None:
    for bits in (b"", b"\0" * 12, b"\xff" * 13, [True] * 99):
        with pytest.raises(FormatError):
            TextbookFilter(100, 3, bits=bits)
    for arguments in ((0, 3), (3, 0), (-1, 1)):
        with pytest.raises(ParameterError):
            TextbookFilter(*arguments)
    for arguments in ((1.5, 3), ("8", 1), (True, 1)):
        with pytest.raises(ParameterTypeError):
            TextbookFilter(*arguments)
    for options in ({"order": "middle"}, {"digest": "sha7"}, {"digest": "shake_128"}):
        with pytest.raises(ParameterError):
            TextbookFilter(100, 3, **options)
    with pytest.raises(ParameterTypeError, match="one text"):
        TextbookFilter(100, 3).update("abc")


def test_textbook_positions_are_refused_as_a_filters_hash() -> None:
    """A filter hashes a key once; this rule hashes it once for each probe, with the probe's number."""
    instance = BloomFilter(100, hash="sha256", layout="classic", seed=0)
    found = instance.positions("alice")
    assert found != positions("alice", instance.num_bits, instance.num_hashes)[: len(found)]
