"""Laws of what errors and memory cost."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from .arithmetic import dec, exactly, log_uniform

if TYPE_CHECKING:
    from random import Random

TWO = Decimal(2)


def rate(random: Random) -> float:
    return float(log_uniform(random, 1e-12, 0.9))


def prices(random: Random) -> tuple[float, float, float, float]:
    return tuple(float(log_uniform(random, 1e-9, 1e12)) for _ in range(4))  # type: ignore[return-value]


@exactly(prices)
def cheapest_fpr(items: float, lookups: float, wrong: float, byte: float) -> Decimal:
    best = dec(byte) * dec(items) / (8 * TWO.ln() ** 2 * dec(lookups) * dec(wrong))
    return min(best, Decimal("0.5"))


@exactly(lambda r: (rate(r), r.randint(1, 40)))
def information_per_key(fpr: float, hashes: int) -> Decimal:
    filled = dec(fpr) ** (1 / Decimal(hashes))
    entropy = -(filled * filled.ln() + (1 - filled) * (1 - filled).ln()) / TWO.ln()
    return -hashes / (1 - filled).ln() * entropy
