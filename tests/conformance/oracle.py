"""Naive filters in plain Python, written from the rules in the scheme files and from nothing else.

Slow on purpose: one position at a time, one bit at a time, big integers instead of wrapping words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WORD = 1 << 64

MCG_M = 0xD1342543DE82EF95
COLUMN_M1 = 0xD1342543DE82EF95
COLUMN_M2 = 0xAF251AF3B0F025B5
DOUBLE_M = 0x9E3779B97F4A7C15
SALTS = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)


def fastrange(value: int, size: int) -> int:
    """Map a 64-bit value to ``range(size)`` from its top bits."""
    return value * size // WORD


def mcg(value: int, size: int, k: int) -> list[int]:
    """Scheme 1: k positions of a multiplicative congruential sequence."""
    positions = []
    for _ in range(k):
        positions.append(fastrange(value, size))
        value = value * MCG_M % WORD
    return positions


def _pair(value: int, size: int) -> tuple[int, int]:
    product = value * DOUBLE_M % WORD
    return value % size, (product ^ (product >> 32)) % size


def double(value: int, size: int, k: int) -> list[int]:
    """Scheme 4: (a + i b) mod size."""
    a, b = _pair(value, size)
    return [(a + i * b) % size for i in range(k)]


def enhanced_double(value: int, size: int, k: int) -> list[int]:
    """Scheme 5: a + i b + (i^3 - i) / 6, modulo size (the closed form of the recurrence)."""
    a, b = _pair(value, size)
    return [(a + i * b + (i**3 - i) // 6) % size for i in range(k)]


def _word(value: int, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(value.to_bytes(8, "little"), seed)


def hash_seeded(value: int, size: int, k: int) -> list[int]:
    """Scheme 6: k hashes of the hash."""
    return [fastrange(_word(value, i), size) for i in range(k)]


def sliced(value: int, size: int, k: int) -> list[int]:
    """Scheme 7: slices of 32 bits of one wide hash, or of 64 bits beyond 2^24 positions."""
    if size > 1 << 24:
        return hash_seeded(value, size, k)
    wide = b"".join(_word(value, j).to_bytes(8, "little") for j in range((k + 1) // 2))
    return [int.from_bytes(wide[4 * i : 4 * i + 4], "little") * size >> 32 for i in range(k)]


def triple(value: int, size: int, k: int) -> list[int]:
    """Scheme 8: a + i b + i (i - 1) / 2 c, modulo size."""
    a, b = _pair(value, size)
    product = value * MCG_M % WORD
    c = (product ^ (product >> 32)) % size
    return [(a + i * b + i * (i - 1) // 2 * c) % size for i in range(k)]


def quadratic(value: int, size: int, k: int) -> list[int]:
    """Scheme 9: a + i b + i^2, modulo size."""
    a, b = _pair(value, size)
    return [(a + i * b + i * i) % size for i in range(k)]


def odd_step(value: int, size: int, k: int) -> list[int]:
    """Scheme 10: a + i b, modulo size, b made odd before it is reduced."""
    product = value * DOUBLE_M % WORD
    b = ((product ^ (product >> 32)) | 1) % size
    return [(value + i * b) % size for i in range(k)]


SEQUENCES: dict[str, Callable[[int, int, int], list[int]]] = {
    "mcg": mcg,
    "double": double,
    "enhanced-double": enhanced_double,
    "seeded": hash_seeded,
    "sliced": sliced,
    "triple": triple,
    "quadratic": quadratic,
    "odd-step": odd_step,
}


def columns(value: int, num_bits: int, k: int) -> list[int]:
    """Scheme 2: one 512-bit line, k/4 distinct positions in each of its four columns of 128 bits."""
    line = fastrange(value, num_bits // 512)
    g, g2 = value * COLUMN_M1 % WORD, value * COLUMN_M2 % WORD
    positions = []
    for j in range(4):
        first = (g >> (57 - 7 * j)) & 127
        chosen = [first]
        step = max((g >> (29 - 7 * j)) & 127, 1)
        if k >= 8:
            chosen.append(first ^ step)
        if k >= 12:
            e = 1 + min((g2 >> (57 - 7 * j)) & 127, 125)
            chosen.append(first ^ (e + 1 if e >= step else e))
        assert len(set(chosen)) == k // 4
        # Column j is word j (its first 64 bits) and word j + 4.
        positions += [512 * line + 64 * (j if p < 64 else j + 4) + p % 64 for p in chosen]
    return positions


def parquet(value: int, num_bits: int, k: int) -> list[int]:
    """Scheme 3: one 256-bit block, one bit in each of its eight 32-bit lanes."""
    block = ((value >> 32) * (num_bits // 256)) >> 32
    low = value & 0xFFFFFFFF
    return [256 * block + 32 * i + ((low * salt & 0xFFFFFFFF) >> 27) for i, salt in enumerate(SALTS[:k])]


def splitmix(value: int) -> int:
    """The finalizer of SplitMix64."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % WORD
    return value ^ (value >> 31)


def two_lines(value: int, num_bits: int, k: int) -> list[int]:
    """Scheme 11: scheme 2 in each half of the bits, by the hash and by its mixture."""
    half = num_bits // 2
    other = columns(splitmix(value), half, k // 2)
    return [*columns(value, half, k // 2), *(half + p for p in other)]


def positions(layout: str, scheme: str, num_bits: int, k: int, value: int) -> list[int]:
    """All bit positions of the hash ``value``."""
    if scheme == "columns":
        return columns(value, num_bits, k)
    if scheme == "two-lines":
        return two_lines(value, num_bits, k)
    if scheme == "parquet":
        return parquet(value, num_bits, k)
    if layout == "partitioned":
        size = num_bits // k
        return [i * size + p for i, p in enumerate(SEQUENCES[scheme](value, size, k))]
    return SEQUENCES[scheme](value, num_bits, k)


class NaiveBloom:
    """A Bloom filter over ready 64-bit hashes."""

    def __init__(self, layout: str, scheme: str, num_bits: int, num_hashes: int) -> None:
        self.rule = (layout, scheme, num_bits, num_hashes)
        self.bits = 0

    def _mask(self, value: int) -> int:
        mask = 0
        for position in positions(*self.rule, value):
            assert 0 <= position < self.rule[2]
            mask |= 1 << position
        return mask

    def add(self, value: int) -> bool:
        """Add; True when a bit changed."""
        before = self.bits
        self.bits |= self._mask(value)
        return self.bits != before

    def __contains__(self, value: int) -> bool:
        mask = self._mask(value)
        return self.bits & mask == mask

    def add_all(self, values: Iterable[int]) -> list[bool]:
        """Add in order."""
        return [self.add(value) for value in values]

    def to_bytes(self, length: int) -> bytes:
        """Bit i is bit i % 8 of byte i // 8; padded with zeros to ``length``."""
        return self.bits.to_bytes(length, "little")
