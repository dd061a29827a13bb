"""Parts of pages that a benchmark writes: `<!-- NAME begin -->`, what was measured, `<!-- NAME end -->`."""

from __future__ import annotations

import re


def _find(text: str, name: str) -> re.Match[str]:
    begin, end = re.escape(f"<!-- {name} begin -->"), re.escape(f"<!-- {name} end -->")
    found = re.search(rf"{begin}\n(.*?)\n?({end})", text, re.DOTALL)
    if found is None:
        raise ValueError(f"the page has no marks of the block {name!r}")
    return found


def replace_block(text: str, name: str, content: str) -> str:
    """The page with ``content`` between the marks of ``name``; raises ValueError without marks."""
    found = _find(text, name)
    return f"{text[: found.start(1)]}{content}\n{text[found.start(2) :]}"


def read_block(text: str, name: str) -> str:
    """What is between the marks of ``name``."""
    return _find(text, name)[1]
