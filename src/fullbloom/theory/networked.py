"""Bits and messages of filters that are spread over several machines.

P elements hold n keys in all. What an element keeps for itself is not sent, so a share of 1/P of all hashes
costs nothing.
"""

from __future__ import annotations

import math

from ._check import check_closed_unit, check_non_negative, check_open_unit, check_whole, check_within
from ._vector import vectorize
from .golomb import golomb_bits_per_key, rice_bits

#: The core codes gaps with at least one bit of remainder, and lists at most half of a range.
_LEAST_RICE_BITS = 1
_MOST_SHARE = 0.5
_MOST_DEPTH = 64
#: Bytes of an offer and of a receipt of a new value beside both names and the value: they are JSON.
_OFFER_BYTES = 54
_RECEIPT_BYTES = 73
#: A repeated receipt says false in place of true.
_REPEATED_BYTES = 1
_MOST_DEGREE = 1 << 32


@vectorize
def replication_bits(num_bits: int, elements: int) -> int:
    """Return the bits that all elements send to replicate a filter: ``num_bits * P * log2(P)``.

    If P = ``elements`` is not a power of two, it is ``num_bits * (C log2(C) + 2 (P - C))``, C the largest
    power of two below: the elements beyond C send their filters to partners and receive the result. Headers
    of messages are not included. Raises ``ParameterError`` unless num_bits and elements are whole and at
    least 1. Constant time.

    Source: Sanders, Schlag, Müller, "Communication efficient algorithms for fundamental big data problems",
    IEEE Big Data 2013.

    >>> from fullbloom import theory
    >>> theory.replication_bits(1_000_000, elements=8), theory.replication_bits(1_000_000, elements=6)
    (24000000, 12000000)
    """
    bits, count = check_whole("num_bits", num_bits, 1), check_whole("elements", elements, 1)
    steps = count.bit_length() - 1
    core = 1 << steps
    return bits * (core * steps + 2 * (count - core))


@vectorize
def replication_break_even(items: float, elements: int, fpr: float) -> float:
    """Return the accesses from which replication sends fewer bits: ``P n log(1/fpr) / log(P)``.

    Below that number, a distributed filter that each access asks over the network is cheaper than a copy in
    each of P = ``elements`` elements. The published estimate leaves out constants: a copy takes log2(1/fpr)
    bits per key, an access log2(P) bits. Raises ``ParameterError`` unless items >= 0, elements is whole and
    at least 2, and fpr is in (0, 1). Constant time.

    Source: as `replication_bits`.

    >>> from fullbloom import theory
    >>> round(theory.replication_break_even(1_000_000, elements=8, fpr=2**-6))
    16000000
    """
    keys, count = check_non_negative("items", items), check_whole("elements", elements, 2)
    return keys * -math.log(check_open_unit("fpr", fpr)) * (count / math.log(count))


@vectorize
def single_shot_fpr(fpr: float, elements: int) -> float:
    """Return the share of unique keys that a round returns: ``1 - exp(-fpr (P - 1) / P)``.

    A filter of rate fpr has n / fpr values for n keys. A unique key is returned if one of the keys of the
    other elements, a share of (P - 1) / P, has its value. Raises ``ParameterError`` unless fpr is in (0, 1)
    and elements is whole and at least 1. Constant time.

    Source: as `single_shot_bits`.

    >>> from fullbloom import theory
    >>> round(theory.single_shot_fpr(1 / 8, elements=8), 4)
    0.1036
    """
    rate, count = check_open_unit("fpr", fpr), check_whole("elements", elements, 1)
    return -math.expm1(-rate * ((count - 1) / count))


@vectorize
def single_shot_bits(items: float, elements: int, fpr: float) -> float:
    """Return the bits of all packets of hashes in a round, about ``n (log2(P / fpr) + 1.5) (P - 1) / P``.

    Each of P = ``elements`` elements sends its values to their owners, a share of fpr / P of an owner's
    range, with gaps in Rice codes: ``n (P - 1) / P * q / (fpr / P) * golomb_bits_per_key(q)``, where
    q = 1 - exp(-fpr / P) is the share of distinct values. The lower bound has 1.44 in place of 1.5. The
    answers, headers and the index of a packet are not included. Raises ``ParameterError`` unless items >= 0,
    elements is whole and at least 1, and fpr is in (0, 1). Constant time.

    Source: Sanders, Schlag, Müller, "Communication efficient algorithms for fundamental big data problems",
    IEEE Big Data 2013.

    >>> from fullbloom import theory
    >>> round(theory.single_shot_bits(1_000_000, elements=8, fpr=1 / 8))
    6547522
    """
    keys, count = check_non_negative("items", items), check_whole("elements", elements, 1)
    share = check_open_unit("fpr", fpr) / count
    distinct = -math.expm1(-share)
    bits = golomb_bits_per_key(distinct, max(rice_bits(share), _LEAST_RICE_BITS))
    return keys * ((count - 1) / count) * (distinct / share) * bits


@vectorize
def single_shot_answer_bits(items: float, elements: int, returned: float) -> float:
    """Return the bits of all answers in a round: indexes of the ``returned`` share of the packets' values.

    ``n (P - 1) / P * r * golomb_bits_per_key(r)``, r the smaller of the shares of the values that are
    returned and that are not. items: values in all packets. Raises ``ParameterError`` unless items >= 0,
    elements is whole and at least 1, and returned is in [0, 1]. Constant time.

    Source: as `single_shot_bits`.

    >>> from fullbloom import theory
    >>> round(theory.single_shot_answer_bits(1_000_000, elements=8, returned=0.2))
    646409
    """
    keys, count = check_non_negative("items", items), check_whole("elements", elements, 1)
    share = check_closed_unit("returned", returned)
    share = min(share, 1.0 - share)
    if share == 0.0:
        return 0.0
    bits = golomb_bits_per_key(share, max(rice_bits(min(share, _MOST_SHARE)), _LEAST_RICE_BITS))
    return keys * ((count - 1) / count) * share * bits


@vectorize
def attenuated_messages(degree: int, depth: int) -> int:
    """Return the messages that a new key causes: ``g (1 + (g - 1) + ... + (g - 1)^(D - 1))``.

    The key is new to a node of a network in which each node has g = ``degree`` links and no circle is
    shorter than 2 D, D = ``depth``. Each node within D hops receives one message; with circles or false
    positives, fewer are sent. Raises ``ParameterError`` unless degree is whole, from 1 to 2^32, and depth
    from 1 to 64. Constant time.

    Source: Rhea, Kubiatowicz, "Probabilistic location and routing", INFOCOM 2002.

    >>> from fullbloom import theory
    >>> theory.attenuated_messages(degree=4, depth=3)
    52
    """
    links = check_within("degree", degree, 1, _MOST_DEGREE)
    hops = check_within("depth", depth, 1, _MOST_DEPTH)
    return sum(links * (links - 1) ** hop for hop in range(hops))


@vectorize
def attenuated_bits(num_bits: int, links: int, depth: int) -> int:
    """Return the bits of filters that all nodes send to advertise them: ``2 L D m``.

    Over each of the two directions of each of L = ``links`` links, a node sends one filter of m bits in each
    of D = ``depth`` rounds. Headers of messages are not included. Raises ``ParameterError`` unless num_bits
    is whole and at least 1, links whole and at least 0, and depth from 1 to 64. Constant time.

    Source: as `attenuated_messages`.

    >>> from fullbloom import theory
    >>> theory.attenuated_bits(1536, links=3, depth=2)
    18432
    """
    bits, edges = check_whole("num_bits", num_bits, 1), check_whole("links", links, 0)
    return 2 * edges * check_within("depth", depth, 1, _MOST_DEPTH) * bits


@vectorize
def aggregation_bits(nodes: int, rounds: int, name_bytes: int, value_bytes: int) -> int:
    """Return the bits that all nodes send if each pair exchanges its values in each of ``rounds`` rounds.

    In each direction, an offer of 54 bytes and a receipt of 73, each with both names, of ``name_bytes``, and
    the value, of ``value_bytes``: ``8 n (n - 1) (127 + 4 a + 2 v)`` for a new value. A repeated one takes
    ``v + 1`` bytes more, because the offer says that it was made before. Names and values are as JSON writes
    them. What a false positive adds to an offer, fpr (v + 2) bytes for each other value that a node may have,
    is not included. Raises ``ParameterError`` unless all are whole and nodes, name_bytes and value_bytes at
    least 1. Constant time.

    Source: Pournaras, Warnier, Brazier, "A generic and adaptive aggregation service for large-scale
    decentralized networks", Complex Adaptive Systems Modeling 1, 2013.

    >>> from fullbloom import theory
    >>> theory.aggregation_bits(nodes=8, rounds=1, name_bytes=6, value_bytes=2)
    69440
    """
    count, times = check_whole("nodes", nodes, 1), check_whole("rounds", rounds, 0)
    name, value = check_whole("name_bytes", name_bytes, 1), check_whole("value_bytes", value_bytes, 1)
    first = _OFFER_BYTES + _RECEIPT_BYTES + 4 * name + 2 * value
    again = first + value + _REPEATED_BYTES
    return 8 * count * (count - 1) * ((first + (times - 1) * again) if times else 0)
