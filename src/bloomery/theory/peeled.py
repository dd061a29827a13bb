"""Static filters and maps that are solved by peeling: cells by the number of keys, bits a key, wrong answers.

Each key is an equation over 3 or 4 cells. Where these lie anywhere, 1.222 or 1.295 cells a key are needed
(:func:`~bloomery.theory.peeling_threshold`); where they lie in neighbouring segments, peeling runs through
the array like a fuse, at 1.125 and 1.075. With these cells nearly every set of keys is solved at the first
attempt; what is not, at another, so that no build fails.

Sources: Graf and Lemire, "Xor filters", ACM JEA 25, 2020, and "Binary fuse filters", ACM JEA 27, 2022;
Chazelle, Kilian, Rubinfeld and Tal, "The Bloomier filter", SODA 2004.
"""

from __future__ import annotations

from bloomery.errors import ParameterError

from ._check import flag, number, whole
from ._law import law
from ._vector import vectorized

__all__ = ["bloomier_bits_per_key", "bloomier_fpr", "fuse_cells", "xor_cells"]

_OWN_BITS, _MOST_CHECK, _MOST_VALUE = 2, 32, 64


def _arity(arity: float) -> int:
    if number("arity", arity) not in (3, 4):
        raise ParameterError(f"arity must be 3 or 4, got {arity}")
    return int(arity)


def _within(name: str, bits: float, most: int) -> int:
    if (found := whole(name, bits, 1)) > most:
        raise ParameterError(f"{name} must be a whole number from 1 to {most}, got {bits}")
    return found


@vectorized
def fuse_cells(keys: int, arity: int = 3) -> int:
    """Return the cells of a binary fuse filter: 1.125 a key (arity 3) or 1.075 (4), more below 100,000 keys.

    Segments of 2^s cells, s growing with the logarithm of the keys, in ``arity`` of which, one after the
    other, a key has a cell. Of up to 2,097,151 keys; filters of more are made of shards of half as many or
    more, each with cells of its own. Raises ``ParameterError`` unless keys is whole and at least 1, and
    arity 3 or 4. Constant time.

    Source: fitted by Graf and Lemire; a segment is halved where the fit is scarce. Handed on from the core.

    >>> from bloomery import theory
    >>> [round(theory.fuse_cells(1_000_000, arity) / 1_000_000, 3) for arity in (3, 4)]
    [1.13, 1.077]
    """
    return int(law("fuse_cells", whole("keys", keys, 1), _arity(arity)))


@vectorized
def xor_cells(keys: int) -> int:
    """Return the cells of a xor filter: ``1.23 n + 32``, in three equal segments.

    Of up to 2,097,151 keys, as :func:`fuse_cells`. Raises ``ParameterError`` unless keys is whole and at
    least 1. Constant time.

    Source: Graf and Lemire, 2020. Handed on from the core.

    >>> from bloomery import theory
    >>> theory.xor_cells(1_000_000)
    1230033
    """
    return int(law("xor_cells", whole("keys", keys, 1)))


@vectorized
def bloomier_bits_per_key(
    keys: int, value_bits: int, check_bits: int = 8, arity: int = 3, mutable: bool = False
) -> float:
    """Return the bits a key of a Bloomier map, with cells as :func:`fuse_cells`.

    A cell holds check and value, ``c + v`` bits; where values can be changed, the check and 2 bits that
    tell the key's own cell, and v bits beside it: ``c + 2 + v``. Raises ``ParameterError`` unless keys is
    whole and at least 1, value_bits whole, 1 to 64, check_bits whole, 1 to 32, and arity 3 or 4. Constant
    time.

    Source: Chazelle et al., 2004, over the cells of Graf and Lemire, 2022.

    >>> from bloomery import theory
    >>> round(theory.bloomier_bits_per_key(1_000_000, value_bits=8, check_bits=8) / 16, 2)
    1.13
    """
    cells = fuse_cells(keys, arity) / whole("keys", keys, 1)
    own = _OWN_BITS if flag("mutable", mutable) else 0
    bits = (
        _within("value_bits", value_bits, _MOST_VALUE) + _within("check_bits", check_bits, _MOST_CHECK) + own
    )
    return float(cells * bits)


@vectorized
def bloomier_fpr(check_bits: int, arity: int = 3, mutable: bool = False) -> float:
    """Return the chance that an absent key has a value in a Bloomier map: ``2^-c``.

    Where values can be changed, the two bits that tell a key's own cell must be one of ``arity`` of four
    numbers: ``arity / 4`` of it. Stored keys always have their own value. Raises ``ParameterError`` unless
    check_bits is whole, 1 to 32, and arity 3 or 4. Constant time.

    Source: Chazelle et al., 2004.

    >>> from bloomery import theory
    >>> theory.bloomier_fpr(8), theory.bloomier_fpr(8, mutable=True)
    (0.00390625, 0.0029296875)
    """
    cells = _arity(arity)
    share = cells / 4.0 if flag("mutable", mutable) else 1.0
    return float(share * 2.0 ** -_within("check_bits", check_bits, _MOST_CHECK))
