"""The scalable filter: a chain of stages, each larger and stricter than the one before.

Stage i (from 0) has the rate P_i = p (1 - r) r^i and the capacity n_0 s^i, with tightening ratio r and growth
s. A key is looked up in every stage, so the rates add up to at most p (1 - r)/(1 - r) = p, however far the
filter grows. (Giving the first stage the whole p, as several libraries do, lets the sum run to p/(1 - r):
twice p at r = 0.5, ten times at 0.9.)

Source of the whole module: Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom filters", Information
Processing Letters 101(6), 2007.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import (
    check_at_least,
    check_closed_unit,
    check_iterable,
    check_non_negative,
    check_open_unit,
    check_whole,
)
from ._finite import require_finite
from ._vector import vectorize
from .constructor import evaluate_law
from .sizing import num_bits as bits_of_stage

if TYPE_CHECKING:
    from collections.abc import Iterable

# 20 doubling stages hold a million times the first; 10,000 are more than anyone needs, and a loop must end.
_MOST_STAGES = 10_000
# No set has more keys, and the float used in the comparison ends at 2^1024.
_MOST_DOUBLINGS = 1000


def _check_stage(name: str, value: int) -> int:
    """Check a number of stages against the limit of the loops."""
    stage = check_whole(name, value, 0)
    if stage > _MOST_STAGES:
        raise ParameterError(f"{name} must be at most {_MOST_STAGES}, got {value}")
    return stage


@vectorize
def stage_fpr(fpr: float, tightening: float, stage: int = 0) -> float:
    """Return the rate of a stage: ``p (1 - r) r^i``; the first stage has ``p (1 - r)``.

    0 where the result is below the smallest float. Raises ``ParameterError`` unless fpr and tightening are in
    (0, 1) and stage is whole, from 0 to 10,000. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> theory.stage_fpr(0.001, tightening=0.5, stage=[0, 1, 2])
    [0.0005, 0.00025, 0.000125]
    """
    ratio = check_open_unit("tightening", tightening)
    return evaluate_law("stage_rate", check_open_unit("fpr", fpr), ratio, _check_stage("stage", stage))


@vectorize
def stage_num_hashes(fpr: float, tightening: float, stage: int = 0) -> int:
    """Return the hashes of a stage: ``ceil(log2(1/P_i))``, that is k_0 + i log2(1/r) rounded up.

    14 for the first stage at p = 0.1 % and r = 0.9, 11 at r = 0.5. Raises ``ParameterError`` as
    :func:`stage_fpr`. Constant time.

    >>> from fullbloom import theory
    >>> theory.stage_num_hashes(0.001, tightening=0.5, stage=[0, 1, 2])
    [11, 12, 13]
    """
    ratio = check_open_unit("tightening", tightening)
    # Do not use stage_fpr: the logarithm has a value even if the rate is below the smallest float.
    first = -math.log2(check_open_unit("fpr", fpr) * (1.0 - ratio))
    exponent = first - _check_stage("stage", stage) * math.log2(ratio)
    # 1e-9: a rate that is a power of two in real numbers must not gain a hash from the last bit of a float.
    return max(1, math.ceil(exponent - 1e-9))


@vectorize
def stage_capacity(first_capacity: float, growth: float, stage: int = 0) -> int:
    """Return the capacity of a stage: ``n_0 s^i``, rounded to a whole number.

    Exact if first_capacity and growth are whole, and independent of the core, which rounds down and stops
    at 10^18; tests check that both agree. Raises ``ParameterError`` unless first_capacity >= 1,
    growth >= 1 and stage is whole, from 0 to 10,000, or if the result would be above 2^1000. Constant time.

    >>> from fullbloom import theory
    >>> theory.stage_capacity(1000, growth=2, stage=[0, 1, 2])
    [1000, 2000, 4000]
    """
    first, factor = check_at_least("first_capacity", first_capacity, 1), check_at_least("growth", growth, 1)
    steps = _check_stage("stage", stage)
    if math.log2(first) + steps * math.log2(factor) > _MOST_DOUBLINGS:
        raise ParameterError(
            f"stage must keep first_capacity * growth^stage below 2^{_MOST_DOUBLINGS}, got {stage}"
        )
    if first.is_integer() and factor.is_integer():
        exact: int = int(first_capacity) * int(factor) ** steps
        return exact
    return round(first * factor**steps)


@vectorize
def scalable_capacity(first_capacity: float, growth: float, stages: int) -> int:
    """Return the capacity of all stages together: ``n_0 (s^l - 1)/(s - 1)``, or n_0 l for s = 1.

    Raises ``ParameterError`` unless first_capacity >= 1, growth >= 1 and stages is whole, from 0 to 10,000.
    Cost: one term per stage.

    >>> from fullbloom import theory
    >>> theory.scalable_capacity(1000, growth=2, stages=10)
    1023000
    """
    return sum(stage_capacity(first_capacity, growth, i) for i in range(_check_stage("stages", stages)))


@vectorize
def stages_for(items: float, first_capacity: float, growth: float) -> int:
    """Return the number of stages in use after ``items`` keys: at least 1.

    Raises ``ParameterError`` unless items >= 0, first_capacity >= 1 and growth >= 1, or if it would take more
    than 10,000 stages. Cost: one step per stage.

    >>> from fullbloom import theory
    >>> theory.stages_for([0, 1000, 1001, 1_000_000], first_capacity=1000, growth=2)
    [1, 1, 2, 10]
    """
    left = check_non_negative("items", items)
    for stage in range(_MOST_STAGES):
        left -= stage_capacity(first_capacity, growth, stage)
        if left <= 0.0:
            return stage + 1
    raise ParameterError(
        f"first_capacity must reach items = {items} in {_MOST_STAGES} stages, got {first_capacity}; "
        "raise it or growth"
    )


@require_finite
def compound_fpr(fprs: Iterable[float]) -> float:
    """Return the rate of a lookup in several filters: ``1 - prod(1 - P_i)``.

    At most the sum of the rates. Takes the rates as one iterable, so it is not elementwise; 0 for an empty
    iterable. Raises ``ParameterError`` unless every rate is between 0 and 1. Linear time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.compound_fpr([0.01, 0.005]), 6)
    0.01495
    """
    return evaluate_law(
        "any_among", *(check_closed_unit("fprs", rate) for rate in check_iterable("fprs", fprs))
    )


@vectorize
def scalable_fpr(fpr: float, tightening: float, stages: int) -> float:
    """Return the rate of a scalable filter with all its stages full; below ``fpr`` for any number of them.

    Raises ``ParameterError`` unless fpr and tightening are in (0, 1) and stages is whole, from 0 to 10,000.
    Cost: one term per stage.

    >>> from fullbloom import theory
    >>> [round(rate, 5) for rate in theory.scalable_fpr(0.01, tightening=0.5, stages=[1, 2, 10])]
    [0.005, 0.00749, 0.00996]
    """
    return compound_fpr(stage_fpr(fpr, tightening, i) for i in range(_check_stage("stages", stages)))


@vectorize
def scalable_num_bits(
    first_capacity: float, growth: float, fpr: float, tightening: float, stages: int
) -> int:
    """Return the bits of all stages together: the sum of ``n_i ln(1/P_i) / (ln 2)^2``, each rounded up.

    The classic size of each stage with the real optimum of hashes; stages sized for whole hashes are about 1
    % larger.

    Raises ``ParameterError`` as :func:`stage_fpr` and :func:`stage_capacity`. Cost: one term per
    stage.

    >>> from fullbloom import theory
    >>> theory.scalable_num_bits(1000, growth=2, fpr=0.01, tightening=0.5, stages=1)
    11028
    """
    return sum(
        bits_of_stage(stage_capacity(first_capacity, growth, i), stage_fpr(fpr, tightening, i))
        for i in range(_check_stage("stages", stages))
    )
