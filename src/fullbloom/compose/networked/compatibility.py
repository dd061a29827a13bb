"""Whether the filters of two elements can be merged."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from fullbloom.errors import IncompatibleFilters

__all__ = ["check_alike", "convert"]

F = TypeVar("F")


def check_alike(own: Any, other: Any) -> None:
    """Raise ``IncompatibleFilters`` unless ``other`` could be merged into ``own``, which is not changed."""
    convert(own, other)


def convert(own: F, other: object) -> F:
    """Return a filter of the keys of ``other`` with the parameters of ``own``, which is not changed.

    Filters that can be merged may differ in capacity and strictness, so a filter that a peer sent must not
    store the keys of this element. Raises ``IncompatibleFilters`` if they cannot be merged.
    """
    scratch = cast("Any", own).copy()
    # Without the keys of ``own``: a table that got those of ``other`` besides might not have space for both.
    # A static set cannot be cleared: the result is the union of both.
    if hasattr(scratch, "clear"):
        scratch.clear()
    try:
        scratch.merge(other)
    except (AttributeError, TypeError) as error:
        raise IncompatibleFilters(
            f"a {type(other).__name__} cannot be combined with a {type(own).__name__}"
        ) from error
    return cast("F", scratch)
