"""Keys that an attacker chooses: whole numbers, searched with the public hash of seed 0.

Every search knows what is published: the key rule, the scheme, and the parameters of the filter. None
asks the filter itself. Against a filter with a secret the same keys are as good as random ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]
    Keys = npt.NDArray[np.int64]

M1, M2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
MCG = 0xD1342543DE82EF95
STEP = 1 << 18
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Found(NamedTuple):
    """Keys, and the number of hashes that were computed for them."""

    keys: Any
    tried: int


def fastrange(hashes: Hashes, bound: int) -> Hashes:
    """The high 64 bits of hash * bound, for bounds below 2^32."""
    wide = np.uint64(bound)
    return ((hashes >> HALF) * wide + ((hashes & LOW) * wide >> HALF)) >> HALF


def matching(count: int, wanted: Callable[[Hashes], Any], start: int = 1 << 40) -> Found:
    """The first `count` whole numbers from `start` on whose hashes are `wanted`."""
    parts: list[Keys] = []
    held, tried = 0, 0
    while held < count and tried < 1 << 26:
        keys = np.arange(start + tried, start + tried + STEP, dtype=np.int64)
        keys = keys[wanted(fullbloom.hash_many(keys))]
        parts.append(keys)
        held, tried = held + len(keys), tried + STEP
    return Found(np.concatenate(parts)[:count], tried)


def sharing(num_buckets: int, fingerprint_bits: int, region: int) -> Callable[[Hashes], Any]:
    """Tells which keys have both buckets among the first `region`."""
    values, all_of_them = (1 << fingerprint_bits) - 1, np.uint64(num_buckets)

    def wanted(hashes: Hashes) -> Any:
        first = fastrange(hashes, num_buckets)
        fingerprint = fastrange(hashes * M1, values) + np.uint64(1)
        second = (fastrange(fingerprint * M2, num_buckets) + all_of_them - first) % all_of_them
        return (first < region) & (second < region)

    return wanted


def cuckoo(num_buckets: int, fingerprint_bits: int, count: int, region: int) -> Found:
    """Keys both of whose buckets are among the first `region`."""
    return matching(count, sharing(num_buckets, fingerprint_bits, region))


def quotient(quotient_bits: int, count: int, homes: int) -> Found:
    """Keys that are at home in the first `homes` slots."""
    shift = np.uint64(64 - quotient_bits)
    return matching(count, lambda hashes: hashes >> shift < homes)


def positions(hashes: Hashes, num_bits: int, num_hashes: int) -> Any:
    """The bits of each key in the classic layout."""
    steps = [np.uint64(pow(MCG, i, 1 << 64)) for i in range(num_hashes)]
    return np.stack([fastrange(hashes * step, num_bits) for step in steps], axis=1).astype(np.int64)


def polluting(num_bits: int, num_hashes: int, count: int) -> Found:
    """Keys each of which sets as many bits as possible: candidates in order of what they would set."""
    ones, keys, tried, least = np.zeros(num_bits, bool), [], 0, num_hashes
    while len(keys) < count:
        start = (1 << 40) + tried
        candidates = np.arange(start, start + STEP, dtype=np.int64)
        bits = positions(fullbloom.hash_many(candidates), num_bits, num_hashes)
        tried += STEP
        before = len(keys)
        for at in np.flatnonzero((~ones[bits]).sum(axis=1) >= least):
            new = {bit for bit in bits[at].tolist() if not ones[bit]}
            if len(new) >= least and len(keys) < count:
                ones[bits[at]] = True
                keys.append(int(candidates[at]))
        # When hundreds of thousands of keys hardly gave any, take what sets one bit less.
        least -= len(keys) - before < 50
    return Found(np.array(keys), tried)


def covering(num_bits: int, num_hashes: int, victim: Any) -> Found:
    """Keys that set all bits of `victim` between them."""
    missing = set(positions(fullbloom.hash_many(np.array([victim])), num_bits, num_hashes)[0].tolist())
    keys, tried = [], 0
    while missing:
        candidates = np.arange((1 << 40) + tried, (1 << 40) + tried + STEP, dtype=np.int64)
        bits = positions(fullbloom.hash_many(candidates), num_bits, num_hashes)
        tried += STEP
        for at in np.flatnonzero(np.isin(bits, list(missing)).any(axis=1)):
            if missing & set(bits[at].tolist()):
                missing -= set(bits[at].tolist())
                keys.append(int(candidates[at]))
    return Found(np.array(keys), tried)
