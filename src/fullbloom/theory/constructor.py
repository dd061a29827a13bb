"""Size and rate of each layout as the constructors choose them, computed by the Rust core.

Only Rust chooses m and k; these functions call it, so that a plan, a page or a test sees exactly the numbers
a filter will have. The layouts are "classic", "blocked", "split", "partitioned" and "two-block". ``rates.py``
and ``layouts.py`` implement their laws a second time, independently and more exactly, and tests compare the
two.
"""

from __future__ import annotations

from typing import NamedTuple

from ._vector import vectorize


def evaluate_law(name: str, *numbers: float) -> float:
    """Return the value of the core's law ``name`` for ``numbers``, which the caller has checked."""
    from fullbloom import _core

    return _core.law(name, *numbers)


class Size(NamedTuple):
    """The size of a filter: bits of the whole array, and hashes (probes) per key."""

    num_bits: int
    num_hashes: int


@vectorize
def size_for(layout: str, capacity: int, fpr: float, scheme: str | None = None) -> Size:
    """Return the bits and hashes that a constructor picks for ``capacity`` keys at rate ``fpr``.

    The filter keeps the rate at capacity by the layout's own law, for the whole k it uses and for the bits it
    really allocates (whole blocks); ``scheme`` defaults to the layout's own (docs/schemes.md). Raises
    ``ParameterError`` for an unknown layout or scheme, a capacity below 1, or a rate outside (0, 1) or below
    the least that the layout reaches. Takes microseconds and allocates nothing.

    Source: Bloom 1970 for "classic" and "partitioned"; Putze, Sanders and Singler 2009 for the idea of the
    other two.

    >>> from fullbloom import theory
    >>> size = theory.size_for("classic", capacity=1_000_000, fpr=0.01)
    >>> theory.fpr_at("classic", *size, items=1_000_000) <= 0.01
    True
    """
    from fullbloom import _core

    return Size(*_core.size_for(layout, capacity, fpr, scheme))


@vectorize
def fpr_at(layout: str, num_bits: int, num_hashes: int, items: float, scheme: str | None = None) -> float:
    """Return the rate of a filter of this size holding ``items`` keys: the mean over all filters.

    Exact for ideal hashing, with a relative error below 1e-9; the method ``fpr()`` uses the fill of its own
    filter instead. Between whole numbers of keys it is interpolated. ``scheme``: double hashing and its
    variants have an excess, a sum over degenerate keys and over keys with overlapping probe sequences, which
    is accurate to 6 % (docs/schemes.md). Raises ``ParameterError`` for an unknown layout or scheme, a size
    the layout cannot have, or items below 0. Takes microseconds.

    Source: as in :func:`size_for`; for schemes after Dillinger and Manolios, "Bloom filters in probabilistic
    verification", 2004.

    >>> from fullbloom import theory
    >>> round(theory.fpr_at("classic", num_bits=10_000_000, num_hashes=7, items=1_000_000), 6)
    0.008194
    >>> ideal = theory.fpr_at("classic", num_bits=2000, num_hashes=14, items=100)
    >>> round(theory.fpr_at("classic", 2000, 14, 100, scheme="double") / ideal, 1)
    11.0
    """
    from fullbloom import _core

    return _core.fpr_at(layout, num_bits, num_hashes, items, scheme)


@vectorize
def capacity_at(layout: str, num_bits: int, num_hashes: int, fpr: float, scheme: str | None = None) -> int:
    """Return the most keys a filter of this size holds at rate ``fpr``: the inverse of :func:`fpr_at`.

    Raises ``ParameterError`` for an unknown layout, a size the layout cannot have, or a rate outside (0, 1).
    Takes microseconds.

    Source: as in :func:`size_for`.

    >>> from fullbloom import theory
    >>> keys = theory.capacity_at("classic", num_bits=10_000_000, num_hashes=7, fpr=0.01)
    >>> theory.fpr_at("classic", 10_000_000, 7, items=keys) <= 0.01
    True
    """
    from fullbloom import _core

    return _core.capacity_at(layout, num_bits, num_hashes, fpr, scheme)
