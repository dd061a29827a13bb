"""Inputs of ``foreign`` that derive from the table of formats: a small filter of each that is written.

``python fuzz/seeds.py`` adds those that are missing to ``corpus/foreign.txt``, beside inputs of formats that
are read only.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from fullbloom import _core

KEPT = Path(__file__).parent / "corpus" / "foreign.txt"
#: The hash of the block of every filter that has one, as the target has it.
BLOCK_HASH = bytes([7]) * 32
#: Bits and hashes of bits alone.
NUM_BITS, NUM_HASHES = 576, 3


def create_keys(key_type: str) -> list[Any]:
    """Return keys of a type."""
    if key_type in {"long", "int", "hash", "uint64"}:
        return list(range(9))
    if key_type in {"float", "double"}:
        return [number / 4 for number in range(9)]
    return [f"key {number}" for number in range(9)]


def create_filter(row: dict[str, Any]) -> Any:
    """Return a small filter of a format."""
    owner, key_type = getattr(_core, row["class"]), row["key_types"][0]
    if hasattr(owner, "build"):
        block_hash = BLOCK_HASH if "block_hash" in row["needs"] else None
        return owner.build(row["name"], create_keys(key_type), key_type=key_type, block_hash=block_hash)
    if hasattr(owner, "with_shape"):
        fixed = row["name"] == "ethereum"
        shape = (2048, 3) if fixed else (768, 8) if row["name"] == "parquet" else (NUM_BITS, NUM_HASHES)
        made = owner.with_shape(row["name"], *shape, key_type=key_type)
    else:
        made = owner(4)
    made.update(create_keys(key_type))
    return made


def create_seeds() -> dict[str, bytes]:
    """Return an input for each format that is written, by its name."""
    rows = _core.foreign_formats()
    bare = [row["name"] for row in rows if "num_bits" in row["needs"]]
    seeds = {}
    for row in rows:
        if row["written"]:
            data = create_filter(row).to_foreign()
            # The target reads bits alone behind three bytes: bits that are missing, hashes, and the rule.
            head = bytes([0, NUM_HASHES, bare.index(row["name"])]) if row["name"] in bare else b""
            seeds[row["name"]] = head + data
    return seeds


def main() -> None:
    """Add the inputs that are missing."""
    lines = KEPT.read_text(encoding="ascii").splitlines()
    lines += [base64.b64encode(data).decode("ascii") for data in create_seeds().values()]
    KEPT.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)), encoding="ascii")


if __name__ == "__main__":
    main()
