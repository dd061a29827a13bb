"""Laws of filters that forget: stable, aging, rolling.

The least possible error of any filter over a stream is ``bounds.stream_floor``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fullbloom.errors import ParameterError

from ._check import at_least, non_negative, open_unit, positive, whole
from ._law import law
from ._vector import vectorized

__all__ = [
    "RollingSize",
    "aging_capacity",
    "aging_num_hashes",
    "rolling_size",
    "stable_decrements",
    "stable_fpr",
    "stable_limit_fpr",
    "stable_recall",
    "stable_zeros",
]


# Of a cell of 8 bits.
_MOST_VALUE = 255


def _odds(num_cells: float, num_hashes: float) -> float:
    """``1/K - 1/m``."""
    cells = positive("num_cells", num_cells)
    hashes = at_least("num_hashes", num_hashes, 1)
    if cells <= hashes:
        raise ParameterError(f"num_cells must be above num_hashes, got {num_cells} and {num_hashes}")
    return 1.0 / hashes - 1.0 / cells


def _stable(num_cells: float, num_hashes: float, decrements: float, max_value: float) -> list[float]:
    """m, K, P and Max, checked."""
    decays = positive("decrements", decrements)
    _odds(num_cells, num_hashes)
    return [float(num_cells), float(num_hashes), decays, at_least("max_value", max_value, 1)]


def _cell_value(max_value: float) -> None:
    """Refuse a value that no cell of 8 bits holds."""
    if whole("max_value", max_value, 1) > _MOST_VALUE:
        raise ParameterError(f"max_value must be at most {_MOST_VALUE}, got {max_value}")


@vectorized
def stable_zeros(num_cells: float, num_hashes: float, decrements: float, max_value: float = 1) -> float:
    """Return the share of zeros in the long run: ``(1 / (1 + 1 / (P (1/K - 1/m))))^Max``.

    Exact in the mean: each key decrements P of m cells by one and then sets K cells to Max. 0.7692 for K = 3,
    P = 10, Max = 1. Raises ``ParameterError`` unless num_cells > num_hashes >= 1, decrements > 0 and
    max_value >= 1. Constant time.

    Source: Deng and Rafiei, "Approximately detecting duplicates for streaming data using stable Bloom
    filters", SIGMOD 2006.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.stable_zeros(num_cells=1000, num_hashes=3, decrements=36, max_value=3), 3)
    0.786
    """
    return law("stable_zeros", *_stable(num_cells, num_hashes, decrements, max_value))


@vectorized
def stable_limit_fpr(num_cells: float, num_hashes: float, decrements: float, max_value: float = 1) -> float:
    """Return ``(1 - z)^K``, the rate of a stable filter by the mean share z of zeros.

    The published rate. The true one is E[X^K] with X the share of other cells, which is above it by
    Jensen's inequality: a few percent in small filters, nothing in large ones. See :func:`stable_fpr`.

    Source: as :func:`stable_zeros`.

    >>> from fullbloom import theory
    >>> round(theory.stable_limit_fpr(num_cells=1e9, num_hashes=3, decrements=10), 4)
    0.0123
    """
    _, hashes, decays, most = _stable(num_cells, num_hashes, decrements, max_value)
    # 1 - z without the difference, which has no digits left where z is near 1.
    others = -math.expm1(-most * math.log1p(1.0 / (decays * _odds(num_cells, num_hashes))))
    return math.pow(others, hashes)


@vectorized
def stable_fpr(num_cells: float, num_hashes: float, decrements: float, max_value: float = 1) -> float:
    """Return the rate of a stable filter in the long run, the variation of its fill included.

    ``s^K (1 + Var/s^2)^(K(K-1)/2)``, s and Var the mean and the variance of the share of other cells, of
    which a key sets K by throws that may meet. Var is exact: a Markov chain for two cells, which a key
    decrements together with chance (P - d)/m at distance d below P, and never beyond. 0.985 % where the
    published mean alone says 0.980 % and a simulation 0.986 % (m = 1000, K = 3, P = 36, Max = 3); 3.30e-5,
    2.3e-5 and 3.29e-5 at m = 256, K = 6, P = 30, Max = 1. Where P is above 65, Var is a sum by Simpson's
    rule, with a relative error of the rate below 1e-6, from Max = 16 on 1e-4. Filters are sized by a bound,
    up to 4 % higher. Raises as :func:`stable_zeros`, and unless max_value is whole and at most 255. Cost:
    Max^2 steps for each of at most 65 distances (17 from Max = 16 on).

    Source: :func:`stable_zeros`, and the variance of a Markov chain for a pair of cells.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.stable_fpr(num_cells=1000, num_hashes=3, decrements=36, max_value=3), 4)
    0.0098
    """
    shape = _stable(num_cells, num_hashes, decrements, max_value)
    _cell_value(max_value)
    return law("stable_fpr", *shape)


@vectorized
def stable_decrements(fpr: float, num_hashes: float, max_value: float = 1, num_cells: float = 1e18) -> float:
    """Return the P at which :func:`stable_limit_fpr` is ``fpr``; a real number, to be rounded up.

    ``P = 1 / ((1/(1 - F^(1/K))^(1/Max) - 1) (1/K - 1/m))``. At 1 % and Max = 1: 99.0, 18.0, 10.9, 8.65 and
    6.93 for K = 1, 2, 3, 4, 6; at K = 3: 35.6 for Max = 3 and 85.1 for Max = 7. Raises ``ParameterError``
    unless 0 < fpr < 1, num_hashes >= 1 and max_value >= 1. Constant time.

    Source: as :func:`stable_zeros`.

    >>> from fullbloom import theory
    >>> [round(theory.stable_decrements(0.01, num_hashes=k), 2) for k in (1, 2, 3, 4, 6)]
    [99.0, 18.0, 10.92, 8.65, 6.93]
    """
    odds = _odds(num_cells, num_hashes)
    share = math.pow(open_unit("fpr", fpr), 1.0 / float(num_hashes))
    return 1.0 / (math.expm1(-math.log1p(-share) / at_least("max_value", max_value, 1)) * odds)


@vectorized
def stable_recall(
    age: float, num_cells: float, num_hashes: float, decrements: float, max_value: int = 1
) -> float:
    """Return the chance that a key is still found after ``age`` other keys, in the stable state.

    ``(1 - z Pr(Poisson((P + K) age / m) >= Max))^K``: a cell is zero when its Max-th decrement came before
    the latest set by another key. Falls from 1 to the rate of false positives. Raises as
    :func:`stable_fpr`, and for age < 0. Cost: Max terms.

    Source: ours; the K cells are taken as independent.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.stable_recall(age=1000, num_cells=22_528, num_hashes=4, decrements=32, max_value=3), 2)
    0.52
    """
    shape = _stable(num_cells, num_hashes, decrements, max_value)
    passed = non_negative("age", age)
    _cell_value(max_value)
    return law("stable_recall", passed, *shape)


@vectorized
def aging_num_hashes(fpr: float) -> int:
    """Return the probes of each of the two classic buffers of an aging filter: ``floor(log2(1/e))``.

    e = 1 - sqrt(1 - fpr) is the rate of one buffer. 7 at 1 %, 10 at 0.1 %. Raises ``ParameterError`` unless
    0 < fpr < 1. Constant time.

    Source: Yoon, "Aging Bloom filter with two active buffers for dynamic sets", IEEE TKDE 22(1), 2010.

    >>> from fullbloom import theory
    >>> theory.aging_num_hashes([0.01, 0.001])
    [7, 10]
    """
    return max(1, math.floor(-math.log2(law("each_of", open_unit("fpr", fpr), 2))))


@vectorized
def aging_capacity(num_bits: float, fpr: float) -> float:
    """Return the window of an aging filter with two classic buffers of m/2 bits: ``m ln 2 / (2 k)``.

    0.0495 m at 1 %, 0.0347 m at 0.1 %: keys of which none of the last is ever missed. Raises
    ``ParameterError`` unless num_bits >= 1 and 0 < fpr < 1. Constant time.

    Source: as :func:`aging_num_hashes`.

    >>> from fullbloom import theory
    >>> [round(theory.aging_capacity(1.0, p), 4) for p in (0.01, 0.001)]
    [0.0495, 0.0347]
    """
    return at_least("num_bits", num_bits, 1) * math.log(2.0) / (2.0 * aging_num_hashes(fpr))


class RollingSize(NamedTuple):
    """A rolling filter of three generations in cells of two bits."""

    keys_a_generation: int
    num_hashes: int
    num_cells: int


@vectorized
def rolling_size(capacity: int, fpr: float) -> RollingSize:
    """Return the size of Bitcoin Core's rolling filter: three generations in cells of two bits.

    n_gen = ceil(n/2), k = round(log2(1/p)), ``ceil(-3 k n_gen / ln(1 - p^(1/k)))`` cells, each of two bits
    (the number of the generation that set it). Raises ``ParameterError`` unless capacity >= 1 is whole and
    0 < fpr < 1. Constant time.

    Source: Bitcoin Core, ``CRollingBloomFilter``, 2015.

    >>> from fullbloom import theory
    >>> theory.rolling_size(120_000, 0.000001)
    RollingSize(keys_a_generation=60000, num_hashes=20, num_cells=5175951)
    """
    keys, rate = whole("capacity", capacity, 1), open_unit("fpr", fpr)
    generation, hashes = (keys + 1) // 2, max(1, min(50, round(-math.log2(rate))))
    cells = math.ceil(-3.0 * hashes * generation / math.log1p(-math.pow(rate, 1.0 / hashes)))
    return RollingSize(generation, hashes, cells)
