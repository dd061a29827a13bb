"""Laws of filters that forget, of estimates, and the reference card."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import bits
from .arithmetic import ONE, a_filter, any_of, count, dec, exactly, log_uniform, poisson, power, rate, up

if TYPE_CHECKING:
    from random import Random


def stable(random: Random) -> tuple[int, int, int, int]:
    """m, K, P, Max, with a share of zeros that is neither 0 nor 1."""
    m, k = 100 + count(random, 1e10), random.randint(1, 50)
    top = random.choice([1, 3, 15, 255])
    p = round(k * top * log_uniform(random, 0.3, 30))
    return m + 100 * p, k, max(1, p), top


def one_zero(m: int, k: int, p: int) -> Fraction:
    return 1 / (1 + 1 / (p * (Fraction(1, k) - Fraction(1, m))))


@exactly(stable, rel=1e-12)
def stable_zeros(m: int, k: int, p: int, top: int) -> Decimal:
    return power(dec(one_zero(m, k, p)), top)


@exactly(stable, rel=1e-11)
def stable_limit_fpr(m: int, k: int, p: int, top: int) -> Decimal:
    return power(1 - stable_zeros(m, k, p, top), k)


def few_cells(random: Random) -> tuple[int, int, int, int]:
    """Filters whose distances can all be enumerated."""
    top, k = random.choice([1, 3, 7]), random.randint(1, 20)
    p = random.randint(1, 400)
    return random.choice([random.randint(2 * p + k + 2, 2000), 1000 + count(random)]), k, p, top


@exactly(few_cells, rel=1e-6)
def stable_fpr(m: int, k: int, p: int, top: int) -> Decimal:
    # Two cells, backwards in time: a cell is zero after ``top`` decrements without a set after them.
    none, one, decay = (1 - 2 / dec(m)) ** k, (1 - 1 / dec(m)) ** k, dec(p) / m
    fall = one * decay / (1 - one * (1 - decay))
    alone = [fall**left for left in range(top + 1)]

    def both_zero(joint: Decimal) -> Decimal:
        single, before = decay - joint, alone
        leaving = none / (1 - none * (1 - joint - 2 * single))
        for a in range(1, top + 1):
            row = [alone[a]]
            for b in range(1, top + 1):
                row.append(leaving * (joint * before[b - 1] + single * (before[b] + row[b - 1])))
            before = row
        return before[top]

    zero, shares = alone[top], [dec(p - d) / m for d in range(1, p)]
    far = (m - 1 - 2 * len(shares)) * (both_zero(Decimal(0)) - zero**2)
    variance = (zero * (1 - zero) + 2 * sum(both_zero(b) - zero**2 for b in shares) + far) / m
    return (1 - zero) ** k * (1 + variance / (1 - zero) ** 2) ** (k * (k - 1) // 2)


@exactly(lambda r: (rate(r), r.randint(1, 50), r.choice([1, 3, 15, 255]), 1000 + count(r)))
def stable_decrements(p: float, k: int, top: int, m: int) -> Decimal:
    root = (1 - dec(p) ** (ONE / k)) ** (-ONE / top)
    return 1 / ((root - 1) * (1 / dec(k) - 1 / dec(m)))


def aged(random: Random) -> tuple[float, int, int, int, int]:
    m, k, p, top = stable(random)
    return m / (k + p) * top * log_uniform(random, 0.01, 30), m, k, p, top


@exactly(aged, rel=1e-10)
def stable_recall(age: float, m: int, k: int, p: int, top: int) -> Decimal:
    lost = 1 - sum(islice(poisson((p + k) * dec(age) / m), top), Decimal(0))
    return power(1 - stable_zeros(m, k, p, top) * lost, k)


@exactly(lambda r: (rate(r),))
def aging_num_hashes(p: float) -> int:
    return max(1, math.floor(-(1 - (1 - dec(p)).sqrt()).ln() / bits.LN2))


@exactly(lambda r: (count(r), rate(r)))
def aging_capacity(m: int, p: float) -> Decimal:
    return m * bits.LN2 / (2 * aging_num_hashes(p))


@exactly(lambda r: (count(r), rate(r)))
def rolling_size(n: int, p: float) -> tuple[int, int, int]:
    generation, k = (n + 1) // 2, max(1, min(50, round(-dec(p).ln() / bits.LN2)))
    return generation, k, up(-3 * k * generation / (1 - dec(p) ** (ONE / k)).ln())


# Estimates.


def g(t: Decimal) -> Decimal:
    return t.exp() - 1 - t


def load(ones: int, m: int) -> Decimal:
    return -(1 - dec(ones) / m).ln()


def draw_filled(random: Random) -> tuple[int, int, int]:
    n, m, k = a_filter(random)
    return max(1, round(m * -math.expm1(-n * k / m))), m + 1, k


@exactly(a_filter)
def estimate_std(n: int, m: int, k: int) -> Decimal:
    return (m * g(dec(n * k) / m)).sqrt() / k


def stated(variance: Decimal, t: Decimal, k: int) -> Decimal:
    """The deviation with half a bit, e^t/2k keys, but at most three times the variance."""
    half = t.exp() / k / 2
    return (variance + min(3 * variance, half * half)).sqrt()


@exactly(draw_filled)
def estimate_items(ones: int, m: int, k: int) -> tuple[Decimal, Decimal]:
    t = load(ones, m)
    return m * t / k, stated(m * g(t) / k**2, t, k)


@exactly(draw_filled)
def estimate_union(ones: int, m: int, k: int) -> tuple[Decimal, Decimal]:
    return estimate_items(ones, m, k)


def two_counted(random: Random) -> tuple[int, int, int, int, int]:
    """Ones of two filters that share at least a tenth of the smaller one's keys, and of their OR."""
    m, k = 10_000 + count(random), random.randint(1, 50)
    both, own_a, own_b = (log_uniform(random, 0.1, 1) for _ in range(3))
    a, b, either = (round(-m * math.expm1(-t)) for t in (both + own_a, both + own_b, both + own_a + own_b))
    return a, b, either, m, k


@exactly(two_counted)
def estimate_intersection(a: int, b: int, either: int, m: int, k: int) -> tuple[Decimal, Decimal]:
    in_a, in_b, in_or = (load(ones, m) for ones in (a, b, either))
    both = in_a + in_b - in_or
    spread = g(in_or) - g(in_a) - g(in_b) + 2 * g(both)
    return both * m / k, stated(m * spread / k**2, in_or, k)


@exactly(two_counted)
def estimate_jaccard(a: int, b: int, either: int, m: int, _: int) -> tuple[Decimal, Decimal]:
    in_a, in_b, in_or = (load(ones, m) for ones in (a, b, either))
    ratio, parts = (in_a + in_b) / in_or, g(in_a) + g(in_b)
    spread = parts + 2 * g(in_a + in_b - in_or) - 2 * ratio * parts + ratio**2 * g(in_or)
    return ratio - 1, (spread / m).sqrt() / in_or


# The card: two numbers or three give the rest.


def two_or_three(random: Random) -> tuple[Any, ...]:
    n, m, k = a_filter(random)
    p = rate(random)
    n, m = max(n, 100), max(m, 10_000)
    return random.choice(
        [
            (n, p, None, None),
            (n, None, m, None),
            (None, p, m, None),
            (n, None, None, k),
            (None, None, m, k),
            (n, p, None, k),
            (None, p, m, k),
            (n, None, m, k),
        ]
    )


@exactly(two_or_three)
def reference_card(n: int | None, p: float | None, m: int | None, k: int | None) -> tuple[Any, ...]:
    if p is not None:
        k = k or bits.best_num_hashes(p)
    elif n is not None and m is not None:
        k = k or bits.num_hashes(m, n)
    assert k is not None
    if n is None:
        assert m is not None
        n = bits.capacity(m, p, k) if p is not None else math.floor(m * bits.LN2 / k)
    if m is None:
        m = bits.num_bits(n, p, k) if p is not None else up(n * k / bits.LN2)
    return n, bits.exponential_fpr(n, m, k), m, k, Fraction(m, n), any_of(1 / dec(m), n * k)
