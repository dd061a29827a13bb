"""New filters: sized by their keys or by a memory, of a kind, or growing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import is_plain
from fullbloom.cli.filters.secret import hashing
from fullbloom.cli.filters.shapes import in_memory, in_memory_for, quick_layout, require_rate
from fullbloom.cli.units import rate_text, size_text

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.window import Window


def sized(args: argparse.Namespace, capacity: int, fpr: float, *, quick: bool) -> Seen:
    """Return a filter for ``capacity`` keys; ``quick`` lets "auto" spend memory on speed."""
    if not is_plain(args.kind):
        return _of_kind(args, capacity, fpr)
    layout = args.layout
    if quick and layout == "auto":
        layout = quick_layout(capacity, fpr)
    return registry.class_of(registry.with_role("plain"))(capacity, fpr, layout=layout, **hashing(args))


def windowed(args: argparse.Namespace, window: Window, expected: int, fpr: float) -> Seen:
    """Return a filter that remembers for ``window``; in one of time ``expected`` lines come."""
    if window.lines is not None:
        return _of_kind(args, window.lines, fpr)
    return _of_kind(args, expected, fpr, window=window.seconds)


def growing(args: argparse.Namespace, first: int, fpr: float, *, quick: bool) -> Seen:
    """Return a filter that grows from ``first`` keys on; its first stage gets half of the rate."""
    require_rate(fpr, first, 2)
    layout = args.layout
    if quick and layout == "auto":
        layout = quick_layout(first, fpr / 2)
    made = registry.class_of(registry.with_role("growing"))
    return made(first, fpr, layout=layout, growth=4.0, **hashing(args))


def within(args: argparse.Namespace, nbytes: int, fpr: float) -> Seen:
    """Return a filter of at most ``nbytes``: for --expected lines, or for as many as it can hold."""
    if not is_plain(args.kind):
        return _of_kind_within(args, nbytes, fpr)
    if args.expected is not None:
        return in_memory_for(args, nbytes, args.expected, fpr)
    return in_memory(args, nbytes, fpr)


def _of_kind(args: argparse.Namespace, capacity: int, fpr: float, **options: Any) -> Seen:
    """Return an empty filter of --kind; one that has no layouts, or not this one, is refused."""
    row = registry.row_named(args.kind)
    options |= hashing(args)
    if args.layout != "auto":
        if args.layout not in row["layouts"]:
            has = ", ".join(row["layouts"]) or "none to choose"
            raise Refusal(f"--kind {args.kind} has no layout {args.layout}; it has {has}")
        options["layout"] = args.layout
    return registry.class_of(row)(capacity, fpr, **options)


def _of_kind_within(args: argparse.Namespace, nbytes: int, fpr: float) -> Seen:
    from fullbloom.plan import most_items

    row = registry.row_named(args.kind)
    most = most_items(row, fpr, nbytes)
    if most < (args.expected or 1):
        raise Refusal(
            f"--kind {args.kind} at fpr {rate_text(fpr)} holds {most:,} lines in --memory "
            f"{size_text(args.memory)}; raise --memory or --fpr"
        )
    return _of_kind(args, args.expected or most, fpr, **row["fixed"])
