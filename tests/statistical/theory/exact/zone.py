"""Laws of zones, and of static filters that are peeled."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from .arithmetic import dec, exactly, log_uniform, power, up

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random


def primes() -> Iterator[int]:
    """All of them, by trial division."""
    found: list[int] = []
    n = 2
    while True:
        if all(n % p for p in found if p * p <= n):
            found.append(n)
            yield n
        n += 1


def first_primes(universe: int, zone: int) -> list[int]:
    """In whole numbers, however long."""
    taken, product, wanted = [], 1, universe**zone
    for prime in primes():
        if product >= wanted:
            return taken
        taken.append(prime)
        product *= prime
    raise AssertionError


def a_zone(random: Random) -> tuple[int, int]:
    return round(log_uniform(random, 2, 2**40)), random.randint(1, 40)


@exactly(a_zone)
def zone_num_hashes(universe: int, zone: int) -> int:
    return len(first_primes(universe, zone))


@exactly(a_zone)
def zone_cells(universe: int, zone: int) -> int:
    return sum(first_primes(universe, zone))


@exactly(lambda r: (round(log_uniform(r, 1, 2**40)),))
def zone_counter_bits(zone: int) -> int:
    return min(max(len(f"{zone + 1:b}"), 2), 32)


def keys_of(random: Random) -> int:
    return round(log_uniform(random, 1, 2e6))


def segment_bits(keys: int, arity: int) -> tuple[int, int]:
    """As their binary logarithm, and the cells that are divided into segments."""
    log = dec(max(keys, 2)).ln()
    if arity == 3:
        bits = log / Decimal("3.33").ln() + Decimal("2.25")
        factor = max(Decimal("0.875") + Decimal("0.25") * dec(10**6).ln() / log, Decimal("1.125"))
    else:
        bits = log / Decimal("2.91").ln() - Decimal("0.5")
        factor = max(Decimal("0.77") + Decimal("0.305") * dec(600_000).ln() / log, Decimal("1.075"))
    length = min(max(int(max(bits, Decimal(0))), 2), 18)
    cells = int(keys * factor + Decimal("0.5"))
    if arity == 3 and length >= 9 and cells >> length < 24:
        length -= 1
    return length, cells


@exactly(lambda r: (keys_of(r), r.choice([3, 4])))
def fuse_cells(keys: int, arity: int) -> int:
    length, cells = segment_bits(keys, arity)
    return max(-(-cells // 2**length), arity) * 2**length


def near_the_threshold(random: Random) -> tuple[int, int, float | None]:
    factor = random.choice([None, random.uniform(1.0, 1.3)])
    return round(log_uniform(random, 1000, 2e6)), random.choice([3, 4]), factor


@exactly(near_the_threshold, off=1e-12)
def fuse_failure(keys: int, arity: int, factor: float | None) -> Decimal:
    segment = 2 ** segment_bits(keys, arity)[0]
    cells = dec(fuse_cells(keys, arity)) if factor is None else dec(factor) * keys
    begins = max(up(cells / segment) - arity + 1, 1)
    threshold, *fitted = {
        3: ("0.917935", "0.832", "3.54", "1.40", "2.66"),
        4: ("0.976770", "1.608", "3.054", "1.49", "5.85"),
    }[arity]
    start, slope, shift, ends = map(Decimal, fitted)
    root = dec(segment).sqrt()
    ahead = root * (Decimal(threshold) - dec(keys) / (begins * segment)) + shift / power(root, Decimal(1) / 3)
    stops = (start - slope * max(ahead, Decimal(0)) ** 2 / 2).exp() * begins**2 / (begins + ends * root)
    twins = dec(keys * (keys - 1)) / 2 / (begins * segment**arity)
    return 1 - (-stops - twins).exp() * (1 + stops)


@exactly(lambda r: (keys_of(r),))
def xor_cells(keys: int) -> int:
    return 3 * up(dec(keys * 123 // 100 + 32) / 3)


@exactly(lambda r: (keys_of(r), r.randint(1, 64), r.randint(1, 32), r.choice([3, 4]), r.random() < 0.5))
def bloomier_bits_per_key(keys: int, value: int, check: int, arity: int, mutable: bool) -> Decimal:
    return dec(fuse_cells(keys, arity)) * (value + check + 2 * mutable) / keys


@exactly(lambda r: (r.randint(1, 32), r.choice([3, 4]), r.random() < 0.5, keys_of(r)))
def bloomier_fpr(check: int, arity: int, mutable: bool, keys: int) -> Decimal:
    free, mixed = 1 - dec(keys) / dec(fuse_cells(keys, arity)), dec(arity) / 4
    own = min(Decimal(1), mixed + (1 - mixed) * free**arity * 13 / 10)
    return power(Decimal(2), -check) * (own if mutable else 1)
