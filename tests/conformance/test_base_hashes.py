"""A base hash is the function of its name, on every path, in every domain, and part of the filter it made."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import xxhash
from cases import for_each
from compat import key_oracle
from support import HASHES, SECRET

import fullbloom

WORD = 2**64 - 1
KEYS: list[Any] = [
    "",
    "a",
    "schlüssel",
    "x" * 1000,
    b"\xff",
    0,
    -1,
    2**63,
    2**70,
    1.5,
    (),
    ("a", (1, 2.5)),
    "𝄞" * 100,
]


def mix(x: int) -> int:
    """The finalizer of SplitMix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def fnv1a(data: bytes) -> int:
    """FNV-1a of 64 bits."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & WORD
    return state


def turn(x: int, by: int, bits: int) -> int:
    """Rotate to the left."""
    return (x << by | x >> bits - by) & 2**bits - 1


def murmur32(data: bytes) -> int:
    """MurmurHash3_x86_32 with seed 0."""
    h, low = 0, 2**32 - 1
    for start in range(0, len(data), 4):
        block = data[start : start + 4]
        k = int.from_bytes(block, "little") * 0xCC9E2D51 & low
        h ^= turn(k, 15, 32) * 0x1B873593 & low
        if len(block) == 4:
            h = turn(h, 13, 32) * 5 + 0xE6546B64 & low
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor & low
    return h


def murmur128(data: bytes) -> int:
    """The first half of MurmurHash3_x64_128 with seed 0."""
    c1, c2, h1, h2 = 0x87C37B91114253D5, 0x4CF5AD432745937F, 0, 0
    for start in range(0, len(data), 16):
        block = data[start : start + 16]
        k1, k2 = (int.from_bytes(half, "little") for half in (block[:8], block[8:]))
        h1 ^= turn(k1 * c1 & WORD, 31, 64) * c2 & WORD
        if len(block) == 16:
            h1 = (turn(h1, 27, 64) + h2) * 5 + 0x52DCE729 & WORD
        h2 ^= turn(k2 * c2 & WORD, 33, 64) * c1 & WORD
        if len(block) == 16:
            h2 = (turn(h2, 31, 64) + h1) * 5 + 0x38495AB5 & WORD
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = h1 + h2 & WORD
    h2 = h2 + h1 & WORD
    halves = []
    for half in (h1, h2):
        h = half
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
            h = (h ^ h >> 33) * factor & WORD
        halves.append(h)
    return sum(halves) & WORD


def base(name: str, data: bytes) -> int:
    """The word of a base hash."""
    own = {"fnv1a": lambda: mix(fnv1a(data)), "murmur3-32": lambda: mix(murmur32(data))}
    own |= {"murmur3-128": lambda: murmur128(data), "xxh64": lambda: xxhash.xxh64_intdigest(data)}
    if name in own:
        return own[name]()
    return int.from_bytes(hashlib.new(name, data).digest()[:8], "little")


def compute(name: str, key: Any, seed: int) -> int:
    """The hash of a key by the rule of docs/keys.md."""
    domain, data = key_oracle.canonical(key)
    moved = seed ^ (domain * 0x9E3779B97F4A7C15 & WORD)
    word = base(name, data)
    return mix(word ^ moved) if moved else word


@for_each("seed", [0, 7, WORD])
@for_each("name", HASHES[1:])
def test_base_hashes_match_their_reference_functions(name: str, seed: int) -> None:
    wanted = [compute(name, key, seed) for key in KEYS]
    assert [fullbloom.hash_key(key, seed=seed, hash=name) for key in KEYS] == wanted
    assert fullbloom.hash_many(KEYS, seed=seed, hash=name) == wanted
    numbers = np.array([0, 1, -1, 2**62], np.int64)
    columns = [
        numbers,
        numbers.astype(float),
        np.array(["a", "schlüssel", ""], object),
        np.array(["a", "bc"]),
    ]
    columns += [np.array([b"a", b"bc"]), numbers.view("datetime64[s]")]
    for column in columns:
        singly = [fullbloom.hash_key(key, seed=seed, hash=name) for key in column.tolist()]
        if column.dtype.kind == "M":
            singly = [fullbloom.hash_key(key, seed=seed, hash=name) for key in column]
        assert fullbloom.hash_many(column, seed=seed, hash=name).tolist() == singly, column.dtype


def test_base_hashes_match_around_every_block_length() -> None:
    data = bytes(range(256)) * 2
    for name in HASHES[1:]:
        for length in [*range(70), 127, 128, 129, 300]:
            assert fullbloom.hash_key(data[:length], hash=name) == compute(name, data[:length], 0), (
                name,
                length,
            )


def test_the_default_base_hash_is_the_first() -> None:
    for key in KEYS:
        assert fullbloom.hash_key(key, seed=3, hash=HASHES[0]) == fullbloom.hash_key(key, seed=3)
    assert fullbloom.BloomFilter(100).hash == HASHES[0]


@for_each("layout", ["classic", "blocked", "split", "partitioned", "two-block"])
@for_each("name", HASHES)
def test_a_filter_keeps_its_hash(name: str, layout: str) -> None:
    instance = fullbloom.BloomFilter(1000, 0.01, layout=layout, hash=name, seed=5)
    instance.update(KEYS)
    by_hash = fullbloom.BloomFilter(1000, 0.01, layout=layout, hash=name, seed=5)
    by_hash.add_hashed(fullbloom.hash_many(KEYS, seed=5, hash=name))
    singly = fullbloom.BloomFilter(1000, 0.01, layout=layout, hash=name, seed=5)
    for key in KEYS:
        singly.add(key)
    assert instance.to_bytes() == singly.to_bytes()
    assert instance == by_hash  # whose file records ready hashes, not the types of keys
    opened = fullbloom.loads(instance.to_bytes())
    assert (opened.hash, instance.info()["hash"]) == (name, name)
    assert all(opened.contains_many(KEYS))
    assert all(key in opened for key in KEYS)
    assert opened == instance
    assert opened | instance == instance
    assert opened.to_bytes() == instance.to_bytes()
    frozen = instance.freeze(keys=KEYS)
    again = fullbloom.loads(frozen.to_bytes())
    assert all(again.contains_many(KEYS))
    assert all(key in again for key in KEYS)


def test_filters_with_different_base_hashes_are_not_combined() -> None:
    one, other = (fullbloom.BloomFilter.with_shape(1000, 7, hash=name) for name in ("md5", "sha1"))
    with pytest.raises(fullbloom.IncompatibleFilters, match=r"hash \(md5 and sha1\)"):
        one.merge(other)
    assert one != other


def test_a_secret_is_refused_with_another_base_hash() -> None:
    for make in (
        lambda: fullbloom.BloomFilter(100, hash="md5", secret=SECRET),
        lambda: fullbloom.BloomFilter.with_shape(100, 7, hash="md5", secret=SECRET),
        lambda: fullbloom.hash_key("a", hash="md5", secret=SECRET),
        lambda: fullbloom.hash_many(["a"], hash="md5", secret=SECRET),
    ):
        with pytest.raises(fullbloom.ParameterError, match="SipHash"):
            make()
