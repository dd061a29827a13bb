"""Laws of sets whose sorted values are coded by their gaps.

n keys go to values below F = n / p, of which they occupy a share of q = 1 - exp(-p), nearly p where p is low:
keys with one value are coded once. A gap less 1 is geometric with ratio 1 - q. Its Golomb code with a power
of two, 2^P, the Rice code, has the last P bits as they are and the rest in unary.

Sources: Golomb, "Run-length encodings", IEEE Trans. Information Theory 12(3), 1966; Rice and Plaunt, 1971;
Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007; BIP 158.
"""

from __future__ import annotations

from fullbloom.errors import ParameterError

from ._check import open_unit, whole
from ._law import law
from ._vector import vectorized

__all__ = ["golomb_bits_per_key", "rice_bits"]

_MOST_RICE_BITS = 56


@vectorized
def golomb_bits_per_key(fpr: float, rice_bits: int) -> float:
    """Return the bits a key of gaps in Rice codes: ``P + 1 + 1 / ((1 - fpr)^(-2^P) - 1)``, P = ``rice_bits``.

    fpr is the rate that the set has, the share q of values that are occupied. P bits of remainder, the 1
    that ends the unary part, and the zeros before it, as many as a geometric gap holds 2^P. One value a
    key; a set that is built at a rate p above some 10 % has ``q / p`` values a key, q = 1 - exp(-p).
    Without the index of blocks, which takes 0.13 bits a key for 10 million. Raises ``ParameterError``
    unless fpr is in (0, 1) and rice_bits is whole, from 0 to 56. Constant time.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.golomb_bits_per_key(0.01, rice_bits=6), 3), round(theory.succinct_bits_per_key(0.01), 3)
    (8.108, 8.087)
    """
    rate, bits = open_unit("fpr", fpr), whole("rice_bits", rice_bits, 0)
    if bits > _MOST_RICE_BITS:
        raise ParameterError(f"rice_bits must be a whole number from 0 to 56, got {rice_bits}")
    return law("golomb", rate, bits)


@vectorized
def rice_bits(fpr: float) -> int:
    """Return the P with the fewest bits for a set built at a rate: ``floor(log2(ln 2 / q))``, or one more.

    q = 1 - exp(-fpr) is the share of values that are occupied. At most 56, the most that a file may have.
    Raises ``ParameterError`` unless fpr is in (0, 1). Constant time.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> theory.rice_bits(0.01), theory.rice_bits(1 / 784_931)
    (6, 19)
    """
    return int(law("rice_bits", open_unit("fpr", fpr)))
