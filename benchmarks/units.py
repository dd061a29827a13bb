"""Figures of pages with their units, in three digits."""

from __future__ import annotations

from benchmarks.model import number

_BYTES = ("B", "kB", "MB", "GB", "TB")
_SECONDS = ((1e-6, "ns", 1e9), (1e-3, "us", 1e6), (1.0, "ms", 1e3))


def write_bytes(size: float) -> str:
    """Bytes in powers of a thousand."""
    for unit in _BYTES:
        if size < 999.5 or unit == _BYTES[-1]:
            break
        size /= 1000
    return f"{number(float(f'{size:.3g}'))} {unit}"


def write_seconds(seconds: float) -> str:
    """A time."""
    for limit, unit, factor in _SECONDS:
        if seconds < limit:
            return f"{number(float(f'{seconds * factor:.3g}'))} {unit}"
    return f"{number(float(f'{seconds:.3g}'))} s"
