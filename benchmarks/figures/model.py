"""A figure of the literature, and how the library measures it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: The random source, and the share of the full number of filters.
    Measure = Callable[[np.random.Generator, float], "Sample"]

#: Standard errors beyond which a row needs a reason.
MOST_ERRORS = 3.0


class Sample(NamedTuple):
    """A mean of independent values, its standard error, and the standard deviation of one value."""

    mean: float
    error: float
    spread: float
    count: int


def pool(values: Sequence[float] | Any, least_error: float = 0.0) -> Sample:
    """The mean of independent values; the error is at least that of counting."""
    found = np.asarray(values, dtype=float)
    spread = float(found.std(ddof=1)) if len(found) > 1 else 0.0
    return Sample(float(found.mean()), max(spread / math.sqrt(len(found)), least_error), spread, len(found))


def exact(value: float) -> Sample:
    """A value without chance: a size, or a formula."""
    return Sample(float(value), 0.0, 0.0, 1)


def binomial(hits: float, trials: int) -> Sample:
    """A share of independent trials; at least one success and one failure are assumed for its error."""
    share = hits / trials
    smoothed = (hits + 1) / (trials + 2)
    return Sample(
        share, math.sqrt(smoothed * (1 - smoothed) / trials), math.sqrt(share * (1 - share)), trials
    )


def read_number(published: str) -> float:
    """The value of a published figure: a decimal, or a fraction."""
    return float(Fraction(published)) if "/" in published else float(published)


def last_digit(published: str) -> float:
    """The unit of the last digit that is published."""
    if "/" in published:
        return 1e-15
    digits, _, exponent = published.lower().partition("e")
    places = len(digits.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - places)


@dataclass(frozen=True)
class Case:
    """One row: what is measured, what was published, and what the library's own law says.

    `runs` is the number of runs behind a published simulation, whose error is then taken from ours. `why`
    explains a deviation. `law_error` is how far the law may be off, as a share of it. `formula`: what the
    text has in place of a number; `published` is then its value for these parameters.
    """

    what: str
    published: str
    measure: Measure
    source: str
    parameters: str = ""
    law: float | None = None
    law_error: float = 0.0
    runs: int | None = None
    why: str = ""
    formula: str = ""


@dataclass(frozen=True)
class Subject:
    """One part of the page: its cases, and the text above its table."""

    name: str
    title: str
    text: str
    cases: Sequence[Case]
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Row:
    """A case with its measurement, as the record keeps it."""

    what: str
    source: str
    parameters: str
    published: str
    measured: float
    error: float
    count: int
    deviation: float | None
    law: float | None
    why: str
    formula: str = ""

    @property
    def agrees(self) -> bool:
        """Within three standard errors, or equal in every digit that is published."""
        if self.deviation is not None:
            return abs(self.deviation) <= MOST_ERRORS
        return is_rounded(self.measured, self.published)


def is_rounded(value: float, published: str) -> bool:
    """Whether a value without chance is the published one, in its digits."""
    near = abs(value - read_number(published))
    return near <= last_digit(published) * 0.5000001 + 1e-15 * abs(value)


def deviate(case: Case, sample: Sample) -> float | None:
    """How many standard errors lie between measured and published; None without chance."""
    if sample.error == 0.0:
        return None
    rounding = last_digit(case.published) / math.sqrt(12)
    theirs = sample.spread / math.sqrt(case.runs) if case.runs else 0.0
    return (sample.mean - read_number(case.published)) / math.hypot(sample.error, rounding, theirs)


def run_case(case: Case, draw: np.random.Generator, share: float = 1.0) -> Row:
    """Measure a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fullbloom.CapacityWarning)  # some figures are of overfull filters
        sample = case.measure(draw, share)
    return Row(
        what=case.what,
        source=case.source,
        parameters=case.parameters,
        published=case.published,
        measured=sample.mean,
        error=sample.error,
        count=sample.count,
        deviation=deviate(case, sample),
        law=case.law,
        why=case.why,
        formula=case.formula,
    )
