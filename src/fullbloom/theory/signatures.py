"""Signatures (superimposed codes): their fill, their false drops, and their size.

A term sets k distinct bits of L in the signature of its row. A query tests q bits. A row without its terms is
a false drop if the other terms of the row set all of these bits.

Sources: Mooers, "Zatocoding applied to mechanical organization of knowledge", American Documentation 2, 1951;
Roberts, "Partial-match retrieval via the method of superimposed codes", Proceedings of the IEEE 67, 1979;
Faloutsos and Christodoulakis, "Signature files: an access method for documents and its analytical performance
evaluation", ACM TOIS 2, 1984; Goodwin et al., "BitFunnel: revisiting signatures for search", SIGIR 2017.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import check_open_unit, check_whole
from ._vector import vectorize
from .constructor import evaluate_law

if TYPE_CHECKING:
    from fractions import Fraction

_MOST_BITS, _MOST_BITS_PER_TERM, _MOST_TERMS, _MOST_RANK = 2**20, 64, 2**40, 6
_MOST_PROBE_BITS, _MOST_QUERY_BITS, _MOST_FRACTION_BITS = 256, 96, 100_000


def _check_shape(num_bits: float, bits_per_term: float, terms: float) -> tuple[int, int, int]:
    bits, each = check_whole("num_bits", num_bits, 1), check_whole("bits_per_term", bits_per_term, 1)
    rows = check_whole("terms", terms, 0)
    if bits > _MOST_BITS:
        raise ParameterError(f"num_bits must be at most {_MOST_BITS}, got {num_bits}")
    if each > min(bits, _MOST_BITS_PER_TERM):
        most = min(bits, _MOST_BITS_PER_TERM)
        raise ParameterError(f"bits_per_term must be at most {most} for num_bits={bits}, got {bits_per_term}")
    if rows > _MOST_TERMS:
        raise ParameterError(f"terms must be at most 2**40, got {terms}")
    return bits, each, rows


@vectorize
def signature_fill(num_bits: int, bits_per_term: int, terms: int) -> float:
    """Return the expected share of set bits of a signature: ``1 - (1 - k / L)^n``.

    Raises ``ParameterError`` unless all are whole, ``1 <= bits_per_term <= min(num_bits, 64)`` and terms is
    at least 0. Constant time.

    >>> from fullbloom import theory
    >>> round(theory.signature_fill(num_bits=40, bits_per_term=4, terms=6), 3)
    0.469
    """
    bits, each, rows = _check_shape(num_bits, bits_per_term, terms)
    if each == bits:
        return 1.0 if rows else 0.0
    return -math.expm1(rows * math.log1p(-each / bits))


@vectorize
def signature_fpr(num_bits: int, bits_per_term: int, terms: int, probe_bits: int) -> float:
    """Return the chance that ``terms`` terms set ``probe_bits`` given bits: a false drop.

    Exact for terms that set distinct random bits. PostgreSQL throws its bits independently: there
    ``bits_per_term`` is 1, and ``terms`` is columns times bits a column. Raises as :func:`signature_fill`,
    and unless probe_bits is whole, from 0 to 256. Cost: ``probe_bits^3 log2(terms)``.

    Computed by the core.

    >>> from fullbloom import theory
    >>> [round(1e7 * theory.signature_fpr(bits, 1, 12, 4)) for bits in (80, 200)]  # measured: 2439 and 55
    [2372, 69]
    """
    shape = _check_shape(num_bits, bits_per_term, terms)
    probes = check_whole("probe_bits", probe_bits, 0)
    if probes > min(shape[0], _MOST_PROBE_BITS):
        raise ParameterError(
            f"probe_bits must be at most {min(shape[0], _MOST_PROBE_BITS)}, got {probe_bits}"
        )
    return evaluate_law("false_drop", *shape, probes)


@vectorize
def signature_query_fpr(num_bits: int, bits_per_term: int, terms: int, query_terms: int) -> float:
    """Return the chance of a false drop of a query of ``query_terms`` terms, none of which the row has.

    The bits of these terms may coincide, so that a query tests fewer than ``k`` times as many. Raises as
    :func:`signature_fill`, and unless query_terms is whole, at least 0, with at most 96 bits together.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.signature_query_fpr(num_bits=40, bits_per_term=4, terms=6, query_terms=2), 5)
    0.00199
    """
    shape = _check_shape(num_bits, bits_per_term, terms)
    asked = check_whole("query_terms", query_terms, 0)
    if asked * shape[1] > _MOST_QUERY_BITS:
        raise ParameterError(
            f"query_terms of {shape[1]} bits must be at most {_MOST_QUERY_BITS // shape[1]}, got {asked}"
        )
    return evaluate_law("query_false_drop", *shape, asked)


def rational_signature_fpr(num_bits: int, bits_per_term: int, terms: int, probe_bits: int) -> Fraction:
    """Return ``signature_fpr`` as an exact fraction, by the published sum over subsets of the tested bits.

    ``sum over j of (-1)^j C(q, j) (C(L - j, k) / C(L, k))^n``. In floats the sum cancels, which is why the
    core multiplies transitions instead. For small cases. Takes no vectors. Raises as
    :func:`signature_fpr`, or if the numbers had more than 100,000 bits. Independent of the core.

    >>> from fullbloom import theory
    >>> theory.rational_signature_fpr(num_bits=4, bits_per_term=2, terms=2, probe_bits=2)
    Fraction(19, 36)
    """
    from fractions import Fraction

    bits, each, rows = _check_shape(num_bits, bits_per_term, terms)
    probes = check_whole("probe_bits", probe_bits, 0)
    if rows * math.log2(max(math.comb(bits, each), 2)) > _MOST_FRACTION_BITS:
        raise ParameterError(
            f"the fraction for num_bits={bits} and terms={rows} would be too long; use signature_fpr"
        )
    whole = math.comb(bits, each)
    ways = sum(
        (-1) ** j * math.comb(probes, j) * math.comb(max(bits - j, 0), each) ** rows
        for j in range(probes + 1)
    )
    return Fraction(ways, whole**rows)


@vectorize
def signature_bits_per_term(fpr: float, fill: float = 0.5) -> int:
    """Return the bits of a term that keep ``fpr`` in signatures filled to ``fill``: ``log(fpr) / log(fill)``.

    Rounded up, to 12 digits, and at most 64. Raises ``ParameterError`` unless both are in (0, 1).

    Computed by the core.

    >>> from fullbloom import theory
    >>> theory.signature_bits_per_term(0.01), theory.signature_bits_per_term(0.01, fill=0.1)
    (7, 2)
    """
    return int(
        evaluate_law("signature_bits_per_term", check_open_unit("fpr", fpr), check_open_unit("fill", fill))
    )


@vectorize
def signature_num_bits(terms: int, fpr: float, fill: float = 0.5) -> int:
    """Return the bits of a signature of ``terms`` terms that keeps ``fpr`` for a query of one absent term.

    With :func:`signature_bits_per_term` bits per term, as ``SignatureIndex.for_terms`` chooses. Raises
    ``ParameterError`` unless terms is whole, at least 1, both shares are in (0, 1), and at most 2**20 bits
    are needed.

    Computed by the core.

    >>> from fullbloom import theory
    >>> theory.signature_num_bits(100, 0.01)
    1014
    """
    rows = check_whole("terms", terms, 1)
    numbers = (rows, check_open_unit("fpr", fpr), check_open_unit("fill", fill))
    try:
        return int(evaluate_law("signature_bits", *numbers))
    except ParameterError:
        raise ParameterError(
            f"terms={terms} with fpr={fpr} and fill={fill} needs more than {_MOST_BITS} bits; lower terms or "
            "raise fpr"
        ) from None


@vectorize
def rank_fill(fill: float, rank: int) -> float:
    """Return the share of set bits if ``2**rank`` rows share each bit of a slice: ``1 - (1 - d)^(2^r)``.

    The same bits without further terms, as BitFunnel derives a row of a higher rank. Raises
    ``ParameterError`` unless fill is in (0, 1) and rank whole, from 0 to 6.

    >>> from fullbloom import theory
    >>> round(theory.rank_fill(0.1, rank=3), 3)
    0.57
    """
    level = check_whole("rank", rank, 0)
    if level > _MOST_RANK:
        raise ParameterError(f"rank must be at most {_MOST_RANK}, got {rank}")
    return -math.expm1(math.log1p(-check_open_unit("fill", fill)) * 2**level)
