"""Combinations of filters: plain Python over any classes that implement ``fullbloom.protocols``.

- ``removals``: one-time removal from any filter, with a second filter of the removed keys
- ``reconciliation``: the difference of two sets, exact or approximate
- ``networked``: filters of several machines, a package of its own that is not imported here
- ``folder``: several filters in one folder, saved and opened together

It may import: the standard library, ``fullbloom.errors``, ``fullbloom.protocols``, ``fullbloom.theory`` and
``fullbloom._core``.
"""

from __future__ import annotations

from .reconciliation import (
    CharacteristicSketch,
    RatelessDecoder,
    RatelessEncoder,
    ReconciliationTree,
    SetDifference,
    StrataEstimator,
    TreeSummary,
    count_differences,
)
from .removals import WithRemovals

__all__ = [
    "CharacteristicSketch",
    "RatelessDecoder",
    "RatelessEncoder",
    "ReconciliationTree",
    "SetDifference",
    "StrataEstimator",
    "TreeSummary",
    "WithRemovals",
    "count_differences",
]
