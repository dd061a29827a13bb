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

Programs of tutorials store the bits alone, so you say how many there are, and by which rule:

>>> bits = bytes.fromhex("04222000208110114020000000000480")
>>> old = open_foreign(bits, "sha256-seeded", num_bits=128, num_hashes=7)
>>> old.contains_many(["alice", "bob", "carol"])
[True, True, False]
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from fullbloom import _core
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    import os

__all__ = ["detect", "find_row", "open_foreign", "rows"]


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Return one dict per format: name, title, rule, types of keys, how it was verified, and its limits.

    "class" is the class of its filters, "bare" is True if its bytes are the bits alone, and "order" states
    whether the first bit of a byte is the lowest ("lsb") or the highest ("msb").

    >>> [row["name"] for row in rows() if not row["bare"]][:5]
    ['spark', 'spark-v1', 'guava', 'guava-32', 'parquet']
    >>> [row["name"] for row in rows() if row["bare"] and row["order"] == "lsb"][:3]
    ['fnv1a-go', 'fnv1a-go-32', 'fnv1a-java']
    """
    return tuple(_core.foreign_formats())


def detect(source: bytes | bytearray | memoryview | str | os.PathLike[str]) -> str | None:
    """Return the name of the format of bytes or of a file; None if they fit none, as a fullbloom file.

    Reads the first bytes, and the header of a RedisBloom dump. Bits alone fit none. Raises OSError.

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
    num_bits: int | None = None,
    num_hashes: int | None = None,
    order: Literal["lsb", "msb"] | None = None,
    max_bytes: int | None = None,
) -> Any:
    """Return the filter in bytes or in a file that another program wrote: an object of the row's class.

    source: the bytes, or a path; a file is read once. format: the name of a row; detected if it is None,
    since the lengths that such bytes state fit in one format at most. key_type, or funnel, as Guava calls it:
    the type of the keys, required where the format does not record it. num_bits, num_hashes: m and k of bits
    alone, whose rule is the format. order: "msb" if the first bit of a byte is its highest one, as in Redis;
    such formats have names that end in "-msb". max_bytes: a larger filter is refused.

    Raises FormatError, which names format and field, ParameterError, OSError, FilterMemoryError.

    >>> open_foreign(bytes.fromhex("01050000000220100200088402040002404820c0a103"), funnel="utf-8")
    ForeignFilter("guava", key_type="bytes": 128 bits, 5 hashes, 15.6 % full)
    >>> from fullbloom import ForeignScalableFilter
    >>> open_foreign(ForeignScalableFilter(100).to_foreign())
    ForeignScalableFilter(0 keys, 144 bytes, 1 stages)
    """
    if key_type is not None and funnel is not None and key_type != funnel:
        raise ParameterError(f"key_type and funnel are one parameter, got {key_type!r} and {funnel!r}")
    chosen = funnel if key_type is None else key_type
    is_data = isinstance(source, (bytes, bytearray, memoryview))
    if not is_data and not isinstance(source, str) and not hasattr(source, "__fspath__"):
        raise ParameterTypeError(f"source must be bytes or a path, got {type(source).__name__}")
    name = _find_name(format, order)
    row = find_row(detect(source) if name is None else name)
    if row is None or row["class"] == "ForeignFilter":
        plain: Any = _core.ForeignFilter
        return (plain.from_foreign if is_data else plain.open_foreign)(
            source,
            name,
            key_type=chosen,
            num_bits=num_bits,
            num_hashes=num_hashes,
            max_bytes=max_bytes,
        )
    if (num_bits, num_hashes) != (None, None):
        raise ParameterError(f"num_bits and num_hashes are for bits alone, not for {row['name']!r}")
    owner: Any = getattr(_core, row["class"])
    read = owner.from_foreign if is_data else owner.open_foreign
    if row["class"] == "ForeignStaticFilter":
        return read(source, name, key_type=chosen, max_bytes=max_bytes)
    if chosen not in {None, "bytes", "utf-8"}:
        raise ParameterError(f"key_type must be bytes in format {row['name']!r}, got {chosen!r}")
    return read(source, max_bytes=max_bytes)


def find_row(name: str | None) -> dict[str, Any] | None:
    """Return the row of a format; None for None and for a name without a row.

    >>> find_row("redisbloom")["class"]
    'ForeignScalableFilter'
    """
    return next((row for row in rows() if row["name"] == name), None)


def _find_name(name: str | None, order: str | None) -> str | None:
    """Return the name of the format with this order of bits."""
    if order is None:
        return name
    if order not in {"lsb", "msb"}:
        raise ParameterError(f"order must be 'lsb' or 'msb', got {order!r}")
    row = find_row(name)
    if row is None or not row["bare"]:
        raise ParameterError(f"order is for formats of bits alone, got format {name!r}")
    stem = row["name"].removesuffix("-msb")
    return f"{stem}-msb" if order == "msb" else stem
