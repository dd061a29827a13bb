"""Kinds: the structures that --kind names, and what the registry says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fullbloom import registry

#: Any filter whose ``add`` takes the key alone.
Seen = Any


def kinds() -> list[registry.Row]:
    """Return the registry rows that --kind names: those whose ``add`` takes the key alone."""
    return [row for row in registry.rows() if "add" in row["capabilities"] and row["adds"] == "key"]


def static() -> list[registry.Row]:
    """Return the registry rows of what is made of all its lines at once, and takes none later."""
    return [row for row in registry.rows() if _is_static(row)]


def _is_static(row: registry.Row) -> bool:
    return bool(row["adds"] == "build") and _has_parameter(row, "fpr")


def _has_parameter(row: registry.Row, wanted: str) -> bool:
    return any(name == wanted for name, _, _ in row["parameters"])


def is_static(kind: str | None) -> bool:
    """Return whether a --kind is built from all its lines at once."""
    return find_kind(kind).is_static


def worlds() -> list[registry.Row]:
    """Return the registry rows of what tells two sets apart and knows nothing of other lines."""
    return [row for row in registry.rows() if row["adds"] == "world"]


def maps() -> list[registry.Row]:
    """Return the registry rows of what is made of lines with their values."""
    return [row for row in registry.rows() if row["adds"] == "build_pairs"]


def made_at_once() -> list[registry.Row]:
    """Return the registry rows of all that takes no lines once it is made."""
    return static() + worlds() + maps()


def grows(kind: str | None) -> bool:
    """Return whether a --kind takes any number of lines."""
    return find_kind(kind).grows


@dataclass(frozen=True)
class Kind:
    """A --kind as the registry describes it; without --kind, the plain filter."""

    #: None without --kind.
    name: str | None
    row: registry.Row
    #: Built from all its lines at once, from two sets of lines, or from lines with their values.
    is_static: bool
    is_world: bool
    is_map: bool
    is_plain: bool
    grows: bool
    forgets: bool
    has_capacity: bool

    @property
    def is_built_at_once(self) -> bool:
        """Whether no line can be added once it is built."""
        return self.is_static or self.is_world or self.is_map


def find_kind(name: str | None) -> Kind:
    """Look a --kind up in the registry."""
    row = registry.find_by_role("plain") if name is None else registry.get_row(name)
    return Kind(
        name,
        row,
        is_static=_is_static(row),
        is_world=row["adds"] == "world",
        is_map=row["adds"] == "build_pairs",
        is_plain=row["role"] == "plain",
        grows=row["role"] == "growing",
        forgets=registry.is_forgetful(row),
        has_capacity=_has_parameter(row, "capacity"),
    )


def windowed() -> list[registry.Row]:
    """Return the rows of --kind that --window can be given to: those made with a window of lines or time."""
    return [row for row in kinds() if _has_parameter(row, "window")]


def row_of(seen: Seen) -> registry.Row:
    """Return the registry row of a filter."""
    return next(row for row in registry.rows() if registry.get_class(row) is type(seen))


def forgets(seen: Seen) -> bool:
    """Tell whether a filter has false negatives, by design, for lines of long ago."""
    return registry.is_forgetful(row_of(seen))


def warn_of_forgetting(seen: Seen) -> str | None:
    """Return a warning about a filter that forgets lines by design, None for any other."""
    row = row_of(seen)
    if not registry.is_forgetful(row):
        return None
    return f"--kind {row['name']} forgets lines by design: one that was seen long ago passes as new"
