"""Laws of counters: thresholds of occurrences, overflow, increments that differ from key to key.

``num_cells`` m is the number of counters, ``num_hashes`` k the number of counters of a key. The laws assume
that each key was added once; a repeated key raises its own counters only, and so changes other keys' rates
less than as many distinct keys would.

The rates are the published forms, independent of the core, which includes the terms of order k^2/m; tests
check that both agree.
"""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_non_negative, check_positive, check_whole
from ._vector import vectorize

_CUT = 1e-18
# Thresholds beyond this need counters of more than 16 bits; each unit of the threshold costs a term.
_MOST_THRESHOLD = 1 << 15
_MOST_HASHES = 4096
_MAX_BITS = 16


def _log_binomial_tail(trials: float, share: float, least: int) -> float:
    """Return ln P(Bin(trials, share) >= least), without underflow or cancellation."""
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

    # Multiply ratios of neighbours: differences of lgamma lose all digits from 1e10 trials on.
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


@vectorize
def threshold_fpr(
    items: float, num_cells: float, num_hashes: int, threshold: int = 1, occurrences: int = 0
) -> float:
    """Return the rate of keys that seem to occur ``threshold`` times: ``P(Bin(kn, 1/m) >= t - j)^k``.

    A key is reported when all of its counters are at ``threshold`` or more; ``occurrences`` j is its true
    count, 0 for a key never added. Threshold 1 is plain membership, with the classic rate. At ``j >=
    threshold`` the result is 1: no such key is ever missed. Raises ``ParameterError`` unless items >= 0,
    num_cells >= 1, num_hashes >= 1, threshold from 1 to 32,768 and occurrences >= 0, the last three whole.
    Costs ``threshold`` terms, and some tens more.

    Source: Kim et al., count threshold of counting Bloom filters; Fan et al. 2000 for threshold 1.

    >>> from fullbloom import theory
    >>> f"{theory.threshold_fpr(items=1000, num_cells=10_000, num_hashes=9, threshold=2):.2e}"
    '1.63e-06'
    """
    keys, cells = check_non_negative("items", items), check_at_least("num_cells", num_cells, 1)
    hashes, least = check_whole("num_hashes", num_hashes, 1), _check_threshold(threshold)
    missing = max(0, least - check_whole("occurrences", occurrences, 0))
    return math.exp(hashes * _log_binomial_tail(keys * hashes, 1.0 / cells, missing))


@vectorize
def best_threshold_hashes(items: float, num_cells: float, threshold: int = 1) -> int:
    """Return the k with the lowest ``threshold_fpr``: it grows with the threshold.

    The rate falls with k to its minimum and rises after it, so the search halves a range of k. Raises
    ``ParameterError`` unless items > 0, num_cells >= 1 and threshold is whole, from 1 to 32,768. Costs some
    25 evaluations of the rate.

    Source: Kim et al., count threshold of counting Bloom filters.

    >>> from fullbloom import theory
    >>> [theory.best_threshold_hashes(1000, 10_000, t) for t in (1, 2, 3, 4, 5)]
    [7, 9, 12, 14, 16]
    """
    keys, cells = check_positive("items", items), check_at_least("num_cells", num_cells, 1)
    least = _check_threshold(threshold)

    def rate(hashes: int) -> float:
        # Compare logarithms: the rates themselves leave the range of floats. With fewer than `least` throws
        # no counter can reach the threshold, so those k are excluded.
        tail = _log_binomial_tail(keys * hashes, 1.0 / cells, least)
        return hashes * tail if tail > -math.inf else math.inf

    low, high = 1, _MOST_HASHES
    while low < high:
        middle = (low + high) // 2
        here = rate(middle)
        low, high = (low, middle) if here < math.inf and rate(middle + 1) >= here else (middle + 1, high)
    if low == _MOST_HASHES:
        raise ParameterError(
            f"items is too low for threshold {least}: no k below {_MOST_HASHES} is best, got {items}"
        )
    return low


@vectorize
def counter_overflow(load: float, counter_bits: int) -> float:
    """Return the probability that a counter overflows: ``P(Poisson(load) >= 2^w)``, load = kn/m.

    At the optimal load ln 2, four bits: 6.8e-17. A counter of w bits that counts to 2^w - 1 and then stops is
    stuck from its 2^w-th increment on (``fullbloom`` treats it as stuck at 2^w - 1 already, to be safe).
    Raises ``ParameterError`` unless load >= 0 and counter_bits is whole and from 1 to 16.

    Source: Fan, Cao, Almeida and Broder, "Summary cache", IEEE/ACM ToN 8(3), 2000.

    >>> import math
    >>> from fullbloom import theory
    >>> f"{theory.counter_overflow(math.log(2), 4):.1e}"
    '7.1e-17'
    """
    mean, least = check_non_negative("load", load), 2 ** _check_counter_bits(counter_bits)
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


@vectorize
def counter_overflow_bound(num_cells: float, counter_bits: int = 4) -> float:
    """Return a bound on the probability that any counter overflows: ``m (e ln 2 / 2^w)^(2^w)``.

    Holds for a filter at its optimal load, kn <= m ln 2; 1.37e-15 m for four bits. Raises ``ParameterError``
    unless num_cells >= 1 and counter_bits is whole and from 1 to 16.

    Source: Fan, Cao, Almeida and Broder, "Summary cache", IEEE/ACM ToN 8(3), 2000.

    >>> from fullbloom import theory
    >>> f"{theory.counter_overflow_bound(1, 4):.2e}"
    '1.37e-15'
    """
    cells, top = check_at_least("num_cells", num_cells, 1), 2.0 ** _check_counter_bits(counter_bits)
    return min(1.0, cells * math.pow(math.e * math.log(2.0) / top, top))


def _check_threshold(value: object) -> int:
    threshold = check_whole("threshold", value, 1)
    if threshold > _MOST_THRESHOLD:
        raise ParameterError(f"threshold must be at most {_MOST_THRESHOLD}, got {value}")
    return threshold


def _check_counter_bits(counter_bits: object) -> int:
    bits = check_whole("counter_bits", counter_bits, 1)
    if bits > _MAX_BITS:
        raise ParameterError(f"counter_bits must be between 1 and {_MAX_BITS}, got {counter_bits}")
    return bits


@vectorize
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
    cells, hashes = check_at_least("num_cells", num_cells, 1), check_whole("num_hashes", num_hashes, 1)
    throws, length = check_non_negative("items", items) * hashes, check_whole("increments", increments, 1)
    if cells == 1.0:
        raise ParameterError(f"num_cells must be greater than 1, got {num_cells}")
    none = math.exp(throws * math.log1p(-1.0 / cells))
    one = throws / (cells - 1.0) * none
    two = throws * max(0.0, throws - 1.0) / 2.0 / (cells - 1.0) ** 2 * none
    share = 1.0 - none - (length - 1.0) / length * one - (length**2 - 1.0) / (6.0 * length**2) * two
    return math.pow(min(1.0, max(0.0, share)), hashes)
