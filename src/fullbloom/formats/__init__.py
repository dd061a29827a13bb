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
>>> old = open_foreign(bits, "sha256-seeded", num_bits=128, num_hashes=7, verify=["alice", "bob"])
>>> old.contains_many(["alice", "bob", "carol"])
[True, True, False]
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from fullbloom import _core
from fullbloom.errors import ParameterError
from fullbloom.formats.verification import Verification, require_members, verify_members

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from fullbloom.keys import Key

__all__ = ["Verification", "detect", "find_row", "open_foreign", "rows", "verify_members"]


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Return one dict per format: name, title, rule, types of keys, how it was verified, and its limits.

    "class" is the class of its filters, "program" the program whose formats it belongs to, "needs" the
    arguments beside the format without which its bytes cannot be read, "order" states whether the first bit
    of a byte is the lowest ("lsb") or the highest ("msb"), and "twin" is the format of the same bits in the
    other order.

    >>> [row["name"] for row in rows()][:5]
    ['spark', 'spark-v1', 'guava', 'guava-32', 'parquet']
    >>> [row["name"] for row in rows() if row["twin"] and row["order"] == "lsb"][:3]
    ['fnv1a-go', 'fnv1a-go-32', 'fnv1a-java']
    >>> find_row("bip158")["needs"]
    ['block_hash']
    """
    return tuple(_core.foreign_formats())


def detect(source: bytes | bytearray | memoryview | str | os.PathLike[str]) -> str | None:
    """Return the name of the format of bytes or of a file; None if they fit none, as a fullbloom file.

    Reads 64 KiB at most. Bits alone fit none. Raises OSError.

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
    block_hash: bytes | None = None,
    verify: Iterable[Key] | None = None,
    max_bytes: int | None = None,
) -> Any:
    """Return the filter in bytes or in a file that another program wrote: an object of the row's class.

    source: the bytes, or a path; a file is read once. format: the name of a row; detected if it is None,
    since the lengths that such bytes state fit in one format at most. key_type, or funnel, as Guava calls it:
    the type of the keys, required where the format does not record it. num_bits, num_hashes: m and k of bits
    alone, whose rule is the format. order: "msb" if the first bit of a byte is its highest one, as in Redis;
    such formats have names that end in "-msb". block_hash: the 32 bytes of the hash of the block of a BIP 158
    filter, in the order of the network protocol. max_bytes: a larger filter is refused.

    verify: keys that are known members. Raises IncompatibleFilters unless all are found; the message says how
    many were, and how many chance finds. A wrong rule, type of keys or order finds about as many as chance.

    Raises FormatError, which names format and field, ParameterError, OSError, FilterMemoryError.

    >>> open_foreign(bytes.fromhex("01050000000220100200088402040002404820c0a103"), funnel="utf-8")
    ForeignFilter("guava", key_type="bytes": 128 bits, 5 hashes, 15.6 % full)
    >>> from fullbloom import ForeignScalableFilter
    >>> open_foreign(ForeignScalableFilter(100).to_foreign())
    ForeignScalableFilter(0 keys, 144 bytes, 1 stages)
    """
    if key_type is not None and funnel is not None and key_type != funnel:
        raise ParameterError(f"key_type and funnel are one parameter, got {key_type!r} and {funnel!r}")
    found: Any = _core.open_foreign(
        source,
        format,
        key_type=funnel if key_type is None else key_type,
        num_bits=num_bits,
        num_hashes=num_hashes,
        order=order,
        block_hash=block_hash,
        max_bytes=max_bytes,
    )
    if verify is not None:
        require_members(found, verify)
    return found


def find_row(name: str | None) -> dict[str, Any]:
    """Return the row of a format. Raises ParameterError if no format has this name.

    >>> find_row("redisbloom")["class"]
    'ForeignScalableFilter'
    """
    for row in rows():
        if row["name"] == name:
            return row
    raise ParameterError(f"format must be one of {', '.join(row['name'] for row in rows())}, got {name!r}")
