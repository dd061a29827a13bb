"""Guarantee: every function of theory is exact to nine digits, or to the bound in its docstring.

Arguments are drawn at random, by seed: n to 1e13, p from 1e-12, k to 50; the exact values come from
``exact``.
"""

from __future__ import annotations

import inspect
import math
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from statistical.theory.exact import CASES, Case, in_digits
from support import SCALE

from fullbloom import theory

#: Arguments per function: more than 1,000 altogether.
DRAWS = 14
#: Smaller values are not compared, since a float cannot hold all their digits.
LEAST = Decimal("1e-290")


def error(value: Any, exact: Any, off: float) -> float:
    """Relative error of a number, or the worst of several; ``off`` is free."""
    if isinstance(exact, (list, tuple)):
        several = list(value) + [0.0] * (len(exact) - len(value))
        return max((error(v, e, off) for v, e in zip(several, exact, strict=True)), default=0.0)
    if isinstance(value, float) and math.isnan(value):
        return math.inf
    number = Decimal(value.numerator) / value.denominator if hasattr(value, "numerator") else Decimal(value)
    exact = Decimal(exact.numerator) / exact.denominator if hasattr(exact, "numerator") else Decimal(exact)
    wrong = abs(number - exact)
    if number == exact or wrong <= Decimal(off) or max(abs(number), abs(exact)) < LEAST:
        return 0.0
    return float(wrong / abs(exact)) if exact else math.inf


def worst(name: str, case: Case, draws: int) -> tuple[float, tuple[Any, ...]]:
    """The largest error, and the arguments it belongs to."""
    random, found = Random(f"exact {name}"), []
    for _ in range(draws):
        arguments = case.draw(random)
        value = getattr(theory, name)(*arguments) if name != "reference_card" else card(*arguments)
        found.append((error(value, in_digits(case, arguments), case.off), arguments))
    return max(found, key=lambda pair: pair[0])


def card(n: Any, p: Any, m: Any, k: Any) -> theory.Card:
    return theory.reference_card(capacity=n, fpr=p, num_bits=m, num_hashes=k)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_law_is_exact_at_random_arguments(name: str) -> None:
    off, arguments = worst(name, CASES[name], DRAWS * SCALE)
    assert off <= CASES[name].rel, f"{name}{arguments} is off by {off:.1e}"


def test_every_function_of_theory_is_covered() -> None:
    functions = {name for name in theory.__all__ if inspect.isfunction(inspect.unwrap(getattr(theory, name)))}
    assert functions == set(CASES)
    assert DRAWS * len(CASES) >= 1000
