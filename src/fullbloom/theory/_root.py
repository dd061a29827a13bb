"""Find the argument at which a falling law meets a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["falling_root"]

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
