"""Fingerprint tables, and the quotient filter in particular.

A table keeps the first f bits of each key's hash. An absent key is found when one of the n fingerprints
equals its own. A quotient filter splits the f bits into a quotient of q bits, which selects the home slot of
the key among 2^q slots and is not stored, and a remainder of r bits, which is stored. Its load is
alpha = n / 2^q.

Sources: Bender et al., "Don't thrash: how to cache your hash on flash", PVLDB 5(11), 2012; Pandey, Bender,
Johnson and Patro, "A general-purpose counting filter", SIGMOD 2017; Knuth, The Art of Computer Programming 3,
section 6.4 (linear probing).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fullbloom.errors import ParameterError

from ._check import check_flag, check_non_negative, check_open_unit, check_positive, check_whole
from ._finite import require_finite
from ._vector import vectorize
from .constructor import evaluate_law

# No table is smaller than a block of 64 slots.
_LEAST_QUOTIENT_BITS = 6
_HASH_BITS = 64
# Occupied and runends, one bit per slot each, and one byte per block of 64 slots.
_METADATA_BITS = 2.125


class QuotientSize(NamedTuple):
    """Bits of quotient and remainder, and the size, load and rate of the table."""

    quotient_bits: int
    remainder_bits: int
    num_slots: int
    load: float
    bits_per_key: float
    fpr: float


@vectorize
def fingerprint_fpr(items: float, fingerprint_bits: int) -> float:
    """Return the rate of a table of ``items`` fingerprints: ``1 - (1 - 2^-f)^n``.

    Exact: an absent key is found when at least one of n independent fingerprints equals its own. Raises
    ``ParameterError`` unless items >= 0 and fingerprint_bits is whole, at least 1. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.fingerprint_fpr(items=1_000_000, fingerprint_bits=27), 6)
    0.007423
    """
    bits = check_whole("fingerprint_bits", fingerprint_bits, 1)
    return evaluate_law("quotient", check_non_negative("items", items), bits)


@vectorize
def fingerprint_load_fpr(load: float, remainder_bits: int) -> float:
    """Return the rate at ``load`` with remainders of r bits, for many slots: ``1 - exp(-load / 2^r)``.

    At most 2^-r at any load up to 1. Raises ``ParameterError`` unless load >= 0 and remainder_bits is whole,
    at least 1. Constant time.

    >>> from fullbloom import theory
    >>> round(theory.fingerprint_load_fpr(load=0.75, remainder_bits=8), 6)
    0.002925
    """
    return -math.expm1(
        -check_non_negative("load", load) * 0.5 ** check_whole("remainder_bits", remainder_bits, 1)
    )


@vectorize
def fingerprint_bits(items: float, fpr: float) -> float:
    """Return the bits of a fingerprint that give rate ``fpr`` with ``items`` keys; not rounded.

    The inverse of :func:`fingerprint_fpr`, about ``log2(n) + log2(1/fpr)``. Raises ``ParameterError`` unless
    items > 0 and fpr is in (0, 1). Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.fingerprint_bits(items=1_000_000, fpr=0.01), 3)
    26.568
    """
    rate = check_open_unit("fpr", fpr)
    return -math.log2(evaluate_law("each_of", rate, check_positive("items", items)))


@vectorize
def succinct_bits_per_key(fpr: float) -> float:
    """Return the bits per key that a table of fingerprints can reach: ``log2(e / fpr)``.

    Quotienting saves the log2(n) bits of the position; the rest above the bound log2(1/fpr) of all filters is
    log2(e) = 1.44 bits for the order of the keys. Raises ``ParameterError`` unless fpr is in (0, 1). Constant
    time.

    >>> from fullbloom import theory
    >>> round(theory.succinct_bits_per_key(0.01), 3)
    8.087
    """
    return math.log2(math.e / check_open_unit("fpr", fpr))


@vectorize
def quotient_bits_per_key(load: float, remainder_bits: int, metadata_bits: float = _METADATA_BITS) -> float:
    """Return the bits per key of a quotient filter: ``(r + metadata) / load``.

    Metadata takes 2.125 bits per slot with rank and select, 3 with occupied, continuation and shifted bits.
    Raises ``ParameterError`` unless load is in (0, 1), remainder_bits is whole, at least 1, and metadata_bits
    >= 0. Constant time.

    >>> from fullbloom import theory
    >>> round(theory.quotient_bits_per_key(load=0.95, remainder_bits=9), 2)
    11.71
    """
    stored = check_whole("remainder_bits", remainder_bits, 1) + check_non_negative(
        "metadata_bits", metadata_bits
    )
    return stored / check_open_unit("load", load)


@vectorize
def quotient_probe_slots(load: float) -> float:
    """Return the expected slots from a new key's home to the next free slot: ``(1/(1-load)^2 - 1)/2``.

    Linear probing (Knuth): the distance of an unsuccessful search, minus the free slot itself. An add moves
    that many slots: 4 at load 2/3, 200 at 0.95. Raises ``ParameterError`` unless load is in (0, 1). Constant
    time.

    >>> from fullbloom import theory
    >>> round(theory.quotient_probe_slots(0.95), 1)
    199.5
    """
    share = check_open_unit("load", load)
    return share * (2.0 - share) / 2.0 / (1.0 - share) ** 2


@require_finite
def quotient_size(capacity: int, fpr: float, *, counting: bool = False) -> QuotientSize:
    """Return the size of ``QuotientFilter(capacity, fpr)``: the smallest power of two, the fewest bits.

    q is the smallest with capacity <= 95 % of 2^q slots (64 at least), r the smallest whose exact rate at
    capacity is at most fpr. Raises ``ParameterError`` unless capacity is whole, at least 1, and fpr in (0,
    1), or if the fingerprint would be longer than a hash. Cost: one evaluation per bit. The search is
    independent of the core; tests check that both agree.

    >>> from fullbloom import theory
    >>> theory.quotient_size(900_000, 0.01)[:3]
    (20, 7, 1048576)
    """
    keys, rate = check_whole("capacity", capacity, 1), check_open_unit("fpr", fpr)
    counter = 8 if check_flag("counting", counting) else 0
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
