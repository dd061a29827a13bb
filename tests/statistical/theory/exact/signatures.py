"""Laws of signatures, by the published sums over subsets of bits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from .arithmetic import any_of, dec, exactly, power, rate, up

if TYPE_CHECKING:
    from random import Random


def a_shape(random: Random) -> tuple[int, int, int]:
    bits = random.randint(2, 300)
    return bits, random.randint(1, min(bits, 8)), random.randint(0, 40)


def a_probe(random: Random) -> tuple[int, int, int, int]:
    bits, each, terms = a_shape(random)
    return bits, each, terms, random.randint(0, min(bits, 24))


def subsets(bits: int, each: int, terms: int, probes: int) -> Fraction:
    whole = comb(bits, each)
    signed = ((-1) ** j * comb(probes, j) * comb(max(bits - j, 0), each) ** terms for j in range(probes + 1))
    return Fraction(sum(signed), whole**terms)


@exactly(a_shape)
def signature_fill(bits: int, each: int, terms: int) -> Decimal:
    return any_of(dec(Fraction(each, bits)), terms) if each < bits else Decimal(min(terms, 1))


@exactly(a_probe)
def signature_fpr(bits: int, each: int, terms: int, probes: int) -> Fraction:
    return subsets(bits, each, terms, probes)


@exactly(a_probe)
def rational_signature_fpr(bits: int, each: int, terms: int, probes: int) -> Fraction:
    return subsets(bits, each, terms, probes)


def a_query(random: Random) -> tuple[int, int, int, int]:
    bits = random.randint(2, 60)
    return bits, random.randint(1, min(bits, 5)), random.randint(0, 30), random.randint(0, 4)


@exactly(a_query)
def signature_query_fpr(bits: int, each: int, terms: int, asked: int) -> Fraction:
    """By the number s of set bits of the row: each term of the query must hit set bits only."""
    hit = Fraction(0)
    for s in range(min(bits, each * terms) + 1):
        # All bits are set within a given set of s, and none of them is left out.
        ways = sum((-1) ** (s - i) * comb(s, i) * comb(i, each) ** terms for i in range(s + 1))
        chance = Fraction(comb(bits, s) * ways, comb(bits, each) ** terms)
        hit += chance * Fraction(comb(s, each), comb(bits, each)) ** asked
    return hit


def ratio(fpr: float, fill: float) -> int:
    return min(max(up(dec(fpr).ln() / dec(fill).ln() * (1 - Decimal("1e-12"))), 1), 64)


@exactly(lambda r: (rate(r), r.uniform(0.05, 0.9)))
def signature_bits_per_term(fpr: float, fill: float) -> int:
    return ratio(fpr, fill)


@exactly(lambda r: (r.randint(1, 60), rate(r, 1e-6), r.uniform(0.1, 0.7)))
def signature_num_bits(terms: int, fpr: float, fill: float) -> int:
    """The bits of that fill, in steps of a 1,024th until the law keeps the rate."""
    each = ratio(fpr, fill)
    least = max(up(each / (1 - power(1 - dec(fill), Decimal(1) / terms))), each)
    step = 0
    while subsets(bits := -(-least * (1024 + step) // 1024), each, terms, each) > Fraction(fpr):
        step += 1
    return bits


@exactly(lambda r: (rate(r), r.randint(0, 6)))
def rank_fill(fill: float, rank: int) -> Decimal:
    return any_of(dec(fill), 2**rank)
