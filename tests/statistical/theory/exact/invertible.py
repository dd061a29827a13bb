"""Laws of invertible tables."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from .arithmetic import ONE, binomial, count, dec, exactly, log_uniform, power, tail_of, up

if TYPE_CHECKING:
    from random import Random

TABLES = 4
#: Steps that halve an interval to less than any float can tell.
HALVINGS = 120


def table(random: Random) -> tuple[int, int]:
    """Keys, and cells: 0.4 to 40 a key."""
    n = count(random)
    return n, TABLES * max(2, round(n * log_uniform(random, 0.1, 10)))


@exactly(lambda r: (r.randint(3, 64),))
def peeling_threshold(k: int) -> Decimal:
    """At the largest ``k (1 - e^-x)^(k-1) / x``, whose derivative has the sign of (k-1) x - (e^x - 1)."""
    low, high = Decimal("0.5"), Decimal(2 * k)
    for _ in range(HALVINGS):
        x = (low + high) / 2
        low, high = (x, high) if (k - 1) * x > x.exp() - 1 else (low, x)
    return k * power(1 - (-low).exp(), k - 1) / low


@exactly(lambda r: (count(r),))
def decodable_cells(n: int) -> int:
    peeled = (Decimal("1.3") * n + 3 * dec(n).sqrt() + 8) / TABLES
    parted = (dec(n) * (n - 1) / 2 * 2000).sqrt().sqrt()
    return TABLES * up(max(peeled, parted))


@exactly(table)
def invertible_fpr(n: int, m: int) -> Decimal:
    crowded = tail_of(binomial(n, TABLES / dec(m)), 2, dec(n) * TABLES / m) if n > 1 else Decimal(0)
    return power(crowded, TABLES)


@exactly(lambda r: (count(r, 1e6), TABLES * count(r, 1e9) + 64, r.randint(1, 16)))
def twin_chance(n: int, m: int, k: int) -> Decimal:
    return min(ONE, dec(n) * (n - 1) / 2 * power(k / dec(m), k))
