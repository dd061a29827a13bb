"""Laws of filters that return a label or a value: spatial, compact approximator, layered."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import check_at_least, check_iterable, check_non_negative, check_positive, check_whole
from ._finite import require_finite
from ._vector import vectorize
from .constructor import evaluate_law
from .rates import classic_fpr

if TYPE_CHECKING:
    from collections.abc import Sequence


@require_finite
def spatial_fprs(area_items: Sequence[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the rate at which an absent key gets each label, label 1 first, for a filter still to be filled.

    ``p_i = (1 - (1 - 1/m)^(k sum_(j>=i) n_j))^k - sum_(j>i) p_j`` for n_j keys with label j: the labels from
    i on form a filter of their own. 1.13, 0.59, 0.22, 0.05 and 0.002 % for five areas of 200 keys in 8192
    cells with k = 5. Raises ``ParameterError`` unless the items are >= 0, num_cells >= 1 and num_hashes > 0.
    Cost: one rate per area.

    Source: Palmieri, Calderoni and Maio, "Spatial Bloom filters: enabling privacy in location-aware
    applications", Inscrypt 2014.

    >>> from fullbloom import theory
    >>> [round(rate, 4) for rate in theory.spatial_fprs([200] * 5, num_cells=8192, num_hashes=5)]
    [0.0113, 0.0059, 0.0022, 0.0005, 0.0]
    """
    return _subtract_next(_classic_fprs(_sums_from_label(area_items, "area_items"), num_cells, num_hashes))


@require_finite
def spatial_cell_fprs(label_cells: Sequence[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the rate at which an absent key gets each label, from the cells c_j that hold label j.

    ``p_i = (sum_(j>=i) c_j / m)^k - sum_(j>i) p_j``, the result of ``SpatialBloomFilter.label_rates``. Raises
    ``ParameterError`` unless the cells are >= 0, num_cells >= 1 and num_hashes > 0.

    Source: as :func:`spatial_fprs`. Independent of the core; tests check that both agree.

    >>> from fullbloom import theory
    >>> [round(rate, 4) for rate in theory.spatial_cell_fprs([10, 20], num_cells=100, num_hashes=2)]
    [0.05, 0.04]
    """
    cells, hashes = check_at_least("num_cells", num_cells, 1), check_at_least("num_hashes", num_hashes, 1)
    return _subtract_next(
        [math.pow(held / cells, hashes) for held in _sums_from_label(label_cells, "label_cells")]
    )


@require_finite
def spatial_promotion(area_items: Sequence[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the chance that a key is reported with a label above its own, for each own label, 1 first.

    ``(1 - (1 - 1/m)^(k sum_(j>i) n_j))^k``; a lower label never occurs. 0.0086, 0.0027, 0.0005, 0.00002 and 0
    for five areas of 200 keys, m = 8192, k = 5. Raises as :func:`spatial_fprs`.

    Source: as :func:`spatial_fprs`.

    >>> from fullbloom import theory
    >>> [round(p, 4) for p in theory.spatial_promotion([200] * 5, num_cells=8192, num_hashes=5)]
    [0.0086, 0.0027, 0.0005, 0.0, 0.0]
    """
    sums = _sums_from_label(area_items, "area_items")
    return _classic_fprs([*sums[1:], 0.0], num_cells, num_hashes)


def _classic_fprs(items: list[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the rate of a filter for each number of items."""
    cells, hashes = check_at_least("num_cells", num_cells, 1), check_positive("num_hashes", num_hashes)
    return [classic_fpr(keys, cells, hashes) for keys in items]


def _sums_from_label(numbers: Sequence[float], name: str) -> list[float]:
    """Return, for each label, the sum over this label and all higher ones."""
    sums, above = [], 0.0
    for value in reversed(check_iterable(name, numbers)):
        above += check_non_negative(name, value)
        sums.append(above)
    return sums[::-1]


def _subtract_next(at_least_label: list[float]) -> list[float]:
    """Convert chances of at least each label to chances of exactly that label."""
    return [here - above for here, above in zip(at_least_label, [*at_least_label[1:], 0.0], strict=True)]


@vectorize
def value_excess(keys_above: float, num_cells: float, num_hashes: float) -> float:
    """Return the chance that a compact approximator returns more than v for a key with a value of at most v.

    ``(1 - (1 - 1/m)^(k n))^k`` with n the number of keys with values above v, as in a Bloom filter of those.
    Raises ``ParameterError`` unless keys_above >= 0, num_cells >= 1 and num_hashes > 0. Constant time.

    Source: Boldi and Vigna, "Mutable strings in Java", Science of Computer Programming 54(1), 2005.

    >>> from fullbloom import theory
    >>> round(theory.value_excess(keys_above=500, num_cells=9586, num_hashes=7), 5)
    0.00025
    """
    return _classic_fprs([check_non_negative("keys_above", keys_above)], num_cells, num_hashes)[0]


@vectorize
def layered_overcount(items: float, num_bits: int, num_hashes: int, extra: int = 1) -> float:
    """Return the chance that a depth is too large by ``extra`` r or more: ``E[q(I)^(4 r)]``.

    I ~ Binomial(n, 512/m) keys share the line of a key, the same line in every layer, and q(i) is the chance
    that they cover its bits of a column. For r = 1 this is :func:`blocked_fpr`. Patterns differ from layer to
    layer but the load of the line does not, so the chance is above the r-th power of one layer's rate. n is
    the number of keys in each of the next r layers: exact if all hold the same keys, a bound if later layers
    hold fewer. m is the number of bits of one layer. Raises ``ParameterError`` unless items >= 0, num_bits is
    a positive multiple of 512, num_hashes 4, 8 or 12, and extra >= 0 whole. Cost: some tens to hundreds of
    terms.

    Source: ours; Zhiwang, Jungang and Jian, "A multi-layer Bloom filter for duplicated URL detection", 2010,
    for the structure.

    Computed by the core.

    >>> from fullbloom import theory
    >>> [f"{rate:.1e}" for rate in theory.layered_overcount(20_000, 312_832, 8, extra=[1, 2, 3])]
    ['1.0e-03', '2.2e-06', '8.7e-09']
    """
    keys, bits = check_non_negative("items", items), check_whole("num_bits", num_bits, 1)
    if check_whole("num_hashes", num_hashes, 1) not in (4, 8, 12):
        raise ParameterError(f"num_hashes must be 4, 8 or 12 for layers, got {num_hashes}")
    if bits % 512:
        up = -(-bits // 512) * 512
        raise ParameterError(
            f"num_bits must be a multiple of the line's 512 bits, got {bits}; round up to {up}"
        )
    layers = check_whole("extra", extra, 0)
    return evaluate_law("layers", keys, bits // 512, num_hashes // 4, layers) if layers else 1.0
