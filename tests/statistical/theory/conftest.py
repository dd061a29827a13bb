"""Fixtures of the theory tests: the tolerance of printed figures and of simulated means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# One false alarm in a million for a fresh seed; the seeds are fixed, so a test that passes keeps passing.
ALPHA = 1e-6


@pytest.fixture
def printed() -> Callable[[float, str], bool]:
    """Return a check that a value rounds to a printed figure: ``printed(0.06860826, "0.0686083")``."""

    def agrees(value: float, figure: str) -> bool:
        mantissa, _, exponent = figure.partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        # Half a unit in the last printed place; the factor forgives the rounding of the figure itself to
        # binary.
        return abs(value - float(figure)) <= 0.5 * 10.0**-decimals * (1 + 1e-9)

    return agrees


@pytest.fixture
def mean_margin() -> Callable[[int, float], float]:
    """Return Bernstein's bound for the mean of independent values in [0, 1].

    |mean - expectation| exceeds ``mean_margin(trials, variance)`` with probability at most ALPHA: the
    solution of 2 exp(-T e^2 / (2 v + 2 e / 3)) = ALPHA.
    """

    def margin(trials: int, variance: float) -> float:
        logs = math.log(2.0 / ALPHA)
        linear = logs / (3.0 * trials)
        return linear + math.sqrt(linear * linear + 2.0 * variance * logs / trials)

    return margin


@pytest.fixture
def normal_margin() -> Callable[[int, float], float]:
    """Return the bound for the mean of many nearly normal values of this deviation, at the same ALPHA."""
    # 4.892 standard errors: the two-sided normal quantile of ALPHA.
    return lambda trials, std: 4.892 * std / math.sqrt(trials)
