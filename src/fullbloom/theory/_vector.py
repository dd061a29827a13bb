"""Lists, tuples and NumPy arrays for functions that are written for single numbers.

``@vectorize`` lets each argument of a scalar function be a list, a tuple or a NumPy array of numbers. The
function is then applied elementwise and the result has the caller's type. Numbers beside a vector are
repeated; lists and tuples must have the same length; arrays follow NumPy's broadcasting. This module never
imports NumPy: a caller that passes an array already has it in ``sys.modules``.

A function that returns a named tuple returns a list of them for a list, and one tuple of arrays for an array.
Each element costs one Python call (about a microsecond for a closed form), which suits curves and tables, not
millions of points.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from fullbloom.errors import ParameterError

from ._finite import require_finite

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class SupportsArray(Protocol):
    """A NumPy array, described for the type checker without importing NumPy."""

    def __array__(self) -> Any: ...


Vector = float | str | None | Sequence[float] | SupportsArray
"""Arguments of a vectorized function: numbers (and names of layouts), or lists, tuples, arrays of numbers."""


class Vectorized(Protocol[P, R_co]):
    """A scalar function that also takes vectors: for a type checker, numbers give R and vectors Any."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Vector, **kwargs: Vector) -> Any: ...


def vectorize(function: Callable[P, R]) -> Vectorized[P, R]:
    """Make ``function`` accept lists, tuples and arrays as numeric arguments; applies `require_finite`."""
    function = require_finite(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        names = list(kwargs)
        values = [*args, *kwargs.values()]
        array = _array_type()
        kinds = {type(value) for value in values}
        if array is not None and any(isinstance(value, array) for value in values):
            return _call_over_arrays(function, values, len(args), names)
        # Exact types: a named tuple is a record, not a vector.
        if list not in kinds and tuple not in kinds:
            return function(*args, **kwargs)
        results = [
            function(*row[: len(args)], **dict(zip(names, row[len(args) :], strict=True)))
            for row in _zip_arguments(values)
        ]
        return results if list in kinds else tuple(results)

    return cast("Vectorized[P, R]", call)


def _array_type() -> type | None:
    """Return NumPy's array class if NumPy is imported, else None."""
    # getattr: while NumPy imports itself, the module is in sys.modules before the class exists.
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def _zip_arguments(values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """Return the argument tuples of an elementwise call over lists and tuples."""
    lengths = sorted({len(value) for value in values if type(value) in (list, tuple)})
    if len(lengths) > 1:
        raise ParameterError(
            f"lists must have the same length, got lengths {lengths}; repeat or cut the shorter ones"
        )
    columns = [value if type(value) in (list, tuple) else [value] * lengths[0] for value in values]
    return zip(*columns, strict=True)


def _call_over_arrays(
    function: Callable[..., Any], values: Sequence[Any], positional: int, names: list[str]
) -> Any:
    """Call ``function`` elementwise when at least one argument is a NumPy array."""
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
    """Return the results as one array, or as one named tuple of arrays if they are named tuples."""
    numpy: Any = sys.modules["numpy"]
    record = type(results[0]) if results else typing.get_type_hints(function)["return"]
    if not hasattr(record, "_fields"):
        # Name the type only for an empty result: NumPy infers it otherwise, and integers above 64 bits must
        # stay exact.
        return numpy.array(results, dtype=None if results else record).reshape(shape)
    columns = zip(*results, strict=True) if results else ((),) * len(record._fields)
    return record(*(numpy.array(column).reshape(shape) for column in columns))
