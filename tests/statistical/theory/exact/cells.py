"""Laws of cells with more than one bit: estimates, counters, labels, fingerprints, stages, windows."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import count as naturals
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from . import bits
from .arithmetic import (
    ONE,
    a_filter,
    any_of,
    binomial,
    count,
    dec,
    exactly,
    hashes,
    log_uniform,
    mean_of,
    poisson,
    power,
    rate,
    tail_of,
    up,
)

if TYPE_CHECKING:
    from random import Random

# Counters.


def counters(random: Random) -> tuple[int, int, int]:
    n, k = count(random), hashes(random)
    return n, max(2, round(n * k * log_uniform(random, 0.1, 30))), k


@exactly(lambda r: (*counters(r), r.randint(1, 30), r.randint(0, 3)))
def threshold_fpr(n: int, m: int, k: int, threshold: int, occurrences: int) -> Decimal:
    missing = max(0, threshold - occurrences)
    tail = tail_of(binomial(n * k, 1 / dec(m)), missing, dec(n) * k / m) if n * k >= missing else Decimal(0)
    return power(tail, k)


def roomy(random: Random) -> tuple[int, int, int]:
    n = 10 + count(random)
    return n, round(n * log_uniform(random, 3, 30)), random.randint(1, 5)


@exactly(roomy)
def best_threshold_hashes(n: int, m: int, threshold: int) -> int:
    def chance(k: int) -> Decimal:
        below = sum(islice(binomial(n * k, 1 / dec(m)), threshold), Decimal(0))
        return (ONE - below) ** k

    return next(k for k in naturals(1) if chance(k + 1) > chance(k) and n * k >= threshold)


@exactly(lambda r: (log_uniform(r, 1e-3, 300), r.randint(1, 8)))
def counter_overflow(load: float, width: int) -> Decimal:
    return tail_of(poisson(dec(load)), 2**width, load)


@exactly(lambda r: (count(r), r.randint(1, 7)))
def counter_overflow_bound(m: int, width: int) -> Decimal:
    return min(ONE, m * (ONE.exp() * bits.LN2 / 2**width) ** (2**width))


@exactly(lambda r: (*counters(r), 2 ** r.randint(0, 6)))
def variable_increment_fpr(n: int, m: int, k: int, length: int) -> Decimal:
    none, one, two = islice(binomial(n * k, 1 / dec(m)), 3)
    share = Fraction(length - 1, length), Fraction(length**2 - 1, 6 * length**2)
    return power(1 - none - dec(share[0]) * one - dec(share[1]) * two, k)


# Structures that support removal.


def regions(random: Random) -> tuple[int, int, int, int]:
    n, m, k = a_filter(random)
    return n, m, k, max(1, round(m / log_uniform(random, 1, 100)))


def calm(n: int, m: int, k: int) -> tuple[Decimal, Decimal]:
    throws, miss = n * k, 1 - 1 / dec(m)
    alone = miss ** max(0, throws - 1)
    return alone, min(ONE, miss**throws + dec(throws) / m * alone)


@exactly(regions)
def deletability(n: int, m: int, k: int, r: int) -> Decimal:
    alone, quiet = calm(n, m, k)
    return any_of(alone * quiet ** (dec(m) / r - 1), k)


@exactly(regions)
def published_deletability(n: int, m: int, k: int, r: int) -> Decimal:
    return any_of(calm(n, m, k)[1] ** (dec(m) / r), k)


@exactly(lambda r: (count(r), count(r, 1e9), r.randint(1, 40)), rel=1e-12)
def dleft_fpr(n: int, buckets: int, remainder: int) -> Decimal:
    return any_of(1 / dec(buckets * 2**remainder), n)


@exactly(lambda r: (r.randint(1, 8), r.uniform(0, 20), r.randint(1, 40)))
def dleft_load_fpr(tables: int, load: float, remainder: int) -> Fraction:
    return tables * Fraction(load) / 2**remainder


@exactly(lambda r: (r.uniform(0.1, 20), r.randint(1, 64), r.randint(1, 40)))
def dleft_bits_per_key(load: float, cells: int, remainder: int) -> Fraction:
    return (remainder + 2) * cells / Fraction(load)


def least_loads(tables: int, load: float, steps: int) -> np.ndarray:
    """Shares of buckets with at least 0, 1, 2, ... keys: the choice of the least loaded, ties to the left, by
    Heun."""
    shares = np.zeros((tables, math.ceil(load) + 13))
    shares[:, 0] = 1.0

    def slopes(at: np.ndarray) -> np.ndarray:
        ones = np.ones((1, at.shape[1] - 1))
        left = np.cumprod(np.vstack([ones, at[:-1, 1:]]), axis=0)
        right = np.cumprod(np.vstack([ones, at[:0:-1, :-1]]), axis=0)[::-1]
        grown = tables * (at[:, :-1] - at[:, 1:]) * left * right
        return np.hstack([np.zeros((tables, 1)), grown])

    step = load / steps
    for _ in range(steps):
        first = slopes(shares)
        shares = shares + step / 2 * (first + slopes(shares + step * first))
    return shares.mean(axis=0)


@exactly(lambda r: (r.randint(2, 8), r.uniform(0, 4)), off=1e-6)
def dleft_loads(tables: int, load: float) -> list[float]:
    steps = math.ceil(load * 192)
    coarse, fine = (least_loads(tables, load, number) for number in (steps, 2 * steps))
    # Of second order: a quarter of the error is left in the finer one.
    least = np.append((4 * fine - coarse) / 3, 0.0)
    return [float(share) for share in least[:-1] - least[1:]]


@exactly(lambda r: (r.random(), r.random(), hashes(r)))
def retouched_fpr(full: float, share: float, k: int) -> Decimal:
    return power(dec(full) * (1 - dec(share)), k)


@exactly(lambda r: (rate(r), hashes(r)), rel=1e-12)
def retouched_fnr(share: float, k: int) -> Decimal:
    return any_of(dec(share), k)


# Labels and values.


def areas(random: Random) -> tuple[list[int], int, int]:
    m, k = count(random) + 50, hashes(random)
    items = [round(m / k * log_uniform(random, 1e-2, 0.5)) for _ in range(random.randint(1, 6))]
    return items, m, k


def from_on(numbers: list[int]) -> list[int]:
    return [sum(numbers[i:]) for i in range(len(numbers))]


def steps_of(rates: list[Decimal]) -> list[Decimal]:
    return [here - above for here, above in zip(rates, [*rates[1:], Decimal(0)], strict=True)]


@exactly(areas)
def spatial_fprs(items: list[int], m: int, k: int) -> list[Decimal]:
    return steps_of([bits.classic_fpr(n, m, k) for n in from_on(items)])


@exactly(areas)
def spatial_promotion(items: list[int], m: int, k: int) -> list[Decimal]:
    return [bits.classic_fpr(n, m, k) for n in [*from_on(items)[1:], 0]]


@exactly(areas)
def spatial_cell_fprs(cells: list[int], m: int, k: int) -> list[Decimal]:
    return steps_of([power(dec(held) / m, k) for held in from_on(cells)])


@exactly(a_filter)
def value_excess(n: int, m: int, k: int) -> Decimal:
    return bits.classic_fpr(n, m, k)


# Fingerprints.


@exactly(lambda r: (count(r), r.randint(1, 64)), rel=1e-12)
def fingerprint_fpr(n: int, width: int) -> Decimal:
    return any_of(1 / dec(2**width), n)


@exactly(lambda r: (r.random(), r.randint(1, 64)))
def fingerprint_load_fpr(load: float, width: int) -> Decimal:
    return 1 - (-dec(load) / 2**width).exp()


@exactly(lambda r: (count(r), rate(r)), rel=1e-12)
def fingerprint_bits(n: int, p: float) -> Decimal:
    return -any_of(dec(p), ONE / n).ln() / bits.LN2


@exactly(lambda r: (rate(r),))
def succinct_bits_per_key(p: float) -> Decimal:
    return (1 - dec(p).ln()) / bits.LN2


@exactly(lambda r: (r.uniform(0.01, 0.99), r.randint(1, 60), r.uniform(0, 4)))
def quotient_bits_per_key(load: float, remainder: int, metadata: float) -> Fraction:
    return (remainder + Fraction(metadata)) / Fraction(load)


@exactly(lambda r: (log_uniform(r, 1e-6, 0.999),))
def quotient_probe_slots(load: float) -> Fraction:
    return (1 / (1 - Fraction(load)) ** 2 - 1) / 2


def reachable(random: Random) -> tuple[int, float]:
    n = count(random)
    return n, max(rate(random), n / 2**62)


@exactly(reachable)
def quotient_size(n: int, p: float) -> tuple[Any, ...]:
    quotient = next(q for q in naturals(6) if 19 * 2**q // 20 >= n)
    remainder = next(r for r in naturals(1) if fingerprint_fpr(n, quotient + r) <= p)
    size = Fraction(2**quotient * 8 * remainder + 17 * 2**quotient, 8 * n)
    reached = fingerprint_fpr(n, quotient + remainder)
    return quotient, remainder, 2**quotient, Fraction(n, 2**quotient), size, reached


def slots(random: Random) -> tuple[int, int, float]:
    return random.randint(2, 40), random.choice([1, 2, 4, 8]), log_uniform(random, 1e-6, 1)


@exactly(slots, rel=1e-12)
def cuckoo_fpr(width: int, slots: int, load: float) -> Decimal:
    return any_of(1 / dec(2**width - 1), 2 * slots * dec(load))


@exactly(lambda r: (count(r), count(r, 1e9), r.randint(2, 40)))
def cuckoo_table_fpr(n: int, buckets: int, width: int) -> Decimal:
    return any_of((2 - 1 / dec(buckets)) / buckets / (2**width - 1), n) if (buckets, width) != (1, 1) else ONE


@exactly(lambda r: (rate(r), *slots(r)[1:]))
def cuckoo_fingerprint_bits(p: float, slots: int, load: float) -> int:
    return next(width for width in naturals(2) if cuckoo_fpr(width, slots, load) <= p)


@exactly(lambda r: (*slots(r), r.randint(0, 1024)), rel=1e-12)
def dynamic_cuckoo_fpr(width: int, slots: int, load: float, stages: int) -> Decimal:
    return any_of(1 / dec(2**width - 1), 2 * slots * dec(load) * stages)


@exactly(lambda r: (r.randint(1, 12), r.randint(2, 8)))
def cuckoo_load_threshold(slots: int, choices: int) -> Decimal:
    return orientable(choices, slots)


def orientable(choices: int, slots: int) -> Decimal:
    """Keys per slot up to which a random hypergraph can be oriented.

    Its (slots + 1)-core has a mean degree xi of ``slots choices``, where ``xi Q(xi, l) / Q(xi, l + 1)`` is
    that mean with Q(x, y) = P(Poisson(x) >= y) and l = slots; the load is ``xi / (choices Q(xi, l)^(choices -
    1) slots)``.
    """
    if (choices, slots) == (2, 1):
        return Decimal("0.5")

    def q(x: Decimal, least: int) -> Decimal:
        return 1 - sum(islice(poisson(x), least), Decimal(0))

    low, high = Decimal("1e-9"), Decimal(choices * slots)
    while high - low > Decimal("1e-30"):
        xi = (low + high) / 2
        low, high = (xi, high) if xi * q(xi, slots) < choices * slots * q(xi, slots + 1) else (low, xi)
    return low / (choices * q(low, slots) ** (choices - 1)) / slots


@exactly(lambda r: (r.uniform(0.01, 2), r.randint(1, 100)), rel=1e-12)
def prefix_spare_share(load: float, size: int) -> Decimal:
    mean = dec(load) * size
    # The keys beyond the size of a bin, as a share of i keys: at most 1 in the sum.
    most = 40 * size + 1000
    return most * mean_of(lambda i: dec(max(0, i - size)) / most, poisson(mean), max(mean, size)) / mean


@exactly(lambda r: (r.randint(0, 30), r.uniform(0.01, 2), rate(r), r.randint(1, 100)), rel=1e-12)
def prefix_fpr(width: int, load: float, spare: float, size: int) -> Decimal:
    return min(ONE, dec(load) / 2**width + prefix_spare_share(load, size) * dec(spare))


# Growth.


def growing(random: Random) -> tuple[float, float, int]:
    return rate(random), random.uniform(0.01, 0.99), random.randint(0, 60)


@exactly(growing, rel=1e-12)
def stage_fpr(p: float, r: float, i: int) -> Fraction:
    return Fraction(p) * (1 - Fraction(r)) * Fraction(r) ** i


@exactly(growing)
def stage_num_hashes(p: float, r: float, i: int) -> int:
    return max(1, up(-dec(stage_fpr(p, r, i)).ln() / bits.LN2))


def grown(random: Random) -> tuple[int, float, int]:
    return count(random, 1e6), random.choice([1, 2, 4, random.uniform(1, 4)]), random.randint(0, 30)


@exactly(grown)
def stage_capacity(first: int, growth: float, i: int) -> int:
    return round(first * Fraction(growth) ** i)


@exactly(grown)
def scalable_capacity(first: int, growth: float, stages: int) -> int:
    return sum(stage_capacity(first, growth, i) for i in range(stages))


@exactly(lambda r: (count(r, 1e9), 1e6 + count(r, 1e7), r.choice([1, 2, 4, r.uniform(1, 4)])))
def stages_for(n: int, first: float, growth: float) -> int:
    stages, held = 1, int(first)
    while held < n:
        held, stages = held + stage_capacity(int(first), growth, stages), stages + 1
    return stages


@exactly(lambda r: ([r.choice([rate(r), r.random()]) for _ in range(r.randint(0, 20))],), rel=1e-12)
def compound_fpr(chances: list[float]) -> Fraction:
    return 1 - math.prod(1 - Fraction(chance) for chance in chances)


@exactly(growing)
def scalable_fpr(p: float, r: float, stages: int) -> Fraction:
    return compound_fpr([stage_fpr(p, r, i) for i in range(stages)])


@exactly(lambda r: (*grown(r)[:2], *growing(r)[:2], r.randint(0, 30)))
def scalable_num_bits(first: int, growth: float, p: float, r: float, stages: int) -> int:
    return sum(
        bits.num_bits(stage_capacity(first, growth, i), stage_fpr(p, r, i), None) for i in range(stages)
    )
