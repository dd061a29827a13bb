"""Filters made of filters: plain Python over any classes that have the methods of ``fullbloom.protocols``.

- ``removals``: one-time removal from any filter by a second one that holds what was removed
- ``reconciliation``: what two sets have not in common, exactly or nearly
- ``folder``: several filters in a folder, saved and opened as one

It may import: the standard library, ``fullbloom.errors``, ``fullbloom.protocols``, ``fullbloom.theory`` and
``fullbloom._core``.
"""

from __future__ import annotations

from .reconciliation import (
    CharacteristicSketch,
    Decoded,
    RatelessDecoder,
    RatelessEncoder,
    ReconciliationTree,
    StrataEstimator,
    TreeSummary,
    count_differences,
)
from .removals import WithRemovals

__all__ = [
    "CharacteristicSketch",
    "Decoded",
    "RatelessDecoder",
    "RatelessEncoder",
    "ReconciliationTree",
    "StrataEstimator",
    "TreeSummary",
    "WithRemovals",
    "count_differences",
]
