"""New filters: sized by their keys or by a memory, of a kind, or growing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.shapes import in_memory, in_memory_for, quick_layout, require_rate
from fullbloom.cli.units import rate_text, size_text

if TYPE_CHECKING:
    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.options import FilterOptions
    from fullbloom.cli.window import Window


def sized(options: FilterOptions, capacity: int, fpr: float, *, quick: bool) -> Seen:
    """Return a filter for ``capacity`` keys; ``quick`` lets "auto" spend memory on speed."""
    if not options.structure.is_plain:
        return _of_kind(options, capacity, fpr)
    layout = options.layout
    if quick and layout == "auto":
        layout = quick_layout(capacity, fpr)
    return registry.get_class(options.structure.row)(capacity, fpr, layout=layout, **options.hash_keywords)


def windowed(options: FilterOptions, window: Window, expected: int, fpr: float) -> Seen:
    """Return a filter that remembers for ``window``; in one of time ``expected`` lines come."""
    if window.lines is not None:
        return _of_kind(options, window.lines, fpr)
    return _of_kind(options, expected, fpr, window=window.seconds)


def growing(options: FilterOptions, first: int, fpr: float, *, quick: bool) -> Seen:
    """Return a filter that grows from ``first`` keys on; its first stage gets half of the rate."""
    require_rate(fpr, first, 2)
    layout = options.layout
    if quick and layout == "auto":
        layout = quick_layout(first, fpr / 2)
    made = registry.get_class(registry.find_by_role("growing"))
    return made(first, fpr, layout=layout, growth=4.0, **options.hash_keywords)


def within(options: FilterOptions, nbytes: int, fpr: float) -> Seen:
    """Return a filter of at most ``nbytes``: for --expected lines, or for as many as it can hold."""
    if not options.structure.is_plain:
        return _of_kind_within(options, nbytes, fpr)
    if options.expected is not None:
        return in_memory_for(options, nbytes, options.expected, fpr)
    return in_memory(options, nbytes, fpr)


def _of_kind(options: FilterOptions, capacity: int, fpr: float, **parameters: Any) -> Seen:
    """Return an empty filter of --kind; one that has no layouts, or not this one, is refused."""
    row = options.structure.row
    parameters = {**parameters, **options.hash_keywords}
    if options.layout != "auto":
        if options.layout not in row["layouts"]:
            has = ", ".join(row["layouts"]) or "none to choose"
            raise Refusal(f"--kind {options.kind} has no layout {options.layout}; it has {has}")
        parameters["layout"] = options.layout
    return registry.get_class(row)(capacity, fpr, **parameters)


def _of_kind_within(options: FilterOptions, nbytes: int, fpr: float) -> Seen:
    from fullbloom.plan import most_items

    row = options.structure.row
    most = most_items(row, fpr, nbytes)
    if most < (options.expected or 1):
        raise Refusal(
            f"--kind {options.kind} at fpr {rate_text(fpr)} holds {most:,} lines in --memory "
            f"{size_text(options.memory or nbytes)}; raise --memory or --fpr"
        )
    return _of_kind(options, options.expected or most, fpr, **row["fixed"])
