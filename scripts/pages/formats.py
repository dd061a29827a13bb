"""The tables in docs/format.md: every variant with its file's contents, every tag, every section kind."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from scripts.pages.blocks import DOCS, format_table, replace_block

import fullbloom
from fullbloom import _core

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "format.md"
GOLDEN = DOCS.parent / "tests" / "golden"
#: Index of the parameters of a whole; those of its parts have the indices 0, 1, ...
WHOLE = 0xFFFF


def read_tables(data: bytes) -> tuple[list[tuple[int, int]], list[int]]:
    """Return (tag, index) of the parameters, and the kinds of the sections, of a file."""
    parameters, sections = struct.unpack_from("<HH", data, 44)
    tables = 64 + 16 * parameters
    pairs = [struct.unpack_from("<HH", data, at) for at in range(64, tables, 16)]
    kinds = [struct.unpack_from("<I", data, tables + 32 * i)[0] for i in range(sections)]
    return pairs, kinds


def describe_file(row: dict[str, Any]) -> tuple[str, str]:
    """Return the contents of a row's golden files: tags in their order, kinds of sections."""
    choices = [f"{row['name']}-{layout}" for layout in row["layouts"]] or [row["name"]]
    pairs, kinds = read_tables((GOLDEN / f"{choices[0]}.bloom").read_bytes())
    whole = [tag for tag, index in pairs if index == WHOLE]
    part = [tag for tag, index in pairs if index != WHOLE]
    tags = format_names("tag", part)
    if whole:
        tags = f"{format_names('tag', whole)} at 65535; a stage: {tags}"
    return tags, format_names("kind", kinds)


def format_names(space: str, numbers: list[int]) -> str:
    """Return the names of the numbers, each once."""
    names = {number: name.lower() for number, name, _ in _core.format_numbers()[space]}
    return " ".join(f"`{names[number]}`" for number in dict.fromkeys(numbers))


def format_tables() -> str:
    """Return the three tables."""
    rows = [[str(row["id"]), f"`{row['name']}`", *describe_file(row)] for row in fullbloom.variants()]
    numbers = _core.format_numbers()
    parts = {
        "Variants": format_table(["variant", "name", "parameters, in order", "sections"], rows),
        "Tags of parameters": format_table(["tag", "name", "meaning"], format_numbers(numbers["tag"])),
        "Kinds of sections": format_table(["kind", "name", "meaning"], format_numbers(numbers["kind"])),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())


def format_numbers(numbers: list[tuple[int, str, str]]) -> list[list[str]]:
    """Return numbers as rows, without the full stop."""
    return [[str(number), f"`{name.lower()}`", meaning.rstrip(".")] for number, name, meaning in numbers]


def render_pages() -> dict[Path, str]:
    """Return the current text of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replace_block(text, format_tables()) or text}
