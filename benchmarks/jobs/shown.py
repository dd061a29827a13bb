"""What a page shows of a job: a sentence, a table and a picture, all from the figures of the record."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.model import number

Figures = dict[str, Any]


class Shown(NamedTuple):
    """The generated part of a page, and the headline that the index shows."""

    headline: str
    sentence: str
    columns: list[str]
    rows: list[list[str]]


def write_bytes(size: float) -> str:
    """Bytes in powers of a thousand, three digits."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{number(float(f'{size:.3g}'))} {unit}"
        size /= 1000
    return f"{number(float(f'{size:.3g}'))} GB"


def write_seconds(seconds: float) -> str:
    """A time with its unit, three digits."""
    for limit, unit, factor in ((1e-6, "ns", 1e9), (1e-3, "us", 1e6), (1.0, "ms", 1e3)):
        if seconds < limit:
            return f"{number(float(f'{seconds * factor:.3g}'))} {unit}"
    return f"{number(float(f'{seconds:.3g}'))} s"


def read_memory() -> int:
    """Bytes of this process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
