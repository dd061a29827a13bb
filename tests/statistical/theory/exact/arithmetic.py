"""Decimals of 80 digits, random arguments, and the table of laws written with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from random import Random

DIGITS = 80
#: The largest relative error of a function whose docstring states no other bound.
REL = 1e-9

ONE = Decimal(1)
Law = Callable[[int], Decimal]


class Case(NamedTuple):
    """A function of theory: arguments, its exact value at them, and the error it may have."""

    draw: Callable[[Random], tuple[Any, ...]]
    exact: Callable[..., Any]
    rel: float
    off: float


CASES: dict[str, Case] = {}


def exactly(
    draw: Callable[[Random], tuple[Any, ...]], rel: float = REL, off: float = 0.0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a law by its name; pass ``rel`` and ``off`` if its docstring states a bound."""

    def enter(exact: Callable[..., Any]) -> Callable[..., Any]:
        CASES[exact.__name__] = Case(draw, exact, rel, off)
        return exact

    return enter


def in_digits(case: Case, arguments: tuple[Any, ...]) -> Any:
    """The exact value."""
    with localcontext(prec=DIGITS, Emin=-(10**15), Emax=10**15):
        return case.exact(*arguments)


def dec(x: Any) -> Decimal:
    """The very number, or its quotient."""
    return Decimal(x.numerator) / x.denominator if isinstance(x, Fraction) else Decimal(x)


def any_of(p: Decimal, n: Any) -> Decimal:
    """``1 - (1 - p)^n``, by two terms of its series where 80 digits are not enough."""
    if p < Decimal("1e-60") and p * dec(n) < Decimal("1e-30"):
        return dec(n) * p * (1 - (dec(n) - 1) * p / 2)
    return ONE - (ONE - p) ** dec(n) if n else Decimal(0)


def power(x: Decimal, y: Any) -> Decimal:
    """``x^y``, with 0^y = 0."""
    return x ** dec(y) if x else Decimal(0)


def up(x: Decimal) -> int:
    """The whole number above."""
    return math.ceil(x)


def poisson(mean: Decimal) -> Iterator[Decimal]:
    """P(X = 0), P(X = 1), ... until nothing is left."""
    term, i = (-mean).exp(), 0
    while True:
        yield term
        i += 1
        term *= mean / i


def binomial(n: Any, p: Decimal) -> Iterator[Decimal]:
    """The same of Binomial(n, p); n need not be whole."""
    n = dec(n)
    term, i, odds = (ONE - p) ** n, 0, p / (ONE - p)
    while True:
        yield term
        term *= max(Decimal(0), n - i) / (i + 1) * odds
        i += 1


def mean_of(law: Law, chances: Iterator[Decimal], mean: Any) -> Decimal:
    """``E[law(X)]``, for a law that grows and stays at or below 1."""
    total = Decimal(0)
    for i, chance in enumerate(chances):
        total += chance * law(i)
        # From twice the mean on, chances fall at least as fast as powers of 1/2.
        if i > 2 * mean + 2 and chance < Decimal("1e-25") * total:
            return total
        if i > 2 * mean + 2 and not chance:
            return total
    raise AssertionError


def tail_of(chances: Iterator[Decimal], least: int, mean: Any) -> Decimal:
    """P(X >= least)."""
    return mean_of(lambda i: Decimal(i >= least), chances, max(mean, least))


def root(law: Callable[[Any], Decimal], target: Any, found: float) -> Any:
    """``found`` itself if the falling law meets the target within REL of it, else nothing."""
    low, high = dec(found) * (1 - Decimal(REL)), dec(found) * (1 + Decimal(REL))
    return found if law(low) > dec(target) >= law(high) else math.nan


def log_uniform(random: Random, low: float, high: float) -> float:
    """Between ``low`` and ``high``, every power of ten as likely."""
    return math.exp(random.uniform(math.log(low), math.log(high)))


def count(random: Random, most: float = 1e13) -> int:
    """A number of keys: 1 to 10^13."""
    return max(1, round(log_uniform(random, 0.7, most)))


def rate(random: Random, least: float = 1e-12) -> float:
    """A rate: 1e-12 to 0.9."""
    return log_uniform(random, least, 0.9)


def hashes(random: Random) -> int:
    """k: 1 to 50."""
    return random.randint(1, 50)


def a_filter(random: Random) -> tuple[int, int, int]:
    """n, m, k with a fill that is neither 0 nor 1 to the last digit."""
    n, k = count(random), hashes(random)
    return n, max(2, round(n * k * log_uniform(random, 0.1, 30))), k
