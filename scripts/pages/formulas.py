"""The table of functions in docs/theory.md: every public name of fullbloom.theory, by its module."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from scripts.pages.blocks import DOCS, format_table, replace_block

from fullbloom import theory

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "theory.md"


def list_modules() -> dict[str, str]:
    """Return the content of each module, from the package's docstring."""
    return dict(re.findall(r"^- ``(\w+)``: (.+)$", inspect.getdoc(theory) or "", re.MULTILINE))


def summarize(name: str) -> str:
    """Return the first sentence of a function's docstring, for a cell of a table."""
    text = " ".join((inspect.getdoc(getattr(theory, name)) or "").partition("\n\n")[0].split())
    text = re.sub(r":func:`([\w.]+)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<=[a-z)`\]])\. ", text, maxsplit=1)[0].rstrip(".").removeprefix("Return ")


def format_functions() -> str:
    """Return one table per module, in the order of the package's docstring."""
    parts = []
    for module, about in list_modules().items():
        names = [n for n in theory.__all__ if getattr(theory, n).__module__ == f"fullbloom.theory.{module}"]
        rows = [[f"`{name}`", summarize(name)] for name in names if inspect.isfunction(getattr(theory, name))]
        if rows:
            title = f"{about[0].upper()}{about[1:]}"
            parts.append(f"### {title}\n\n{format_table(['function', 'returns'], rows)}")
    return "\n\n".join(parts)


def render_pages() -> dict[Path, str]:
    """Return the current text of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replace_block(text, format_functions()) or text}
