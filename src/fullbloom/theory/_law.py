"""Laws that the Rust core has, handed on: what a filter's own rate and size come from."""

from __future__ import annotations

__all__ = ["law"]


def law(name: str, *numbers: float) -> float:
    """Return the core's law of this name for these numbers, which the caller has checked."""
    from fullbloom import _core

    return _core.law(name, *numbers)
