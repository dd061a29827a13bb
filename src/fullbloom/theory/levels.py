"""Rates for several filters that share a budget of bits, such as those of an LSM tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import check_iterable, check_non_negative, check_positive

if TYPE_CHECKING:
    from collections.abc import Iterable


def level_fprs(capacities: Iterable[float], num_bits: float) -> list[float]:
    """Return the rates whose sum is least, for filters of these many keys that share ``num_bits``.

    Each rate is proportional to the number of keys, ``min(1, c n_i)``, where c uses up the bits: ``sum of n_i
    ln(1/p_i) = num_bits (ln 2)^2``. A rate of 1 means that this filter is not worth its bits. A lookup of an
    absent key reads as many tables as the sum of the rates, so filters of small levels get more bits per key.
    Raises ``ParameterError`` unless there is a level, all capacities are > 0 and num_bits is >= 0. Takes time
    proportional to the square of the number of levels.

    Source: Dayan, Athanassoulis, Idreos, "Monkey: optimal navigable key-value store", SIGMOD 2017, section 4.

    >>> from fullbloom import theory
    >>> rates = theory.level_fprs([1000, 10_000, 100_000], num_bits=555_000)
    >>> [round(rate, 4) for rate in rates], round(sum(rates), 3)
    ([0.0012, 0.0116, 0.1161], 0.129)
    >>> round(3 * theory.fpr(111_000, 555_000), 3)  # five bits for each key
    0.276
    """
    sizes = [check_positive("capacities", number) for number in check_iterable("capacities", capacities)]
    bits = check_non_negative("num_bits", num_bits)
    if not sizes:
        raise ParameterError("capacities must have at least one number")
    filtered = sorted(sizes)
    while filtered:
        largest = filtered[-1]
        shares = [size / largest for size in filtered]
        entropy = math.fsum(share * math.log(size) for share, size in zip(shares, filtered, strict=True))
        log_scale = -(bits / largest * math.log(2) ** 2 + entropy) / math.fsum(shares)
        if log_scale + math.log(largest) <= 0.0:
            return [math.exp(min(0.0, log_scale + math.log(size))) for size in sizes]
        filtered.pop()
    return [1.0] * len(sizes)
