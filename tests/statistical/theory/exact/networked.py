"""Laws of filters that are spread over several machines."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

from .arithmetic import count, dec, exactly, log_uniform
from .golomb import best_of

if TYPE_CHECKING:
    from random import Random


def elements(random: Random) -> int:
    return count(random, 1e4)


def rate(random: Random) -> float:
    return log_uniform(random, 1e-9, 0.9)


def code(share: Decimal, rounded: float) -> Decimal:
    """Bits of a gap of this density, with the remainder that is best for a set built at a rate."""
    bits = max(1, best_of(rounded))
    reached = (1 - share) ** (2**bits)
    return bits + 1 + reached / (1 - reached)


def count_sent(items: float, number: int) -> Decimal:
    """Keys that leave their element."""
    return dec(items) - dec(items) / dec(number)


@exactly(lambda r: (count(r), elements(r)))
def replication_bits(num_bits: int, number: int) -> int:
    """One message for each element and dimension, counted; two for each element beyond the hypercube."""
    core = max(2**d for d in range(64) if 2**d <= number)
    steps = sum(1 for d in range(64) if 2**d < core)
    return num_bits * (core * steps + 2 * (number - core))


@exactly(lambda r: (count(r), elements(r) + 1, rate(r)))
def replication_break_even(items: int, number: int, fpr: float) -> Decimal:
    return -dec(items) * number * dec(fpr).ln() / dec(number).ln()


@exactly(lambda r: (rate(r), elements(r)))
def single_shot_fpr(fpr: float, number: int) -> Decimal:
    return 1 - (-dec(fpr) + dec(fpr) / number).exp()


@exactly(lambda r: (count(r), elements(r), rate(r)))
def single_shot_bits(items: int, number: int, fpr: float) -> Decimal:
    share = dec(fpr) / number
    distinct = 1 - (-share).exp()
    return count_sent(items, number) * distinct / share * code(distinct, float(share))


@exactly(lambda r: (count(r), elements(r), r.choice([0.0, 1.0, r.random(), rate(r)])))
def single_shot_answer_bits(items: int, number: int, returned: float) -> Decimal:
    share = min(dec(returned), 1 - dec(returned))
    if not share:
        return Decimal(0)
    return count_sent(items, number) * share * code(share, float(min(share, Decimal("0.5"))))


@exactly(lambda r: (r.randint(1, 1000), r.randint(1, 20)))
def attenuated_messages(degree: int, depth: int) -> int:
    """Nodes of a tree, level by level."""
    total, level = 0, degree
    for _ in range(depth):
        total += level
        level *= degree - 1
    return total


@exactly(lambda r: (count(r), r.randint(0, 10**6), r.randint(1, 20)))
def attenuated_bits(num_bits: int, links: int, depth: int) -> int:
    """One filter at each end of each link in each round, counted."""
    return sum(num_bits * links for _end in range(2) for _round in range(depth))


@exactly(lambda r: (r.randint(1, 300), r.randint(0, 5), r.randint(1, 100), r.randint(1, 100)))
def aggregation_bits(nodes: int, rounds: int, name_bytes: int, value_bytes: int) -> int:
    """The messages as JSON writes them, by their letters."""
    name, value = "n" * name_bytes, int("1" * value_bytes)
    ends = {"source": name, "target": name, "value": value}
    total = 0
    for number in range(rounds):
        offer = {**ends, "earlier": [value] if number else []}
        receipt = {**ends, "replaced": None, "is_new": not number}
        total += sum(8 * len(json.dumps(message)) for message in (offer, receipt))
    return total * nodes * (nodes - 1)
