"""The generated part of a page: it is between two marks, and people write the rest."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
START, END = "<!-- generated from the registry -->", "<!-- end -->"
BLOCK = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
WIDTH = 110


def replace_block(text: str, content: str) -> str | None:
    """Return the page with ``content`` between its marks; None if it has no marks."""
    block = f"{START}\n\n{content}\n\n{END}"
    return BLOCK.sub(lambda _: block, text, count=1) if BLOCK.search(text) else None


def wrap(text: str, indent: str = "") -> str:
    """Return the text in lines of the repository's width."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
