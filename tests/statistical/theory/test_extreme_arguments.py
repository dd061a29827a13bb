"""Guarantee: any numbers give a correct value or a ParameterError, within a second."""

from __future__ import annotations

import math
import signal
from decimal import localcontext
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from statistical.theory.exact import CASES
from statistical.theory.test_exact_arithmetic import card, error
from support import SCALE

from fullbloom import theory
from fullbloom.errors import FilterMemoryError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Draws per function; each replaces at least one argument of an ordinary call.
DRAWS = 30
#: The number of values to compare with exact ones, and the draws that must yield that many.
COMPARED, MOST_DRAWS = 12, 1000
SECONDS = 1.0
#: The time limit of an exact value: most take a millisecond, some would take minutes.
EXACT_SECONDS = 0.03
WHOLE = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    12,
    16,
    24,
    64,
    65,
    100,
    256,
    512,
    1000,
    4096,
    10**6,
    2**31,
    2**53,
    2**53 + 1,
    2**63,
]
EXTREMES = [
    *WHOLE,
    *(
        2**64,
        10**30,
        10**100,
        10**300,
        10**308,
        10**400,
        -1,
        0.0,
        -0.0,
        0.5,
        1e-3,
        0.01,
        0.1,
        0.3,
        0.9,
        0.99,
        1.5,
        2.5,
    ),
    *(1e-9, 1e-18, 1e-30, 1e-100, 1e-300, 5e-324, 1 - 1e-16, 1.0, 1 + 3e-16, 1e19, 1e100, 1e300, 1.7e308),
    *(math.inf, -math.inf, math.nan),
]
#: A full filter does not determine the count, so these return infinity or nan.
UNBOUNDED = {"estimate_items", "estimate_union", "estimate_intersection", "estimate_jaccard"}
#: Laws in closed form, whose exact value can be computed at any argument.
CLOSED = [
    "aging_capacity bits_per_key capacity classic_fpr counter_overflow_bound cuckoo_fpr cuckoo_table_fpr",
    "dleft_bits_per_key dleft_fpr dleft_load_fpr dynamic_cuckoo_fpr estimate_items estimate_union",
    "exponential_fpr fill fill_tail fingerprint_bits fingerprint_fpr fingerprint_load_fpr goel_gupta_fpr",
    "hash_collision_fpr",
    "intersection_fpr min_bits_per_key num_hashes_cost quotient_bits_per_key quotient_probe_slots",
    "retouched_fnr retouched_fpr stable_decrements stable_limit_fpr stable_zeros stage_fpr stream_floor",
    "succinct_bits_per_key twin_chance",
]
#: Digits of that computation: 1 - 1e-300 differs from 1 only in the 300th digit.
DIGITS = 700


class TooSlow(Exception):
    """A call did not end in time."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)  # time of this process: the machine may be busy
    yield lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def function(name: str) -> Callable[..., Any]:
    return card if name == "reference_card" else getattr(theory, name)


def extreme(name: str, random: Random) -> tuple[Any, ...]:
    """Arguments of an ordinary call, some of them replaced."""
    arguments = list(CASES[name].draw(random))
    for at in random.sample(range(len(arguments)), random.randint(1, len(arguments))):
        if isinstance(arguments[at], (int, float)) and not isinstance(arguments[at], bool):
            arguments[at] = random.choice(EXTREMES)
    return tuple(arguments)


def numbers(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", sorted(CASES))
def test_extreme_arguments_give_a_number_or_a_parameter_error(
    name: str, alarm: Callable[[float], None]
) -> None:
    random = Random(f"extreme {name}")
    for _ in range(DRAWS * SCALE):
        arguments = extreme(name, random)
        alarm(SECONDS)
        try:
            found = function(name)(*arguments)
        except (ParameterError, ParameterTypeError, FilterMemoryError):
            continue
        except Exception as error:  # noqa: BLE001 - any other error is a failure
            pytest.fail(f"{name}{arguments}: {error!r}")
        finally:
            alarm(0)
        if name not in UNBOUNDED:
            assert not any(isinstance(x, float) and not math.isfinite(x) for x in numbers(found)), arguments


@pytest.mark.parametrize("name", " ".join(CLOSED).split())
def test_results_at_extreme_arguments_are_exact(name: str, alarm: Callable[[float], None]) -> None:
    random, compared = Random(f"exact extreme {name}"), 0
    for _ in range(MOST_DRAWS * SCALE):
        if compared == COMPARED * SCALE:
            return
        arguments = extreme(name, random)
        try:
            found = function(name)(*arguments)
        except (ParameterError, ParameterTypeError):
            continue
        alarm(EXACT_SECONDS)
        try:
            with localcontext(prec=DIGITS, Emin=-(10**15), Emax=10**15):
                exact = CASES[name].exact(*arguments)
                off = error(found, exact, CASES[name].off)
        except (ArithmeticError, TypeError, ValueError, TooSlow):
            continue  # the exact form cannot be computed there
        finally:
            alarm(0)
        compared += 1
        assert off <= CASES[name].rel, f"{name}{arguments} is {found}, off by {off:.1e}"
    pytest.fail(f"{name} was compared {compared} times only")
