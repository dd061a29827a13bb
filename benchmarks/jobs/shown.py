"""What a page shows of a job: a sentence, a table and a picture, all from the figures of the record."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any, NamedTuple

Figures = dict[str, Any]


class Shown(NamedTuple):
    """The generated part of a page, and the headline that the index shows."""

    headline: str
    sentence: str
    columns: list[str]
    rows: list[list[str]]


def read_memory() -> int:
    """Bytes of this process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
