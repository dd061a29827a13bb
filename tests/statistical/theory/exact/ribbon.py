"""Laws of ribbon filters."""

from __future__ import annotations

from decimal import Decimal

from .arithmetic import ONE, count, dec, exactly, log_uniform, power

WIDTH = 64


@exactly(lambda r: (n := count(r), n * r.uniform(0.9, 1.3)))
def ribbon_failure(n: int, starts: float) -> Decimal:
    e = max(Decimal(0), dec(starts) / n - 1)
    return 1 - (-4 * n * e * e * (-2 * WIDTH * e).exp()).exp()


@exactly(lambda r: (log_uniform(r, 1e-12, 0.99),))
def ribbon_bits_per_key(fpr: float) -> Decimal:
    low = 0
    while power(ONE / 2, low + 1) > dec(fpr):
        low += 1
    share = dec(fpr) * power(Decimal(2), low + 1) - 1
    slots = 1 / Decimal("1.02")
    return (low + 1 - share) * (slots + Decimal("0.0235") * Decimal("1.05")) + slots * 2 / 128
