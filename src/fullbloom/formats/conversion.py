"""Conversion between formats, where the bits allow it.

A filter does not contain its keys, so it becomes one of another format only if both place a key alike: the
two orders of bits alone, the flags of BIP 37, and what the rows of the table name as our own layout and hash.
"""

from __future__ import annotations

from typing import Any

from fullbloom import BloomFilter, ForeignFilter, _core
from fullbloom.errors import IncompatibleFilters, ParameterError
from fullbloom.formats import find_row, rows

#: The name of fullbloom's own container among formats.
OWN = "fullbloom"
#: The type of the keys that our own layouts share with other formats: texts are hashed without a domain.
_SHARED_TYPE = "bytes"


def list_targets() -> list[str]:
    """Return the names that :func:`convert` takes: fullbloom, our layouts, and the formats that are written.

    >>> list_targets()[:3]
    ['fullbloom', 'split', 'spark']
    """
    layouts = [row["own_layout"] for row in rows() if row["own_layout"]]
    return [OWN, *layouts, *(row["name"] for row in rows() if row["written"])]


def convert(found: Any, to: str) -> bytes:
    """Return the bytes of the filter ``found`` in the format ``to``.

    found: a filter of another program, or one of fullbloom's own. to: the name of a format; "fullbloom" for
    a container of fullbloom, whatever it holds; or one of our layouts that sets the bits of a format, as
    "split" does those of Parquet, for a container with a BloomFilter of that layout. Raises
    IncompatibleFilters where a key sets other bits in the one than in the other: the message says which bits,
    and which hash.

    >>> from fullbloom import ForeignFilter
    >>> convert(ForeignFilter.with_shape("spark-v1", 64, 4), "spark-v1").hex()
    '0000000100000004000000010000000000000000'
    """
    names = [
        OWN,
        *(row["own_layout"] for row in rows() if row["own_layout"]),
        *(row["name"] for row in rows()),
    ]
    if to not in names:
        raise ParameterError(f"to must be one of {', '.join(names)}, got {to!r}")
    if to == OWN:
        return bytes(found.to_bytes())
    layout = next((row for row in rows() if row["own_layout"] == to), None)
    if layout is not None:
        return bytes(_convert_to_own(found, layout).to_bytes())
    if hasattr(found, "to_foreign"):
        return bytes(_convert_foreign(found, to).to_foreign())
    return _convert_own(found, to)


def _convert_foreign(found: Any, to: str) -> Any:
    """Return a filter of another program as one of ``to``."""
    return found if found.format == to else found.convert(to)


def _describe_rule(found: Any) -> str:
    """Return how a key sets the bits of a filter."""
    if hasattr(found, "rule"):
        return f"{found.rule} (format {found.format}, keys of type {found.key_type})"
    info = found.info()
    layout = info.get("layout")
    own = f"layout {layout}, scheme {info.get('scheme')}, " if layout else ""
    return f"{own}hash {info.get('hash', 'xxh3')}, seed {found.seed}"


def _refuse(found: Any, to: str, rule: str) -> IncompatibleFilters:
    return IncompatibleFilters(
        f"a {type(found).__name__} cannot become a filter of format {to!r}: its keys set bits by "
        f"{_describe_rule(found)}, the other's by {rule}, and a filter does not contain its keys; "
        "add them to a new one"
    )


def _convert_own(found: Any, to: str) -> bytes:
    """Return the bytes of one of fullbloom's own filters in the format ``to``."""
    row = find_row(to)
    if not _is_alike(found, row):
        raise _refuse(found, to, row["rule"])
    target = ForeignFilter.with_shape(to, found.num_bits, found.num_hashes, key_type=_SHARED_TYPE)
    head = target.to_foreign()[: -target.nbytes]
    return head + bytes(memoryview(found))[: target.nbytes]


def _is_alike(found: Any, row: dict[str, Any]) -> bool:
    """Return whether one of fullbloom's own filters has the bits of the format ``row``."""
    info = found.info()
    return (
        info.get("hash", "xxh3") == row["own_hash"]
        and info.get("layout") == row["own_layout"]
        and found.seed == 0
        and not found.keyed
        and found.key_domains in {"text", "none"}
    )


def _convert_to_own(found: Any, row: dict[str, Any]) -> BloomFilter:
    """Return the BloomFilter of the layout of ``row`` with the bits of ``found``."""
    layout, base = row["own_layout"], row["own_hash"]
    if isinstance(found, BloomFilter):
        if _is_alike(found, row):
            return found
    elif getattr(found, "format", None) == row["name"] and found.key_type == _SHARED_TYPE:
        return _fill(found, layout, base)
    raise _refuse(found, layout, f"layout {layout}, hash {base}, seed 0, of texts and bytes alone")


def _fill(found: Any, layout: Any, base: Any) -> BloomFilter:
    """Return a BloomFilter with the bits of ``found``; its number of keys is estimated from them."""
    shape = BloomFilter.with_shape(found.num_bits, found.num_hashes, layout=layout, hash=base)
    cells = _core.WireCells(found.num_bits, found.num_hashes, layout=layout, hash=base)
    if shape.num_bits != found.num_bits:
        raise IncompatibleFilters(
            f"no BloomFilter of layout {layout} has {found.num_bits:,} bits; the next one has "
            f"{shape.num_bits:,}"
        )
    filled = cells.memory(shape.capacity, shape.target_fpr)
    cells.write(filled, 0, bytes(memoryview(found)))
    cells.recount(filled)
    return filled
