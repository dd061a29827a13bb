"""What errors and memory cost: the rate to choose, and the information that the bits carry.

Source: Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.
"""

from __future__ import annotations

import math

from ._check import check_at_least, check_open_unit, check_positive
from ._vector import vectorize

_LN2 = math.log(2.0)
#: The logarithm of 8 (ln 2)^2, bits of a byte times the slope of the bits per key.
_LOG_BYTES = math.log(8 * _LN2 * _LN2)
_HIGHEST = 0.5
#: The logarithm of the least rate that is a float.
_LOWEST = -700.0
_HALF = 0.5


@vectorize
def cheapest_fpr(
    items: float, absent_lookups: float, cost_of_false_positive: float, cost_of_byte: float
) -> float:
    """Return the rate at which wrong answers and memory together cost least, at most 0.5.

    ``absent_lookups`` lookups of absent keys over the filter's life cost ``cost_of_false_positive`` for each
    false positive, and a byte of the filter costs ``cost_of_byte`` over the same time, in one currency. A
    classic filter costs ``L c p + b n log2(1/p) / (8 ln 2)``, least at ``p = b n / (8 (ln 2)^2 L c)``. At
    that rate, wrong answers cost as much as 0.26 bytes per key. At 0.5 a filter hardly pays. Raises
    ``ParameterError`` unless all four are above 0. Constant time.

    Source: the derivative of that sum; Bloom 1970 weighs the same two.

    >>> from fullbloom import theory
    >>> f"{theory.cheapest_fpr(10_000_000, 50_000_000, cost_of_false_positive=2e-6, cost_of_byte=1e-8):.5f}"
    '0.00026'
    """
    # Logarithms, since products of large or small numbers may leave the range of floats.
    wrong = math.log(check_positive("absent_lookups", absent_lookups)) + math.log(
        check_positive("cost_of_false_positive", cost_of_false_positive)
    )
    space = math.log(check_positive("items", items)) + math.log(check_positive("cost_of_byte", cost_of_byte))
    return math.exp(min(math.log(_HIGHEST), max(space - _LOG_BYTES - wrong, _LOWEST)))


@vectorize
def information_per_key(fpr: float, num_hashes: float) -> float:
    """Return the bits of information per key in the bit array of a filter: ``m/n H(fill)``.

    With k hashes a rate p needs a fill of ``p^(1/k)`` and ``m/n = -k / ln(1 - fill)`` bits per key; each bit
    carries H(fill) bits of information. At k = log2(1/p) half of the bits are set, and the array cannot be
    compressed. With k = 1 the array is longer and nearly empty: at 1 % it has 99.5 bits per key, which carry
    8.04 bits. Compressed, that is less than the 9.59 bits of the half-full filter, and about what a
    Golomb-coded set stores (``golomb_bits_per_key``). Raises ``ParameterError`` unless 0 < fpr < 1 and
    num_hashes >= 1. Constant time.

    Source: the entropy of the bits; Mitzenmacher, "Compressed Bloom filters", PODC 2001.

    >>> from fullbloom import theory
    >>> round(theory.information_per_key(0.01, 1), 2), round(theory.information_per_key(2**-7, 7), 2)
    (8.04, 10.1)
    """
    rate = check_open_unit("fpr", fpr)
    hashes = check_at_least("num_hashes", num_hashes, 1)
    power = math.log(rate) / hashes
    filled = math.exp(power)
    # The logarithm of the share of zeros, exact at both ends.
    zeros = math.log1p(-filled) if filled < _HALF else math.log(-math.expm1(power))
    entropy = -(filled * power + math.exp(zeros) * zeros) / _LN2
    return -hashes / zeros * entropy
