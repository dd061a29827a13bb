"""Kinds: the structures that --kind names, as the registry describes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from fullbloom import registry
from fullbloom.cli.failures import Refusal

#: Any filter whose ``add`` takes the key alone.
Filter = Any


@cache
def list_kinds() -> tuple[registry.Row, ...]:
    """Return the registry rows that --kind names: those whose ``add`` takes the key alone."""
    return tuple(row for row in registry.rows() if registry.is_open(row, "key"))


@cache
def list_static_kinds() -> tuple[registry.Row, ...]:
    """Return the registry rows of structures built from all their lines at once."""
    return tuple(row for row in registry.rows() if _is_static(row))


@cache
def list_two_set_kinds() -> tuple[registry.Row, ...]:
    """Return the registry rows of structures that separate two sets, and answer for their lines only."""
    return tuple(row for row in registry.rows() if registry.is_built(row, "included", "excluded"))


@cache
def list_maps() -> tuple[registry.Row, ...]:
    """Return the registry rows of structures built from lines with values."""
    return tuple(row for row in registry.rows() if registry.is_built(row, "key", "value"))


@cache
def list_built_at_once() -> tuple[registry.Row, ...]:
    """Return the registry rows of structures that take no lines once they are built."""
    return list_static_kinds() + list_two_set_kinds() + list_maps()


@cache
def list_windowed() -> tuple[registry.Row, ...]:
    """Return the rows of --kind that take --window: a window of lines or time."""
    return tuple(row for row in list_kinds() if _has_parameter(row, "window"))


def _is_static(row: registry.Row) -> bool:
    return registry.is_built(row, "key") and _has_parameter(row, "fpr")


def _has_parameter(row: registry.Row, wanted: str) -> bool:
    return any(name == wanted for name, _, _ in row["parameters"])


@dataclass(frozen=True)
class Kind:
    """A --kind as the registry describes it; without --kind, the plain filter."""

    #: None without --kind.
    name: str | None
    row: registry.Row
    #: Built from all its lines at once, from two sets of lines, or from lines with their values.
    is_static: bool
    is_two_set: bool
    is_map: bool
    is_plain: bool
    is_growing: bool
    is_forgetful: bool
    has_capacity: bool

    @property
    def is_built_at_once(self) -> bool:
        """Whether no line can be added once it is built."""
        return self.is_static or self.is_two_set or self.is_map


def find_kind(name: str | None) -> Kind:
    """Look a --kind up in the registry."""
    row = registry.find_by_role("plain") if name is None else registry.get_row(name)
    return Kind(
        name,
        row,
        is_static=_is_static(row),
        is_two_set=registry.is_built(row, "included", "excluded"),
        is_map=registry.is_built(row, "key", "value"),
        is_plain=row["role"] == "plain",
        is_growing=row["role"] == "growing",
        is_forgetful=registry.is_forgetful(row),
        has_capacity=_has_parameter(row, "capacity"),
    )


def get_row(seen: Filter) -> registry.Row:
    """Return the registry row of a filter; refuse one of another program, which has none."""
    row = registry.find_row(seen)
    if row is None:
        raise Refusal(
            f"cannot add or look up lines in a {type(seen).__name__}; use fullbloom info or convert, "
            "or Python for lookups"
        )
    return row


def is_forgetful(seen: Filter) -> bool:
    """Return whether a filter has false negatives, by design, for lines of long ago."""
    return registry.is_forgetful(get_row(seen))


def warn_of_forgetting(seen: Filter) -> str | None:
    """Return a warning about a filter that forgets lines by design, None for any other."""
    row = get_row(seen)
    if not registry.is_forgetful(row):
        return None
    return f"--kind {row['name']} forgets lines by design: one that was seen long ago passes as new"
