"""Laws of counters: thresholds of occurrences, overflow, increments that differ from key to key.

``num_cells`` m is the number of counters, ``num_hashes`` k the number of them a key touches. Keys are taken
to have come once each; a repeated key lifts its own counters only, and so changes other keys' rates less than
as many distinct keys would.

The rates are the published forms, independent of the core, which has the terms of order k^2/m too; tests hold
both together.
"""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import at_least, non_negative, positive, whole
from ._vector import vectorized

__all__ = [
    "best_threshold_hashes",
    "counter_overflow",
    "counter_overflow_bound",
    "threshold_fpr",
    "variable_increment_fpr",
]

_CUT = 1e-18
# A counter that is compared with more has 16 bits; the cost is a term each.
_MOST_THRESHOLD = 1 << 15
_MOST_HASHES = 4096
_MAX_BITS = 16


def _log_binomial_tail(trials: float, share: float, least: int) -> float:
    """Ln P(Bin(trials, share) >= least), without cancellation on either side of the mean, or underflow."""
    if least == 0:
        return 0.0
    if trials < least or share <= 0.0:
        return -math.inf
    if share >= 1.0:
        return 0.0
    log_none, odds = trials * math.log1p(-share), share / (1.0 - share)
    if least == 1:
        return math.log(-math.expm1(log_none)) if log_none > -1.0 else math.log1p(-math.exp(log_none))

    def rise(count: int) -> float:
        return max(0.0, (trials - count) / (count + 1) * odds)

    # By the ratios of neighbours: differences of lgamma lose all digits from 1e10 trials on.
    log_weight = math.fsum([log_none, *(math.log(rise(count)) for count in range(least))])
    total, count = 0.0, least
    if least <= trials * share:
        weight = math.exp(log_weight)
        while count > 0 and weight > _CUT * total:
            count -= 1
            weight /= rise(count)
            total += weight
        return math.log1p(-min(1.0, total)) if total < 1.0 else -math.inf
    weight = 1.0
    while weight > _CUT * total:
        total += weight
        weight *= rise(count)
        count += 1
    return min(0.0, log_weight + math.log(total))


@vectorized
def threshold_fpr(
    items: float, num_cells: float, num_hashes: int, threshold: int = 1, occurrences: int = 0
) -> float:
    """Return the rate of keys that seem to have come ``threshold`` times: ``P(Bin(kn, 1/m) >= t - j)^k``.

    A key is reported when all of its counters are at ``threshold`` or more; ``occurrences`` j is how often
    it came in truth, 0 for a key never added. Threshold 1 is plain membership, with the classic rate. At
    ``j >= threshold`` the answer is 1: no such key is ever missed. Raises
    ``ParameterError`` unless items >= 0, num_cells >= 1, num_hashes >= 1, threshold from 1 to 32,768 and
    occurrences >= 0, the last three whole. Cost: ``threshold`` terms, and some tens.

    Source: Kim et al., count threshold of counting Bloom filters; Fan et al. 2000 for threshold 1.

    >>> from fullbloom import theory
    >>> f"{theory.threshold_fpr(items=1000, num_cells=10_000, num_hashes=9, threshold=2):.2e}"
    '1.63e-06'
    """
    keys, cells = non_negative("items", items), at_least("num_cells", num_cells, 1)
    hashes, least = whole("num_hashes", num_hashes, 1), _threshold(threshold)
    missing = max(0, least - whole("occurrences", occurrences, 0))
    return math.exp(hashes * _log_binomial_tail(keys * hashes, 1.0 / cells, missing))


@vectorized
def best_threshold_hashes(items: float, num_cells: float, threshold: int = 1) -> int:
    """Return the k with the least ``threshold_fpr``: it grows with the threshold.

    The rate falls with k to its least value and rises after it, so the search halves a range of k. Raises
    ``ParameterError`` unless items > 0, num_cells >= 1 and threshold is whole, from 1 to 32,768. Costs some
    25 evaluations of the rate.

    Source: Kim et al., count threshold of counting Bloom filters.

    >>> from fullbloom import theory
    >>> [theory.best_threshold_hashes(1000, 10_000, t) for t in (1, 2, 3, 4, 5)]
    [7, 9, 12, 14, 16]
    """
    keys, cells = positive("items", items), at_least("num_cells", num_cells, 1)
    least = _threshold(threshold)

    def rate(hashes: int) -> float:
        # Logarithms: the rates themselves leave the range of floats. Below `least` throws no counter can
        # reach the threshold: those k say nothing.
        tail = _log_binomial_tail(keys * hashes, 1.0 / cells, least)
        return hashes * tail if tail > -math.inf else math.inf

    low, high = 1, _MOST_HASHES
    while low < high:
        middle = (low + high) // 2
        here = rate(middle)
        low, high = (low, middle) if here < math.inf and rate(middle + 1) >= here else (middle + 1, high)
    if low == _MOST_HASHES:
        raise ParameterError(
            f"items must be more for threshold {least}: no k below {_MOST_HASHES} is best, got {items}"
        )
    return low


@vectorized
def counter_overflow(load: float, counter_bits: int) -> float:
    """Return the probability that a counter overflows: ``P(Poisson(load) >= 2^w)``, load = kn/m.

    At the optimal load ln 2, four bits: 6.8e-17. A counter of w bits that counts to 2^w - 1 and then stays is
    stuck from its 2^w-th increment on (``fullbloom`` calls it stuck at 2^w - 1 already, to be safe). Raises
    ``ParameterError`` unless load >= 0 and counter_bits is whole and from 1 to 16.

    Source: Fan, Cao, Almeida and Broder, "Summary cache", IEEE/ACM ToN 8(3), 2000.

    >>> import math
    >>> from fullbloom import theory
    >>> f"{theory.counter_overflow(math.log(2), 4):.1e}"
    '7.1e-17'
    """
    mean, least = non_negative("load", load), 2 ** _bits(counter_bits)
    if mean == 0.0:
        return 0.0

    weight = math.exp(
        math.fsum([-mean, *(math.log(mean) - math.log(count) for count in range(1, least + 1))])
    )
    total, count = 0.0, least
    if least <= mean:
        while count > 0 and weight > _CUT * total:
            weight *= count / mean
            count -= 1
            total += weight
        return min(1.0, max(0.0, 1.0 - total))
    while weight > _CUT * total:
        total += weight
        count += 1
        weight *= mean / count
    return min(1.0, total)


@vectorized
def counter_overflow_bound(num_cells: float, counter_bits: int = 4) -> float:
    """Return a bound on the probability that any counter overflows: ``m (e ln 2 / 2^w)^(2^w)``.

    For a filter at its optimal load, kn <= m ln 2; 1.37e-15 m for four bits. Raises ``ParameterError`` unless
    num_cells >= 1 and counter_bits is whole and from 1 to 16.

    Source: Fan, Cao, Almeida and Broder, "Summary cache", IEEE/ACM ToN 8(3), 2000.

    >>> from fullbloom import theory
    >>> f"{theory.counter_overflow_bound(1, 4):.2e}"
    '1.37e-15'
    """
    cells, top = at_least("num_cells", num_cells, 1), 2.0 ** _bits(counter_bits)
    return min(1.0, cells * math.pow(math.e * math.log(2.0) / top, top))


def _threshold(value: object) -> int:
    threshold = whole("threshold", value, 1)
    if threshold > _MOST_THRESHOLD:
        raise ParameterError(f"threshold must be at most {_MOST_THRESHOLD}, got {value}")
    return threshold


def _bits(counter_bits: object) -> int:
    bits = whole("counter_bits", counter_bits, 1)
    if bits > _MAX_BITS:
        raise ParameterError(f"counter_bits must be between 1 and {_MAX_BITS}, got {counter_bits}")
    return bits


@vectorized
def variable_increment_fpr(items: float, num_cells: float, num_hashes: int, increments: int = 4) -> float:
    """Return the rate of a variable-increment filter whose probes add L to 2L - 1.

    ``(1 - B(0) - (L-1)/L B(1) - (L^2-1)/(6 L^2) B(2))^k``, B(i) = P(Bin(kn, 1/m) = i): an absent key's probe
    is rejected by an empty counter, by all but one of L single increments, and by the pairs whose sum cannot
    hold its own. L = 1 is the counting filter. Raises ``ParameterError`` unless items >= 0, num_cells > 1,
    and num_hashes and increments are whole and at least 1. Constant time.

    Source: Rottenstreich, Kanizo and Keslassy, IEEE/ACM ToN 22(4), 2014.

    >>> from fullbloom import theory
    >>> [f"{theory.variable_increment_fpr(1000, 10_000, 4, L):.3e}" for L in (1, 2, 4, 8)]
    ['1.182e-02', '1.274e-03', '2.088e-04', '5.538e-05']
    """
    cells, hashes = at_least("num_cells", num_cells, 1), whole("num_hashes", num_hashes, 1)
    throws, length = non_negative("items", items) * hashes, whole("increments", increments, 1)
    if cells == 1.0:
        raise ParameterError(f"num_cells must be greater than 1, got {num_cells}")
    none = math.exp(throws * math.log1p(-1.0 / cells))
    one = throws / (cells - 1.0) * none
    two = throws * max(0.0, throws - 1.0) / 2.0 / (cells - 1.0) ** 2 * none
    share = 1.0 - none - (length - 1.0) / length * one - (length**2 - 1.0) / (6.0 * length**2) * two
    return math.pow(min(1.0, max(0.0, share)), hashes)
