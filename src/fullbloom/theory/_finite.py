"""A decorator that turns every floating-point failure of a law into one clear error."""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
#: Digits of an argument that a message shows.
_SHOWN = 40


def require_finite(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` raise ``ParameterError`` when a step or the result leaves the range of floats.

    Functions check each argument themselves; this decorator catches arguments that are valid one by one but
    not together. Without it an extreme argument raises an OverflowError, a ZeroDivisionError or a ValueError
    of ``math``, or returns nan, depending on the function.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = function(*args, **kwargs)
        except (OverflowError, ZeroDivisionError):
            raise _range_error(function, args, kwargs) from None
        except ValueError as error:
            if isinstance(error, ParameterError):
                raise
            raise _range_error(function, args, kwargs) from None
        if isinstance(result, float) and not math.isfinite(result):
            raise _range_error(function, args, kwargs)
        return result

    return call


def _range_error(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> ParameterError:
    arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    shown = ", ".join(f"{name}={str(value)[:_SHOWN]}" for name, value in arguments.items())
    name = getattr(function, "__name__", "the law")
    return ParameterError(f"{name} is beyond the range of floats at {shown}; give less extreme values")
