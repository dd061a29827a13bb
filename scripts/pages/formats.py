"""The tables in docs/format.md: every variant with what its file holds, every tag, every section kind."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from scripts.pages.blocks import DOCS, replaced, table

import fullbloom
from fullbloom import _core

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "format.md"
GOLDEN = DOCS.parent / "tests" / "golden"
#: Index of the parameters of a whole whose parts stand at 0, 1, ...
WHOLE = 0xFFFF


def held(data: bytes) -> tuple[list[tuple[int, int]], list[int]]:
    """(tag, index) of the parameters and the kinds of the sections of a file."""
    parameters, sections = struct.unpack_from("<HH", data, 44)
    tables = 64 + 16 * parameters
    pairs = [struct.unpack_from("<HH", data, at) for at in range(64, tables, 16)]
    kinds = [struct.unpack_from("<I", data, tables + 32 * i)[0] for i in range(sections)]
    return pairs, kinds


def contents(row: dict[str, Any]) -> tuple[str, str]:
    """What the golden files of a row hold: tags in their order, kinds of sections."""
    choices = [f"{row['name']}-{layout}" for layout in row["layouts"]] or [row["name"]]
    pairs, kinds = held((GOLDEN / f"{choices[0]}.bloom").read_bytes())
    whole = [tag for tag, index in pairs if index == WHOLE]
    part = [tag for tag, index in pairs if index != WHOLE]
    tags = named("tag", part)
    if whole:
        tags = f"{named('tag', whole)} at 65535; a stage: {tags}"
    return tags, named("kind", kinds)


def named(room: str, numbers: list[int]) -> str:
    """Numbers by their names, each once."""
    names = {number: name.lower() for number, name, _ in _core.format_numbers()[room]}
    return " ".join(f"`{names[number]}`" for number in dict.fromkeys(numbers))


def tables() -> str:
    """The three tables."""
    rows = [[str(row["id"]), f"`{row['name']}`", *contents(row)] for row in fullbloom.variants()]
    numbers = _core.format_numbers()
    parts = {
        "Variants": table(["variant", "name", "parameters, in order", "sections"], rows),
        "Tags of parameters": table(["tag", "name", "meaning"], lines(numbers["tag"])),
        "Kinds of sections": table(["kind", "name", "meaning"], lines(numbers["kind"])),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def lines(numbers: list[tuple[int, str, str]]) -> list[list[str]]:
    """Numbers as rows, without the full stop."""
    return [[str(number), f"`{name.lower()}`", meaning.rstrip(".")] for number, name, meaning in numbers]


def pages() -> dict[Path, str]:
    """The page, as it ought to be."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replaced(text, tables()) or text}
