"""The novelty filter of the fruit fly: how new is this, compared with what was seen, and how long ago?

A classic filter answers yes or no, and an input that differs in one bit is new to it. The fly hashes similar
odors to the same cells, so that what resembles something known is less novel; and each exposure lowers the
weights of the cells by a factor, while all others recover, so that it forgets.

After Dasgupta, Sheehan, Stevens and Navlakha, "A neural data structure for novelty detection", PNAS 115(51),
2018.

>>> fly = NoveltyFilter(Projection(num_inputs=50, seed=1), recovery=0.001)
>>> odor = [float(n % 7) for n in range(50)]
>>> [fly.observe(odor), fly.observe(odor)]
[1.0, 0.0]
>>> odor[0] += 3
>>> 0 < fly.measure(odor) < 0.5
True
"""

from __future__ import annotations

import math
import random
from heapq import nlargest
from typing import TYPE_CHECKING, Generic, Protocol, SupportsFloat, TypeVar

from fullbloom import BloomFilter
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.keys import Key

__all__ = ["HashUnits", "NoveltyFilter", "Projection", "Units"]

T_contra = TypeVar("T_contra", contravariant=True)

#: The sum of 10^8 such numbers is still a float.
_MOST = 1e300


class Units(Protocol[T_contra]):
    """Chooses the units of an input; similar inputs should share units."""

    num_units: int

    def __call__(self, item: T_contra, /) -> Sequence[int]:
        """Return the numbers of the units, each below ``num_units``."""


class Projection:
    """The fly's hash: each unit sums a few inputs, and the units with the largest sums are chosen.

    num_inputs: numbers of an input; the fly has 50 kinds of receptors. num_units: the fly has 2,000.
    inputs_per_unit: inputs that a unit sums. winners: share of the units that are chosen. seed: of the choice
    of inputs. Raises ``ParameterError`` for numbers out of range. A call costs about ``num_units`` x 0.5 us.

    A sum is exact, rounded once to a float (`math.fsum`), so no order of additions changes the units: they
    are the same on every machine.
    """

    def __init__(
        self,
        num_inputs: int,
        *,
        num_units: int = 2000,
        inputs_per_unit: int = 6,
        winners: float = 0.05,
        seed: int = 0,
    ) -> None:
        if not 1 <= inputs_per_unit <= num_inputs:
            raise ParameterError(f"inputs_per_unit must be from 1 to {num_inputs}, got {inputs_per_unit}")
        if num_units < 1 or not 0 < winners <= 1:
            raise ParameterError(
                f"num_units must be at least 1 and winners up to 1, got {num_units}, {winners}"
            )
        draw = random.Random(seed)  # noqa: S311 - no secret
        self.num_inputs, self.num_units = num_inputs, num_units
        self.num_winners = max(round(winners * num_units), 1)
        #: The inputs that each unit sums.
        self.inputs = [_sample(draw, num_inputs, inputs_per_unit) for _ in range(num_units)]

    def __call__(self, item: Sequence[float], /) -> Sequence[int]:
        """Return the units with the largest sums; of equal sums, those of smaller numbers.

        Raises ``ParameterError`` for another number of inputs, and for numbers that are not from -1e300 to
        1e300, ``ParameterTypeError`` for anything but numbers.
        """
        if len(item) != self.num_inputs:
            raise ParameterError(f"an input must have {self.num_inputs} numbers, got {len(item)}")
        values = [_read_number(number) for number in item]
        sums = [math.fsum([values[at] for at in chosen]) for chosen in self.inputs]
        return nlargest(self.num_winners, range(self.num_units), key=sums.__getitem__)


def _sample(draw: random.Random, size: int, count: int) -> list[int]:
    """Return ``count`` distinct numbers below ``size``, ascending.

    Of Python's generator, only ``random()`` returns the same numbers in every release; ``sample()`` may not.
    """
    chosen: set[int] = set()
    for last in range(size - count, size):
        # Floyd's algorithm.
        number = int(draw.random() * (last + 1))
        chosen.add(last if number in chosen else number)
    return sorted(chosen)


def _read_number(number: object) -> float:
    if not isinstance(number, SupportsFloat):
        raise ParameterTypeError(f"an input must have numbers, got {type(number).__name__}")
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not -_MOST <= value <= _MOST:
        raise ParameterError(f"an input must have numbers from -{_MOST:g} to {_MOST:g}, got {value:g}")
    return value


class HashUnits:
    """Units of a key by a hash that knows no similarity: with it, a novelty filter is a Bloom filter."""

    def __init__(self, num_units: int, num_hashes: int, *, seed: int = 0) -> None:
        self._shape = BloomFilter.with_shape(num_units, num_hashes, seed=seed)
        self.num_units = self._shape.num_bits

    def __call__(self, item: Key, /) -> Sequence[int]:
        """Return the positions of the key."""
        return self._shape.positions(item)


class NoveltyFilter(Generic[T_contra]):
    """Measures how novel inputs are: 1 for entirely new, 0 for just seen.

    units: `Projection` for vectors, `HashUnits` for keys, or a function with ``num_units``. decay: the
    factor by which an exposure multiplies the weights of its units; 0 remembers after one exposure.
    recovery: added to all other weights per exposure, up to 1; 0 never forgets. Both are from 0 to 1. Raises
    ``ParameterError`` for other numbers.
    """

    def __init__(self, units: Units[T_contra], *, decay: float = 0.0, recovery: float = 0.0) -> None:
        if not (0 <= decay <= 1 and 0 <= recovery <= 1):
            raise ParameterError(f"decay and recovery must be from 0 to 1, got {decay}, {recovery}")
        self.units, self.decay, self.recovery = units, decay, recovery
        #: Number of exposures.
        self.exposures = 0
        self._weights = [1.0] * units.num_units
        self._changed = [0] * units.num_units

    def measure(self, item: T_contra) -> float:
        """Return the novelty of ``item``, the mean weight of its units, without an exposure."""
        units = set(self.units(item))
        return math.fsum(map(self._weigh, units)) / len(units)

    def observe(self, item: T_contra) -> float:
        """Return the novelty of ``item``, then expose the filter to it."""
        units = set(self.units(item))
        weights = {unit: self._weigh(unit) for unit in units}
        self.exposures += 1
        for unit, weight in weights.items():
            self._weights[unit] = weight * self.decay
            self._changed[unit] = self.exposures
        return math.fsum(weights.values()) / len(weights)

    def _weigh(self, unit: int) -> float:
        """Return a weight, with what it recovered in the exposures of other units."""
        return min(1.0, self._weights[unit] + self.recovery * (self.exposures - self._changed[unit]))
