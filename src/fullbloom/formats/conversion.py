"""Conversion between formats, where the bits allow it."""

from __future__ import annotations

from typing import Any

from fullbloom import _core, registry
from fullbloom.errors import IncompatibleFilters, ParameterError

#: The name of fullbloom's own container among formats.
OWN = "fullbloom"
#: What makes the bits of a plain filter those of a format: its layout has this property, its hash this name.
_SHARED = {"parquet": "xxh64"}


def convert(found: Any, to: str) -> bytes:
    """Return the bytes of the filter ``found`` in the format ``to``, or in a container for "fullbloom".

    found: a :class:`~fullbloom.ForeignFilter`, or a filter of fullbloom's own. Raises ``IncompatibleFilters``
    where a key sets other bits in the one than in the other: the message says which bits, and which hash.

    >>> from fullbloom import ForeignFilter
    >>> convert(ForeignFilter.with_shape("spark-v1", 64, 4), "spark-v1").hex()
    '0000000100000004000000010000000000000000'
    """
    rows = _core.foreign_formats()
    known = [row["name"] for row in rows]
    if to not in {*known, OWN}:
        raise ParameterError(f"to must be one of {', '.join([OWN, *known])}, got {to!r}")
    if to == OWN:
        return bytes(found.to_bytes())
    is_static = any(row["name"] == to and row["class"] == "ForeignStaticFilter" for row in rows)
    if isinstance(found, _core.ForeignStaticFilter) or (is_static and isinstance(found, _core.ForeignFilter)):
        return _convert_static(found, to)
    if isinstance(found, _core.ForeignFilter):
        return found.convert(to).to_foreign()
    return _convert_own(found, to)


def _convert_static(found: _core.ForeignFilter | _core.ForeignStaticFilter, to: str) -> bytes:
    """Return the bytes of ``found``, where it or the format ``to`` is static."""
    if found.format != to:
        raise IncompatibleFilters(
            f"a filter of format {found.format!r} cannot become one of {to!r}: its cells are those of "
            f"{found.rule}, and a filter does not contain its keys; build a new one of them"
        )
    return found.to_foreign()


def _convert_own(found: Any, to: str) -> bytes:
    info = found.info()
    layout, hash_name = info.get("layout"), info.get("hash", "xxh3")
    alike = (
        _SHARED.get(to) == hash_name
        and layout in registry.layouts(to)
        and found.seed == 0
        and not found.keyed
        and found.key_domains in {"text", "none"}
    )
    if not alike:
        rule = next(row["rule"] for row in _core.foreign_formats() if row["name"] == to)
        own = f"layout {layout}, scheme {info.get('scheme')}, " if layout else ""
        raise IncompatibleFilters(
            f"a {type(found).__name__} cannot become a filter of format {to!r}: its keys set bits by {own}"
            f"hash {hash_name}, seed {found.seed}, the other's by {rule}, and a filter does not contain its "
            "keys; add them to a new one"
        )
    target = _core.ForeignFilter.with_shape(to, found.num_bits, found.num_hashes, key_type="bytes")
    head = target.to_foreign()[: -target.nbytes]
    return head + bytes(memoryview(found))[: target.nbytes]
