"""A filter replicated to all elements by exchange along the dimensions of a hypercube."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fullbloom.errors import FilterFull, FullbloomError, ParameterError, PeerError

from .compatibility import convert

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from .element import ProcessingElement

__all__ = ["Replicable", "replicate"]


class Replicable(Protocol):
    """A filter that can be sent and merged, such as `BloomFilter`."""

    def copy(self) -> Self:
        """Return a filter of the same keys."""

    def merge(self, other: Self, /) -> None:
        """Merge ``other`` into this filter."""

    def to_bytes(self) -> bytes:
        """Return the filter as bytes."""

    @staticmethod
    def from_bytes(data: bytes, *, secret: bytes | None = None, max_bytes: int | None = None) -> Any:
        """Return the filter in ``data``; raise ``FormatError`` for anything else."""


F = TypeVar("F", bound=Replicable)


def replicate(
    element: ProcessingElement, filter_: F, *, secret: bytes | None = None, max_bytes: int | None = None
) -> F:
    """Return the union of the filters of all elements, in each element; ``filter_`` is not changed.

    All elements call this function with filters of equal parameters. secret: that of a keyed filter, which
    its bytes do not contain. max_bytes: most bytes of cells of a filter that a peer sends; by default, only
    the length of its message limits them. In step i of log2(P), an element exchanges filters with the one
    whose rank differs in bit i, and merges; it then holds the keys of 2^(i+1) elements. If the number P of
    elements is not a power of two, those beyond the largest power send their filters to a partner first and
    receive the result at the end. Each filter is merged exactly once into each result, so counting filters
    and tables, which keep a copy of a key for each element that has it, add up, too.

    Sends P log2(P) filters in all for a power of two: `theory.replication_bits`. For a Bloom filter of more
    than a few kB, the header of some 200 bytes per message does not matter. Raises ``PeerError`` if a peer
    fails, or sends anything but a filter of the same parameters, ``FilterFull`` if the keys of all elements
    do not fit in one filter, ``ParameterError`` for a keyed filter without its secret.

    Source: Sanders, Schlag, Müller, "Communication efficient algorithms for fundamental big data problems",
    IEEE Big Data 2013.

    >>> from fullbloom import BloomFilter
    >>> from fullbloom.compose.networked import run_local
    >>> def job(element):
    ...     own = BloomFilter(1000)
    ...     own.update([f"key {element.rank}"])
    ...     everything = replicate(element, own)
    ...     return all(f"key {rank}" in everything for rank in range(element.size))
    >>> run_local(8, job)
    [True, True, True, True, True, True, True, True]
    """
    if getattr(filter_, "keyed", False) and secret is None:
        raise ParameterError("the filter has a secret; pass it as secret=")
    result, rank = filter_.copy(), element.rank
    options = {"secret": secret, "max_bytes": max_bytes}
    core = 1 << (element.size.bit_length() - 1)
    if rank >= core:
        element.send(rank - core, result.to_bytes())
        union = _receive(element, rank - core, result, options)
        # The union holds the own keys already: merged with them, a table would hold each twice.
        with _blame(rank - core):
            return convert(result, union)
    folded = rank + core < element.size
    if folded:
        _merge(element, rank + core, result, options)
    distance = 1
    while distance < core:
        element.send(rank ^ distance, result.to_bytes())
        _merge(element, rank ^ distance, result, options)
        distance *= 2
    if folded:
        element.send(rank + core, result.to_bytes())
    return result


def _merge(element: ProcessingElement, source: int, result: F, options: dict[str, Any]) -> None:
    """Merge the filter that ``source`` sends into ``result``."""
    other = _receive(element, source, result, options)
    with _blame(source):
        result.merge(other)


def _receive(element: ProcessingElement, source: int, result: F, options: dict[str, Any]) -> F:
    """Return the filter that ``source`` sends, of the class of ``result``."""
    message = element.receive(source)
    with _blame(source):
        other: F = type(result).from_bytes(message, **options)
    return other


@contextlib.contextmanager
def _blame(source: int) -> Iterator[None]:
    """Turn an error over a filter into a ``PeerError`` of its sender."""
    try:
        yield
    except FilterFull:
        # Nobody's fault: filters that are alike may together have more keys than one of them can hold.
        raise
    except FullbloomError as error:
        raise PeerError(source, f"sent a filter that cannot be merged: {error}") from error
