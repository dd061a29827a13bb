"""The exact law of the occupied bits, and the false-positive rates that follow from it.

A filter has X occupied bits after N throws, and a new key is a false positive with probability (X/m)^k given
X. The recurrence for the law of X is

    P(X = i after N+1) = P(i after N) i/m + P(i-1 after N) (m-i+1)/m

with positive terms only, so nothing cancels. (The alternating sum over Stirling numbers that is usually
published for the same quantity loses all its digits in floating point from a few dozen throws on.)

Cost: X is within a few standard deviations of its mean, at most 0.4 sqrt(m) each, and states below 1e-60 are
dropped, so the recurrence takes min(N, m, 14 sqrt(m)) steps per throw instead of m: m = 1024 and N = 700 take
1/20 s, the limit takes about 0.5 s. Beyond ``_MOST_STEPS`` the functions raise ``ParameterError`` and suggest
``second_order_fpr``. Independent of the core; tests check that both agree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import check_whole
from ._finite import require_finite
from ._vector import vectorize

if TYPE_CHECKING:
    from fractions import Fraction

# Dropped mass is at most 1e-60 per state and throw; it reaches the rate multiplied by at most (m/mu)^k.
_NEGLIGIBLE = 1e-60
# About half a second of pure Python.
_MOST_STEPS = 4_000_000
# For exact fractions: products of words, each of which costs some nanoseconds more than a step above.
_MOST_PRODUCTS = 20_000_000

Window = tuple[int, list[float]]
"""The first index, low, and the probabilities P(X = low), P(X = low + 1), ..."""


def _add_throw(window: Window, num_bits: int, used: int) -> Window:
    """Return the law after one more throw that avoids ``used`` bits, all of them occupied."""
    low, law = window
    scale = 1.0 / (num_bits - used)
    stay = [p * ((i - used) * scale) for i, p in enumerate(law, low)]
    move = [p * ((num_bits - i) * scale) for i, p in enumerate(law, low)]
    stay.append(0.0)
    for at, p in enumerate(move, 1):
        stay[at] += p
    first, last = 0, len(stay)
    while stay[first] < _NEGLIGIBLE:
        first += 1
    while stay[last - 1] < _NEGLIGIBLE:
        last -= 1
    return low + first, stay[first:last]


def _law_after(keys: int, num_bits: int, num_hashes: int, distinct: bool) -> Window:
    """Return the law of the occupied bits after ``keys`` keys."""
    throws = keys * num_hashes
    steps = throws * (20 + min(throws, num_bits, 14 * math.isqrt(num_bits) + 14))
    if steps > _MOST_STEPS:
        raise ParameterError(
            f"the exact law for num_bits = {num_bits} and {throws} throws would take {steps} steps, the "
            f"limit is {_MOST_STEPS:,}; use second_order_fpr, within 1e-5 of it from m = 1000 on"
        )
    window: Window = (0, [1.0])
    for _ in range(keys):
        for drawn in range(num_hashes):
            window = _add_throw(window, num_bits, drawn if distinct else 0)
    return window


@require_finite
def occupancy_law(throws: int, num_bits: int) -> list[float]:
    """Return ``[P(X = 0), P(X = 1), ...]`` for X occupied bits after independent uniform throws.

    The list has min(throws, num_bits) + 1 entries. The relative error of an entry is about throws * 1e-16,
    the total error below 1e-57: smaller entries may be 0. Raises ``ParameterError`` unless throws >= 0 and
    num_bits >= 1 are whole, or if it would take more than 4 million steps. Cost: see the module docstring.

    Source: the occupancy recurrence, e.g. Johnson and Kotz, "Urn models and their application", 1977.

    >>> from fullbloom import theory
    >>> theory.occupancy_law(throws=2, num_bits=4)
    [0.0, 0.25, 0.75]
    """
    throws, num_bits = check_whole("throws", throws, 0), check_whole("num_bits", num_bits, 1)
    low, law = _law_after(throws, num_bits, 1, distinct=False)
    most = min(throws, num_bits)
    return [0.0] * low + law + [0.0] * (most + 1 - low - len(law))


@vectorize
def exact_fpr(items: int, num_bits: int, num_hashes: int) -> float:
    """Return the exact rate ``E[(X/m)^k]`` for k independent throws per key, repeats allowed.

    Relative error about kn * 1e-16. Use it for a scheme whose k probes of one key may coincide;
    ``distinct_fpr`` is for k different positions. Raises ``ParameterError`` unless items >= 0, num_bits >= 1,
    num_hashes >= 1 are whole, or if it would take more than 4 million steps. Cost: see the module docstring.

    Source: Bose et al., IPL 108(4), 2008; Christensen, Roginsky and Jimeno, IPL 110(21), 2010.

    >>> from fullbloom import theory
    >>> theory.exact_fpr(items=1, num_bits=2, num_hashes=2)
    0.625
    >>> round(theory.exact_fpr(items=3, num_bits=18, num_hashes=3), 7)
    0.0686083
    """
    items, num_bits = check_whole("items", items, 0), check_whole("num_bits", num_bits, 1)
    num_hashes = check_whole("num_hashes", num_hashes, 1)
    low, law = _law_after(items, num_bits, num_hashes, distinct=False)
    return math.fsum(p * math.pow(i / num_bits, num_hashes) for i, p in enumerate(law, low))


@vectorize
def distinct_fpr(items: int, num_bits: int, num_hashes: int) -> float:
    """Return the exact rate ``E[C(X,k)/C(m,k)]`` when every key has k *different* positions.

    X is the size of the union of n random k-subsets. Below ``exact_fpr`` at useful fills (26 % at m = 32, n =
    3, k = 5), since no key wastes a probe on itself; above it in overfull filters, where the extra bits weigh
    more. Relative error about kn * 1e-16. Raises ``ParameterError`` unless items >= 0 and 1 <= num_hashes <=
    num_bits are whole, or if it would take more than 4 million steps. Cost: see the module docstring.

    Source: the same recurrence, in which draw j of a key avoids the j positions drawn before.

    >>> from fullbloom import theory
    >>> round(theory.distinct_fpr(items=3, num_bits=18, num_hashes=3), 7)
    0.0601727
    """
    items, num_bits = check_whole("items", items, 0), check_whole("num_bits", num_bits, 1)
    num_hashes = check_whole("num_hashes", num_hashes, 1)
    if num_hashes > num_bits:
        raise ParameterError(f"num_hashes must be at most num_bits = {num_bits}, got {num_hashes}")
    low, law = _law_after(items, num_bits, num_hashes, distinct=True)

    def covered(occupied: int) -> float:
        return math.prod((occupied - j) / (num_bits - j) for j in range(min(num_hashes, occupied + 1)))

    return math.fsum(p * covered(i) for i, p in enumerate(law, low))


@require_finite
def rational_fpr(items: int, num_bits: int, num_hashes: int) -> Fraction:
    """Return ``exact_fpr`` as an exact fraction.

    For small cases: the numbers have about kn log10(m) digits. Takes no vectors. Raises ``ParameterError``
    unless items >= 0, num_bits >= 1 and num_hashes >= 1 are whole, or if it would take more than 20 million
    products of words. Cost: kn * min(kn, m) products of such numbers.

    Source: the recurrence of this module in integers, which counts the m^(kn) outcomes by occupied bits.

    >>> from fullbloom import theory
    >>> theory.rational_fpr(items=2, num_bits=3, num_hashes=2)
    Fraction(55, 81)
    """
    # A local import: fractions imports decimal and re, which would add several milliseconds to
    # `import fullbloom`.
    from fractions import Fraction

    items, num_bits = check_whole("items", items, 0), check_whole("num_bits", num_bits, 1)
    num_hashes = check_whole("num_hashes", num_hashes, 1)
    throws = items * num_hashes
    words = 1 + (throws + num_hashes) * num_bits.bit_length() // 64
    if (products := (throws + 1) * (min(throws, num_bits) + 1) * (8 + words) + words**2) > _MOST_PRODUCTS:
        raise ParameterError(
            f"the fraction for num_bits = {num_bits} and {throws} throws would take {products} products of "
            f"words, the limit is {_MOST_PRODUCTS:,}; use exact_fpr"
        )
    ways = [1]
    for _ in range(throws):
        grown = [count * i for i, count in enumerate(ways)]
        grown.append(0)
        for i, count in enumerate(ways):
            grown[i + 1] += count * (num_bits - i)
        ways = grown[: num_bits + 1]
    hits = sum(count * i**num_hashes for i, count in enumerate(ways))
    return Fraction(hits, num_bits ** (throws + num_hashes))
