"""Laws of sets whose sorted values are coded by their gaps.

n keys map to values below F = n / p and occupy a share q = 1 - exp(-p) of them, nearly p for low p: keys with
the same value are coded once. A gap minus 1 is geometric with ratio 1 - q. Its Rice code (a Golomb code with
a power of two, 2^P) stores the last P bits as they are and the rest in unary.

Sources: Golomb, "Run-length encodings", IEEE Trans. Information Theory 12(3), 1966; Rice and Plaunt, 1971;
Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007; BIP 158.
"""

from __future__ import annotations

from fullbloom.errors import ParameterError

from ._check import check_open_unit, check_whole
from ._vector import vectorize
from .constructor import evaluate_law

_MOST_RICE_BITS = 56


@vectorize
def golomb_bits_per_key(fpr: float, rice_bits: int) -> float:
    """Return the bits per key of Rice codes: ``P + 1 + 1 / ((1 - fpr)^(-2^P) - 1)``, P = ``rice_bits``.

    fpr is the rate of the set, the share q of occupied values. A code has P bits of remainder, the 1 that
    ends the unary part, and before it as many zeros as a geometric gap contains 2^P. The law assumes one
    value per key; a set built at a rate p above some 10 % has ``q / p`` values per key, q = 1 - exp(-p). It
    leaves out the index of blocks, which takes 0.13 bits per key for 10 million. Raises ``ParameterError``
    unless fpr is in (0, 1) and rice_bits is whole, from 0 to 56. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.golomb_bits_per_key(0.01, rice_bits=6), 3), round(theory.succinct_bits_per_key(0.01), 3)
    (8.108, 8.087)
    """
    rate, bits = check_open_unit("fpr", fpr), check_whole("rice_bits", rice_bits, 0)
    if bits > _MOST_RICE_BITS:
        raise ParameterError(f"rice_bits must be a whole number from 0 to 56, got {rice_bits}")
    return evaluate_law("golomb", rate, bits)


@vectorize
def rice_bits(fpr: float) -> int:
    """Return the P with the fewest bits for a set built at a rate: ``floor(log2(ln 2 / q))``, or one more.

    q = 1 - exp(-fpr) is the share of occupied values. At most 56, the limit of the file format.
    Raises ``ParameterError`` unless fpr is in (0, 1). Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> theory.rice_bits(0.01), theory.rice_bits(1 / 784_931)
    (6, 19)
    """
    return int(evaluate_law("rice_bits", check_open_unit("fpr", fpr)))
