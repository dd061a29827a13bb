"""Laws of invertible tables: when peeling lists every key, and how often a lookup is wrong."""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_non_negative, check_whole
from ._vector import vectorize
from .constructor import evaluate_law

_LEAST_HASHES, _MOST_HASHES = 3, 64
_STEPS = 200
# 64-bit hashes cannot distinguish more keys.
_MOST_ITEMS = 2.0**63
#: By hashes: how widely the threshold of tables of one size scatters, and how far it is above that of
#: large ones.
_SCATTER = {3: (0.66, 1.2), 4: (0.58, 1.1), 5: (0.62, 1.2), 6: (0.66, 1.35)}
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@vectorize
def peeling_threshold(num_hashes: float) -> float:
    """Return the table cells per key above which a large table with k cells for each key can be peeled.

    ``max_x k (1 - e^-x)^(k-1) / x``: below it some keys form a 2-core, in which each cell holds two or more.
    Raises ``ParameterError`` unless num_hashes is a whole number from 3 to 64. Costs some 200 steps.

    Source: Molloy, "Cores in random hypergraphs and Boolean formulas", 2005; Goodrich and Mitzenmacher, 2011.

    >>> from fullbloom import theory
    >>> [round(theory.peeling_threshold(k), 3) for k in (3, 4, 5, 6, 7)]
    [1.222, 1.295, 1.425, 1.57, 1.719]
    """
    k = check_whole("num_hashes", num_hashes, _LEAST_HASHES)
    if k > _MOST_HASHES:
        raise ParameterError(f"num_hashes must be a whole number from 3 to 64, got {num_hashes}")

    def cells(x: float) -> float:
        return float(k * (-math.expm1(-x)) ** (k - 1) / x)

    low, high = 1e-9, 10.0 + k
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (left, high) if cells(left) < cells(right) else (low, right)
    return cells(low)


@vectorize
def peeling_failure(items: float, num_cells: float, num_hashes: int = 4) -> float:
    """Return the chance that a table of ``num_cells`` cells cannot list all of its ``items`` keys.

    ``1 - (1 - Phi((t + b n^(-2/3) - m/n) sqrt(n) / a)) (1 - twins)``: the threshold of a table of n keys is
    normally distributed, a little above the threshold t of large tables (:func:`peeling_threshold`); in
    addition two keys may share all their cells (:func:`twin_chance`). a and b are measured on 300 to 30,000
    keys, each with a cell in each of k sub-tables; the law is accurate to 0.02 from 300 keys on. Raises
    ``ParameterError`` unless items >= 1, num_hashes is 3, 4, 5 or 6 and num_cells >= num_hashes. Costs the
    same as the threshold.

    Source: the form by Amraoui, Montanari, Richardson and Urbanke, "Finite-length scaling for iteratively
    decoded LDPC ensembles", IEEE Trans. Information Theory 55(2), 2009.

    >>> from fullbloom import theory
    >>> [round(theory.peeling_failure(10_000, cells), 3) for cells in (12_500, 13_000, 13_308)]
    [1.0, 0.317, 0.0]
    """
    hashes = check_whole("num_hashes", num_hashes, _LEAST_HASHES)
    if hashes not in _SCATTER:
        raise ParameterError(f"num_hashes must be 3, 4, 5 or 6, got {num_hashes}")
    keys, cells = check_at_least("items", items, 1), check_at_least("num_cells", num_cells, hashes)
    scatter, shift = _SCATTER[hashes]
    ahead = (cells / keys - peeling_threshold(hashes) - shift * keys ** (-2 / 3)) * math.sqrt(keys) / scatter
    stopped = 0.5 * math.erfc(ahead / math.sqrt(2.0))
    return float(stopped + (1.0 - stopped) * twin_chance(keys, cells, hashes))


@vectorize
def decodable_cells(items: float) -> float:
    """Return the cells with which less than one table in 1,000 fails to list all of its ``items`` keys.

    ``max(1.3 n + 3 sqrt(n) + 8, 4 (2000 n (n - 1) / 2)^(1/4))``, each quarter rounded up: for many keys
    peeling decides, for few keys the chance that two share all their cells. Raises ``ParameterError`` unless
    items >= 1. Constant time.

    Source: our simulations of 1 to 10,000 keys. Computed by the core.

    >>> from fullbloom import theory
    >>> [theory.decodable_cells(items) for items in (1, 100, 10_000)]
    [16.0, 228.0, 13308.0]
    """
    if (keys := check_at_least("items", items, 1)) > _MOST_ITEMS:
        raise ParameterError(f"items must be at most 2**63, got {items}")
    return 4.0 * evaluate_law("decodable", keys)


@vectorize
def invertible_fpr(items: float, num_cells: float) -> float:
    """Return the chance that an absent key is not ruled out by its four cells: each holds two keys or more.

    ``(1 - P(0) - P(1))^4``, P(i) = P(Bin(n, 4/m) = i). Raises ``ParameterError`` unless items >= 0 and
    num_cells >= 8. Constant time.

    Source: ours, for the lookup of Goodrich and Mitzenmacher, 2011. Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.invertible_fpr(items=100, num_cells=228), 3)
    0.076
    """
    return evaluate_law(
        "invertible", check_non_negative("items", items), check_at_least("num_cells", num_cells, 8) / 4.0, 4.0
    )


@vectorize
def twin_chance(items: float, num_cells: float, num_hashes: float = 4.0) -> float:
    """Return about the chance that some two keys share all their cells, which makes listing fail.

    ``n (n - 1) / 2 (k / m)^k``, an upper bound and nearly exact while small; from twice the threshold of
    peeling on nearly all failures have this cause. Raises ``ParameterError`` unless items >= 0,
    num_hashes >= 1 and num_cells >= num_hashes. Constant time.

    Source: the union bound. Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.twin_chance(items=50, num_cells=100), 4)
    0.0031
    """
    hashes = check_at_least("num_hashes", num_hashes, 1)
    cells = check_at_least("num_cells", num_cells, hashes)
    return evaluate_law("twins", check_non_negative("items", items), cells / hashes, hashes)
