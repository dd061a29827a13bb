"""Filters that other programs wrote: open them, ask them, add to them, and write them back.

Each format is a row of :func:`rows`; ``docs/formats.md`` lists them with what was verified, and how. The
filters of Parquet files are in :mod:`fullbloom.formats.parquet`.

>>> from fullbloom import ForeignFilter
>>> from fullbloom.formats import open_foreign
>>> spark = ForeignFilter("spark", 1000, 0.01)
>>> spark.update(["ada", 7])
>>> again = open_foreign(spark.to_foreign())
>>> again.format, again.contains_many(["ada", 7, "alan"])
('spark', [True, True, False])
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    import os

    from fullbloom._core import ForeignFilter, ForeignStaticFilter

__all__ = ["detect", "open_foreign", "rows"]


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Return one dict per format: name, title, rule, types of keys, how it was verified, and its limits.

    >>> [row["name"] for row in rows()]
    ['spark', 'spark-v1', 'guava', 'guava-32', 'parquet', 'xor8', 'xor16', 'fuse8', 'fuse16']
    """
    return tuple(_core.foreign_formats())


def detect(source: bytes | bytearray | memoryview | str | os.PathLike[str]) -> str | None:
    """Return the name of the format of bytes or of a file; None if they fit none, as a fullbloom file.

    Reads 32 bytes. Raises OSError.

    >>> detect(bytes.fromhex("00000001000000040000000187a6190a091be602"))
    'spark-v1'
    """
    return _core.detect_foreign(source)


def open_foreign(
    source: bytes | bytearray | memoryview | str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the field's word
    *,
    key_type: str | None = None,
    funnel: str | None = None,
    max_bytes: int | None = None,
) -> ForeignFilter | ForeignStaticFilter:
    """Return the filter in bytes or in a file that another program wrote.

    source: the bytes, or a path; a file is read once. format: the name of a row; detected if it is None,
    since the lengths that such bytes state fit in one format at most. key_type, or funnel, as Guava calls it:
    the type of the keys, required where the format does not record it. max_bytes: a larger filter is refused.

    Raises FormatError, which names format and field, ParameterError, OSError, FilterMemoryError.

    >>> open_foreign(bytes.fromhex("01050000000220100200088402040002404820c0a103"), funnel="utf-8")
    ForeignFilter("guava", key_type="bytes": 128 bits, 5 hashes, 15.6 % full)
    """
    if key_type is not None and funnel is not None and key_type != funnel:
        raise ParameterError(f"key_type and funnel are one parameter, got {key_type!r} and {funnel!r}")
    chosen = funnel if key_type is None else key_type
    is_bytes = isinstance(source, (bytes, bytearray, memoryview))
    if not is_bytes and not isinstance(source, str) and not hasattr(source, "__fspath__"):
        raise ParameterTypeError(f"source must be bytes or a path, got {type(source).__name__}")
    owner = _find_class(detect(source) if format is None else format)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return owner.from_foreign(source, format, key_type=chosen, max_bytes=max_bytes)
    return owner.open_foreign(source, format, key_type=chosen, max_bytes=max_bytes)


def _find_class(name: str | None) -> type[ForeignFilter | ForeignStaticFilter]:
    """Return the class of filters of the format ``name``; ForeignFilter, which says why, for any other."""
    classes = {row["name"]: row["class"] for row in rows()}
    owner: type[ForeignFilter | ForeignStaticFilter]
    owner = getattr(_core, classes.get(name, "ForeignFilter"))
    return owner
