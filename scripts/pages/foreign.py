"""The table in docs/formats.md: every format of other programs.

A rule of bits alone has two formats, one for each order of the bits; the table has a row for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.pages.blocks import DOCS, format_table, replace_block

from fullbloom.formats import rows

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "formats.md"
HEAD = ["format", "program", "key types", "a key sets", "read", "write", "verified", "limits"]


def render_pages() -> dict[Path, str]:
    """Return the current text of the page."""
    cells = [
        [
            f"`{row['name']}`" + (f", `{row['twin']}`" if row["twin"] else ""),
            row["title"],
            ", ".join(f"`{name}`" for name in row["key_types"]),
            row["rule"],
            "yes",
            "yes" if row["written"] else "-",
            row["verified"],
            row["limits"],
        ]
        for row in rows()
        if row["order"] == "lsb"
    ]
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replace_block(text, format_table(HEAD, cells)) or text}
