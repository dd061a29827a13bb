"""Kinds: the structures that --kind names, and what the registry says of them."""

from __future__ import annotations

from typing import Any

from fullbloom import registry

#: Any filter whose ``add`` takes the key alone.
Seen = Any

#: The note on stderr about such a --kind.
FORGETS = "--kind {} forgets lines by design: one that was seen long ago passes as new"


def kinds() -> list[registry.Row]:
    """Return the registry rows that --kind names: those whose ``add`` takes the key alone."""
    return [row for row in registry.rows() if "add" in row["capabilities"] and row["adds"] == "key"]


def static() -> list[registry.Row]:
    """Return the registry rows of what is made of all its lines at once, and takes none later."""
    return [row for row in registry.rows() if row["adds"] == "build" and _rated(row)]


def _rated(row: registry.Row) -> bool:
    return any(name == "fpr" for name, _, _ in row["parameters"])


def is_static(kind: str | None) -> bool:
    """Tell whether a --kind is made of all its lines at once."""
    return kind is not None and registry.row_named(kind) in static()


def worlds() -> list[registry.Row]:
    """Return the registry rows of what tells two sets apart and knows nothing of other lines."""
    return [row for row in registry.rows() if row["adds"] == "world"]


def is_world(kind: str | None) -> bool:
    """Tell whether a --kind is made of two sets of lines."""
    return kind is not None and registry.row_named(kind) in worlds()


def maps() -> list[registry.Row]:
    """Return the registry rows of what is made of lines with their values."""
    return [row for row in registry.rows() if row["adds"] == "build_pairs"]


def is_map(kind: str | None) -> bool:
    """Tell whether a --kind is made of lines with their values."""
    return kind is not None and registry.row_named(kind) in maps()


def made_at_once() -> list[registry.Row]:
    """Return the registry rows of all that takes no lines once it is made."""
    return static() + worlds() + maps()


def is_plain(kind: str | None) -> bool:
    """Tell whether a --kind is what a known size gets anyhow."""
    return kind is None or registry.row_named(kind)["role"] == "plain"


def grows(kind: str | None) -> bool:
    """Tell whether a --kind takes any number of lines."""
    return kind is not None and registry.row_named(kind)["role"] == "growing"


def windowed() -> list[registry.Row]:
    """Return the rows of --kind that --window can be given to: those made with a window of lines or time."""
    return [row for row in kinds() if any(name == "window" for name, _, _ in row["parameters"])]


def row_of(seen: Seen) -> registry.Row:
    """Return the registry row of a filter."""
    return next(row for row in registry.rows() if registry.class_of(row) is type(seen))


def forgets(seen: Seen) -> bool:
    """Tell whether a filter has false negatives, by design, for lines of long ago."""
    return registry.forgets(row_of(seen))
