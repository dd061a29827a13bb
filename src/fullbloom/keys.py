"""What a key is and what a batch of keys is, as types to annotate with; docs/keys.md has the rule.

A ``str`` is one key and no batch. It is an ``Iterable[str]``, too, so what takes batches takes none of
these: annotate ``Collection[str]``, ``Iterator[str]`` or `Keys`. Arrays and columns are known by what they
can do, so that no library need be there.

>>> from fullbloom import BloomFilter
>>> def filled(keys: Keys) -> BloomFilter:
...     f = BloomFilter(1000)
...     f.update(keys)
...     return f
>>> "ada" in filled(["ada", "alan"])
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
    """A number, text, moment or record of NumPy."""

    @property
    def dtype(self) -> Any:
        """Its type."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where it lies."""

    def __hash__(self) -> int:
        """What arrays have none of."""


class NumPyArray(Protocol):
    """An array of NumPy."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where it lies."""

    def __len__(self) -> int:
        """Its rows."""


class ArrowArray(Protocol):
    """A column in one piece that speaks the Arrow PyCapsule interface, such as `pyarrow.Array`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Its schema and its data."""


class ArrowStream(Protocol):
    """A column or table in any number of pieces, such as `pyarrow.Table` or a frame of Polars."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its pieces."""


class Series(ArrowStream, Protocol):
    """A column with a name, of Polars or pandas."""

    @property
    def name(self) -> Any:
        """Its name."""


class Frame(ArrowStream, Protocol[T]):
    """A frame of Polars, whose columns are ``T``."""

    def get_columns(self) -> list[T]:
        """Its columns."""


class Column(Protocol):
    """What gives its values to NumPy, such as an index of pandas."""

    def to_numpy(self) -> Any:
        """The values."""


class Many(Protocol[T_co]):
    """A list, tuple, set, dict, range, ...: has items and can be asked for any object, as a text cannot."""

    def __iter__(self) -> Iterator[T_co]:
        """Its items."""

    def __contains__(self, item: object, /) -> bool:
        """Tell whether it holds ``item``."""


# bool and NumPy's float64 are among int and float, a datetime is a date, pandas' moments are Python's.
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

# What is answered by a list: all that can be walked but a str. Checkers take [1, "a"] for a list of objects.
ListedKeys: TypeAlias = Many[Key] | Iterator[Key] | Iterable[OtherKey] | list[object] | set[object]
ListedHashes: TypeAlias = Iterable[SupportsIndex]

# Of these a checker cannot know the answer's kind.
OtherColumns: TypeAlias = ArrowStream | Column
Keys: TypeAlias = ListedKeys | NumPyArray | ArrowArray | OtherColumns
Hashes: TypeAlias = ListedHashes | NumPyArray | ArrowArray | OtherColumns
Numbers: TypeAlias = SupportsIndex | Hashes
