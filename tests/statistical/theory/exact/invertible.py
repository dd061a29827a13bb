"""Laws of invertible tables."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from .arithmetic import ONE, binomial, count, dec, exactly, log_uniform, power, tail_of, up

if TYPE_CHECKING:
    from random import Random

TABLES = 4
#: Steps that halve an interval to less than the spacing of floats.
HALVINGS = 120


def table(random: Random) -> tuple[int, int]:
    """Keys, and cells: 0.4 to 40 per key."""
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


def normal_tail(x: Decimal) -> Decimal:
    """P(Z > x) by the series of the density around 0."""
    term, total, i = x, x, 0
    while abs(term) > Decimal("1e-60"):
        i += 1
        term *= -x * x * (2 * i - 1) / (2 * i * (2 * i + 1))
        total += term
    two_pi = Decimal(
        "6.28318530717958647692528676655900576839433879875021164194988918461563281257241799725606965"
    )
    return Decimal("0.5") - total / two_pi.sqrt()


def near_threshold(random: Random) -> tuple[int, int, int]:
    """A table that is peeled sometimes."""
    k, n = random.choice([3, 4, 5, 6]), random.randint(300, 100_000)
    threshold = {3: 1.2218, 4: 1.2949, 5: 1.4250, 6: 1.5697}[k]
    return n, round(n * threshold + random.uniform(-3, 3) * n**0.5), k


@exactly(near_threshold, off=1e-12)
def peeling_failure(n: int, m: int, k: int) -> Decimal:
    scatter, shift = {3: ("0.66", "1.2"), 4: ("0.58", "1.1"), 5: ("0.62", "1.2"), 6: ("0.66", "1.35")}[k]
    above = dec(m) / n - peeling_threshold(k) - Decimal(shift) * dec(n) ** (Decimal(-2) / 3)
    stopped = normal_tail(above * dec(n).sqrt() / Decimal(scatter))
    return stopped + (1 - stopped) * twin_chance(n, m, k)


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
