"""The rules of blockchains and of Python packages, written a second time in Python, from their documents."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any

from compat.foreign.keccak import keccak256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MASK32, MASK64, MASK128 = 2**32 - 1, 2**64 - 1, 2**128 - 1
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
LCG_FACTOR = 47026247687942121848144207491837418733


def murmur32(data: bytes, seed: int) -> int:
    def scrambled(k: int) -> int:
        k = k * 0xCC9E2D51 & MASK32
        return (k << 15 | k >> 17) * 0x1B873593 & MASK32

    h, whole = seed & MASK32, len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        h ^= scrambled(word)
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & MASK32
    h ^= scrambled(int.from_bytes(data[whole:], "little")) ^ len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK32
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK32
    return h ^ h >> 16


def bip37(data: bytes, num_bits: int, num_hashes: int, seed: int = 0) -> Iterator[int]:
    for i in range(num_hashes):
        yield murmur32(data, i * 0xFBA4C795 + seed) % num_bits


def ethereum(data: bytes, _num_bits: int, _num_hashes: int, _seed: int = 0) -> Iterator[int]:
    hashed = keccak256(data)
    for at in (0, 2, 4):
        bit = (256 * hashed[at] + hashed[at + 1]) % 2048
        yield 8 * (255 - bit // 8) + bit % 8


def fnv(units: bytes | list[int], num_bits: int, num_hashes: int) -> Iterator[int]:
    for i in range(num_hashes):
        state = FNV_BASIS + 31 * i
        for unit in units:
            state = (state ^ unit) * FNV_PRIME & MASK64
        yield state % num_bits


def pyprobables(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    return fnv([ord(character) for character in data.decode()], num_bits, num_hashes)


def pyprobables_bytes(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    return fnv(data, num_bits, num_hashes)


def pybloom_live(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    import xxhash

    def hashed(content: bytes) -> bytes:
        bits = 8 * width * num_hashes
        if bits <= 128:
            return bytes(xxhash.xxh128_digest(content))
        name = next(name for most, name in SHA if bits <= most)
        return hashlib.new(name, content).digest()

    piece = num_bits // num_hashes
    width = 2 if piece < 2**15 else 4 if piece < 2**31 else 8
    numbers: list[int] = []
    salt = 0
    while len(numbers) < num_hashes:
        digest = hashed(hashed(struct.pack("<I", salt)) + data)
        numbers += (int.from_bytes(digest[at : at + width], "little") for at in range(0, len(digest), width))
        salt += 1
    for i in range(num_hashes):
        yield i * piece + numbers[i] % piece


SHA: list[tuple[float, str]] = [
    (160, "sha1"),
    (256, "sha256"),
    (384, "sha384"),
    (float("inf"), "sha512"),
]


def rbloom(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    state = int.from_bytes(data, "little", signed=True) & MASK128
    for _ in range(num_hashes):
        state = (state * LCG_FACTOR + 1) & MASK128
        yield (state >> 32 & MASK64) % num_bits


def fastbloom_rs(data: bytes, num_bits: int, num_hashes: int, _seed: int = 0) -> Iterator[int]:
    import xxhash

    start, step = (xxhash.xxh3_64_intdigest(data, seed) % num_bits for seed in (0, 32))
    for i in range(num_hashes):
        yield (start + i * step) % num_bits


RULES: dict[str, Callable[..., Iterator[Any]]] = {
    "bip37": bip37,
    "bip37-all": bip37,
    "bip37-p2pubkey": bip37,
    "ethereum": ethereum,
    "rbloom": rbloom,
    "fastbloom-rs": fastbloom_rs,
    "pybloom-live": pybloom_live,
    "pyprobables": pyprobables,
    "pyprobables-bytes": pyprobables_bytes,
}
