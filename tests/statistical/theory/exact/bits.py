"""Laws of bits: the classic filter, its bounds and sizes, and the layouts."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom import theory

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
    root,
    up,
)

if TYPE_CHECKING:
    from random import Random

LN2 = Decimal(2).ln()


@exactly(a_filter)
def fill(n: Any, m: Any, k: Any) -> Decimal:
    return any_of(1 / dec(m), dec(n) * dec(k))


@exactly(a_filter)
def exponential_fpr(n: Any, m: Any, k: Any) -> Decimal:
    return power(1 - (-dec(n) * dec(k) / dec(m)).exp(), k)


@exactly(a_filter)
def classic_fpr(n: Any, m: Any, k: Any) -> Decimal:
    return power(fill(n, m, k), k)


@exactly(a_filter)
def second_order_fpr(n: int, m: int, k: int) -> Decimal:
    throws = n * k
    one, two = (1 - 1 / dec(m)) ** throws, (1 - 2 / dec(m)) ** throws if m > 2 else Decimal(0)
    mean, variance = m * (1 - one), m * (m - 1) * two + m * one - (m * one) ** 2
    return power(mean / m, k) * (1 + dec(k * (k - 1)) / 2 * variance / mean**2)


def two_filters(random: Random) -> tuple[Any, ...]:
    n, m, k = a_filter(random)
    both = random.randint(0, n)
    return n, both + count(random, n), both, m, k


@exactly(two_filters)
def intersection_fpr(a: int, b: int, both: int, m: int, k: int) -> Decimal:
    y = (1 - 1 / dec(m)) ** k
    return power(1 - y**a - y**b + y ** (a + b - both), k)


@exactly(lambda r: (count(r), r.randint(1, 64)), rel=1e-12)
def hash_collision_fpr(n: int, bits: int) -> Decimal:
    return any_of(1 / dec(2**bits), n)


# The exact law: d different cells among k probes, and all of them occupied after N throws.


def surjections(k: int) -> list[int]:
    """Stirling numbers of the second kind S(k, d)."""
    row = [1]
    for _ in range(k):
        row = [(row[d - 1] if d else 0) + (d * row[d] if d < len(row) else 0) for d in range(len(row) + 1)]
    return row


def occupied_fpr(throws: int, m: int, k: int) -> Decimal:
    # The signs cancel most of it where there are few throws.
    with localcontext(prec=700):
        return by_inclusion(throws, m, k)


def by_inclusion(throws: int, m: int, k: int) -> Decimal:
    total, ways = Decimal(0), dec(1)
    free = [(1 - dec(j) / m) ** throws if j < m else Decimal(not throws) for j in range(min(k, m) + 1)]
    for d, partitions in enumerate(surjections(k)[: m + 1]):
        covered = sum((-1) ** j * math.comb(d, j) * free[j] for j in range(d + 1))
        total += partitions * ways * covered
        ways *= m - d
    return total / dec(m) ** k


def small_filter(random: Random) -> tuple[int, int, int]:
    m, k = random.randint(1, 200), random.randint(1, 12)
    return random.randint(0, 400 // k), m, k


@exactly(small_filter)
def exact_fpr(n: int, m: int, k: int) -> Decimal:
    return occupied_fpr(n * k, m, k)


@exactly(small_filter)
def rational_fpr(n: int, m: int, k: int) -> Fraction:
    free = [Fraction(m - j, m) ** (n * k) for j in range(min(k, m) + 1)]
    total = sum(
        partitions * math.perm(m, d) * sum((-1) ** j * math.comb(d, j) * free[j] for j in range(d + 1))
        for d, partitions in enumerate(surjections(k)[: m + 1])
    )
    return Fraction(total) / m**k


def distinct_filter(random: Random) -> tuple[int, int, int]:
    n, m, k = small_filter(random)
    return n, max(m, k), k


@exactly(distinct_filter)
def distinct_fpr(n: int, m: int, k: int) -> Fraction:
    subsets = math.comb(m, k)
    return sum(
        ((-1) ** j * math.comb(k, j) * Fraction(math.comb(m - j, k), subsets) ** n for j in range(k + 1)),
        Fraction(0),
    )


@exactly(lambda r: (r.randint(0, 120), r.randint(1, 60)), off=1e-57)
def occupancy_law(throws: int, m: int) -> list[Fraction]:
    def chance(i: int) -> Fraction:
        onto = sum((-1) ** j * math.comb(i, j) * (i - j) ** throws for j in range(i + 1))
        return Fraction(math.comb(m, i) * onto, m**throws)

    return [chance(i) for i in range(min(throws, m) + 1)]


@exactly(lambda r: (log_uniform(r, 1e-6, 0.3), *a_filter(r)))
def fill_tail(deviation: float, n: int, m: int, k: int) -> Decimal:
    return min(ONE, 2 * (-2 * (dec(deviation) * m) ** 2 / (n * k)).exp())


@exactly(a_filter, rel=1e-12)
def goel_gupta_fpr(n: int, m: int, k: int) -> Decimal:
    return power(1 - (-k * (n + Decimal("0.5")) / (m - 1)).exp(), k)


@exactly(lambda r: (rate(r),))
def min_bits_per_key(p: float) -> Decimal:
    return -dec(p).ln() / LN2


@exactly(lambda r: (count(r), count(r), 2 + count(r, 1e18)))
def stream_floor(bits: int, window: int, alphabet: int) -> Decimal:
    miss = 1 - 1 / dec(alphabet)
    return max(Decimal(0), (miss**bits - miss**window) / (1 - miss**window))


# Sizes.


def maybe_hashes(random: Random) -> int | None:
    return random.choice([None, hashes(random)])


@exactly(lambda r: (rate(r), maybe_hashes(r)))
def bits_per_key(p: float, k: int | None) -> Decimal:
    if k is None:
        return -dec(p).ln() / LN2**2
    return -k / (1 - dec(p) ** (ONE / k)).ln()


@exactly(lambda r: (count(r), rate(r), maybe_hashes(r)))
def num_bits(n: int, p: float, k: int | None) -> int:
    return max(1, up(n * bits_per_key(p, k)))


@exactly(lambda r: a_filter(r)[1::-1])
def num_hashes(m: int, n: int) -> int:
    return max(1, round(dec(m) / n * LN2))


@exactly(lambda r: (rate(r),))
def best_num_hashes(p: float) -> int:
    return min(range(1, 64), key=partial(bits_per_key, p))


@exactly(lambda r: (count(r), rate(r), maybe_hashes(r)))
def capacity(m: int, p: float, k: int | None) -> int:
    return math.floor(m / bits_per_key(p, k))


@exactly(lambda r: (*a_filter(r)[:2], maybe_hashes(r)))
def fpr(n: int, m: int, k: int | None) -> Decimal:
    return exponential_fpr(n, m, k or num_hashes(m, n))


@exactly(lambda r: (log_uniform(r, 1, 100), hashes(r)))
def num_hashes_cost(c: float, k: int) -> Decimal:
    return power(1 - (-k / dec(c)).exp(), k) * 2 ** (dec(c) * LN2)


# Layouts.


def slices(random: Random) -> tuple[int, int, int]:
    n, m, k = a_filter(random)
    return n, max(m, k + 1), k


@exactly(slices)
def partitioned_fpr(n: int, m: int, k: int) -> Decimal:
    return power(any_of(dec(k) / m, n), k)


def free_block(k: Any, block: int) -> Any:
    miss = (1 - 1 / dec(block)) ** dec(k)
    return lambda i: power(1 - miss ** dec(i), k)


def columns(number: int, width: int, probes: int) -> Any:
    shares = [Fraction(math.comb(width - j, probes), math.comb(width, probes)) for j in range(probes + 1)]
    signs = [(-1) ** j * math.comb(probes, j) for j in range(probes + 1)]

    def law(i: Any) -> Decimal:
        return sum((s * dec(q) ** dec(i) for s, q in zip(signs, shares, strict=True)), Decimal(0)) ** number

    return law


def over_blocks(n: Any, m: int, block: int, law: Any) -> Decimal:
    blocks = m // block
    return law(n) if blocks == 1 else mean_of(law, binomial(n, 1 / dec(blocks)), dec(n) / blocks)


def over_many(c: Any, block: int, law: Any) -> Decimal:
    return mean_of(law, poisson(block / dec(c)), block / dec(c))


def lines_of(random: Random, block: int, least: float = 1.0) -> tuple[int, int]:
    """n, and m of whole blocks, at 1 to 100 bits per key."""
    n = count(random)
    return n, block * max(1, round(n * log_uniform(random, least, 100) / block))


def block_size(random: Random) -> int:
    return random.choice([64, 256, 512, 4096])


def blocks(random: Random) -> tuple[int, int, int, int]:
    block = block_size(random)
    return *lines_of(random, block, 4), random.randint(1, 30), block


@exactly(blocks)
def free_block_fpr(n: int, m: int, k: int, block: int) -> Decimal:
    return over_blocks(n, m, block, free_block(k, block))


@exactly(lambda r: (log_uniform(r, 4, 100), r.randint(1, 30), block_size(r)))
def free_block_limit_fpr(c: float, k: int, block: int) -> Decimal:
    return over_many(c, block, free_block(k, block))


@exactly(lambda r: (log_uniform(r, 1e-7, 0.9), r.randint(2, 12), 512))
def free_block_bits_per_key(p: float, k: int, block: int) -> Any:
    return root(
        lambda c: over_many(c, block, free_block(k, block)), p, theory.free_block_bits_per_key(p, k, block)
    )


@exactly(lambda r: (r.randint(1, 34),))
def compensated_bits_per_key(bits: int) -> int:
    def best(c: int) -> int:
        return max(1, round(c * LN2))

    target = exponential_fpr(1, bits, best(bits)) * (1 + Decimal("1e-20"))
    return next(c for c in range(bits, 513) if over_many(c, 512, free_block(best(c), 512)) <= target)


@exactly(lambda r: lines_of(r, 256, 2))
def split_fpr(n: int, m: int) -> Decimal:
    return over_blocks(n, m, 256, columns(8, 32, 1))


@exactly(lambda r: (log_uniform(r, 2, 100),))
def split_limit_fpr(c: float) -> Decimal:
    return over_many(c, 256, columns(8, 32, 1))


@exactly(lambda r: (rate(r, 1e-8),))
def split_bits_per_key(p: float) -> Any:
    return root(split_limit_fpr, p, theory.split_bits_per_key(p))


def line_law(k: int) -> Any:
    return columns(4, 128, k // 4)


@exactly(lambda r: (*lines_of(r, 512, 2), r.choice([4, 8, 12])))
def blocked_fpr(n: int, m: int, k: int) -> Decimal:
    return over_blocks(n, m, 512, line_law(k))


@exactly(lambda r: (log_uniform(r, 2, 100), r.choice([4, 8, 12])))
def blocked_limit_fpr(c: float, k: int) -> Decimal:
    return over_many(c, 512, line_law(k))


@exactly(lambda r: (rate(r, 1e-8), r.choice([4, 8, 12])))
def blocked_bits_per_key(p: float, k: int) -> Any:
    return root(partial(blocked_limit_fpr, k=k), p, theory.blocked_bits_per_key(p, k))


def two_lines_of(random: Random) -> tuple[int, int]:
    n, m = lines_of(random, 512, 4)
    return n, 2 * m


@exactly(lambda r: (*two_lines_of(r), r.choice([8, 16, 24])))
def two_block_fpr(n: int, m: int, k: int) -> Decimal:
    return over_blocks(n, m // 2, 512, line_law(k // 2)) ** 2


@exactly(lambda r: (log_uniform(r, 4, 100), r.choice([8, 16, 24])))
def two_block_limit_fpr(c: float, k: int) -> Decimal:
    return over_many(dec(c) / 2, 512, line_law(k // 2)) ** 2


@exactly(lambda r: (rate(r, 1e-12), r.choice([8, 16, 24])))
def two_block_bits_per_key(p: float, k: int) -> Any:
    return root(partial(two_block_limit_fpr, k=k), p, theory.two_block_bits_per_key(p, k))


def overcounting(random: Random) -> tuple[int, int, int, int]:
    return *lines_of(random, 512, 4), random.choice([4, 8, 12]), random.randint(0, 6)


@exactly(overcounting)
def layered_overcount(n: int, m: int, k: int, extra: int) -> Decimal:
    one = line_law(k)
    return over_blocks(n, m, 512, lambda i: one(i) ** extra) if extra else ONE


# Filters as constructors create them: the rate by the exact law of the layout.


def exact_rate(layout: str, m: int, k: int, n: int) -> Decimal:
    return {
        "classic": lambda: occupied_fpr(n * k, m, k),
        "blocked": lambda: blocked_fpr(n, m, k),
        "split": lambda: split_fpr(n, m),
        "two-block": lambda: two_block_fpr(n, m, k),
        "partitioned": lambda: power(any_of(dec(k) / m, n), k),
    }[layout]()


def a_layout(random: Random) -> tuple[str, int, float]:
    """A layout, its keys, and a rate that 64-bit hashes can honour."""
    layout = random.choice(["classic", "blocked", "split", "partitioned", "two-block"])
    # Split blocks are counted by 32 bits.
    n = count(random, 1e10 if layout == "split" else 1e13)
    return (
        layout,
        n,
        max(
            rate(
                random, 1e-5 if layout in ("blocked", "split") else 1e-10 if layout == "two-block" else 1e-12
            ),
            n / 2**63,
        ),
    )


def draw_sized(random: Random) -> tuple[str, int, int, int]:
    """A filter as a constructor creates it, with 1 key up to its capacity."""
    layout, n, p = a_layout(random)
    size = theory.size_for(layout, n, p)
    return layout, size.num_bits, size.num_hashes, random.choice([1, n, count(random, n)])


@exactly(draw_sized)
def fpr_at(layout: str, m: int, k: int, n: int) -> Decimal:
    return exact_rate(layout, m, k, n)


@exactly(a_layout)
def size_for(layout: str, n: int, p: float) -> Any:
    size = theory.size_for(layout, n, p)
    return size if exact_rate(layout, *size, n) <= dec(p) * (1 + Decimal("1e-9")) else (math.nan, math.nan)


@exactly(lambda r: (*draw_sized(r)[:3], rate(r, 1e-6)))
def capacity_at(layout: str, m: int, k: int, p: float) -> Any:
    keys = theory.capacity_at(layout, m, k, p)
    # Within a part in a billion of the keys, where that is a key.
    low, high = math.floor(keys * (1 - 1e-9)), math.ceil(keys * (1 + 1e-9))
    kept = not low or exact_rate(layout, m, k, low) <= p
    return keys if kept and exact_rate(layout, m, k, max(high, keys + 1)) > p else math.nan
