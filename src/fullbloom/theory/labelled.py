"""Laws of filters that answer with a label or a value: spatial, compact approximator, layered."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError

from ._check import at_least, non_negative, positive, several, whole
from ._finite import finite
from ._law import law
from ._vector import vectorized
from .rates import classic_fpr

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["layered_overcount", "spatial_cell_fprs", "spatial_fprs", "spatial_promotion", "value_excess"]


@finite
def spatial_fprs(area_items: Sequence[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the rate at which a key of no area is given each label, label 1 first, before any is added.

    ``p_i = (1 - (1 - 1/m)^(k sum_(j>=i) n_j))^k - sum_(j>i) p_j`` for n_j keys with label j: the labels from
    i on form a filter of their own. 1.13, 0.59, 0.22, 0.05 and 0.002 % for five areas of 200 keys in 8192
    cells with k = 5. Raises ``ParameterError`` unless the items are >= 0, num_cells >= 1 and num_hashes > 0.
    Cost: one rate an area.

    Source: Palmieri, Calderoni and Maio, "Spatial Bloom filters: enabling privacy in location-aware
    applications", Inscrypt 2014.

    >>> from fullbloom import theory
    >>> [round(rate, 4) for rate in theory.spatial_fprs([200] * 5, num_cells=8192, num_hashes=5)]
    [0.0113, 0.0059, 0.0022, 0.0005, 0.0]
    """
    return _differences(_rates(_from_label_on(area_items, "area_items"), num_cells, num_hashes))


@finite
def spatial_cell_fprs(label_cells: Sequence[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the rate at which a key of no area is given each label, from the cells c_j that hold label j.

    ``p_i = (sum_(j>=i) c_j / m)^k - sum_(j>i) p_j``, what ``SpatialBloomFilter.label_rates`` answers. Raises
    ``ParameterError`` unless the cells are >= 0, num_cells >= 1 and num_hashes > 0.

    Source: as :func:`spatial_fprs`. Independent of the core; tests hold both together.

    >>> from fullbloom import theory
    >>> [round(rate, 4) for rate in theory.spatial_cell_fprs([10, 20], num_cells=100, num_hashes=2)]
    [0.05, 0.04]
    """
    cells, hashes = at_least("num_cells", num_cells, 1), at_least("num_hashes", num_hashes, 1)
    return _differences(
        [math.pow(held / cells, hashes) for held in _from_label_on(label_cells, "label_cells")]
    )


@finite
def spatial_promotion(area_items: Sequence[float], num_cells: float, num_hashes: float) -> list[float]:
    """Return the chance that a key is reported with a label above its own, by its own label, 1 first.

    ``(1 - (1 - 1/m)^(k sum_(j>i) n_j))^k``; never with one below. 0.0086, 0.0027, 0.0005, 0.00002 and 0 for
    five areas of 200 keys, m = 8192, k = 5. Raises as :func:`spatial_fprs`.

    Source: as :func:`spatial_fprs`.

    >>> from fullbloom import theory
    >>> [round(p, 4) for p in theory.spatial_promotion([200] * 5, num_cells=8192, num_hashes=5)]
    [0.0086, 0.0027, 0.0005, 0.0, 0.0]
    """
    from_label_on = _from_label_on(area_items, "area_items")
    return _rates([*from_label_on[1:], 0.0], num_cells, num_hashes)


def _rates(items: list[float], num_cells: float, num_hashes: float) -> list[float]:
    """The rate of a filter of each number of items."""
    cells, hashes = at_least("num_cells", num_cells, 1), positive("num_hashes", num_hashes)
    return [classic_fpr(keys, cells, hashes) for keys in items]


def _from_label_on(numbers: Sequence[float], name: str) -> list[float]:
    """For each label, how many belong to it or a higher one."""
    sums, above = [], 0.0
    for value in reversed(several(name, numbers)):
        above += non_negative(name, value)
        sums.append(above)
    return sums[::-1]


def _differences(at_least_label: list[float]) -> list[float]:
    """From chances of at least a label to chances of just that label."""
    return [here - above for here, above in zip(at_least_label, [*at_least_label[1:], 0.0], strict=True)]


@vectorized
def value_excess(keys_above: float, num_cells: float, num_hashes: float) -> float:
    """Return the chance that a compact approximator answers above v for a key whose value is v or lower.

    ``(1 - (1 - 1/m)^(k n))^k`` with n the keys whose values are above v: as a Bloom filter of those keys.
    Raises ``ParameterError`` unless keys_above >= 0, num_cells >= 1 and num_hashes > 0. Constant time.

    Source: Boldi and Vigna, "Mutable strings in Java", Science of Computer Programming 54(1), 2005.

    >>> from fullbloom import theory
    >>> round(theory.value_excess(keys_above=500, num_cells=9586, num_hashes=7), 5)
    0.00025
    """
    return _rates([non_negative("keys_above", keys_above)], num_cells, num_hashes)[0]


@vectorized
def layered_overcount(items: float, num_bits: int, num_hashes: int, extra: int = 1) -> float:
    """Return the chance that a depth is too large by ``extra`` r or more: ``E[q(I)^(4 r)]``.

    I ~ Binomial(n, 512/m) keys lie in the line of a key, the same line in every layer, and q(i) is the chance
    that they cover its bits of a column, as in :func:`blocked_fpr`, which this is for r = 1. Patterns differ
    from layer to layer but the load of the line does not, so that it is above the r-th power of one layer's
    rate. n are the keys in each of the next r layers: exact where they hold the same ones, a bound where
    later ones hold fewer. m are the bits of one layer. Raises ``ParameterError`` unless items >= 0, num_bits
    is a positive multiple of 512, num_hashes 4, 8 or 12, and extra >= 0 whole. Cost: some tens to hundreds of
    terms.

    Source: ours; Zhiwang, Jungang and Jian, "A multi-layer Bloom filter for duplicated URL detection", 2010,
    for the structure.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> [f"{rate:.1e}" for rate in theory.layered_overcount(20_000, 312_832, 8, extra=[1, 2, 3])]
    ['1.0e-03', '2.2e-06', '8.7e-09']
    """
    keys, bits = non_negative("items", items), whole("num_bits", num_bits, 1)
    if whole("num_hashes", num_hashes, 1) not in (4, 8, 12):
        raise ParameterError(f"num_hashes must be 4, 8 or 12 for layers, got {num_hashes}")
    if bits % 512:
        up = -(-bits // 512) * 512
        raise ParameterError(
            f"num_bits must be a multiple of the line's 512 bits, got {bits}; round up to {up}"
        )
    layers = whole("extra", extra, 0)
    return law("layers", keys, bits // 512, num_hashes // 4, layers) if layers else 1.0
