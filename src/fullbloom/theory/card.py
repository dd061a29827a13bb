"""The quick-reference card: from any two or three of n, p, m, k to all of them."""

from __future__ import annotations

import math
from typing import NamedTuple

from fullbloom.errors import ParameterError

from . import rates, sizing
from ._check import check_open_unit, check_whole
from ._finite import require_finite


class Card(NamedTuple):
    """All values of one classic filter: those given, and those computed from them."""

    capacity: int
    fpr: float
    num_bits: int
    num_hashes: int
    bits_per_key: float
    fill: float

    @property
    def num_bytes(self) -> int:
        """Bytes of the bit array, rounded up."""
        return -(-self.num_bits // 8)


@require_finite
def reference_card(
    *,
    capacity: int | None = None,
    fpr: float | None = None,
    num_bits: int | None = None,
    num_hashes: int | None = None,
) -> Card:
    """Return the classic filter that fits the two or three values given.

    ``fpr`` of the result is the rate at capacity for the whole k and m, so it is at most the requested rate.

    =============== =====================================================================
    given           the rest
    =============== =====================================================================
    n, p            k with the fewest bits, then m = ceil(-k n / ln(1 - p^(1/k)))
    n, m            k = max(1, round(m/n ln 2)), then p
    m, p            k with the fewest bits, then n = floor(-(m/k) ln(1 - p^(1/k)))
    n, k or m, k    half-full filter: m = ceil(k n / ln 2) or n = floor(m ln 2 / k), then p
    n, p, k         m
    m, p, k         n
    n, m, k         p
    n, m, p         the smallest k that keeps p, if there is one
    p, k            not enough: they fix only the bits per key, ``sizing.bits_per_key``
    =============== =====================================================================

    A constructor may choose differently (whole words, blocks, another law): see ``constructor.size_for``.
    Takes no vectors. Raises ``ParameterError`` for fewer than two or for four values, for a value out of
    range, and when no filter fits. Constant time, except n, m, p: at most m/n steps.

    Source: the closed forms of ``sizing.py``.

    >>> from fullbloom import theory
    >>> card = theory.reference_card(capacity=1_000_000, fpr=0.01)
    >>> card.num_bits, card.num_hashes, card.num_bytes
    (9592955, 7, 1199120)
    >>> theory.reference_card(num_bits=8_000_000, fpr=0.001).capacity
    556419
    """
    keys = None if capacity is None else check_whole("capacity", capacity, 1)
    rate = None if fpr is None else check_open_unit("fpr", fpr)
    bits = None if num_bits is None else check_whole("num_bits", num_bits, 1)
    hashes = None if num_hashes is None else check_whole("num_hashes", num_hashes, 1)
    n, m, k = _solve(keys, rate, bits, hashes)
    if n == 0:
        raise ParameterError(
            f"num_bits must hold at least one key at the requested rate, got {m}; give more bits"
        )
    return Card(n, rates.exponential_fpr(n, m, k), m, k, m / n, rates.fill(n, m, k))


def _solve(
    keys: int | None, rate: float | None, bits: int | None, hashes: int | None
) -> tuple[int, int, int]:
    """Return n, m and k; each case is one row of the table."""
    match keys, rate, bits, hashes:
        case int(n), float(p), None, k:
            k = k or sizing.best_num_hashes(p)
            return n, sizing.num_bits(n, p, k), k
        case int(n), None, int(m), k:
            return n, m, k or sizing.num_hashes(m, n)
        case None, float(p), int(m), k:
            k = k or sizing.best_num_hashes(p)
            return sizing.capacity(m, p, k), m, k
        case int(n), None, None, int(k):
            return n, math.ceil(n * k / math.log(2.0)), k
        case None, None, int(m), int(k):
            return math.floor(m * math.log(2.0) / k), m, k
        case int(n), float(p), int(m), None:
            return n, m, _fewest_hashes(n, p, m)
        case None, float(), None, int():
            raise ParameterError(
                "give capacity or num_bits too: fpr and num_hashes fix only the bits per key"
            )
    count = 4 - [keys, rate, bits, hashes].count(None)
    raise ParameterError(f"give two or three of capacity, fpr, num_bits and num_hashes, got {count}")


def _fewest_hashes(keys: int, rate: float, bits: int) -> int:
    """Return the smallest k that keeps the rate."""
    most = sizing.num_hashes(bits, keys) + 1
    # The rate falls up to the best k, the usual one or a neighbour, so the first that fits is the smallest.
    # The loop takes at most 1100 steps, since 1500 bits per key reach every rate a float can hold.
    for hashes in range(1, most + 1):
        if rates.exponential_fpr(keys, bits, hashes) <= rate:
            return hashes
    reached = min(rates.exponential_fpr(keys, bits, hashes) for hashes in range(max(1, most - 2), most + 1))
    raise ParameterError(
        f"fpr must be at least {reached:.6g} for capacity = {keys} in num_bits = {bits}, got {rate}; "
        "give more bits"
    )
