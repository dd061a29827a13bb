"""Whether a row that is measured again, with other keys, is still the one of the record."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from benchmarks.figures import record
from benchmarks.figures.model import run_case

if TYPE_CHECKING:
    from benchmarks.figures.model import Case, Row

#: The share of its filters with which a row is measured again.
SHARE = 0.1
#: A false alarm in a hundred thousand runs.
CHANCE = 1e-5


def bound(rows: int) -> float:
    """Standard errors that no one of so many rows exceeds, but by that chance."""
    return NormalDist().inv_cdf(1 - CHANCE / (2 * rows))


def off(row: Row, case: Case, again: Row) -> float:
    """Standard errors between a row measured again and what it should be: the law, or else the record."""
    # A few filters estimate their own error badly; the record's many do not.
    error = max(again.error, row.error * math.sqrt(row.count / again.count))
    if case.law is None:
        return abs(again.measured - row.measured) / math.hypot(error, row.error)
    allowed = case.law_error * abs(case.law)
    return max(0.0, abs(again.measured - case.law) - allowed) / error


def find_drift(name: str, at: int, case: Case, row: Row, seed: int, rows: int) -> str:
    """What is wrong with a row of the record, one of so many that are measured again; "" for nothing."""
    again = run_case(case, record.make_source(seed, name, at), SHARE)
    shown = f"{case.what} ({case.parameters}), seed {seed}: {row.measured:.6g}, now {again.measured:.6g}"
    if row.error == 0.0:
        if case.law is not None or again.error > 0.0:
            return ""
        return "" if math.isclose(again.measured, row.measured, rel_tol=1e-12) else shown
    wrong = off(row, case, again)
    return "" if wrong <= bound(rows) else f"{shown}, {wrong:.1f} standard errors from {case.law}"
