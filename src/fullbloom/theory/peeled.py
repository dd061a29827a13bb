"""Static filters and maps that are solved by peeling: cells, bits per key, false-positive rates.

Each key is an equation over 3 or 4 cells. If these cells can be anywhere, 1.222 or 1.295 cells per key are
needed (:func:`~fullbloom.theory.peeling_threshold`); if they are in neighbouring segments, peeling runs
through the array like a fuse, at 1.125 and 1.075. With these sizes nearly every set of keys is solved at the
first attempt (:func:`fuse_failure`) and the others at a later one, so no build fails.

Sources: Graf and Lemire, "Xor filters", ACM JEA 25, 2020, and "Binary fuse filters", ACM JEA 27, 2022;
Chazelle, Kilian, Rubinfeld and Tal, "The Bloomier filter", SODA 2004.
"""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import check_flag, check_number, check_positive, check_within
from ._vector import vectorize
from .constructor import evaluate_law

#: The most keys of one shard: a map of more keys has several.
_MANY = 2_097_151
# 64-bit hashes cannot distinguish more keys.
_MOST_KEYS = 2**63
_OWN_BITS, _MOST_CHECK, _MOST_VALUE = 2, 32, 64
#: By arity: keys per cell at which a long fuse of long segments can be solved.
_FUSE_THRESHOLD = {3: 0.917935, 4: 0.976770}
#: By arity, fitted to simulations: rate at the threshold, how fast it falls, shift of the threshold, ends.
_FUSE_STOPS = {3: (0.832, 3.54, 1.40, 2.66), 4: (1.608, 3.054, 1.49, 5.85)}
_LEAST_FUSED = 1000


def _check_arity(arity: float) -> int:
    if check_number("arity", arity) not in (3, 4):
        raise ParameterError(f"arity must be 3 or 4, got {arity}")
    return int(arity)


def _check_keys(keys: object, least: int = 1) -> int:
    return check_within("keys", keys, least, _MOST_KEYS)


@vectorize
def fuse_cells(keys: int, arity: int = 3) -> int:
    """Return the cells of a binary fuse filter: 1.125 (arity 3) or 1.075 (4) per key, more below a million.

    Segments have 2^s cells, s growing with the logarithm of the keys; a key has one cell in each of ``arity``
    consecutive segments. Holds up to 2,097,151 keys; larger filters consist of shards of half as many keys or
    more, each with its own cells. Raises ``ParameterError`` unless keys is whole and at least 1, and arity 3
    or 4. Constant time.

    Source: fitted by Graf and Lemire; segments are halved where the fit is tight. Computed by the core.

    >>> from fullbloom import theory
    >>> [round(theory.fuse_cells(1_000_000, arity) / 1_000_000, 3) for arity in (3, 4)]
    [1.13, 1.077]
    """
    return int(evaluate_law("fuse_cells", _check_keys(keys), _check_arity(arity)))


@vectorize
def fuse_failure(keys: int, arity: int = 3, factor: float | None = None) -> float:
    """Return the chance that one attempt to build a binary fuse filter fails and another seed is tried.

    factor: cells per key; None for those of a filter, :func:`fuse_cells`. Segments have S cells, a power of
    two that grows with the keys; a key may begin in B of them, all but the last ``arity - 1``: load
    ``c = n / (B S)``. Peeling runs inwards from both ends and stops in a segment at the rate
    ``r = exp(a - b x^2 / 2)``, ``x = sqrt(S) (t - c + d S^(-2/3))``; it fails unless the two runs together
    cover all segments: ``1 - exp(-u) (1 + u)``, ``u = r B^2 / (B + e sqrt(S))``. In addition two keys may
    have the same cells: ``n (n - 1) / 2 / (B S^arity)`` pairs, the main cause of failures for arity 3 and a
    rare one for arity 4.

    The threshold t, 0.917935 or 0.976770 keys per cell, is exact for long fuses of long segments. a, b, d and
    e have no law: they are fitted to simulations of 1,000 to 1.3 million keys in 25 to 300 segments of 64
    to 8,192 cells. Accurate to 0.02 from 3,000 keys on for a filter's own cells, from 5,000 (arity 3) to 0.13
    for others; too high for B below 24. The chance is for one attempt at one shard: a filter of 2,097,152
    keys or more has several. Two keys with the same 64-bit hash, n (n - 1) / 2^65 pairs, do not fail: they
    count as one. Raises ``ParameterError`` unless keys is a whole number of at least 1,000, arity 3 or 4, and
    factor positive. Constant time.

    Source: the threshold, Walzer, "Peeling close to the orientability threshold", SODA 2021; the form,
    Olmos and Urbanke, "A scaling law to predict the finite-length performance of spatially-coupled LDPC
    codes", IEEE Trans. Information Theory 61(6), 2015.

    >>> from fullbloom import theory
    >>> [round(theory.fuse_failure(1_000_000, 3, factor), 3) for factor in (1.11, 1.12, 1.13)]
    [1.0, 0.466, 0.007]
    >>> round(theory.fuse_failure(1_000_000, 4), 5)
    1e-05
    """
    arity, items = _check_arity(arity), _check_keys(keys, _LEAST_FUSED)
    segment = 2.0 ** evaluate_law("fuse_segment_bits", items, arity)
    cells = (
        evaluate_law("fuse_cells", items, arity)
        if factor is None
        else check_positive("factor", factor) * items
    )
    begins = max(math.ceil(cells / segment) - arity + 1.0, 1.0)
    start, slope, shift, ends = _FUSE_STOPS[arity]
    ahead = (_FUSE_THRESHOLD[arity] - items / (begins * segment)) * segment**0.5 + shift * segment ** (-1 / 6)
    rate = math.exp(start - slope * max(ahead, 0.0) ** 2 / 2.0)
    stops = rate * begins**2 / (begins + ends * segment**0.5)
    twins = items * (items - 1) / 2.0 / (begins * segment**arity)
    return -math.expm1(math.log1p(stops) - stops - twins)


@vectorize
def xor_cells(keys: int) -> int:
    """Return the cells of a xor filter: ``1.23 n + 32``, in three equal segments.

    Holds up to 2,097,151 keys, as :func:`fuse_cells`. Raises ``ParameterError`` unless keys is whole and at
    least 1. Constant time.

    Source: Graf and Lemire, 2020. Computed by the core.

    >>> from fullbloom import theory
    >>> theory.xor_cells(1_000_000)
    1230033
    """
    return int(evaluate_law("xor_cells", _check_keys(keys)))


@vectorize
def bloomier_bits_per_key(
    keys: int, value_bits: int, check_bits: int = 8, arity: int = 3, mutable: bool = False
) -> float:
    """Return the bits per key of a Bloomier map, with cells as :func:`fuse_cells`.

    A cell holds check and value, ``c + v`` bits; a mutable map stores the check, 2 bits that identify the
    key's own cell, and v bits beside them: ``c + 2 + v``. Raises ``ParameterError`` unless keys is whole and
    at least 1, value_bits whole, 1 to 64, check_bits whole, 1 to 32, and arity 3 or 4. Constant time.

    Source: Chazelle et al., 2004, over the cells of Graf and Lemire, 2022.

    >>> from fullbloom import theory
    >>> round(theory.bloomier_bits_per_key(1_000_000, value_bits=8, check_bits=8) / 16, 2)
    1.13
    """
    cells = fuse_cells(keys, arity) / _check_keys(keys)
    own = _OWN_BITS if check_flag("mutable", mutable) else 0
    value, check = (
        check_within("value_bits", value_bits, 1, _MOST_VALUE),
        check_within("check_bits", check_bits, 1, _MOST_CHECK),
    )
    bits = value + check + own
    return float(cells * bits)


@vectorize
def bloomier_fpr(check_bits: int, arity: int = 3, mutable: bool = False, keys: int = _MANY) -> float:
    """Return the chance that an absent key has a value in a Bloomier map of ``keys`` keys: ``2^-c``.

    In a mutable map two bits identify a key's own cell, which must be one of ``arity``: at most
    ``2^-c (a/4 + 1.3 (1 - a/4) (1 - n/m)^a)``, a the arity, n the keys and m their :func:`fuse_cells`. The
    second term is for cells without a key, whose bits are zero: a third of the total in maps of two keys,
    nothing in large ones. It is a bound, at most 4 % too high. Stored keys always return their own value.
    Raises ``ParameterError`` unless check_bits is whole, 1 to 32, arity 3 or 4, and keys whole and at least
    1. Constant time.

    Source: Chazelle et al., 2004; the second term is measured. Computed by the core.

    >>> from fullbloom import theory
    >>> theory.bloomier_fpr(8), theory.bloomier_fpr(8, mutable=True)
    (0.00390625, 0.0029314289894083506)
    """
    cells, items = _check_arity(arity), _check_keys(keys)
    share = 1.0
    if check_flag("mutable", mutable):
        share = evaluate_law("own_cell", items, evaluate_law("fuse_cells", items, cells), cells)
    return float(share * 2.0 ** -check_within("check_bits", check_bits, 1, _MOST_CHECK))
