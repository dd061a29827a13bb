"""The table of functions in docs/theory.md: every public name of fullbloom.theory, by the file it is in."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from scripts.pages.blocks import DOCS, replaced, table

from fullbloom import theory

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "theory.md"


def rooms() -> dict[str, str]:
    """What each file of the package holds, as its docstring says."""
    return dict(re.findall(r"^- ``(\w+)``: (.+)$", inspect.getdoc(theory) or "", re.MULTILINE))


def summary(name: str) -> str:
    """The first sentence of a function's docstring, fit for a cell."""
    text = " ".join((inspect.getdoc(getattr(theory, name)) or "").partition("\n\n")[0].split())
    text = re.sub(r":func:`([\w.]+)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<=[a-z)`\]])\. ", text, maxsplit=1)[0].rstrip(".").removeprefix("Return ")


def functions() -> str:
    """One table a file, in the order of the package's docstring."""
    parts = []
    for room, about in rooms().items():
        names = [n for n in theory.__all__ if getattr(theory, n).__module__ == f"fullbloom.theory.{room}"]
        rows = [[f"`{name}`", summary(name)] for name in names if inspect.isfunction(getattr(theory, name))]
        if rows:
            parts.append(f"### {about[0].upper()}{about[1:]}\n\n{table(['function', 'what it gives'], rows)}")
    return "\n\n".join(parts)


def pages() -> dict[Path, str]:
    """The page, as it ought to be."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: replaced(text, functions()) or text}
