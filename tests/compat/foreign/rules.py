"""The rules of other programs' filters, written a second time in Python, from their documents."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from compat.foreign import probes

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The positions of a key's bytes, given bits, hashes, and a seed.
Rule = Callable[..., Iterator[int]]

MASK32, MASK64 = 2**32 - 1, 2**64 - 1
SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


def rotated(x: int, by: int, bits: int) -> int:
    return (x << by | x >> (bits - by)) & ((1 << bits) - 1)


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def murmur32_spark(data: bytes, seed: int) -> int:
    h = seed & MASK32
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, whole, 4)]
    words += [signed(byte, 8) & MASK32 for byte in data[whole:]]
    for word in words:
        h ^= rotated(word * 0xCC9E2D51 & MASK32, 15, 32) * 0x1B873593 & MASK32
        h = (rotated(h, 13, 32) * 5 + 0xE6546B64) & MASK32
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK32
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK32
    return h ^ h >> 16


def murmur128(data: bytes, seed: int = 0) -> tuple[int, int]:
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def scrambled(k1: int, k2: int) -> tuple[int, int]:
        return rotated(k1 * c1 & MASK64, 31, 64) * c2 & MASK64, rotated(
            k2 * c2 & MASK64, 33, 64
        ) * c1 & MASK64

    def final(k: int) -> int:
        k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & MASK64
        k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & MASK64
        return k ^ k >> 33

    h1 = h2 = seed
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        k1, k2 = scrambled(*struct.unpack_from("<QQ", data, at))
        h1 = ((rotated(h1 ^ k1, 27, 64) + h2) * 5 + 0x52DCE729) & MASK64
        h2 = ((rotated(h2 ^ k2, 31, 64) + h1) * 5 + 0x38495AB5) & MASK64
    k1, k2 = scrambled(*struct.unpack("<QQ", data[whole:].ljust(16, b"\0")))
    h1, h2 = h1 ^ k1 ^ len(data), h2 ^ k2 ^ len(data)
    h1 = (h1 + h2) & MASK64
    h2 = (h2 + h1) & MASK64
    h1, h2 = final(h1), final(h2)
    h1 = (h1 + h2) & MASK64
    return h1, (h2 + h1) & MASK64


def sums32(h1: int, h2: int, num_hashes: int, num_bits: int) -> Iterator[int]:
    for i in range(1, num_hashes + 1):
        number = signed((h1 + i * h2) & MASK32, 32)
        yield (~number if number < 0 else number) % num_bits


def spark_v1(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    h1 = murmur32_spark(data, 0)
    return sums32(h1, murmur32_spark(data, h1), num_hashes, num_bits)


def spark(data: bytes, num_bits: int, num_hashes: int, seed: int = 0) -> Iterator[int]:
    h1 = murmur32_spark(data, seed)
    h2 = murmur32_spark(data, h1)
    number = signed(h1, 32) * 2147483647
    for _ in range(num_hashes):
        number = signed((number + signed(h2, 32)) & MASK64, 64)
        yield (~number if number < 0 else number) % num_bits


def guava(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    number, step = murmur128(data)
    for _ in range(num_hashes):
        yield (number & 2**63 - 1) % num_bits
        number = (number + step) & MASK64


def mixed(word: int) -> int:
    """The finalizer of SplitMix64, by which our filters draw the seeds of a pybloomfiltermmap3 filter."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK64
    return word ^ word >> 31


def pybloomfiltermmap3(data: bytes, num_bits: int, num_hashes: int, seed: int = 0) -> Iterator[int]:
    for i in range(num_hashes):
        first, second = murmur128(data, mixed(seed << 32 | i) & MASK32)
        yield (first ^ second) % num_bits


def guava_32(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    first, _ = murmur128(data)
    return sums32(first & MASK32, first >> 32, num_hashes, num_bits)


def parquet(data: bytes, num_bits: int, _num_hashes: int = 8, _seed: int = 0) -> Iterator[int]:
    import xxhash

    h = xxhash.xxh64_intdigest(data)
    block = (h >> 32) * (num_bits // 256) >> 32
    for lane, salt in enumerate(SALT):
        yield block * 256 + lane * 32 + ((h & MASK32) * salt & MASK32) // 2**27


def fnv1a(data: bytes) -> int:
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & MASK64
    return state


def int_of(sum_: int) -> int:
    """A sum as Java's int."""
    return signed(sum_ & MASK32, 32)


#: What each program does to the sum a + i b, from the texts of their programs: Go's operators, and Java's.
REDUCED: dict[str, Callable[[int, int], int]] = {
    "fnv1a-go": lambda sum_, m: sum_ % m,
    "fnv1a-go-32": lambda sum_, m: (sum_ & MASK32) % m,
    "fnv1a-java": lambda sum_, m: (int_of(sum_) & 2**31 - 1) % m,
    "fnv1a-java-abs": lambda sum_, m: abs(int(math.fmod(int_of(sum_), m))),
    "fnv1a-java-floor": lambda sum_, m: int_of(sum_) % m,
    "fnv1a-java-not": lambda sum_, m: (~int_of(sum_) if int_of(sum_) < 0 else int_of(sum_)) % m,
}


def halves(name: str) -> Rule:
    def positions(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
        h = fnv1a(data)
        h1, h2 = h & MASK32, h >> 32 | 1
        for i in range(num_hashes):
            yield REDUCED[name](h1 + i * h2, num_bits)

    return positions


def double(digest: str) -> Rule:
    def positions(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
        found = hashlib.new(digest, data).digest()
        h1 = int.from_bytes(found[:8], "big")
        h2 = int.from_bytes(found[8:16], "big")
        for i in range(num_hashes):
            yield (h1 + i * h2) % num_bits

    return positions


def slices(digest: str) -> Rule:
    def positions(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
        text = hashlib.new(digest, data).hexdigest()
        for i in range(num_hashes):
            yield int(text[8 * i : 8 * i + 8], 16) % num_bits

    return positions


def seeded(digest: str) -> Rule:
    def positions(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
        for i in range(num_hashes):
            yield int(hashlib.new(digest, b"%d:" % i + data).hexdigest(), 16) % num_bits

    return positions


BARE: dict[str, Rule] = {name: halves(name) for name in REDUCED}
for algorithm in ("md5", "sha1", "sha256"):
    for cut, rule in (("double", double), ("slices", slices), ("seeded", seeded)):
        BARE[f"{algorithm}-{cut}"] = rule(algorithm)

RULES: dict[str, Rule] = {
    "spark": spark,
    "spark-v1": spark_v1,
    "guava": guava,
    "guava-32": guava_32,
    "parquet": parquet,
    "pybloomfiltermmap3": pybloomfiltermmap3,
    **probes.RULES,
    **BARE,
    **{f"{name}-msb": rule for name, rule in BARE.items()},
}


def encoded(key: object, key_type: str) -> bytes:
    """The bytes of a key that its program hashes."""
    if key_type in {"any", "long", "hash"} and isinstance(key, int):
        return struct.pack("<q", key)
    if key_type == "int":
        return struct.pack("<i", key)
    if key_type == "float":
        return struct.pack("<f", key)
    if key_type == "double":
        return struct.pack("<d", key)
    if isinstance(key, str):
        return key.encode("utf-16-le" if key_type == "utf-16" else "utf-8")
    assert isinstance(key, bytes)
    return key


def turned(cells: bytes) -> bytes:
    """The same bits, the highest of a byte first."""
    return bytes(int(f"{byte:08b}"[::-1], 2) for byte in cells)


def bits(
    name: str, key_type: str, keys: Iterable[object], num_bits: int, num_hashes: int, seed: int = 0
) -> bytearray:
    """The bits of a filter, the lowest of a byte first."""
    cells = bytearray(-(-num_bits // 8))
    for key in keys:
        for bit in RULES[name](encoded(key, key_type), num_bits, num_hashes, seed):
            cells[bit >> 3] |= 1 << (bit & 7)
    return cells
