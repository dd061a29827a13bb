"""Laws of filters that forget: stable, aging, rolling.

``bounds.stream_floor`` is the lowest possible error of any filter over a stream.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_non_negative, check_open_unit, check_positive, check_whole
from ._vector import vectorize
from .constructor import evaluate_law

# The largest value of an 8-bit cell.
_MOST_VALUE = 255


def _check_odds(num_cells: float, num_hashes: float) -> float:
    """Check the arguments; return ``1/K - 1/m``."""
    cells = check_positive("num_cells", num_cells)
    hashes = check_at_least("num_hashes", num_hashes, 1)
    if cells <= hashes:
        raise ParameterError(f"num_cells must be above num_hashes, got {num_cells} and {num_hashes}")
    return 1.0 / hashes - 1.0 / cells


def _check_stable(num_cells: float, num_hashes: float, decrements: float, max_value: float) -> list[float]:
    """Check m, K, P and Max; return them."""
    decays = check_positive("decrements", decrements)
    _check_odds(num_cells, num_hashes)
    return [float(num_cells), float(num_hashes), decays, check_at_least("max_value", max_value, 1)]


def _check_max_value(max_value: float) -> None:
    """Reject a value that does not fit into an 8-bit cell."""
    if check_whole("max_value", max_value, 1) > _MOST_VALUE:
        raise ParameterError(f"max_value must be at most {_MOST_VALUE}, got {max_value}")


@vectorize
def stable_zeros(num_cells: float, num_hashes: float, decrements: float, max_value: float = 1) -> float:
    """Return the share of zeros in the long run: ``(1 / (1 + 1 / (P (1/K - 1/m))))^Max``.

    Exact in the mean: each key decrements P of m cells by one and then sets K cells to Max. 0.7692 for K = 3,
    P = 10, Max = 1. Raises ``ParameterError`` unless num_cells > num_hashes >= 1, decrements > 0 and
    max_value >= 1. Constant time.

    Source: Deng and Rafiei, "Approximately detecting duplicates for streaming data using stable Bloom
    filters", SIGMOD 2006.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.stable_zeros(num_cells=1000, num_hashes=3, decrements=36, max_value=3), 3)
    0.786
    """
    return evaluate_law("stable_zeros", *_check_stable(num_cells, num_hashes, decrements, max_value))


@vectorize
def stable_limit_fpr(num_cells: float, num_hashes: float, decrements: float, max_value: float = 1) -> float:
    """Return ``(1 - z)^K``, the rate of a stable filter by the mean share z of zeros.

    The published rate. The true rate is E[X^K] with X the share of non-zero cells, which is higher by
    Jensen's inequality: by a few percent in small filters, by nothing in large ones. See :func:`stable_fpr`.

    Source: as :func:`stable_zeros`.

    >>> from fullbloom import theory
    >>> round(theory.stable_limit_fpr(num_cells=1e9, num_hashes=3, decrements=10), 4)
    0.0123
    """
    _, hashes, decays, most = _check_stable(num_cells, num_hashes, decrements, max_value)
    # Compute 1 - z without the difference, which has no digits left when z is near 1.
    others = -math.expm1(-most * math.log1p(1.0 / (decays * _check_odds(num_cells, num_hashes))))
    return math.pow(others, hashes)


@vectorize
def stable_fpr(num_cells: float, num_hashes: float, decrements: float, max_value: float = 1) -> float:
    """Return the rate of a stable filter in the long run, including the variance of its fill.

    ``s^K (1 + Var/s^2)^(K(K-1)/2)``, s and Var the mean and the variance of the share of non-zero cells. A
    key sets K cells by throws that may coincide. Var is exact: a Markov chain for two cells, which a key
    decrements together with chance (P - d)/m at distance d below P, and never beyond. At m = 1000, K = 3,
    P = 36, Max = 3 it gives 0.985 %, the published mean alone 0.980 %, a simulation 0.986 %; at m = 256,
    K = 6, P = 30, Max = 1 the three give 3.30e-5, 2.3e-5 and 3.29e-5. For P above 65, Var is a sum by
    Simpson's rule, with a relative error of the rate below 1e-6, from Max = 16 on 1e-4. Filters are sized by
    a bound, up to 4 % higher. Raises as :func:`stable_zeros`, and unless max_value is whole and at most 255.
    Cost: Max^2 steps for each of at most 65 distances (17 from Max = 16 on).

    Source: :func:`stable_zeros`, and the variance of a Markov chain for a pair of cells.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.stable_fpr(num_cells=1000, num_hashes=3, decrements=36, max_value=3), 4)
    0.0098
    """
    shape = _check_stable(num_cells, num_hashes, decrements, max_value)
    _check_max_value(max_value)
    return evaluate_law("stable_fpr", *shape)


@vectorize
def stable_decrements(fpr: float, num_hashes: float, max_value: float = 1, num_cells: float = 1e18) -> float:
    """Return the P at which :func:`stable_limit_fpr` is ``fpr``, a real number; round it up.

    ``P = 1 / ((1/(1 - F^(1/K))^(1/Max) - 1) (1/K - 1/m))``. At 1 % and Max = 1: 99.0, 18.0, 10.9, 8.65 and
    6.93 for K = 1, 2, 3, 4, 6; at K = 3: 35.6 for Max = 3 and 85.1 for Max = 7. Raises ``ParameterError``
    unless 0 < fpr < 1, num_hashes >= 1 and max_value >= 1. Constant time.

    Source: as :func:`stable_zeros`.

    >>> from fullbloom import theory
    >>> [round(theory.stable_decrements(0.01, num_hashes=k), 2) for k in (1, 2, 3, 4, 6)]
    [99.0, 18.0, 10.92, 8.65, 6.93]
    """
    odds = _check_odds(num_cells, num_hashes)
    share = math.pow(check_open_unit("fpr", fpr), 1.0 / float(num_hashes))
    return 1.0 / (math.expm1(-math.log1p(-share) / check_at_least("max_value", max_value, 1)) * odds)


@vectorize
def stable_recall(
    age: float, num_cells: float, num_hashes: float, decrements: float, max_value: int = 1
) -> float:
    """Return the chance that a key is still found after ``age`` other keys, in the stable state.

    ``(1 - z Pr(Poisson((P + K) age / m) >= Max))^K``: a cell is zero when its Max-th decrement came before
    the latest set by another key. Falls from 1 to the rate of false positives. Raises as
    :func:`stable_fpr`, and for age < 0. Cost: Max terms.

    Source: ours; assumes that the K cells are independent.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.stable_recall(age=1000, num_cells=22_528, num_hashes=4, decrements=32, max_value=3), 2)
    0.52
    """
    shape = _check_stable(num_cells, num_hashes, decrements, max_value)
    keys = check_non_negative("age", age)
    _check_max_value(max_value)
    return evaluate_law("stable_recall", keys, *shape)


@vectorize
def aging_num_hashes(fpr: float) -> int:
    """Return the probes of each of the two classic buffers of an aging filter: ``floor(log2(1/e))``.

    e = 1 - sqrt(1 - fpr) is the rate of one buffer. 7 at 1 %, 10 at 0.1 %. Raises ``ParameterError`` unless
    0 < fpr < 1. Constant time.

    Source: Yoon, "Aging Bloom filter with two active buffers for dynamic sets", IEEE TKDE 22(1), 2010.

    >>> from fullbloom import theory
    >>> theory.aging_num_hashes([0.01, 0.001])
    [7, 10]
    """
    return max(1, math.floor(-math.log2(evaluate_law("each_of", check_open_unit("fpr", fpr), 2))))


@vectorize
def aging_capacity(num_bits: float, fpr: float) -> float:
    """Return the window of an aging filter with two classic buffers of m/2 bits: ``m ln 2 / (2 k)``.

    0.0495 m at 1 %, 0.0347 m at 0.1 %: the filter never misses any of that many latest keys. Raises
    ``ParameterError`` unless num_bits >= 1 and 0 < fpr < 1. Constant time.

    Source: as :func:`aging_num_hashes`.

    >>> from fullbloom import theory
    >>> [round(theory.aging_capacity(1.0, p), 4) for p in (0.01, 0.001)]
    [0.0495, 0.0347]
    """
    return check_at_least("num_bits", num_bits, 1) * math.log(2.0) / (2.0 * aging_num_hashes(fpr))


class RollingSize(NamedTuple):
    """A rolling filter of three generations in cells of two bits."""

    keys_per_generation: int
    num_hashes: int
    num_cells: int


@vectorize
def rolling_size(capacity: int, fpr: float) -> RollingSize:
    """Return the size of Bitcoin Core's rolling filter: three generations in cells of two bits.

    n_gen = ceil(n/2), k = round(log2(1/p)), ``ceil(-3 k n_gen / ln(1 - p^(1/k)))`` cells, each of two bits
    (the number of the generation that set it). Raises ``ParameterError`` unless capacity >= 1 is whole and
    0 < fpr < 1. Constant time.

    Source: Bitcoin Core, ``CRollingBloomFilter``, 2015.

    >>> from fullbloom import theory
    >>> theory.rolling_size(120_000, 0.000001)
    RollingSize(keys_per_generation=60000, num_hashes=20, num_cells=5175951)
    """
    keys, rate = check_whole("capacity", capacity, 1), check_open_unit("fpr", fpr)
    generation, hashes = (keys + 1) // 2, max(1, min(50, round(-math.log2(rate))))
    cells = math.ceil(-3.0 * hashes * generation / math.log1p(-math.pow(rate, 1.0 / hashes)))
    return RollingSize(generation, hashes, cells)
