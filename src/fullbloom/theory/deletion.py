"""Laws of structures that support removal: d-left tables, deletable and retouched filters.

Symbols: n ``items``, m ``num_bits``, k ``num_hashes``, N = kn throws, r ``regions``; for tables d
``subtables``, w ``cells`` per bucket, B ``buckets`` per sub-table, mean ``load`` n / (d B) of a bucket.
"""

from __future__ import annotations

import math
from itertools import pairwise

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_closed_unit, check_non_negative, check_positive, check_whole
from ._finite import require_finite
from ._vector import vectorize
from .constructor import evaluate_law

# Step of the mean load in the integration; halving it changes no share by 5e-7.
_STEP = 1.0 / 40.0
# A cell that fewer buckets lack counts as full in all; a cell that fewer buckets use counts as empty in all.
_LEAST_LACK, _LEAST_HELD = 1e-13, 1e-30
# No practical table exceeds these limits, and the table of shares must end.
_MOST_LOAD, _MOST_TABLES = 64, 8
# Smaller shares are left out.
_LEAST_SHARE = 1e-12


@vectorize
def dleft_fpr(items: float, buckets: float, remainder_bits: float) -> float:
    """Return the rate of a d-left table: ``1 - (1 - 1/(B R))^n``, R = 2^remainder_bits.

    Exact for n distinct random hashes: buckets and remainders are permutations of one fingerprint below B R,
    so a key is found exactly when its fingerprint is in the table. Raises ``ParameterError`` unless items >=
    0, buckets >= 1 and remainder_bits > 0. Constant time.

    Source: Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, "An improved construction for counting Bloom
    filters", ESA 2006.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.dleft_fpr(items=240_000, buckets=10_000, remainder_bits=14), 6)
    0.001464
    """
    fingerprints = check_at_least("buckets", buckets, 1) * math.pow(
        2.0, check_positive("remainder_bits", remainder_bits)
    )
    return evaluate_law("any_of", 1.0 / fingerprints, check_non_negative("items", items))


@vectorize
def dleft_load_fpr(subtables: float, load: float, remainder_bits: float) -> float:
    """Return the published form of the same rate: ``d * load * 2^-r``, the expected number of matches.

    An upper bound of :func:`dleft_fpr`. Raises ``ParameterError`` unless subtables >= 1, load >= 0 and
    remainder_bits > 0. Constant time.

    Source: Bonomi et al. 2006.

    >>> from fullbloom import theory
    >>> round(theory.dleft_load_fpr(subtables=4, load=6, remainder_bits=14), 6)
    0.001465
    """
    expected = check_at_least("subtables", subtables, 1) * check_non_negative("load", load)
    return expected * math.pow(2.0, -check_positive("remainder_bits", remainder_bits))


@vectorize
def dleft_bits_per_key(load: float, cells: float, remainder_bits: float) -> float:
    """Return the bits per key: ``(r + 2) w / load``, the 2 for the count.

    Raises ``ParameterError`` unless load > 0, cells >= 1 and remainder_bits > 0. Constant time.

    >>> from fullbloom import theory
    >>> round(theory.dleft_bits_per_key(load=6, cells=8, remainder_bits=14), 2)
    21.33
    """
    return (
        (check_positive("remainder_bits", remainder_bits) + 2.0)
        * check_at_least("cells", cells, 1)
        / check_positive("load", load)
    )


def _slopes(shares: list[list[float]], subtables: int) -> list[list[float]]:
    """Return the growth of the share of buckets with at least j cells, by sub-table, per unit of load."""
    slopes = [[0.0] * len(row) for row in shares]
    for j in range(1, len(shares[0])):
        # A key goes to a bucket with j - 1 cells if every bucket to its left has more and every bucket to its
        # right at least as many.
        right = [1.0] * (subtables + 1)
        for i in range(subtables - 1, 0, -1):
            right[i] = right[i + 1] * shares[i][j - 1]
        left = float(subtables)
        for i, row in enumerate(shares):
            slopes[i][j] = left * (row[j - 1] - row[j]) * right[i + 1]
            left *= row[j]
    return slopes


@require_finite
def dleft_loads(subtables: int, load: float) -> list[float]:
    """Return the shares of buckets with 0, 1, 2, ... cells in use, in a large table filled without removals.

    Integrates the differential equations of the process (fluid limit); the list ends where shares fall below
    1e-12. Shares are within 1e-6 of the limit. Raises ``ParameterError`` unless subtables is whole, from 2 to
    8, and load is between 0 and 64. Cost: about 10 ms for each unit of load.

    Source: Mitzenmacher and Vocking, "The asymptotics of selecting the shortest of two, improved", 1999.

    >>> from fullbloom import theory
    >>> [round(share, 3) for share in theory.dleft_loads(subtables=4, load=6)[4:8]]
    [0.003, 0.122, 0.746, 0.128]
    """
    tables, mean = check_whole("subtables", subtables, 2), check_non_negative("load", load)
    if mean > _MOST_LOAD:
        raise ParameterError(f"load must be at most {_MOST_LOAD}, got {load}")
    if tables > _MOST_TABLES:
        raise ParameterError(f"subtables must be at most {_MOST_TABLES}, got {subtables}")
    # Row i: the shares of buckets of sub-table i with at least 0, 1, 2, ... cells beyond the `full` ones.
    full, shares = 0, [[1.0, 0.0] for _ in range(tables)]
    steps = math.ceil(mean / _STEP)
    for _ in range(steps):
        step = mean / steps
        # Runge and Kutta, fourth order.
        first = _slopes(shares, tables)
        second = _slopes(_advance(shares, first, step / 2.0), tables)
        third = _slopes(_advance(shares, second, step / 2.0), tables)
        fourth = _slopes(_advance(shares, third, step), tables)
        for slopes, weight in ((first, 1.0), (second, 2.0), (third, 2.0), (fourth, 1.0)):
            shares = _advance(shares, slopes, weight * step / 6.0)
        while all(row[1] > 1.0 - _LEAST_LACK for row in shares):
            full += 1
            shares = [[1.0, *row[2:]] for row in shares]
        if any(row[-1] > _LEAST_HELD for row in shares):
            shares = [[*row, 0.0] for row in shares]
    at_least_j = [math.fsum(row) / tables for row in zip(*shares, strict=True)] + [0.0]
    exactly = [more - most for more, most in pairwise(at_least_j)]
    while len(exactly) > 1 and exactly[-1] < _LEAST_SHARE:
        exactly.pop()
    return [0.0] * full + exactly


def _advance(shares: list[list[float]], slopes: list[list[float]], step: float) -> list[list[float]]:
    """Return the shares one step later."""
    return [
        [min(1.0, share + step * slope) for share, slope in zip(row, down, strict=True)]
        for row, down in zip(shares, slopes, strict=True)
    ]


def _check_throws(items: float, num_bits: float, num_hashes: float) -> tuple[float, float, float]:
    """Check the arguments; return bits, throws, and the log of (1 - 1/m)."""
    bits = check_at_least("num_bits", num_bits, 2)
    throws = check_non_negative("items", items) * check_at_least("num_hashes", num_hashes, 1)
    return bits, throws, math.log1p(-1.0 / bits)


def _check_regions(bits: float, regions: float) -> float:
    """Return the bits per region."""
    if check_at_least("regions", regions, 1) > bits:
        raise ParameterError(f"regions must be at most num_bits = {bits:.0f}, got {regions}")
    return bits / regions


@vectorize
def deletability(items: float, num_bits: float, num_hashes: float, regions: float) -> float:
    """Return the share of keys that a full deletable filter can remove: ``1 - (1 - q)^k``.

    q is the probability that no other key set a bit of the key and no keys collided elsewhere in its region,

        q = (1 - 1/m)^(N-1) (p0 + p1)^(m/r - 1),  p0 = (1 - 1/m)^N,  p1 = (N/m) (1 - 1/m)^(N-1).

    Within 0.01 of simulation for regions of at most 20 bits; too high by 0.03 at 64 bits per region, since
    the k probes then fall into few regions, which are not independent. 1 for an empty filter. Raises
    ``ParameterError`` unless items >= 0, num_bits >= 2, num_hashes >= 1 and 1 <= regions <= num_bits.
    Constant time.

    Source: Rothenberg, Macapuna, Verdi and Magalhaes, "The deletable Bloom filter", IEEE Communications
    Letters 14(6), 2010, conditioned on the key's own bit; compare :func:`published_deletability`. Independent
    of the core, which uses the flags of a filter; tests check that both agree.

    >>> from fullbloom import theory
    >>> round(theory.deletability(items=100, num_bits=1000, num_hashes=7, regions=50), 3)
    0.131
    """
    bits, throws, miss = _check_throws(items, num_bits, num_hashes)
    size = _check_regions(bits, regions)
    if throws == 0.0:
        return 1.0
    # With at most one throw there is no other key.
    alone = math.exp(max(0.0, throws - 1.0) * miss)
    calm = min(1.0, math.exp(throws * miss) + throws / bits * alone)
    free = alone * math.pow(calm, size - 1.0)
    return 1.0 if free >= 1.0 else -math.expm1(num_hashes * math.log1p(-free))


@vectorize
def published_deletability(items: float, num_bits: float, num_hashes: float, regions: float) -> float:
    """Return the published form, which is too high: ``1 - (1 - (p0 + p1)^(m/r))^k``.

    It treats the key's own bit as possibly empty, but that bit is set, so any other throw at it is a
    collision: at m = 1000, n = 100, k = 7, r = 50 it gives 0.214, simulation 0.131. For comparison only; use
    :func:`deletability`. Raises the same errors. Constant time.

    Source: Rothenberg et al. 2010.

    >>> from fullbloom import theory
    >>> round(theory.published_deletability(items=100, num_bits=1000, num_hashes=7, regions=50), 3)
    0.214
    """
    bits, throws, miss = _check_throws(items, num_bits, num_hashes)
    size = _check_regions(bits, regions)
    if throws == 0.0:
        return 1.0
    calm = min(1.0, math.exp(throws * miss) + throws / bits * math.exp(max(0.0, throws - 1.0) * miss))
    free = math.pow(calm, size)
    return 1.0 if free >= 1.0 else -math.expm1(num_hashes * math.log1p(-free))


@vectorize
def retouched_fpr(fill: float, share: float, num_hashes: float) -> float:
    """Return the rate after a share x of the set bits was cleared at random: ``(fill (1 - x))^k``.

    fill: share of set bits before. The rate falls by exactly the rate of false negatives that
    :func:`retouched_fnr` gives: clearing random bits gains nothing, choosing bits does. Raises
    ``ParameterError`` unless fill and share are from 0 to 1 and num_hashes > 0. Constant time.

    Source: Donnet, Baynat and Friedman, "Retouched Bloom filters", CoNEXT 2006.

    >>> from fullbloom import theory
    >>> round(theory.retouched_fpr(fill=0.5, share=0.1, num_hashes=7), 6)
    0.003737
    """
    left = check_closed_unit("fill", fill) * (1.0 - check_closed_unit("share", share))
    return math.pow(left, check_positive("num_hashes", num_hashes))


@vectorize
def retouched_fnr(share: float, num_hashes: float) -> float:
    """Return the rate of false negatives after a share x of the set bits was cleared: ``1 - (1 - x)^k``.

    Raises ``ParameterError`` unless share is from 0 to 1 and num_hashes > 0. Constant time.

    Source: Donnet, Baynat and Friedman 2006.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.retouched_fnr(share=0.1, num_hashes=7), 4)
    0.5217
    """
    hashes = check_positive("num_hashes", num_hashes)
    lost = check_closed_unit("share", share)
    return evaluate_law("missed", lost, hashes)
