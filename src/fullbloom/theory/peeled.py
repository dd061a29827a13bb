"""Static filters and maps that are solved by peeling: cells by the number of keys, bits a key, wrong answers.

Each key is an equation over 3 or 4 cells. Where these lie anywhere, 1.222 or 1.295 cells a key are needed
(:func:`~fullbloom.theory.peeling_threshold`); where they lie in neighbouring segments, peeling runs through
the array like a fuse, at 1.125 and 1.075. With these cells nearly every set of keys is solved at the first
attempt (:func:`fuse_failure`); what is not, at another, so that no build fails.

Sources: Graf and Lemire, "Xor filters", ACM JEA 25, 2020, and "Binary fuse filters", ACM JEA 27, 2022;
Chazelle, Kilian, Rubinfeld and Tal, "The Bloomier filter", SODA 2004.
"""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import flag, number, positive, within
from ._law import law
from ._vector import vectorized

__all__ = ["bloomier_bits_per_key", "bloomier_fpr", "fuse_cells", "fuse_failure", "xor_cells"]

#: As many as one shard has at most: a map of more has several.
_MANY = 2_097_151
# 64-bit hashes tell no more keys apart.
_MOST_KEYS = 2**63
_OWN_BITS, _MOST_CHECK, _MOST_VALUE = 2, 32, 64
#: By arity: keys a cell that a long fuse of long segments is solved with.
_FUSE_THRESHOLD = {3: 0.917935, 4: 0.976770}
#: By arity, fitted to simulations: rate at the threshold, how fast it falls, shift of the threshold, ends.
_FUSE_STOPS = {3: (0.832, 3.54, 1.40, 2.66), 4: (1.608, 3.054, 1.49, 5.85)}
_LEAST_FUSED = 1000


def _arity(arity: float) -> int:
    if number("arity", arity) not in (3, 4):
        raise ParameterError(f"arity must be 3 or 4, got {arity}")
    return int(arity)


def _keys(keys: object, least: int = 1) -> int:
    return within("keys", keys, least, _MOST_KEYS)


@vectorized
def fuse_cells(keys: int, arity: int = 3) -> int:
    """Return the cells of a binary fuse filter: 1.125 (arity 3) or 1.075 (4) a key, more below a million.

    Segments of 2^s cells, s growing with the logarithm of the keys, in ``arity`` of which, one after the
    other, a key has a cell. Of up to 2,097,151 keys; filters of more are made of shards of half as many or
    more, each with cells of its own. Raises ``ParameterError`` unless keys is whole and at least 1, and
    arity 3 or 4. Constant time.

    Source: fitted by Graf and Lemire; a segment is halved where the fit is scarce. Handed on from the core.

    >>> from fullbloom import theory
    >>> [round(theory.fuse_cells(1_000_000, arity) / 1_000_000, 3) for arity in (3, 4)]
    [1.13, 1.077]
    """
    return int(law("fuse_cells", _keys(keys), _arity(arity)))


@vectorized
def fuse_failure(keys: int, arity: int = 3, factor: float | None = None) -> float:
    """Return the chance that one attempt to build a binary fuse filter fails, so that another seed is tried.

    factor: cells a key; None for those of a filter, :func:`fuse_cells`. Segments have S cells, a power of
    two that grows with the keys; in B of them, the last ``arity - 1`` left out, a key may begin: load
    ``c = n / (B S)``. Peeling runs inwards from both ends and stops in a segment at the rate
    ``r = exp(a - b x^2 / 2)``, ``x = sqrt(S) (t - c + d S^(-2/3))``; unless both runs together reach through
    all, it fails: ``1 - exp(-u) (1 + u)``, ``u = r B^2 / (B + e sqrt(S))``. Beside it two keys may have the
    same cells: ``n (n - 1) / 2 / (B S^arity)`` pairs, by which 3 cells mostly fail and 4 hardly ever.

    The threshold t, 0.917935 or 0.976770 keys a cell, is exact for long fuses of long segments. a, b, d and
    e have no law: they are fitted to simulations of 1,000 to 1.3 million keys in 25 to 300 segments of 64
    to 8,192 cells. Right to 0.02 from 3,000 keys on for a filter's own cells, from 5,000 (arity 3) to 0.13
    for others; too high where B is below 24. One attempt for one shard: a filter of 2,097,152 keys and more
    has several. Two keys of one 64-bit hash, n (n - 1) / 2^65 pairs, do not fail: they count as one. Raises
    ``ParameterError`` unless keys is a whole number of 1,000 and more, arity 3 or 4, and factor positive.
    Constant time.

    Source: the threshold, Walzer, "Peeling close to the orientability threshold", SODA 2021; the form,
    Olmos and Urbanke, "A scaling law to predict the finite-length performance of spatially-coupled LDPC
    codes", IEEE Trans. Information Theory 61(6), 2015.

    >>> from fullbloom import theory
    >>> [round(theory.fuse_failure(1_000_000, 3, factor), 3) for factor in (1.11, 1.12, 1.13)]
    [1.0, 0.466, 0.007]
    >>> round(theory.fuse_failure(1_000_000, 4), 5)
    1e-05
    """
    arity, items = _arity(arity), _keys(keys, _LEAST_FUSED)
    segment = 2.0 ** law("fuse_segment_bits", items, arity)
    cells = law("fuse_cells", items, arity) if factor is None else positive("factor", factor) * items
    begins = max(math.ceil(cells / segment) - arity + 1.0, 1.0)
    start, slope, shift, ends = _FUSE_STOPS[arity]
    ahead = (_FUSE_THRESHOLD[arity] - items / (begins * segment)) * segment**0.5 + shift * segment ** (-1 / 6)
    rate = math.exp(start - slope * max(ahead, 0.0) ** 2 / 2.0)
    stops = rate * begins**2 / (begins + ends * segment**0.5)
    twins = items * (items - 1) / 2.0 / (begins * segment**arity)
    return -math.expm1(math.log1p(stops) - stops - twins)


@vectorized
def xor_cells(keys: int) -> int:
    """Return the cells of a xor filter: ``1.23 n + 32``, in three equal segments.

    Of up to 2,097,151 keys, as :func:`fuse_cells`. Raises ``ParameterError`` unless keys is whole and at
    least 1. Constant time.

    Source: Graf and Lemire, 2020. Handed on from the core.

    >>> from fullbloom import theory
    >>> theory.xor_cells(1_000_000)
    1230033
    """
    return int(law("xor_cells", _keys(keys)))


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

    >>> from fullbloom import theory
    >>> round(theory.bloomier_bits_per_key(1_000_000, value_bits=8, check_bits=8) / 16, 2)
    1.13
    """
    cells = fuse_cells(keys, arity) / _keys(keys)
    own = _OWN_BITS if flag("mutable", mutable) else 0
    value, check = (
        within("value_bits", value_bits, 1, _MOST_VALUE),
        within("check_bits", check_bits, 1, _MOST_CHECK),
    )
    bits = value + check + own
    return float(cells * bits)


@vectorized
def bloomier_fpr(check_bits: int, arity: int = 3, mutable: bool = False, keys: int = _MANY) -> float:
    """Return the chance that an absent key has a value in a Bloomier map of ``keys`` keys: ``2^-c``.

    Where values can be changed, two bits tell a key's own cell, which must be one of ``arity``: at most
    ``2^-c (a/4 + 1.3 (1 - a/4) (1 - n/m)^a)``, a the arity, n the keys and m their :func:`fuse_cells`. The
    second term is for cells that belong to no key, whose bits are zero: a third of it in maps of two keys,
    nothing in large ones. It is a bound, at most 4 % too high. Stored keys always have their own value.
    Raises ``ParameterError`` unless check_bits is whole, 1 to 32, arity 3 or 4, and keys whole and at least
    1. Constant time.

    Source: Chazelle et al., 2004; the second term is measured. Handed on from the core.

    >>> from fullbloom import theory
    >>> theory.bloomier_fpr(8), theory.bloomier_fpr(8, mutable=True)
    (0.00390625, 0.0029314289894083506)
    """
    cells, items = _arity(arity), _keys(keys)
    share = 1.0
    if flag("mutable", mutable):
        share = law("own_cell", items, law("fuse_cells", items, cells), cells)
    return float(share * 2.0 ** -within("check_bits", check_bits, 1, _MOST_CHECK))
