"""False-positive rates of the classic filter in closed form, and the fill that they depend on.

Symbols: n ``items`` in the filter, m ``num_bits``, k ``num_hashes``, t = kn/m. The forms differ in precision:
``exponential_fpr`` lets m grow without limit, ``classic_fpr`` keeps m but treats the fill as a fixed number,
``second_order_fpr`` includes the variance of the fill. ``occupancy.py`` has the exact law. For m >= 1 and
k >= 1

    exponential < classic <= exact <= Goel-Gupta        (``bounds.goel_gupta_fpr``)

and all four agree within k^2/m or so: the choice matters for small filters and for tests. The laws of the
classic filter here are independent of the core; tests check that both agree.
"""

from __future__ import annotations

import math
import sys

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_non_negative, check_positive
from ._vector import vectorize
from .constructor import evaluate_law


def _power(share: float, items: float, num_hashes: float) -> float:
    """Return ``share^k``; raise ``OverflowError`` if the share is subnormal, since its digits are lost."""
    if share < sys.float_info.min and items:
        raise OverflowError
    return math.pow(share, float(num_hashes))


def _zero_share(throws: float, num_bits: float) -> float:
    """Return (1 - 1/m)^throws, the expected share of zero bits."""
    if num_bits == 1.0:
        return 0.0 if throws else 1.0
    return math.exp(throws * math.log1p(-1.0 / num_bits))


@vectorize
def fill(items: float, num_bits: float, num_hashes: float) -> float:
    """Return the expected share of one-bits: ``1 - (1 - 1/m)^(kn)``.

    Exact for k n independent uniform throws, with repeats within a key allowed. Keeps full precision when the
    share is tiny. Raises ``ParameterError`` unless items >= 0, num_bits >= 1 and num_hashes > 0. Constant
    time.

    Source: Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.

    >>> from fullbloom import theory
    >>> round(theory.fill(items=100, num_bits=1024, num_hashes=7), 4)
    0.4954
    """
    throws = check_non_negative("items", items) * check_positive("num_hashes", num_hashes)
    bits = check_at_least("num_bits", num_bits, 1)
    if bits == 1.0:
        return 1.0 if throws else 0.0
    return -math.expm1(throws * math.log1p(-1.0 / bits))


@vectorize
def exponential_fpr(items: float, num_bits: float, num_hashes: float) -> float:
    """Return the textbook rate ``(1 - e^(-kn/m))^k``.

    The limit of large m at fixed bits per key, and the basis of every closed sizing formula. Slightly below
    the exact rate: by 10 % at m = 64, n = 10, k = 7, by 0.9 % at m = 1024, n = 100, by 9 parts in a million
    at m = 10^6, n = 10^5. Raises ``ParameterError`` unless items >= 0, num_bits >= 1 and num_hashes > 0.
    Constant time.

    Source: Bloom 1970 with (1 - 1/m)^m ~ 1/e; Broder and Mitzenmacher, "Network applications of Bloom
    filters", 2004.

    >>> from fullbloom import theory
    >>> round(theory.exponential_fpr(items=1_000_000, num_bits=10_000_000, num_hashes=7), 8)
    0.00819372
    >>> [round(rate, 4) for rate in theory.exponential_fpr([1, 2], num_bits=20, num_hashes=2)]
    [0.0091, 0.0329]
    """
    throws = check_non_negative("items", items) * check_positive("num_hashes", num_hashes)
    share = -math.expm1(-throws / check_at_least("num_bits", num_bits, 1))
    return _power(share, items, num_hashes)


@vectorize
def classic_fpr(items: float, num_bits: float, num_hashes: float) -> float:
    """Return Bloom's rate ``(1 - (1 - 1/m)^(kn))^k``: the expected fill to the power k.

    A lower bound of the exact rate (equal for k = 1), because the mean of a power is at least the power of
    the mean. Raises ``ParameterError`` unless items >= 0, num_bits >= 1 and num_hashes > 0. Constant time.

    Source: Bloom 1970; that it is a lower bound: Bose et al., "On the false-positive rate of Bloom filters",
    Information Processing Letters 108(4), 2008.

    >>> from fullbloom import theory
    >>> round(theory.classic_fpr(items=100, num_bits=1024, num_hashes=7), 8)
    0.00731984
    """
    return _power(fill(items, num_bits, num_hashes), items, num_hashes)


@vectorize
def second_order_fpr(items: float, num_bits: float, num_hashes: float) -> float:
    """Return the exact rate up to terms of order 1/m^2, in constant time.

    ``(mu/m)^k (1 + k(k-1)/2 var/mu^2)`` with X occupied bits after N = kn throws, mu = E[X] and

        var = m(m-1)(1-2/m)^N + m(1-1/m)^N - m^2(1-1/m)^(2N).

    Within 0.1 % of ``exact_fpr`` at m = 100, n = 10, k = 7 and 1e-5 at m = 1024, n = 100; use it
    when the recurrence is too slow. Raises ``ParameterError`` unless items >= 0, num_bits >= 1 and
    num_hashes > 0.

    Source: Taylor series of E[(X/m)^k] about the mean; moments of X as in any occupancy problem.

    >>> from fullbloom import theory
    >>> round(theory.second_order_fpr(items=100, num_bits=1024, num_hashes=7), 6)
    0.007366
    """
    bits = check_at_least("num_bits", num_bits, 1)
    share = fill(items, bits, num_hashes)
    if share == 0.0:
        return 0.0
    throws = float(items) * float(num_hashes)
    zero = _zero_share(throws, bits)
    # var = m (y1 - y2) + m^2 (y2 - y1^2) with y_j = (1 - j/m)^N. Compute the last bracket with expm1: its two
    # terms agree to about 1/m, so their difference would be lost from m = 10^8 on.
    apart = (bits - 1.0) ** 2
    drop = math.expm1(throws * math.log1p(-1.0 / apart)) if apart > 1.0 else -1.0
    variance = bits * (zero - zero * zero * (1.0 + drop)) + bits * bits * zero * zero * drop
    relative = max(0.0, variance) / (bits * share) ** 2
    return math.pow(share, float(num_hashes)) * (1.0 + num_hashes * (num_hashes - 1.0) / 2.0 * relative)


@vectorize
def intersection_fpr(
    items_a: float, items_b: float, items_both: float, num_bits: float, num_hashes: float
) -> float:
    """Return the rate of the AND of two filters: expected share of bits set in both, to the power k.

    The share is ``1 - y^a - y^b + y^u``, y = (1 - 1/m)^k, u = a + b - both. Never above either operand's
    ``classic_fpr`` and never below that of a new filter built from the common items, so rebuild the filter if
    you have the keys. Counts in keys. Raises ``ParameterError`` for a negative count or for items_both above
    either operand. Constant time.

    Source: inclusion-exclusion over the two filters' zero bits.

    >>> from fullbloom import theory
    >>> round(theory.intersection_fpr(1000, 1500, items_both=500, num_bits=10_000, num_hashes=4), 5)
    0.00281
    """
    both = check_non_negative("items_both", items_both)
    for name, value in (("items_a", items_a), ("items_b", items_b)):
        if both > check_non_negative(name, value):
            raise ParameterError(f"items_both must be at most {name} = {value}, got {items_both}")
    # P(set in both) = P(set by a common key) + P(not so) * P(set by a's own) * P(set by b's own): no
    # cancellation.
    common = fill(both, num_bits, num_hashes)
    own_a = fill(items_a - both, num_bits, num_hashes)
    own_b = fill(items_b - both, num_bits, num_hashes)
    # own_a and own_b are independent for a single cell, so this is exactly 1 - y^a - y^b + y^u.
    return math.pow(common + (1.0 - common) * own_a * own_b, float(num_hashes))


@vectorize
def hash_collision_fpr(items: float, hash_bits: float) -> float:
    """Return the rate caused by hash collisions alone: ``1 - (1 - 2^-b)^n``, about n / 2^b.

    A filter uses only ``hash_bits`` bits of a key, so no filter on that hash has a lower rate, whatever its
    size. At 32 bits and 40 million keys it is 0.93 %, as much as a filter of 10 bits per key; at 64 bits and
    10^9 keys it is 5e-11. It is also the rate of an exact set of b-bit fingerprints. Raises
    ``ParameterError`` unless items >= 0 and hash_bits > 0. Constant time.

    Source: Carter et al., "Exact and approximate membership testers", STOC 1978; RocksDB
    ``util/bloom_impl.h``.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.hash_collision_fpr(items=40_000_000, hash_bits=32), 5)
    0.00927
    """
    share = math.pow(2.0, -check_positive("hash_bits", hash_bits))
    return evaluate_law("any_of", share, check_non_negative("items", items))
