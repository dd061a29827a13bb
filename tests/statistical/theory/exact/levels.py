"""Rates of filters that share a budget."""

from __future__ import annotations

from decimal import Decimal

from .arithmetic import ONE, count, dec, exactly


@exactly(lambda r: ([count(r, 1e9) for _ in range(r.randint(1, 8))], r.choice([0, count(r, 1e10)])))
def level_fprs(capacities: list[int], num_bits: int) -> list[Decimal]:
    """The scale c of ``min(1, c n)`` is found by halving its range."""
    budget = dec(num_bits) * Decimal(2).ln() ** 2
    low, high = Decimal(-50) - budget, Decimal(0)
    for _ in range(300):
        middle = (low + high) / 2
        used = sum(dec(n) * max(Decimal(0), -middle - dec(n).ln()) for n in capacities)
        low, high = (middle, high) if used > budget else (low, middle)
    return [min(ONE, dec(n) * high.exp()) for n in capacities]
