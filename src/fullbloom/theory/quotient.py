"""Fingerprint tables, and the quotient filter in particular.

A table keeps the first f bits of each key's hash. An absent key is found when one of the n fingerprints is
its own. A quotient filter splits the f bits into a quotient of q bits, which says where the key is at home
among 2^q slots and is not stored, and a remainder of r bits, which is. Its load is alpha = n / 2^q.

Sources: Bender et al., "Don't thrash: how to cache your hash on flash", PVLDB 5(11), 2012; Pandey, Bender,
Johnson and Patro, "A general-purpose counting filter", SIGMOD 2017; Knuth, The Art of Computer Programming 3,
section 6.4 (linear probing).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fullbloom.errors import ParameterError

from ._check import flag, non_negative, open_unit, positive, whole
from ._finite import finite
from ._law import law
from ._vector import vectorized

__all__ = [
    "QuotientSize",
    "fingerprint_bits",
    "fingerprint_fpr",
    "fingerprint_load_fpr",
    "quotient_bits_per_key",
    "quotient_probe_slots",
    "quotient_size",
    "succinct_bits_per_key",
]

# Of 100 slots 95 may be filled; no table is smaller than a block of 64 slots.
_LOAD = 0.95
_LEAST_QUOTIENT_BITS = 6
_HASH_BITS = 64
# Occupied and runends, a bit a slot each, and a byte for a block of 64 slots.
_METADATA_BITS = 2.125


class QuotientSize(NamedTuple):
    """Bits of quotient and remainder, and what they make of a table."""

    quotient_bits: int
    remainder_bits: int
    num_slots: int
    load: float
    bits_per_key: float
    fpr: float


@vectorized
def fingerprint_fpr(items: float, fingerprint_bits: int) -> float:
    """Return the rate of a table of ``items`` fingerprints: ``1 - (1 - 2^-f)^n``.

    Exact: an absent key is found when at least one of n independent fingerprints is its own. Raises
    ``ParameterError`` unless items >= 0 and fingerprint_bits is whole, at least 1. Constant time.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.fingerprint_fpr(items=1_000_000, fingerprint_bits=27), 6)
    0.007423
    """
    bits = whole("fingerprint_bits", fingerprint_bits, 1)
    return law("quotient", non_negative("items", items), bits)


@vectorized
def fingerprint_load_fpr(load: float, remainder_bits: int) -> float:
    """Return the rate at ``load`` with remainders of r bits, for many slots: ``1 - exp(-load / 2^r)``.

    At most 2^-r at any load up to 1. Raises ``ParameterError`` unless load >= 0 and remainder_bits is whole,
    at least 1. Constant time.

    >>> from fullbloom import theory
    >>> round(theory.fingerprint_load_fpr(load=0.75, remainder_bits=8), 6)
    0.002925
    """
    return -math.expm1(-non_negative("load", load) * 0.5 ** whole("remainder_bits", remainder_bits, 1))


@vectorized
def fingerprint_bits(items: float, fpr: float) -> float:
    """Return the bits of a fingerprint that give rate ``fpr`` with ``items`` keys; not rounded.

    The inverse of :func:`fingerprint_fpr`, about ``log2(n) + log2(1/fpr)``. Raises ``ParameterError`` unless
    items > 0 and fpr is in (0, 1). Constant time.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.fingerprint_bits(items=1_000_000, fpr=0.01), 3)
    26.568
    """
    rate = open_unit("fpr", fpr)
    return -math.log2(law("each_of", rate, positive("items", items)))


@vectorized
def succinct_bits_per_key(fpr: float) -> float:
    """Return the bits a key that a table of fingerprints can reach: ``log2(e / fpr)``.

    Quotienting saves the log2(n) bits of the place; what remains above the bound log2(1/fpr) of all filters
    is log2(e) = 1.44 bits for the order of the keys. Raises ``ParameterError`` unless fpr is in (0, 1).
    Constant time.

    >>> from fullbloom import theory
    >>> round(theory.succinct_bits_per_key(0.01), 3)
    8.087
    """
    return math.log2(math.e / open_unit("fpr", fpr))


@vectorized
def quotient_bits_per_key(load: float, remainder_bits: int, metadata_bits: float = _METADATA_BITS) -> float:
    """Return the bits a key of a quotient filter: ``(r + metadata) / load``.

    2.125 bits of metadata a slot with rank and select, 3 with occupied, continuation and shifted bits. Raises
    ``ParameterError`` unless load is in (0, 1), remainder_bits is whole, at least 1, and metadata_bits >= 0.
    Constant time.

    >>> from fullbloom import theory
    >>> round(theory.quotient_bits_per_key(load=0.95, remainder_bits=9), 2)
    11.71
    """
    stored = whole("remainder_bits", remainder_bits, 1) + non_negative("metadata_bits", metadata_bits)
    return stored / open_unit("load", load)


@vectorized
def quotient_probe_slots(load: float) -> float:
    """Return the expected slots from a new key's home to the next free slot: ``(1/(1-load)^2 - 1)/2``.

    Linear probing (Knuth): the distance is that of an unsuccessful search, less the free slot itself. It is
    what an add moves: 4 slots at load 2/3, 200 at 0.95. Raises ``ParameterError`` unless load is in (0, 1).
    Constant time.

    >>> from fullbloom import theory
    >>> round(theory.quotient_probe_slots(0.95), 1)
    199.5
    """
    share = open_unit("load", load)
    return share * (2.0 - share) / 2.0 / (1.0 - share) ** 2


@finite
def quotient_size(capacity: int, fpr: float, *, counting: bool = False) -> QuotientSize:
    """Return what ``QuotientFilter(capacity, fpr)`` makes: the smallest power of two, the fewest bits.

    q is the least with capacity <= 95 % of 2^q slots (64 at least), r the least whose exact rate at capacity
    is at most fpr. Raises ``ParameterError`` unless capacity is whole, at least 1, and fpr in (0, 1), or if
    the fingerprint would be longer than a hash. Cost: one evaluation a bit. A search of its own, independent
    of the core's; tests hold both together.

    >>> from fullbloom import theory
    >>> theory.quotient_size(900_000, 0.01)[:3]
    (20, 7, 1048576)
    """
    keys, rate = whole("capacity", capacity, 1), open_unit("fpr", fpr)
    counter = 8 if flag("counting", counting) else 0
    quotient = _LEAST_QUOTIENT_BITS
    while (19 << quotient) // 20 < keys:
        quotient += 1
    remainder = 1
    while fingerprint_fpr(keys, quotient + remainder) > rate:
        remainder += 1
        if quotient + remainder > _HASH_BITS:
            raise ParameterError(f"fpr is too low for {capacity} keys, which are 64-bit hashes; got {fpr}")
    slots = 1 << quotient
    bits = slots * (remainder + counter + _METADATA_BITS)
    reached = fingerprint_fpr(keys, quotient + remainder)
    return QuotientSize(quotient, remainder, slots, keys / slots, bits / keys, reached)
