"""Estimates of the number of keys from the number of one-bits, each with its standard deviation.

All estimates use one fact. Let y(S) = (m/k) (-ln(1 - X_S/m)) be the estimate for the set S from its X_S
one-bits. To first order the errors of two such estimates, for filters with the same hashing, have the
covariance

    Cov(y(S), y(T)) = m/k^2 g(k |S and T| / m),      g(t) = e^t - 1 - t,

(the zero bits of an occupancy problem with kn throws, as in linear counting). The deviations below apply
that rule to sums and differences, at the estimated sizes. They describe filters with the layouts "classic"
and "partitioned"; a blocked filter scatters a little more. Independent of the core; tests check that both
agree.

The number of bits is whole. Where few keys collide (in some ten bits or fewer), two deviations of a Poisson
number cover as little as 84 % of the filters. The reported deviation of a number of keys therefore includes
half a bit's worth of keys, e^t/2k, added in quadrature, but at most three times the variance: two such
deviations cover 94 % or more, and an estimate without variance stays exact.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_non_negative, check_positive
from ._vector import vectorize


class Estimate(NamedTuple):
    """An estimated quantity and the standard deviation of the estimate, in the same unit."""

    value: float
    std: float


_UNKNOWN = Estimate(math.nan, math.inf)
# Below this load g(t) = t^2/2 + t^3/6 + t^4/24 is exact to 2e-11; the difference would lose 6 digits or more.
_SERIES_BELOW = 1e-3
# Above this load g(t) is e^t to the last digit of a float.
_WIDE_LOAD = 60.0


def _scatter(load: float) -> float:
    """Return g(t) = e^t - 1 - t, from its series where the difference would cancel."""
    if load < _SERIES_BELOW:
        return load * load / 2.0 * (1.0 + load / 3.0 * (1.0 + load / 4.0))
    return math.expm1(load) - load


def _widen_deviation(variance: float, load: float, num_hashes: float) -> float:
    """Return the deviation, including half a bit's worth of keys at ``load``: see the module docstring."""
    unit = math.exp(load) / num_hashes
    return math.sqrt(variance + min(3.0 * variance, unit * unit / 4.0))


def _estimate_load(name: str, set_bits: float, num_bits: float) -> float:
    """Return the throws per bit, t = kn/m, that set so many bits; infinite for a full filter."""
    bits, ones = check_at_least("num_bits", num_bits, 1), check_non_negative(name, set_bits)
    if ones > bits:
        raise ParameterError(f"{name} must be at most num_bits = {num_bits}, got {set_bits}")
    return math.inf if ones == bits else -math.log1p(-ones / bits)


def _estimate_loads(
    bits_a: float, bits_b: float, bits_or: float, num_bits: float
) -> tuple[float, float, float]:
    """Check three counts against each other; return the loads of two filters and of their OR."""
    loads = (
        _estimate_load("bits_a", bits_a, num_bits),
        _estimate_load("bits_b", bits_b, num_bits),
        _estimate_load("bits_or", bits_or, num_bits),
    )
    if not max(bits_a, bits_b) <= bits_or <= bits_a + bits_b:
        raise ParameterError(
            f"bits_or must be between max(bits_a, bits_b) = {max(bits_a, bits_b)} and bits_a + bits_b = "
            f"{bits_a + bits_b}, got {bits_or}; count the one-bits of a | b"
        )
    return loads


@vectorize
def estimate_std(items: float, num_bits: float, num_hashes: float) -> float:
    """Return the standard deviation of :func:`estimate_items` at ``items`` keys.

    ``sqrt(m (e^t - t - 1)) / k`` with t = kn/m, in keys. At half fill 0.55 sqrt(m)/k: 245 keys (0.025 %) for
    a filter of 10^6 keys at 1 %. Raises ``ParameterError`` unless items >= 0, num_bits >= 1 and num_hashes >
    0. Constant time.

    Source: Whang, Vander-Zanden and Taylor, "A linear-time probabilistic counting algorithm", TODS 15(2),
    1990, for kn throws.

    >>> from fullbloom import theory
    >>> round(theory.estimate_std(items=1000, num_bits=10_000, num_hashes=7), 2)
    8.0
    """
    bits, hashes = check_at_least("num_bits", num_bits, 1), check_positive("num_hashes", num_hashes)
    load = check_non_negative("items", items) * hashes / bits
    # e^709 is the largest power of e that a float holds; its root goes twice as far.
    spread = math.exp(load / 2.0) if load > _WIDE_LOAD else math.sqrt(_scatter(load))
    return math.sqrt(bits) * spread / hashes


@vectorize
def estimate_items(set_bits: float, num_bits: float, num_hashes: float) -> Estimate:
    """Return the number of distinct keys that set ``set_bits`` bits: ``n* = -(m/k) ln(1 - X/m)``.

    The deviation is :func:`estimate_std` at n*, with half a bit. The bias, (e^t - 1)/(2k) keys, stays below
    one key up to a fill of 1 - 1/(2k). A full filter gives (inf, inf): its bits do not determine the count.
    Raises ``ParameterError`` unless 0 <= set_bits <= num_bits, num_bits >= 1 and num_hashes > 0. Constant
    time.

    Source: Swamidass and Baldi, "Mathematical correction for fingerprint similarity measures to improve
    chemical retrieval", J. Chem. Inf. Model. 47(3), 2007.

    >>> from fullbloom import theory
    >>> estimate = theory.estimate_items(set_bits=5034, num_bits=10_000, num_hashes=7)
    >>> round(estimate.value), round(estimate.std, 1)
    (1000, 8.0)
    """
    return _estimate_keys("set_bits", set_bits, num_bits, num_hashes)


def _estimate_keys(name: str, set_bits: float, num_bits: float, num_hashes: float) -> Estimate:
    """Return the estimate from ``set_bits`` one-bits; errors call that argument ``name``."""
    load = _estimate_load(name, set_bits, num_bits)
    hashes = check_positive("num_hashes", num_hashes)
    if math.isinf(load):
        return Estimate(math.inf, math.inf)
    if load < sys.float_info.min and set_bits:
        raise OverflowError
    value = load * num_bits / hashes
    return _require_finite(
        Estimate(value, _widen_deviation(estimate_std(value, num_bits, hashes) ** 2, load, hashes))
    )


def _require_finite(estimate: Estimate) -> Estimate:
    """Return ``estimate``; raise ``OverflowError`` if a float cannot hold its numbers."""
    if not all(map(math.isfinite, estimate)):
        raise OverflowError
    return estimate


@vectorize
def estimate_union(bits_or: float, num_bits: float, num_hashes: float) -> Estimate:
    """Return the size of the union of two sets from the one-bits of the OR of their filters.

    The OR of two filters with the same parameters is the filter of the union, bit for bit, so this is
    :func:`estimate_items` under a more specific name. Errors, cost and source are the same.

    >>> from fullbloom import theory
    >>> value, std = theory.estimate_union(bits_or=5507, num_bits=10_000, num_hashes=4)
    >>> round(value), round(std, 1)
    (2000, 16.3)
    """
    return _estimate_keys("bits_or", bits_or, num_bits, num_hashes)


@vectorize
def estimate_intersection(
    bits_a: float, bits_b: float, bits_or: float, num_bits: float, num_hashes: float
) -> Estimate:
    """Return the size of the intersection of two sets: ``A* + B* - U*``, at least 0.

    Takes the one-bits of the two filters and of their OR. The deviation is sqrt(m (g(tU) - g(tA) - g(tB) + 2
    g(tI)))/k, with the loads t = k|.|/m, and half a bit. The union determines it, so a small intersection of
    large sets is noise, and the deviation shows that. Counting the ones of the AND instead is badly biased
    upwards (654 for 500 in the example). If the OR is full, the size is unknown: (nan, inf). Raises
    ``ParameterError`` unless the three counts are consistent with each other and num_bits, and num_hashes >
    0. Constant time.

    Source: Swamidass and Baldi 2007; the estimate from the AND count in Papapetrou, Siberski and Nejdl,
    "Cardinality estimation and dynamic length adaptation for Bloom filters", 2010, is algebraically the same.

    >>> from fullbloom import theory
    >>> value, std = theory.estimate_intersection(3297, 4512, bits_or=5507, num_bits=10_000, num_hashes=4)
    >>> round(value), round(std, 1)
    (500, 9.8)
    """
    load_a, load_b, load_or = _estimate_loads(bits_a, bits_b, bits_or, num_bits)
    hashes = check_positive("num_hashes", num_hashes)
    if math.isinf(load_or):
        return _UNKNOWN
    both = max(0.0, load_a + load_b - load_or)
    spread = _scatter(load_or) - _scatter(load_a) - _scatter(load_b) + 2.0 * _scatter(both)
    variance = num_bits * max(0.0, spread) / (hashes * hashes)
    return _require_finite(Estimate(both * num_bits / hashes, _widen_deviation(variance, load_or, hashes)))


@vectorize
def estimate_jaccard(
    bits_a: float, bits_b: float, bits_or: float, num_bits: float, num_hashes: float
) -> Estimate:
    """Return the Jaccard similarity of two sets, |A and B| / |A or B|, between 0 and 1.

    ``(A* + B*)/U* - 1`` with the deviation of that ratio to first order. Two empty filters are equal sets:
    (1, 0). If the OR is full, the similarity is unknown: (nan, inf). Raises ``ParameterError`` as
    :func:`estimate_intersection`. Constant time.

    Source: Swamidass and Baldi 2007; the deviation follows the rule in the module docstring.

    >>> from fullbloom import theory
    >>> value, std = theory.estimate_jaccard(3297, 4512, bits_or=5507, num_bits=10_000, num_hashes=4)
    >>> round(value, 3), round(std, 4)
    (0.25, 0.0061)
    """
    load_a, load_b, load_or = _estimate_loads(bits_a, bits_b, bits_or, num_bits)
    check_positive("num_hashes", num_hashes)
    if math.isinf(load_or):
        return _UNKNOWN
    if load_or == 0.0:
        return Estimate(1.0, 0.0)
    ratio = (load_a + load_b) / load_or
    both = max(0.0, load_a + load_b - load_or)
    parts = _scatter(load_a) + _scatter(load_b)
    # Var(S/U) = (Var S - 2 (S/U) Cov(S, U) + (S/U)^2 Var U) / U^2 with S = A* + B*; m/k^2 over U^2 leaves
    # 1/(m tU^2).
    spread = parts + 2.0 * _scatter(both) - 2.0 * ratio * parts + ratio * ratio * _scatter(load_or)
    std = math.sqrt(max(0.0, spread) / num_bits) / load_or
    return _require_finite(Estimate(min(1.0, max(0.0, ratio - 1.0)), std))
