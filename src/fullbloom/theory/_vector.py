"""Lists, tuples and NumPy arrays for functions that are written for single numbers.

``@vectorized`` leaves a scalar function as it is and adds one rule: an argument may be a list, a tuple or a
NumPy array of numbers; the function is then applied elementwise and the answer comes back in the caller's
kind. Numbers beside a vector are repeated; lists and tuples must have one length; arrays follow NumPy's
broadcasting. NumPy is never imported here: whoever passes an array has it in ``sys.modules`` already.

A function that answers with a named tuple gives a list of them for a list, and one tuple of arrays for an
array. The work is one Python call an element (about a microsecond for a closed form): meant for curves and
tables, not for millions of points.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from fullbloom.errors import ParameterError

from ._finite import finite

__all__ = ["Vector", "Vectorized", "vectorized"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class SupportsArray(Protocol):
    """A NumPy array, as far as the type checker needs to know one without importing NumPy."""

    def __array__(self) -> Any: ...


Vector = float | str | None | Sequence[float] | SupportsArray
"""What a vectorized function accepts: numbers (and names of layouts), or lists, tuples, arrays of numbers."""


class Vectorized(Protocol[P, R_co]):
    """A scalar function that also takes vectors: for a type checker, numbers give R and vectors Any."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Vector, **kwargs: Vector) -> Any: ...


def vectorized(function: Callable[P, R]) -> Vectorized[P, R]:
    """Let ``function`` take lists, tuples and arrays in any of its numeric arguments, and be `finite`."""
    function = finite(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        names = list(kwargs)
        values = [*args, *kwargs.values()]
        array = _array_type()
        kinds = {type(value) for value in values}
        if array is not None and any(isinstance(value, array) for value in values):
            return _over_arrays(function, values, len(args), names)
        # Exact types: a named tuple is a record, not a vector.
        if list not in kinds and tuple not in kinds:
            return function(*args, **kwargs)
        results = [
            function(*row[: len(args)], **dict(zip(names, row[len(args) :], strict=True)))
            for row in _rows(values)
        ]
        return results if list in kinds else tuple(results)

    return cast("Vectorized[P, R]", call)


def _array_type() -> type | None:
    """NumPy's array class if somebody has imported NumPy."""
    # getattr: during NumPy's own import the module is listed before the class exists.
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def _rows(values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """The argument tuples of an elementwise call over lists and tuples."""
    lengths = sorted({len(value) for value in values if type(value) in (list, tuple)})
    if len(lengths) > 1:
        raise ParameterError(
            f"lists must have one length, got lengths {lengths}; repeat or cut the shorter ones"
        )
    columns = [value if type(value) in (list, tuple) else [value] * lengths[0] for value in values]
    return zip(*columns, strict=True)


def _over_arrays(
    function: Callable[..., Any], values: Sequence[Any], positional: int, names: list[str]
) -> Any:
    """The elementwise call when at least one argument is a NumPy array."""
    numpy: Any = sys.modules["numpy"]
    vectors = {
        at: numpy.asarray(value)
        for at, value in enumerate(values)
        if isinstance(value, (list, tuple, numpy.ndarray))
    }
    try:
        spread = numpy.broadcast_arrays(*vectors.values())
    except ValueError:
        shapes = [vector.shape for vector in vectors.values()]
        raise ParameterError(f"arrays must broadcast to one shape, got shapes {shapes}") from None
    shape = spread[0].shape
    columns = dict(zip(vectors, (vector.ravel().tolist() for vector in spread), strict=True))
    results = []
    for at in range(spread[0].size):
        row = [columns[i][at] if i in columns else value for i, value in enumerate(values)]
        results.append(function(*row[:positional], **dict(zip(names, row[positional:], strict=True))))
    return _pack(function, results, shape)


def _pack(function: Callable[..., Any], results: list[Any], shape: tuple[int, ...]) -> Any:
    """The results as one array, or as one named tuple of arrays if the function gives named tuples."""
    numpy: Any = sys.modules["numpy"]
    record = type(results[0]) if results else typing.get_type_hints(function)["return"]
    if not hasattr(record, "_fields"):
        # The type is named only where there is nothing to infer it from: integers above 64 bits must stay
        # whole.
        return numpy.array(results, dtype=None if results else record).reshape(shape)
    columns = zip(*results, strict=True) if results else ((),) * len(record._fields)
    return record(*(numpy.array(column).reshape(shape) for column in columns))
