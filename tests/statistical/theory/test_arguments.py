"""Any numbers give a result exact to nine digits or a ParameterError that names them, within a second.

Arguments are drawn at random, by seed: n to 1e13, p from 1e-12, k to 50; the exact values come from
``exact``. A function may state a wider bound in its docstring.
"""

from __future__ import annotations

import inspect
import math
import signal
from decimal import Decimal, localcontext
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from cases import for_each
from statistical.theory.exact import CASES, Case, in_digits
from support import SCALE

from fullbloom import theory
from fullbloom.errors import FilterMemoryError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@pytest.mark.long
@for_each("name", sorted(CASES))
def test_a_law_is_exact_at_random_arguments(name: str) -> None:
    off, arguments = worst(name, CASES[name], DRAWS * SCALE)
    assert off <= CASES[name].rel, f"{name}{arguments} is off by {off:.1e}"


def test_every_function_of_theory_is_covered() -> None:
    functions = {name for name in theory.__all__ if inspect.isfunction(inspect.unwrap(getattr(theory, name)))}
    assert functions == set(CASES)
    assert DRAWS * len(CASES) >= 1000


#: Draws per function; each replaces at least one argument of an ordinary call.
EXTREME_DRAWS = 30
#: The number of values to compare with exact ones, and the draws that must yield that many.
COMPARED, MOST_DRAWS = 12, 1000
SECONDS = 1.0
#: The time limit of an exact value: most take a millisecond, some would take minutes.
EXACT_SECONDS = 0.03
WHOLE = [*range(6), 7, 8, 12, 16, 24, 64, 65, 100, 256, 512, 1000, 4096, 10**6, 2**31]
WHOLE += [2**53, 2**53 + 1, 2**63]
EXTREMES = [
    *(*WHOLE, 2**64, 10**30, 10**100, 10**300, 10**308, 10**400, -1),
    *(0.0, -0.0, 0.5, 1e-3, 0.01, 0.1, 0.3, 0.9, 0.99, 1.5, 2.5),
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
    "replication_break_even single_shot_fpr succinct_bits_per_key twin_chance",
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
    for _ in range(EXTREME_DRAWS * SCALE):
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


INVALID: list[tuple[Callable[[], Any], str]] = [
    (lambda: theory.num_bits(100, 1.5), "fpr must be between 0 and 1 (exclusive), got 1.5"),
    (lambda: theory.num_bits(100, 0), "fpr must be between 0 and 1 (exclusive), got 0"),
    (lambda: theory.num_bits(100, 1), "fpr must be between 0 and 1 (exclusive), got 1"),
    (lambda: theory.num_bits(0, 0.1), "capacity must be greater than 0, got 0"),
    (lambda: theory.num_bits(100, math.nan), "fpr must be finite, got nan"),
    (lambda: theory.num_bits(10**400, 0.1), "capacity must be below 1.8e308, got an integer beyond it"),
    (lambda: theory.fill(math.inf, 64, 3), "items must be finite, got inf"),
    (lambda: theory.fill(-1, 64, 3), "items must be at least 0, got -1"),
    (lambda: theory.fill(1, 0, 3), "num_bits must be at least 1, got 0"),
    (lambda: theory.fill(1, 64, 0), "num_hashes must be greater than 0, got 0"),
    (lambda: theory.exact_fpr(1.5, 64, 3), "items must be a whole number, got 1.5; use 1 or 2"),
    (lambda: theory.distinct_fpr(1, 2, 3), "num_hashes must be at most num_bits = 2, got 3"),
    (lambda: theory.goel_gupta_fpr(1, 1, 3), "num_bits must be at least 2, got 1"),
    (lambda: theory.intersection_fpr(5, 9, 6, 64, 3), "items_both must be at most items_a = 5, got 6"),
    (lambda: theory.blocked_limit_fpr(10, 7), "num_hashes must be 4, 8 or 12 for the blocked layout, got 7"),
    (
        lambda: theory.split_fpr(10, 1000),
        "num_bits must be a multiple of the block's 256 bits, got 1000; round up to 1024",
    ),
    (lambda: theory.estimate_items(65, 64, 3), "set_bits must be at most num_bits = 64, got 65"),
    (lambda: theory.stage_fpr(0.1, 1.0), "tightening must be between 0 and 1 (exclusive), got 1.0"),
    (lambda: theory.stage_capacity(10, 0.5), "growth must be at least 1, got 0.5"),
    (lambda: theory.compound_fpr([0.1, 2]), "fprs must be between 0 and 1, got 2"),
    (lambda: theory.level_fprs([], 8), "capacities must have at least one number"),
    (lambda: theory.level_fprs([8, 0], 8), "capacities must be greater than 0, got 0"),
    (lambda: theory.stream_floor(8, 8, 1), "alphabet must be at least 2, got 1"),
]


@for_each(("call", "message"), INVALID, ids=[message for _, message in INVALID])
def test_the_message_names_the_value_and_the_remedy(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


@for_each("value", ["0.1", None, [], {}, 1j, b"1"])
def test_a_value_that_is_not_a_number_is_a_type_error(value: Any) -> None:
    if value == []:
        assert theory.min_bits_per_key(value) == []
        return
    with pytest.raises(TypeError, match="fpr must be a number"):
        theory.min_bits_per_key(value)


def test_an_exact_law_that_would_run_for_hours_is_refused_with_an_alternative() -> None:
    with pytest.raises(ParameterError, match="use second_order_fpr"):
        theory.exact_fpr(10**6, 10**7, 7)
    with pytest.raises(ParameterError, match="use second_order_fpr"):
        theory.occupancy_law(10**9, 10**9)


def test_an_unreachable_rate_is_refused() -> None:
    with pytest.raises(ParameterError, match="fpr must be reachable"):
        theory.blocked_bits_per_key(1e-300, 4)
