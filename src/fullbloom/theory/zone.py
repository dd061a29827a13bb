"""The law of zones: the cells that separate a few integers of a universe from all others.

Number x has the cell ``x mod p`` of each of the first primes whose product is at least ``universe **
capacity``. If a non-member shared all its cells with members, the product of its differences from them would
be divisible by every prime, but that product is smaller.

Source: Eppstein, Goodrich and Hirschberg, "Improved combinatorial group testing algorithms for real-world
problem sizes", SIAM Journal on Computing 36(5), 2007.
"""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import check_whole
from ._vector import vectorize
from .constructor import evaluate_law

_MOST_UNIVERSE, _MOST_BITS = 2**53, 2**20


def _check_zone(universe: float, capacity: float) -> tuple[int, int]:
    numbers, members = check_whole("universe", universe, 2), check_whole("capacity", capacity, 1)
    if numbers > _MOST_UNIVERSE:
        raise ParameterError(f"universe must be at most 2**53, got {universe}")
    if members * math.log2(numbers) > _MOST_BITS:
        raise ParameterError(
            f"capacity times the binary logarithm of universe must be at most {_MOST_BITS}, got "
            f"capacity={capacity} and universe={universe}"
        )
    return numbers, members


@vectorize
def zone_num_hashes(universe: int, capacity: int) -> int:
    """Return the cells of a key in a zone: the first primes whose product is at least ``universe^capacity``.

    Raises ``ParameterError`` unless universe is whole, from 2 to 2**53, capacity is whole and at least 1, and
    ``capacity log2(universe)`` at most 2**20. Costs a sieve up to the largest prime.

    Computed by the core.

    >>> from fullbloom import theory
    >>> theory.zone_num_hashes(1000, capacity=2), theory.zone_num_hashes(2**32, capacity=4)
    (8, 27)
    """
    return int(evaluate_law("zone_hashes", *_check_zone(universe, capacity)))


@vectorize
def zone_cells(universe: int, capacity: int) -> int:
    """Return the cells of a zone for ``capacity`` numbers below ``universe``: the sum of those primes.

    About ``(d ln u)^2 / (2 ln(d ln u))``, d the capacity, u the universe. Raises as :func:`zone_num_hashes`.

    Computed by the core.

    >>> from fullbloom import theory
    >>> theory.zone_cells(48, capacity=2), theory.zone_cells(2**32, capacity=4)
    (28, 1264)
    """
    return int(evaluate_law("zone_cells", *_check_zone(universe, capacity)))


@vectorize
def zone_counter_bits(capacity: int) -> int:
    """Return the bits of a counter of a zone: those of ``capacity + 1``, at least 2 and at most 32.

    A counter stops at its maximum, so it must be able to count one more key than the zone holds. Raises
    ``ParameterError`` unless capacity is whole and at least 1. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> [theory.zone_counter_bits(capacity) for capacity in (1, 2, 3, 6, 7)]
    [2, 2, 3, 3, 4]
    """
    return int(evaluate_law("zone_counter_bits", check_whole("capacity", capacity, 1)))
