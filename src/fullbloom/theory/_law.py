"""Laws that the Rust core computes: the source of a filter's own rate and size."""

from __future__ import annotations

__all__ = ["evaluate_law"]


def evaluate_law(name: str, *numbers: float) -> float:
    """Return the value of the core's law ``name`` for ``numbers``, which the caller has checked."""
    from fullbloom import _core

    return _core.law(name, *numbers)
