"""Whether the filters of two elements can be merged."""

from __future__ import annotations

from typing import Any

from fullbloom.errors import IncompatibleFilters

__all__ = ["check_alike"]


def check_alike(own: Any, other: Any) -> None:
    """Raise ``IncompatibleFilters`` unless ``other`` could be merged into ``own``, which is not changed."""
    scratch = own.copy()
    # Without the keys of ``own``: a table that got those of ``other`` besides might not have space for both.
    # A static set cannot be cleared, but merging one twice changes nothing.
    if hasattr(scratch, "clear"):
        scratch.clear()
    try:
        scratch.merge(other)
    except (AttributeError, TypeError) as error:
        raise IncompatibleFilters(
            f"a {type(other).__name__} cannot be combined with a {type(own).__name__}"
        ) from error
