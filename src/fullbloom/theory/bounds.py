"""Bounds: limits that no filter can beat, and how far a filter can be from its formula."""

from __future__ import annotations

import math

from ._check import check_at_least, check_non_negative, check_open_unit, check_positive
from ._vector import vectorize
from .constructor import evaluate_law


@vectorize
def goel_gupta_fpr(items: float, num_bits: float, num_hashes: float) -> float:
    """Return the upper bound ``(1 - e^(-k(n + 1/2)/(m - 1)))^k`` of the exact rate.

    Holds for every m > 1, so use it when you need a guarantee without the exact law. 14 %
    above the exact rate at m = 64, n = 10, k = 4, and 2 % at m = 1024, n = 100, k = 7. Raises
    ``ParameterError`` unless items >= 0, num_bits >= 2 and num_hashes > 0. Constant time.

    Source: Goel and Gupta, "Small subset queries and Bloom filters using ternary associative memories",
    SIGMETRICS 2010.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.goel_gupta_fpr(items=100, num_bits=1024, num_hashes=7), 8)
    0.00751776
    """
    keys, hashes = check_non_negative("items", items), check_positive("num_hashes", num_hashes)
    return evaluate_law("goel_gupta", keys, check_at_least("num_bits", num_bits, 2), hashes)


@vectorize
def fill_tail(deviation: float, items: float, num_bits: float, num_hashes: float) -> float:
    """Return an upper bound of the chance that the fill differs from its mean by ``deviation`` or more.

    ``P(|q - E[q]| >= lambda/m) <= 2 exp(-2 lambda^2 / (kn))`` with q the share of occupied (or of empty) bits
    and lambda = deviation * m, at most 1. The fill alone therefore describes a filter: at m = 10^6 and half
    fill a deviation of 0.01 has a chance below 1e-120. Raises ``ParameterError`` unless deviation >= 0,
    items >= 0, num_bits >= 1 and num_hashes > 0. Constant time.

    Source: Azuma-Hoeffding on the throws; Mitzenmacher and Upfal, "Probability and computing", 2005.

    >>> from fullbloom import theory
    >>> round(theory.fill_tail(deviation=0.01, items=1000, num_bits=10_000, num_hashes=7), 4)
    0.1149
    """
    cells = check_non_negative("deviation", deviation) * check_at_least("num_bits", num_bits, 1)
    throws = check_non_negative("items", items) * check_positive("num_hashes", num_hashes)
    if throws == 0.0:
        return 0.0 if cells else 1.0
    return min(1.0, 2.0 * math.exp(-2.0 * cells * cells / throws))


@vectorize
def min_bits_per_key(fpr: float) -> float:
    """Return ``log2(1/p)``: bits per key that any structure with this rate needs for large sets.

    A Bloom filter needs 1/ln 2 = 1.4427 times as much (``bits_per_key``), that is 44 % more; fingerprint and
    matrix filters come closer. Raises ``ParameterError`` unless 0 < fpr < 1. Constant time.

    Source: Carter et al., "Exact and approximate membership testers", STOC 1978.

    >>> from fullbloom import theory
    >>> theory.min_bits_per_key(2**-10)
    10.0
    """
    return -math.log2(check_open_unit("fpr", fpr))


@vectorize
def stream_floor(num_bits: float, window: float, alphabet: float) -> float:
    """Return the least possible sum of false-positive and false-negative rate of a filter over a stream.

    ``1 - (1 - (1 - 1/L)^m) / (1 - (1 - 1/L)^w)`` for m bits of memory, a sliding window of w keys (or w = the
    length of the whole stream) and keys uniform over an alphabet of L; 0 for w <= m, where the bound is
    empty. When the result is near 1, no filter of this size can serve the stream: use more bits or a shorter
    window. Raises ``ParameterError`` unless num_bits >= 1, window >= 1 and alphabet >= 2. Constant time.

    Source: Géraud-Stewart, Lombard-Platet and Naccache, "Approaching optimal duplicate detection in a sliding
    window", COCOON 2020.

    >>> from fullbloom import theory
    >>> round(theory.stream_floor(num_bits=1024, window=100_000, alphabet=2**16), 4)
    0.9802
    """
    bits, keys = check_at_least("num_bits", num_bits, 1), check_at_least("window", window, 1)
    miss = math.log1p(-1.0 / check_at_least("alphabet", alphabet, 2))
    if keys <= bits:
        return 0.0
    # Use the ratio of the two powers: near 1 their difference would cancel.
    return math.exp(bits * miss) * math.expm1((keys - bits) * miss) / math.expm1(keys * miss)
