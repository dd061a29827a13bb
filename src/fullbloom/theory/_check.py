"""Argument checks: one function for each kind of number, one wording for every message.

Each function takes the argument's name and its value and returns the value as a plain ``float`` or ``int``. A
number out of range raises ``ParameterError`` (a ``ValueError``) with the value and the remedy; any other type
raises ``ParameterTypeError`` (a ``TypeError``).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_number(name: str, value: object) -> float:
    """Return ``value`` as a finite float."""
    # Test the exact type first: isinstance against an ABC costs several times as much, and these functions
    # run once for each element of a vector.
    if type(value) is not float and type(value) is not int and not isinstance(value, Real):
        raise ParameterTypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:
        raise ParameterError(f"{name} must be below 1.8e308, got an integer beyond it") from None
    if not math.isfinite(result):
        raise ParameterError(f"{name} must be finite, got {value}")
    return result


def check_open_unit(name: str, value: object) -> float:
    """Return ``value`` as a float strictly between 0 and 1, such as a rate or a ratio."""
    result = check_number(name, value)
    if not 0.0 < result < 1.0:
        raise ParameterError(f"{name} must be between 0 and 1 (exclusive), got {value}")
    return result


def check_closed_unit(name: str, value: object) -> float:
    """Return ``value`` as a float from 0 to 1, both included, such as a computed rate."""
    result = check_number(name, value)
    if not 0.0 <= result <= 1.0:
        raise ParameterError(f"{name} must be between 0 and 1, got {value}")
    return result


def check_positive(name: str, value: object) -> float:
    """Return ``value`` as a float above 0."""
    result = check_number(name, value)
    if result <= 0.0:
        raise ParameterError(f"{name} must be greater than 0, got {value}")
    return result


def check_non_negative(name: str, value: object) -> float:
    """Return ``value`` as a float of 0 or more."""
    return check_at_least(name, value, 0)


def check_at_least(name: str, value: object, least: float) -> float:
    """Return ``value`` as a float of ``least`` or more."""
    result = check_number(name, value)
    if result < least:
        raise ParameterError(f"{name} must be at least {least}, got {value}")
    return result


def check_whole(name: str, value: object, least: int) -> int:
    """Return ``value`` as an int of ``least`` or more; 7.0 is accepted, 7.5 is not."""
    result = check_at_least(name, value, least)
    if not result.is_integer():
        raise ParameterError(
            f"{name} must be a whole number, got {value}; use {math.floor(result)} or {math.ceil(result)}"
        )
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_within(name: str, value: object, least: int, most: int) -> int:
    """Return ``value`` as an int from ``least`` to ``most``."""
    found = check_whole(name, value, least)
    if found > most:
        raise ParameterError(f"{name} must be at most {most}, got {value}")
    return found


def check_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise ParameterTypeError(f"{name} must be True or False, got {value!r}")
    return value


def check_iterable(name: str, values: Iterable[float]) -> list[float]:
    """Return ``values`` as a list; the caller checks each element."""
    try:
        numbers = iter(values)
    except TypeError:
        raise ParameterTypeError(f"{name} must be an iterable of numbers, got {values!r}") from None
    return list(numbers)
