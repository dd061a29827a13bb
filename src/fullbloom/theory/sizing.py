"""Sizing of the classic layout in closed form, and every inverse of it.

All functions here use the exponential law p = (1 - e^(-kn/m))^k, which can be solved for each symbol. Without
``num_hashes``, k is the real optimum m/n ln 2 (then half the bits are one). Pass it to size for that whole
number, as a filter must: with m from the real optimum and k rounded, 10^7 keys at 1 % reach 1.0039 %, just
above the requested rate.

``constructor.size_for`` returns the size that a constructor really picks, for every layout and rounded to its
blocks.
"""

from __future__ import annotations

import math

from ._check import check_at_least, check_open_unit, check_positive
from ._vector import vectorize
from .rates import exponential_fpr

_LN2 = math.log(2.0)
_HALF = 0.5


def _bits_per_throw(rate: float, hashes: float) -> float:
    """Return -1 / ln(1 - p^(1/k)): bits per throw at which all k probes of an absent key hit at rate p."""
    root = math.pow(rate, 1.0 / hashes)
    # Choose between two forms of the logarithm: 1 - root is exact to the last bit only away from 0 and 1.
    zeros = math.log1p(-root) if root < _HALF else math.log(-math.expm1(math.log(rate) / hashes))
    return -1.0 / zeros


@vectorize
def bits_per_key(fpr: float, num_hashes: float | None = None) -> float:
    """Return the bits per key for a rate: ``log2(1/p) / ln 2``, or ``-k / ln(1 - p^(1/k))`` for a given k.

    4.79, 9.59, 14.38 and 19.17 at 10 %, 1 %, 0.1 % and 0.01 %: each factor of ten costs 4.79 bits. (The form
    "1.44 ln(1/p)" that some pages print is wrong; it is 1.44 log2(1/p) = 2.08 ln(1/p).) Raises
    ``ParameterError`` unless 0 < fpr < 1 and num_hashes > 0. Constant time.

    Source: Bloom 1970; Broder and Mitzenmacher 2004.

    >>> from fullbloom import theory
    >>> round(theory.bits_per_key(0.01), 3)
    9.585
    >>> [round(bits, 1) for bits in theory.bits_per_key([0.01, 0.001], num_hashes=4)]
    [10.5, 20.4]
    """
    rate = check_open_unit("fpr", fpr)
    if num_hashes is None:
        return -math.log2(rate) / _LN2
    hashes = check_positive("num_hashes", num_hashes)
    return hashes * _bits_per_throw(rate, hashes)


@vectorize
def num_bits(capacity: float, fpr: float, num_hashes: float | None = None) -> int:
    """Return the bits m for n keys at rate p, for the real optimum of k or for a given k.

    ``ceil(-n ln p / (ln 2)^2)`` without k, ``ceil(-k n / ln(1 - p^(1/k)))`` with it.

    The first form assumes the real k = log2(1/p); with a whole k use the second, which keeps the rate at or
    below p. Raises ``ParameterError`` unless capacity > 0, 0 < fpr < 1 and num_hashes > 0. Constant time.

    Source: Bloom 1970; Broder and Mitzenmacher 2004.

    >>> from fullbloom import theory
    >>> theory.num_bits(capacity=10_000_000, fpr=0.01)
    95850584
    >>> theory.num_bits(capacity=10_000_000, fpr=0.01, num_hashes=7)
    95929548
    """
    return max(1, math.ceil(check_positive("capacity", capacity) * bits_per_key(fpr, num_hashes)))


@vectorize
def num_hashes(num_bits: float, capacity: float) -> int:
    """Return the usual number of hashes ``max(1, round(m/n ln 2))``.

    Nearest to the real optimum; the true best whole number is this or its neighbour, with a rate lower by at
    most 1.8 % from two bits per key on, and by 0.1 % from ten on. Raises ``ParameterError`` unless num_bits
    >= 1 and capacity > 0. Constant time.

    Source: Bloom 1970: the rate is lowest when half the bits are one.

    >>> from fullbloom import theory
    >>> theory.num_hashes(num_bits=95_850_584, capacity=10_000_000)
    7
    """
    return max(
        1, round(check_at_least("num_bits", num_bits, 1) / check_positive("capacity", capacity) * _LN2)
    )


@vectorize
def best_num_hashes(fpr: float) -> int:
    """Return the whole number k that reaches a rate with the fewest bits, a neighbour of log2(1/p).

    Raises ``ParameterError`` unless 0 < fpr < 1. Constant time.

    Source: ``bits_per_key(p, k)`` is convex in k with its minimum at log2(1/p).

    >>> from fullbloom import theory
    >>> theory.best_num_hashes([0.1, 0.01, 0.001])
    [3, 7, 10]
    """
    low = max(1, math.floor(-math.log2(check_open_unit("fpr", fpr))))
    return min((low, low + 1), key=lambda hashes: bits_per_key(fpr, hashes))


@vectorize
def capacity(num_bits: float, fpr: float, num_hashes: float | None = None) -> int:
    """Return how many keys m bits hold at rate p: the inverse of :func:`num_bits`, rounded down.

    0 when not even one key fits. Raises ``ParameterError`` unless num_bits >= 1, 0 < fpr < 1 and num_hashes >
    0. Constant time.

    Source: Bloom 1970.

    >>> from fullbloom import theory
    >>> theory.capacity(num_bits=8 * 2**20, fpr=0.01)
    875175
    """
    return math.floor(check_at_least("num_bits", num_bits, 1) / bits_per_key(fpr, num_hashes))


@vectorize
def fpr(capacity: float, num_bits: float, num_hashes: float | None = None) -> float:
    """Return the rate of m bits holding n keys; without k, for the usual number of hashes.

    ``exponential_fpr`` with the arguments of the sizing family. Raises ``ParameterError`` unless capacity >
    0, num_bits >= 1 and num_hashes > 0. Constant time.

    Source: Bloom 1970.

    >>> from fullbloom import theory
    >>> round(theory.fpr(capacity=10_000_000, num_bits=95_850_584), 6)
    0.010039
    """
    keys = check_positive("capacity", capacity)
    hashes = _default_num_hashes(num_bits, keys) if num_hashes is None else num_hashes
    return exponential_fpr(keys, num_bits, hashes)


# In fpr() a parameter shadows the function num_hashes.
_default_num_hashes = num_hashes


@vectorize
def num_hashes_cost(bits_per_key: float, num_hashes: float) -> float:
    """Return the rate with this k, divided by the rate with the best real k.

    1 at k = c ln 2. A wrong k costs little near the optimum and much far from it: at 14.378 bits per key,
    k = 4 gives 3.5 times the rate, and k = 20 gives 3.3 times the rate with five times the work. Raises
    ``ParameterError`` unless bits_per_key > 0 and num_hashes > 0. Constant time.

    Source: ratio of the exponential law to its minimum 2^(-c ln 2) = 0.6185^c.

    >>> from fullbloom import theory
    >>> [round(cost, 2) for cost in theory.num_hashes_cost(bits_per_key=14.378, num_hashes=[4, 10, 20])]
    [3.48, 1.0, 3.27]
    """
    bits, hashes = check_positive("bits_per_key", bits_per_key), check_positive("num_hashes", num_hashes)
    share = -math.expm1(-hashes / bits)
    return math.pow(share, hashes) / math.pow(0.5, bits * _LN2)
