"""Laws of sorted values coded by their gaps."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from .arithmetic import dec, exactly, log_uniform, power

if TYPE_CHECKING:
    from random import Random

#: Parameters that are compared with each other.
FEW = 45


def rate(random: Random) -> float:
    return float(log_uniform(random, 1e-12, 0.9))


def near_the_best(random: Random) -> tuple[float, int]:
    fpr = rate(random)
    best = int(best_of(fpr))
    return fpr, random.randint(max(0, best - 4), best + 3)


def zeros(fpr: float, bits: int) -> Decimal:
    """The mean of floor(gap / 2^P): each further 2^P in a geometric gap counts one."""
    reached = power(1 - dec(fpr), 2**bits)
    return reached / (1 - reached)


def best_of(fpr: float) -> int:
    # Beyond 64 times the mean gap, 1 / fpr, nothing is left in unary.
    bits = [p for p in range(FEW) if fpr * 2.0**p < 64] or [0]
    share = 1 - (-dec(fpr)).exp()
    return min(bits, key=lambda p: p + 1 + zeros(share, p))


@exactly(near_the_best)
def golomb_bits_per_key(fpr: float, bits: int) -> Decimal:
    return bits + 1 + zeros(fpr, bits)


@exactly(lambda r: (rate(r),))
def rice_bits(fpr: float) -> int:
    return best_of(fpr)
