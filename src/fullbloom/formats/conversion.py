"""Conversion between formats, where the bits allow it."""

from __future__ import annotations

from typing import Any

from fullbloom import _core, registry
from fullbloom.errors import IncompatibleFilters, ParameterError

#: The name of fullbloom's own container among formats.
OWN = "fullbloom"
#: What makes the bits of a plain filter those of a format: its layout has this property, its hash this name.
_SHARED = {"parquet": "xxh64"}
#: Classes whose filters become no other format.
_WHOLE = (_core.ForeignScalableFilter, _core.ForeignCuckooFilter, _core.ForeignStaticFilter)


def convert(found: Any, to: str) -> bytes:
    """Return the bytes of the filter ``found`` in the format ``to``, or in a container for "fullbloom".

    found: a filter of another program, or one of fullbloom's own. Raises ``IncompatibleFilters``
    where a key sets other bits in the one than in the other: the message says which bits, and which hash.

    >>> from fullbloom import ForeignFilter
    >>> convert(ForeignFilter.with_shape("spark-v1", 64, 4), "spark-v1").hex()
    '0000000100000004000000010000000000000000'
    """
    known = [row["name"] for row in _core.foreign_formats()]
    if to not in {*known, OWN}:
        raise ParameterError(f"to must be one of {', '.join([OWN, *known])}, got {to!r}")
    if to == OWN:
        return bytes(found.to_bytes())
    if isinstance(found, _core.ForeignFilter) and _class_of(to) == "ForeignFilter":
        return found.convert(to).to_foreign()
    if isinstance(found, _WHOLE) and found.format == to:
        return found.to_foreign()
    return _convert_own(found, to)


def _class_of(name: str) -> str:
    return str(next(row["class"] for row in _core.foreign_formats() if row["name"] == name))


def _describe_rule(found: Any) -> str:
    """Return how a key sets the bits of a filter."""
    if hasattr(found, "rule"):
        return f"{found.rule} (format {found.format})"
    info = found.info()
    layout = info.get("layout")
    own = f"layout {layout}, scheme {info.get('scheme')}, " if layout else ""
    return f"{own}hash {info.get('hash', 'xxh3')}, seed {found.seed}"


def _convert_own(found: Any, to: str) -> bytes:
    info = found.info()
    alike = (
        not hasattr(found, "rule")
        and _SHARED.get(to) == info.get("hash", "xxh3")
        and info.get("layout") in registry.layouts(to)
        and found.seed == 0
        and not found.keyed
        and found.key_domains in {"text", "none"}
    )
    if not alike:
        rule = next(row["rule"] for row in _core.foreign_formats() if row["name"] == to)
        raise IncompatibleFilters(
            f"a {type(found).__name__} cannot become a filter of format {to!r}: its keys set bits by "
            f"{_describe_rule(found)}, the other's by {rule}, and a filter does not contain its keys; "
            "add them to a new one"
        )
    target = _core.ForeignFilter.with_shape(to, found.num_bits, found.num_hashes, key_type="bytes")
    head = target.to_foreign()[: -target.nbytes]
    return head + bytes(memoryview(found))[: target.nbytes]
