"""False-positive laws of the layouts: partitioned, blocks with free probes, split, blocked, two blocks.

A blocked layout keeps all bits of a key in one block, so that a lookup touches one cache line. In return the
number of keys I in a block varies, and crowded blocks add more false positives than sparse blocks save. The
rate is E[f(I)], f(i) the rate of a block that holds i keys. I is Binomial(n, 1/blocks); at a fixed number of
bits per key c and many blocks of B bits it becomes Poisson with mean B/c. Each layout therefore has two
functions: ``..._fpr(items, num_bits, ...)`` for a given filter, ``..._limit_fpr(bits_per_key, ...)`` for many
blocks. The limit is the larger of the two at useful rates, and close: the difference is of the order of
1/blocks.

The whole module is independent of the core; tests check that both agree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import (
    check_at_least,
    check_non_negative,
    check_number,
    check_open_unit,
    check_positive,
    check_whole,
)
from ._numeric import binomial_mean, falling_root, poisson_mean
from ._vector import vectorize
from .rates import exponential_fpr

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCKED_BITS, _BLOCKED_COLUMNS = 512, 4
_SPLIT_BITS, _SPLIT_COLUMNS = 256, 8
# A page of memory has 32,768 bits; the search for a density takes as many steps as a block has bits.
_MOST_COMPENSATED_BITS = 8192


@vectorize
def partitioned_fpr(items: float, num_bits: float, num_hashes: float) -> float:
    """Return the rate of k slices of m/k bits with one probe each: ``(1 - (1 - k/m)^n)^k``.

    Exact, because the slices are independent. Slightly above the classic rate (0.76214 % against 0.74848 % at
    m = 1024, n = 100, k = 8), with the same limit. Raises ``ParameterError`` unless items >= 0 and 1 <=
    num_hashes <= num_bits. Constant time.

    Source: Almeida et al., "Scalable Bloom filters", Information Processing Letters 101(6), 2007.

    >>> from fullbloom import theory
    >>> round(theory.partitioned_fpr(items=100, num_bits=1024, num_hashes=8), 7)
    0.0076214
    """
    keys, hashes = check_non_negative("items", items), check_at_least("num_hashes", num_hashes, 1)
    share = hashes / check_at_least("num_bits", num_bits, hashes)
    if share == 1.0:
        return 1.0 if keys else 0.0
    return math.pow(-math.expm1(keys * math.log1p(-share)), hashes)


def _free_block(num_hashes: float, block_bits: float) -> Callable[[int], float]:
    """Return the law of a block with k free probes after i keys: (1 - (1 - 1/B)^(ki))^k."""
    hashes, bits = check_positive("num_hashes", num_hashes), check_at_least("block_bits", block_bits, 2)
    miss = hashes * math.log1p(-1.0 / bits)
    return lambda keys: math.pow(-math.expm1(keys * miss), hashes)


def _columns(columns: int, width: int, probes: int) -> Callable[[int], float]:
    """Return the law of a block of columns after i keys that set ``probes`` distinct bits in each column.

    One column: t given bits are all set with probability sum_j (-1)^j C(t,j) (C(w-j,t)/C(w,t))^i, by
    inclusion-exclusion over the bits that every key misses. The signs cancel at most 1/C(w,t) of the leading
    term: with w = 128 and t = 3 the relative error stays below 1e-10, so the slower recurrence over occupied
    bits is not needed.
    """
    terms = [
        (
            (-1.0) ** j * math.comb(probes, j),
            math.log(math.comb(width - j, probes) / math.comb(width, probes)),
        )
        for j in range(1, probes + 1)
    ]

    def law(keys: int) -> float:
        # The binomial coefficients sum to 0 with their signs, so 1 can be subtracted from every power.
        covered = math.fsum(sign * math.expm1(keys * miss) for sign, miss in terms)
        return min(1.0, max(0.0, covered)) ** columns

    return law


def _blocked_law(num_hashes: float) -> Callable[[int], float]:
    if check_number("num_hashes", num_hashes) not in (4, 8, 12):
        raise ParameterError(f"num_hashes must be 4, 8 or 12 for the blocked layout, got {num_hashes}")
    return _columns(_BLOCKED_COLUMNS, _BLOCKED_BITS // _BLOCKED_COLUMNS, int(num_hashes) // _BLOCKED_COLUMNS)


def _split_law() -> Callable[[int], float]:
    return _columns(_SPLIT_COLUMNS, _SPLIT_BITS // _SPLIT_COLUMNS, 1)


def _average_over_blocks(
    items: float, num_bits: float, block_bits: float, law: Callable[[int], float]
) -> float:
    """Return the rate of a filter of whole blocks."""
    keys, bits = check_whole("items", items, 0), check_whole("num_bits", num_bits, 1)
    block = check_whole("block_bits", block_bits, 1)
    if bits % block:
        up = -(-bits // block) * block
        raise ParameterError(
            f"num_bits must be a multiple of the block's {block} bits, got {bits}; round up to {up}"
        )
    return binomial_mean(keys, block / bits, law)


def _average_over_many_blocks(bits_per_key: float, block_bits: float, law: Callable[[int], float]) -> float:
    """Return the rate at a given density for many blocks."""
    return poisson_mean(
        check_positive("block_bits", block_bits) / check_positive("bits_per_key", bits_per_key), law
    )


@vectorize
def free_block_fpr(items: int, num_bits: int, num_hashes: float, block_bits: int = 512) -> float:
    """Return the rate of a filter of blocks with k free probes: binomial sum of ``(1 - (1 - 1/B)^(ki))^k``.

    The generic blocked filter: one hash picks the block, k independent probes fall anywhere in it. The law
    uses the mean fill of a block given i, as the source does: at 10 bits per key and k = 6 that is 0.9576 %,
    while ideal probes give 0.9665 % and the further approximation e^(-ki/B) gives 0.9536 %. Raises
    ``ParameterError`` unless items >= 0 is whole, num_bits a positive multiple of block_bits >= 2, and
    num_hashes > 0. Cost: some tens to thousands of terms, one for each likely count.

    Source: Putze, Sanders and Singler, "Cache-, hash-, and space-efficient Bloom filters", JEA 14, 2009.

    >>> from fullbloom import theory
    >>> round(theory.free_block_fpr(items=1_048_576, num_bits=10_485_760, num_hashes=6), 4)
    0.0096
    """
    return _average_over_blocks(items, num_bits, block_bits, _free_block(num_hashes, block_bits))


@vectorize
def free_block_limit_fpr(bits_per_key: float, num_hashes: float, block_bits: float = 512) -> float:
    """Return the rate of many blocks with k free probes: ``sum_i Pois(i; B/c) (1 - (1 - 1/B)^(ki))^k``.

    The best k is lower than c ln 2 for high c. Raises ``ParameterError`` unless bits_per_key > 0, num_hashes
    > 0 and block_bits >= 2. Cost: as :func:`free_block_fpr`.

    Source: Putze, Sanders and Singler 2009.

    >>> from fullbloom import theory
    >>> round(theory.free_block_limit_fpr(bits_per_key=10, num_hashes=6), 4)
    0.0096
    """
    return _average_over_many_blocks(bits_per_key, block_bits, _free_block(num_hashes, block_bits))


@vectorize
def free_block_bits_per_key(fpr: float, num_hashes: float, block_bits: float = 512) -> float:
    """Return the bits per key at which :func:`free_block_limit_fpr` is ``fpr``.

    Raises ``ParameterError`` unless 0 < fpr < 1, num_hashes > 0 and block_bits >= 2, or if 2^40 bits per key
    are not enough. Cost: some 50 evaluations of the law.

    >>> from fullbloom import theory
    >>> round(theory.free_block_bits_per_key(0.01, num_hashes=6), 1)
    9.9
    """
    law = _free_block(num_hashes, block_bits)
    return falling_root(
        "fpr", lambda c: _average_over_many_blocks(c, block_bits, law), check_open_unit("fpr", fpr)
    )


@vectorize
def compensated_bits_per_key(bits_per_key: int, block_bits: int = 512) -> int:
    """Return the whole bits per key c' at which blocks of B bits match a classic filter with c.

    Both sides use k = the nearest whole number to (bits per key) * ln 2. 10 -> 11, 20 -> 25, 30 -> 51:
    blocks cost little at 1 % and much below 0.01 %. Raises ``ParameterError`` unless bits_per_key >= 1 and
    block_bits are whole, the latter from 2 to 8192, or if no blocked filter is that good (above 34 bits per
    key at B = 512, where the published table ends). Cost: c' - c + 1 evaluations of the law.

    Source: Putze, Sanders and Singler 2009, the table of compensated sizes.

    >>> from fullbloom import theory
    >>> theory.compensated_bits_per_key([10, 20, 30])
    [11, 25, 51]
    """
    bits, block = check_whole("bits_per_key", bits_per_key, 1), check_whole("block_bits", block_bits, 2)
    if block > _MOST_COMPENSATED_BITS:
        raise ParameterError(f"block_bits must be at most {_MOST_COMPENSATED_BITS}, got {block_bits}")

    def hashes(density: int) -> int:
        return max(1, round(density * math.log(2.0)))

    # With one probe per key the two rates are equal; 1e-12 allows for the last digits of both.
    target = exponential_fpr(1, bits, hashes(bits)) * (1.0 + 1e-12)
    while free_block_limit_fpr(bits, hashes(bits), block) > target:
        bits += 1
        # With k = c' ln 2 the rate is lowest at 110 bits per key for B = 512 (6.7e-8); beyond that a key
        # crowds its own block and the rate rises again, so the search can stop at B bits per key.
        if bits > block:
            raise ParameterError(
                f"bits_per_key must be low enough for blocks of {block} bits to match, got {bits_per_key}"
            )
    return bits


@vectorize
def split_fpr(items: int, num_bits: int) -> float:
    """Return the rate of a ``split`` filter: binomial sum of ``(1 - (31/32)^i)^8`` over blocks of 256 bits.

    A block is eight words of 32 bits and a key sets one bit in each, so k is always 8. Exact for ideal
    hashing. Raises ``ParameterError`` unless items >= 0 is whole and num_bits a positive multiple of 256.
    Cost: some tens of terms.

    Source: the split block of Apache Impala and Parquet; Apple, "Split block Bloom filters", 2021.

    >>> from fullbloom import theory
    >>> round(theory.split_fpr(items=1_000_000, num_bits=10_240_000), 4)
    0.0114
    """
    return _average_over_blocks(items, num_bits, _SPLIT_BITS, _split_law())


@vectorize
def split_limit_fpr(bits_per_key: float) -> float:
    """Return the rate of many split blocks: ``sum_i Pois(i; 256/c) (1 - (31/32)^i)^8``.

    Raises ``ParameterError`` unless bits_per_key > 0. Cost: some tens of terms.

    Source: as :func:`split_fpr`.

    >>> from fullbloom import theory
    >>> [round(rate, 5) for rate in theory.split_limit_fpr([10.53, 16.89])]
    [0.01, 0.001]
    """
    return _average_over_many_blocks(bits_per_key, _SPLIT_BITS, _split_law())


@vectorize
def split_bits_per_key(fpr: float) -> float:
    """Return the bits per key at which :func:`split_limit_fpr` is ``fpr``.

    5.99, 10.53, 16.89, 26.3 and 41.0 for 10 %, 1 %, ..., 0.001 %. Raises ``ParameterError`` unless 0 < fpr <
    1. Cost: some 50 evaluations of the law.

    >>> from fullbloom import theory
    >>> round(theory.split_bits_per_key(0.01), 2)
    10.53
    """
    law = _split_law()
    return falling_root(
        "fpr", lambda c: _average_over_many_blocks(c, _SPLIT_BITS, law), check_open_unit("fpr", fpr)
    )


@vectorize
def blocked_fpr(items: int, num_bits: int, num_hashes: int) -> float:
    """Return the rate of a ``blocked`` filter: lines of 512 bits, four columns, k/4 distinct bits per column.

    With I ~ Binomial(n, 512/m) keys in a line and the columns independent given I, the rate is E[q(I)^4],
    where q(i) is the chance that t = k/4 given bits of a column of 128 are all set by i random t-subsets:
    ``q(i) = E[C(X,t)/C(128,t)] = sum_j (-1)^j C(t,j) (C(128-j,t)/C(128,t))^i``. Exact for ideal hashing.
    Raises ``ParameterError`` unless items >= 0 is whole, num_bits a positive multiple of 512, and num_hashes
    4, 8 or 12. Cost: some tens to hundreds of terms.

    Source: our layout; the blocked idea is Putze, Sanders and Singler 2009.

    >>> from fullbloom import theory
    >>> round(theory.blocked_fpr(items=1_000_000, num_bits=10_240_000, num_hashes=8), 5)
    0.00921
    """
    return _average_over_blocks(items, num_bits, _BLOCKED_BITS, _blocked_law(num_hashes))


@vectorize
def blocked_limit_fpr(bits_per_key: float, num_hashes: int) -> float:
    """Return the rate of a ``blocked`` filter of many lines: :func:`blocked_fpr` with I ~ Poisson(512/c).

    Raises ``ParameterError`` unless bits_per_key > 0 and num_hashes is 4, 8 or 12. Cost: some tens to
    hundreds of terms.

    Source: as :func:`blocked_fpr`.

    >>> from fullbloom import theory
    >>> round(theory.blocked_limit_fpr(bits_per_key=10.069, num_hashes=8), 5)
    0.01
    """
    return _average_over_many_blocks(bits_per_key, _BLOCKED_BITS, _blocked_law(num_hashes))


@vectorize
def blocked_bits_per_key(fpr: float, num_hashes: int) -> float:
    """Return the bits per key at which :func:`blocked_limit_fpr` is ``fpr``.

    The best of 4, 8 and 12 hashes: 4.885 bits (k = 4) at 10 %, 10.069 (k = 8) at 1 %, and 21.988 (k = 12) at
    0.01 %.

    Raises ``ParameterError`` unless 0 < fpr < 1 and num_hashes is 4, 8 or 12. Cost: some 50 evaluations of
    the law.

    >>> from fullbloom import theory
    >>> [round(bits, 2) for bits in theory.blocked_bits_per_key(0.01, num_hashes=[4, 8, 12])]
    [10.79, 10.07, 11.1]
    """
    law = _blocked_law(num_hashes)
    return falling_root(
        "fpr", lambda c: _average_over_many_blocks(c, _BLOCKED_BITS, law), check_open_unit("fpr", fpr)
    )


def _two_block_law(num_hashes: float) -> Callable[[int], float]:
    if check_number("num_hashes", num_hashes) not in (8, 16, 24):
        raise ParameterError(f"num_hashes must be 8, 16 or 24 for the two-block layout, got {num_hashes}")
    return _blocked_law(num_hashes / 2)


@vectorize
def two_block_fpr(items: int, num_bits: int, num_hashes: int) -> float:
    """Return the rate of a ``two-block`` filter: a line of ``blocked`` with k/2 bits in each half.

    The two halves assign keys to lines independently, so the rate is the square of that of a ``blocked``
    filter with m/2 bits and k/2 hashes: ``E[q(I)^4]^2``, I ~ Binomial(n, 1024/m). Exact for ideal
    hashing. Raises ``ParameterError`` unless items >= 0 is whole, num_bits a positive multiple of 1024, and
    num_hashes 8, 16 or 24. Cost: as :func:`blocked_fpr`.

    Source: Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2009; the two
    halves are ours.

    >>> from fullbloom import theory
    >>> round(theory.two_block_fpr(items=1_000_000, num_bits=10_240_000, num_hashes=8), 5)
    0.00786
    """
    bits = check_whole("num_bits", num_bits, 1)
    if bits % (2 * _BLOCKED_BITS):
        up = -(-bits // (2 * _BLOCKED_BITS)) * 2 * _BLOCKED_BITS
        raise ParameterError(
            f"num_bits must be a multiple of two lines of 512 bits, got {bits}; round up to {up}"
        )
    return _average_over_blocks(items, bits // 2, _BLOCKED_BITS, _two_block_law(num_hashes)) ** 2


@vectorize
def two_block_limit_fpr(bits_per_key: float, num_hashes: int) -> float:
    """Return the rate of a ``two-block`` filter of many lines: :func:`two_block_fpr`, I ~ Poisson(1024/c).

    Raises ``ParameterError`` unless bits_per_key > 0 and num_hashes is 8, 16 or 24. Cost: some tens to
    hundreds of terms.

    Source: as :func:`two_block_fpr`.

    >>> from fullbloom import theory
    >>> round(theory.two_block_limit_fpr(bits_per_key=9.77, num_hashes=8), 5)
    0.01
    """
    half = check_positive("bits_per_key", bits_per_key) / 2.0
    return _average_over_many_blocks(half, _BLOCKED_BITS, _two_block_law(num_hashes)) ** 2


@vectorize
def two_block_bits_per_key(fpr: float, num_hashes: int) -> float:
    """Return the bits per key at which :func:`two_block_limit_fpr` is ``fpr``.

    Raises ``ParameterError`` unless 0 < fpr < 1 and num_hashes is 8, 16 or 24. Cost: some 50 evaluations of
    the law.

    >>> from fullbloom import theory
    >>> [round(bits, 2) for bits in theory.two_block_bits_per_key(0.0001, num_hashes=[8, 16, 24])]
    [21.58, 20.14, 22.19]
    """
    law, target = _two_block_law(num_hashes), math.sqrt(check_open_unit("fpr", fpr))
    return 2.0 * falling_root("fpr", lambda c: _average_over_many_blocks(c, _BLOCKED_BITS, law), target)
