"""A small filter of each format of the table, the bytes that its program would write, and what opens them."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

from fullbloom import ForeignFilter
from fullbloom.formats import find_row

_FILE = Path(__file__).parents[3] / "fuzz" / "seeds.py"


def _load_seeds() -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_seeds", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: The inputs of the fuzz target, which derive from the table.
seeds = _load_seeds()


def create(name: str) -> Any:
    """Return a small filter of a format with some keys."""
    return seeds.create_filter(find_row(name))


def keys_of(name: str) -> list[Any]:
    """Return those keys."""
    keys: list[Any] = seeds.create_keys(find_row(name)["key_types"][0])
    return keys


def arguments_of(found: Any) -> dict[str, Any]:
    """Return what must be said beside the bytes of a filter to open them."""
    row = find_row(found.format)
    arguments: dict[str, Any] = {}
    if not row["detected"]:
        arguments["format"] = row["name"]
    if len(row["key_types"]) > 1:
        arguments["key_type"] = found.key_type
    known = {"block_hash": seeds.BLOCK_HASH} | {
        name: getattr(found, name, None) for name in ("num_bits", "num_hashes")
    }
    return arguments | {name: known[name] for name in row["needs"]}


def bytes_of(found: Any) -> bytes:
    """Return the bytes of a filter as its program writes them, also of formats that are read only."""
    if find_row(found.format)["written"]:
        return bytes(found.to_foreign())
    return unwritten(found)


def unwritten(found: ForeignFilter) -> bytes:
    """Return the bytes of a format that is read only, with numbers of our own where a filter has none."""
    bits, num_hashes = bytes(memoryview(found)), found.num_hashes
    if found.format == "pybloom-live":
        return struct.pack("<dQQQQ", 0.1, num_hashes, found.num_bits // num_hashes, 100, 5) + bits
    if found.format == "pybloomfiltermmap3":
        head = struct.pack("<9sQiQdI", b"MBITARRAY", found.num_bits, 1200, 100, 0.1, num_hashes)
        return head.ljust(1077, b"\0") + b"\x01" + bytes(202) + bits
    # 10 elements at 1 % take 96 bits.
    return bits + struct.pack("<QQf", 10, 5, 0.01)
