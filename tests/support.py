"""Shared by the suites: what is under test, and bounds computed from the number of trials.

Nothing here names a variant: a new registry row is picked up by ``every_variant`` and tested by its
capabilities.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import bloomery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    import numpy.typing as npt

# BLOOMERY_LONG=1 multiplies every count of trials; larger numbers multiply by more.
LONG = int(os.environ.get("BLOOMERY_LONG", "0") or "0")
SCALE = 10 * LONG if LONG else 1

# The bar of the project: never above the target beyond this many standard deviations.
SIGMAS = 3.0

SECRET = b"sixteen secrets!"


class Variant(NamedTuple):
    """One row of the registry in one layout."""

    name: str
    cls: Any
    layout: str
    capabilities: tuple[str, ...]
    row: dict[str, Any]

    def make(self, capacity: int = 1000, fpr: float = 0.01, **options: Any) -> Any:
        """Build an empty filter of this variant."""
        return self.cls(capacity, fpr, layout=self.layout, **options)

    def can(self, capability: str) -> bool:
        """Tell whether the registry promises ``capability``."""
        return capability in self.capabilities


def every_variant(*needs: str) -> list[Any]:
    """All variants in all layouts that have the capabilities ``needs``, as pytest parameters."""
    import pytest

    found = []
    for row in bloomery.variants():
        for layout in row["layouts"]:
            variant = Variant(
                row["name"], getattr(bloomery, row["class"]), layout, tuple(row["capabilities"]), row
            )
            if all(variant.can(need) for need in needs):
                found.append(pytest.param(variant, id=f"{variant.name}-{layout}"))
    return found


def layouts() -> list[str]:
    """Layouts of the plain filter, from its registry row."""
    return next(list(row["layouts"]) for row in bloomery.variants() if row["class"] == "BloomFilter")


# Which schemes a layout can use; the first is its default.
SCHEMES: dict[str, tuple[str, ...]] = {
    "classic": ("mcg", "double", "enhanced-double"),
    "partitioned": ("mcg", "double", "enhanced-double"),
    "blocked": ("columns",),
    "split": ("parquet",),
}


def bits_of(bloom: Any) -> bytes:
    """The bytes of the bit array."""
    return bytes(memoryview(bloom))


def binomial_sd(rate: float, trials: int) -> float:
    """Standard deviation of a measured rate over ``trials`` independent probes."""
    return math.sqrt(rate * (1.0 - rate) / trials)


def pooled(rates: Iterable[float], target: float, trials: int) -> tuple[float, float]:
    """Mean of the rates of several filters, and the standard deviation of that mean.

    Two sources add: a filter's own rate differs from the next one's (measured between the filters), and a
    rate measured with ``trials`` probes scatters around it (binomial at ``target``). The sample variance
    holds both; the binomial part is a floor when few filters happen to agree.
    """
    values = list(rates)
    mean = math.fsum(values) / len(values)
    sample = math.fsum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)
    variance = max(sample, target * (1.0 - target) / trials)
    return mean, math.sqrt(variance / len(values))


def chi_square_quantile(freedom: int, normal_quantile: float) -> float:
    """Quantile of chi-square by Wilson and Hilferty's cube, within 1 % from 10 degrees of freedom on."""
    spread = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - spread + normal_quantile * math.sqrt(spread)) ** 3


def key_stream(kind: str, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Endless chunks of distinct integers: ``sequential``, ``strided`` or ``random``; send() the length.

    Random keys are a counter put through an invertible mixer, so they are distinct by construction.
    """
    import numpy as np

    start = seed << 40
    length = yield np.empty(0, np.int64)
    while True:
        counter = np.arange(start, start + length, dtype=np.int64)
        start += length
        if kind == "sequential":
            keys = counter
        elif kind == "strided":
            keys = counter * np.int64(4096)
        else:
            keys = _mix(counter.view(np.uint64)).view(np.int64)
        length = yield keys


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64, a bijection of 64-bit words."""
    import numpy as np

    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Keys:
    """Distinct integers by the batch: ``take(n)`` never repeats one."""

    def __init__(self, kind: str = "random", seed: int = 0) -> None:
        self._stream: Any = key_stream(kind, seed)
        next(self._stream)

    def take(self, count: int) -> npt.NDArray[np.int64]:
        """The next ``count`` keys."""
        keys: npt.NDArray[np.int64] = self._stream.send(count)
        return keys
