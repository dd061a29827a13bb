"""Examples of pages that need an engine: the ``text`` blocks that begin with ``>>>``, run in order."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```text\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(name, names):
    """The reports of failed examples of a page, and how many examples it has."""
    text = (DOCS / name).read_text(encoding="utf-8")
    source = "\n".join(match[1] for match in _BLOCK.finditer(text))
    case = doctest.DocTestParser().get_doctest(source, {}, name, name, 0)
    case.globs = names
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=_OPTIONS).run(case, out=report.append, clear_globs=False)
    return "".join(report), len(case.examples)
