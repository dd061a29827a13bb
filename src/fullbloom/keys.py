"""Type aliases for keys and batches of keys; docs/keys.md has the rules.

A ``str`` is one key, not a batch. A ``str`` is also an ``Iterable[str]``, so functions that take batches do
not accept that annotation: use ``Collection[str]``, ``Iterator[str]`` or `Keys`. Protocols describe arrays
and columns by their methods, so no library needs to be installed.

>>> from fullbloom import BloomFilter
>>> def build(keys: Keys) -> BloomFilter:
...     f = BloomFilter(1000)
...     f.update(keys)
...     return f
>>> "ada" in build(["ada", "alan"])
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar
from uuid import UUID

__all__ = ["Hashes", "Key", "Keys", "Numbers"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class NumPyScalar(Protocol):
    """A NumPy scalar: a number, text, timestamp or record."""

    @property
    def dtype(self) -> Any:
        """Data type of the scalar."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Address and layout of the data."""

    def __hash__(self) -> int:
        """Return the hash; arrays are not hashable."""


class NumPyArray(Protocol):
    """A NumPy array."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Address and layout of the data."""

    def __len__(self) -> int:
        """Return the number of rows."""


class ArrowArray(Protocol):
    """A contiguous column with the Arrow PyCapsule interface, such as `pyarrow.Array`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Export the schema and the data."""


class ArrowStream(Protocol):
    """A column or table in any number of chunks, such as `pyarrow.Table` or a Polars frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the chunks."""


class Series(ArrowStream, Protocol):
    """A named column, such as a Polars or pandas series."""

    @property
    def name(self) -> Any:
        """Name of the column."""


class Frame(ArrowStream, Protocol[T]):
    """A Polars frame with columns of type ``T``."""

    def get_columns(self) -> list[T]:
        """Return the columns."""


class Column(Protocol):
    """An object that converts its values to NumPy, such as a pandas index."""

    def to_numpy(self) -> Any:
        """Return the values as an array."""


class Many(Protocol[T_co]):
    """A list, tuple, set, dict, range, ...: an iterable whose ``in`` accepts any object, unlike a ``str``."""

    def __iter__(self) -> Iterator[T_co]:
        """Iterate over the items."""

    def __contains__(self, item: object, /) -> bool:
        """Return whether it contains ``item``."""


# bool is an int, NumPy's float64 a float, datetime a date, and pandas timestamps are Python datetimes.
OtherKey: TypeAlias = (
    bytes
    | bytearray
    | memoryview
    | int
    | float
    | tuple["Key", ...]
    | UUID
    | date
    | time
    | timedelta
    | Decimal
    | NumPyScalar
)
Key: TypeAlias = str | OtherKey

# Batches whose result is a list: every iterable except a str. Checkers infer list[object] for [1, "a"].
ListedKeys: TypeAlias = Many[Key] | Iterator[Key] | Iterable[OtherKey] | list[object] | set[object]
ListedHashes: TypeAlias = Iterable[SupportsIndex]

# Batches whose result type a checker cannot infer.
OtherColumns: TypeAlias = ArrowStream | Column
Keys: TypeAlias = ListedKeys | NumPyArray | ArrowArray | OtherColumns
Hashes: TypeAlias = ListedHashes | NumPyArray | ArrowArray | OtherColumns
Numbers: TypeAlias = SupportsIndex | Hashes
