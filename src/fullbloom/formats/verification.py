"""How many of known members a filter finds: whether the rule that its caller named is that of its program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.errors import IncompatibleFilters, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fullbloom.keys import Key

__all__ = ["Verification", "require_members", "verify_members"]


@dataclass(frozen=True)
class Verification:
    """How many of known members a filter has under a rule; true if it has all of them."""

    #: Known members, and how many of them were found.
    asked: int
    found: int
    #: How many of them chance would find: any key is found with the present rate.
    by_chance: float

    def __bool__(self) -> bool:
        """Return whether all were found."""
        return self.found == self.asked

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.found:,} of {self.asked:,} known members, where chance finds {self.by_chance:.3g}"


def verify_members(seen: Any, keys: Iterable[Key]) -> Verification:
    """Return how many of ``keys``, known members, the filter ``seen`` finds; nothing is changed.

    >>> from fullbloom import ForeignFilter
    >>> seen = ForeignFilter("md5-double", 100)
    >>> seen.update(["ada", "alan"])
    >>> verification = verify_members(seen, ["ada", "alan"])
    >>> bool(verification), verification.found
    (True, 2)
    """
    marks: Any = seen.contains_many(keys)
    found = [bool(mark) for mark in (marks.to_pylist() if hasattr(marks, "to_pylist") else marks)]
    return Verification(len(found), sum(found), len(found) * seen.fpr())


def require_members(seen: Any, keys: Iterable[Key]) -> Verification:
    """As `verify_members`; raise IncompatibleFilters if a known member is not found."""
    verification = verify_members(seen, keys)
    if verification.asked == 0:
        raise ParameterError("verify must have keys that were added; it has none")
    if not verification:
        raise IncompatibleFilters(
            f"a filter of format {seen.format!r} with keys of type {seen.key_type!r} finds {verification}: "
            "its program has another rule, type of keys or order of bits, or the members are not in it; "
            "nothing was written"
        )
    return verification
