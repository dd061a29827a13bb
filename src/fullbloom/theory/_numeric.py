"""Numeric methods: averages over the number of keys in one block, and roots of falling laws.

The averages are Poisson or binomial: Poisson is for many blocks, binomial for a given number of them. Both
averages are summed outwards from the most likely count, with weights relative to it, and divided by the sum
of the weights: no factorial, no underflow, relative error about 1e-15. The sum stops when the bound on the
remaining terms is below 1e-17 of the sum so far, *after* weighting: at low rates most of the sum is far out
in the tail (at 90 bits per key and blocks of 512 bits the mean is 6 keys and the largest term is at 17), so
a cut by probability alone would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from fullbloom.errors import ParameterError

_CUT = 1e-17
# P(count < mean - 12 sqrt(mean)) <= exp(-72) = 5e-32 for Poisson and binomial counts (Chernoff).
_DEVIATIONS = 12.0
# The walk takes some 24 sqrt(mean) steps: 10 ms at this mean, and a search for a density takes 50 walks.
_MOST_MEAN = 250_000.0

Law = Callable[[int], float]


def poisson_mean(mean: float, law: Law) -> float:
    """Return ``E[law(I)]``, I Poisson with this mean; ``law`` must not decrease and must stay in [0, 1]."""
    if _is_saturated(mean, law):
        return 1.0
    _check_mean(mean)
    return _sum_from_mode(int(mean), lambda i: mean / (i + 1), lambda i: i / mean if i else 0.0, law)


def binomial_mean(trials: int, share: float, law: Law) -> float:
    """Return ``E[law(I)]``, I ~ Binomial(trials, share), 0 < share <= 1; ``law`` as for Poisson."""
    if share >= 1.0:
        return law(trials)
    if _is_saturated(trials * share, law):
        return 1.0
    _check_mean(trials * share)
    odds = share / (1.0 - share)
    mode = min(trials, int((trials + 1) * share))
    return _sum_from_mode(
        mode, lambda i: (trials - i) / (i + 1) * odds, lambda i: i / ((trials - i + 1) * odds), law
    )


def _check_mean(mean: float) -> None:
    """Reject means that take too long to sum; the limit is a thousand times any useful mean."""
    if mean > _MOST_MEAN:
        raise ParameterError(
            f"a block must hold at most {_MOST_MEAN:,.0f} keys on average, got {mean:.3g}; "
            "give smaller blocks or more bits per key"
        )


def _is_saturated(mean: float, law: Law) -> bool:
    """Return whether even an unusually empty block is full (keeps an overfull filter cheap)."""
    low = int(mean - _DEVIATIONS * math.sqrt(mean))
    return low > 0 and law(low) == 1.0


def _sum_from_mode(mode: int, up: Law, down: Law, law: Law) -> float:
    """Sum from the mode up, then down; ``up(i)`` and ``down(i)`` are the ratios to the next weight."""
    mass = total = 0.0
    for start, step, ratio in ((mode, 1, up), (mode, -1, down)):
        at, weight = start, 1.0
        while True:
            # The mode itself is counted on the way up only.
            if step == 1 or at != start:
                mass += weight
                total += weight * law(at)
            fall = ratio(at)
            # Ratios keep falling away from the mode, so the rest is below a geometric series.
            if fall < 1.0 and weight * fall <= _CUT * total * (1.0 - fall):
                break
            weight *= fall
            at += step
    return total / mass


# 2^40 bits per key: no layout needs more for any rate a float can hold in practice.
_LARGEST = 2.0**40


def falling_root(name: str, law: Callable[[float], float], target: float) -> float:
    """Return the smallest x (to 1e-12 relative) with ``law(x) <= target``; ``law`` falls from 1 towards 0."""
    high = 1.0
    while law(high) > target:
        high *= 2.0
        if high > _LARGEST:
            raise ParameterError(
                f"{name} must be reachable with {_LARGEST:.1e} bits per key, got {target}; raise it"
            )
    low = high / 2.0
    while law(low) <= target:
        high, low = low, low / 2.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if law(middle) > target:
            low = middle
        else:
            high = middle
    return high
