"""Types of keys that come to a filter which holds keys of other types only."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from fullbloom.errors import KeyDomainWarning

if TYPE_CHECKING:
    from fullbloom.cli.filters.kinds import Seen


def warn_of_types(held: str, seen: Seen) -> None:
    """Warn where ``seen``, which held keys of the types ``held``, got keys of others: all were new."""
    types = held.split(", ")
    if {"none", "unknown", "hashed"}.intersection(types):
        return
    came = [name for name in seen.key_domains.split(", ") if name not in types]
    if came:
        text = f"keys of type {', '.join(came)} were added to a filter that held keys of type {held} only"
        warnings.warn(f"{text}, so all of them were new", KeyDomainWarning, stacklevel=2)
