"""Is this user name taken? Most names that people try are free, and need no query.

>>> check = NameCheck(["ada", "grace"], is_taken={"ada", "grace"}.__contains__)
>>> check.is_free("Ada"), check.is_free("edsger"), check.queries
(False, True, 1)
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from fullbloom import ScalableBloomFilter
from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["NameCheck", "normalize"]

#: Characters of a name.
_LENGTH = 256


def normalize(name: str) -> str:
    """Return the form in which names are compared: compatible characters, case folded, no outer spaces.

    Raises ``ParameterError`` for an empty name, or above 256 characters.

    >>> normalize(" \N{FULLWIDTH LATIN CAPITAL LETTER A}da ")
    'ada'
    """
    if len(name) > _LENGTH:
        raise ParameterError(f"a name may have at most {_LENGTH} characters, got {len(name)}")
    # Folding may undo the form, so it comes twice.
    result = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()
    if not result:
        raise ParameterError("a name must have a letter")
    return result


class NameCheck:
    """Answers whether names are free, with a query only for names that a filter finds.

    names: the names taken so far. is_taken: the query, with the normalized name. fpr: share of the free names
    that cost a query. The filter grows, and has a random secret, because names come from strangers.

    The answer is a hint for a form, as any such answer is: two people may choose a name at the same time. A
    unique index decides. A name that is released stays in the filter, and costs a query.
    """

    def __init__(self, names: Iterable[str], is_taken: Callable[[str], bool], *, fpr: float = 0.01) -> None:
        if isinstance(names, str):
            raise ParameterTypeError("names must be an iterable of names, got one str")
        self.is_taken = is_taken
        self.filter = ScalableBloomFilter(fpr=fpr, secret=True)
        self.filter.update([normalize(name) for name in names])
        #: Names checked, and queries.
        self.checks = self.queries = 0

    def is_free(self, name: str) -> bool:
        """Return whether ``name`` is free. Raises as `normalize`, and the errors of ``is_taken``."""
        normal = normalize(name)
        self.checks += 1
        if normal not in self.filter:
            return True
        self.queries += 1
        return not self.is_taken(normal)

    def add(self, name: str) -> None:
        """Add a name that somebody took; call it on every server."""
        self.filter.add(normalize(name))
