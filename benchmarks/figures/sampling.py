"""Random keys and the rates of filters that hold them. Keys are ready hashes: 64 random bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.figures.model import Sample, exact, pool

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from benchmarks.figures.model import Measure

    Make = Callable[[], Any]


def draw_hashes(draw: np.random.Generator, count: int) -> npt.NDArray[np.uint64]:
    """Hashes of keys that nobody added before: two are equal with a chance of 2^-64."""
    return draw.integers(0, 1 << 64, count, dtype=np.uint64)


def draw_seed(draw: np.random.Generator) -> int:
    """A seed for filters that decide by chance: with equal seeds, their decisions would be the same."""
    return int(draw.integers(0, 1 << 63))


def scale(count: int, share: float, least: int = 2) -> int:
    """A number of filters or trials, for a share of the full measurement."""
    return max(least, round(count * share))


def fill(make: Make, draw: np.random.Generator, items: int) -> Any:
    """A new filter that holds so many random keys."""
    made = make()
    made.add_hashed(draw_hashes(draw, items))
    return made


def rate_of(held: Any, draw: np.random.Generator, probes: int) -> float:
    """The share of absent keys that a filter finds."""
    found, step = 0, 1 << 20
    for start in range(0, probes, step):
        found += int(np.count_nonzero(held.contains_hashed(draw_hashes(draw, min(step, probes - start)))))
    return found / probes


def rate(make: Make, items: int, *, filters: int = 60, probes: int = 100_000) -> Measure:
    """The false-positive rate: the mean over filters, each with its own keys."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        count = scale(filters, share)
        rates = [rate_of(fill(make, draw, items), draw, probes) for _ in range(count)]
        mean = sum(rates) / count
        return pool(rates, math.sqrt(max(mean, 1 / (count * probes)) / (count * probes)))

    return measure


def average(value: Callable[[np.random.Generator], float], times: int) -> Measure:
    """The mean of a value that is drawn again and again."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([value(draw) for _ in range(scale(times, share))])

    return measure


def deviation(value: Callable[[np.random.Generator], float], times: int) -> Measure:
    """The standard deviation of a value that is drawn again and again."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        count = scale(times, share, least=20)
        spread = float(np.std([value(draw) for _ in range(count)], ddof=1))
        return Sample(spread, spread / math.sqrt(2 * (count - 1)), spread / math.sqrt(2), count)

    return measure


def formula(value: Callable[[], float]) -> Measure:
    """A value without chance."""
    return lambda _draw, _share: exact(value())
