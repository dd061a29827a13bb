"""The part of a page that a script writes: it stands between two marks, the rest belongs to people."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
START, END = "<!-- generated from the registry -->", "<!-- end -->"
BLOCK = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
WIDTH = 110


def replaced(text: str, content: str) -> str | None:
    """The page with ``content`` between its marks; None when it has no marks."""
    block = f"{START}\n\n{content}\n\n{END}"
    return BLOCK.sub(lambda _: block, text, count=1) if BLOCK.search(text) else None


def wrapped(text: str, indent: str = "") -> str:
    """Text in lines of the repository's width."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
