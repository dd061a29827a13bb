"""What floating point cannot compute is refused by name, whichever law it is."""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["finite"]

P = ParamSpec("P")
R = TypeVar("R")
#: Digits of an argument that a message shows.
_SHOWN = 40


def finite(function: Callable[P, R]) -> Callable[P, R]:
    """Let ``function`` raise ``ParameterError`` where a step of it, or its float, leaves the range of floats.

    The checks of arguments stay where they are; this is for those that are in range one by one and not
    together. Without it an extreme argument would be an OverflowError, a ZeroDivisionError, a ValueError of
    ``math`` or a nan, each at another one.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = function(*args, **kwargs)
        except (OverflowError, ZeroDivisionError):
            raise _beyond(function, args, kwargs) from None
        except ValueError as error:
            if isinstance(error, ParameterError):
                raise
            raise _beyond(function, args, kwargs) from None
        if isinstance(result, float) and not math.isfinite(result):
            raise _beyond(function, args, kwargs)
        return result

    return call


def _beyond(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> ParameterError:
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    shown = ", ".join(f"{name}={str(value)[:_SHOWN]}" for name, value in given.items())
    name = getattr(function, "__name__", "the law")
    return ParameterError(f"{name} is beyond the range of floats at {shown}; give less extreme values")
