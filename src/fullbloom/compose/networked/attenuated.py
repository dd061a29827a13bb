"""Attenuated filters: for each link of a node, the keys that are one hop away, two hops, and so on."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fullbloom import registry
from fullbloom._core import BloomFilter
from fullbloom.errors import (
    FilterMemoryError,
    FormatError,
    IncompatibleFilters,
    ParameterError,
    ParameterTypeError,
)

from .compatibility import check_alike, convert

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from typing import Self


__all__ = ["AttenuatedFilter", "Router"]

#: The head of an advertisement as bytes: magic with a version, and the number of levels.
_HEAD = struct.Struct("<8sB")
_MAGIC = b"FBATTN\x00\x01"
_LENGTH = struct.Struct("<Q")
_MOST_LEVELS = 64


class HashFilter(Protocol):
    """A filter of hashes that can be copied and merged, such as `BloomFilter`."""

    @property
    def nbytes(self) -> int:
        """Bytes of the cells."""

    @property
    def seed(self) -> int:
        """Seed of the hash."""

    def copy(self) -> Self:
        """Return a filter of the same keys."""

    def clear(self) -> None:
        """Remove all keys."""

    def merge(self, other: Self, /) -> None:
        """Merge ``other``; raise ``IncompatibleFilters`` if its parameters differ."""

    def add_hashed(self, hashes: Any) -> Any:
        """Add hashes; return for each whether it was certainly new."""

    def contains_hashed(self, hashes: Any) -> Any:
        """Look up hashes."""

    def to_bytes(self) -> bytes:
        """Return the filter as bytes."""

    @staticmethod
    def from_bytes(data: bytes, *, secret: bytes | None = None, max_bytes: int | None = None) -> Any:
        """Return the filter in ``data``; raise ``FormatError`` for anything else."""


F = TypeVar("F", bound=HashFilter)
Name = TypeVar("Name", bound="Hashable")


class AttenuatedFilter(Generic[F]):
    """Filters by distance: level i holds the keys that are i + 1 hops away through one link.

    levels: 1 to 64 filters of equal parameters, nearest first; the object uses them and does not copy them.
    Deeper levels hold the keys of more nodes, so their rates rise: size the filters for the deepest. Raises
    ``ParameterError`` for another number of levels, ``IncompatibleFilters`` if they differ.

    Source: Rhea, Kubiatowicz, "Probabilistic location and routing", INFOCOM 2002.

    >>> from fullbloom import BloomFilter, hash_key
    >>> near, far = BloomFilter(100), BloomFilter(100)
    >>> far.update(["ada"])
    >>> AttenuatedFilter([near, far]).find_distance(hash_key("ada"))
    2
    """

    def __init__(self, levels: Sequence[F]) -> None:
        self._levels = tuple(levels)
        if not 1 <= len(self._levels) <= _MOST_LEVELS:
            raise ParameterError(
                f"an attenuated filter needs at least one level and at most {_MOST_LEVELS}, "
                f"got {len(self._levels)}"
            )
        for level in self._levels[1:]:
            check_alike(self._levels[0], level)

    @property
    def levels(self) -> tuple[F, ...]:
        """The filters, nearest first."""
        return self._levels

    @property
    def nbytes(self) -> int:
        """Bytes of the cells of all levels."""
        return sum(level.nbytes for level in self._levels)

    def to_bytes(self) -> bytes:
        """Return all levels as bytes: 9 bytes, then for each level its length in 8 bytes and its file."""
        parts = [_HEAD.pack(_MAGIC, len(self._levels))]
        for level in self._levels:
            data = level.to_bytes()
            parts += [_LENGTH.pack(len(data)), data]
        return b"".join(parts)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        kind: Any = BloomFilter,
        secret: bytes | None = None,
        max_bytes: int | None = None,
    ) -> AttenuatedFilter[Any]:
        """Return the filter in ``data``.

        kind: class of the levels. secret: that of keyed levels. max_bytes: most bytes of cells of all levels;
        by default, only the length of ``data`` limits them. Raises ``FormatError`` for any other bytes,
        ``FilterMemoryError`` above ``max_bytes``, ``ParameterError`` for keyed levels without their secret.

        >>> from fullbloom import BloomFilter
        >>> near = BloomFilter(100)
        >>> near.update(["ada"])
        >>> sent = AttenuatedFilter([near, BloomFilter(100)]).to_bytes()
        >>> len(AttenuatedFilter.from_bytes(sent).levels)
        2
        """
        if len(data) < _HEAD.size:
            raise FormatError(f"an attenuated filter has at least {_HEAD.size} bytes, got {len(data)}")
        magic, count = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise FormatError("the bytes are not an attenuated filter, or one of a newer release")
        levels: list[Any] = []
        at, left = _HEAD.size, max_bytes
        for number in range(1, count + 1):
            if len(data) - at < _LENGTH.size:
                raise FormatError(f"an attenuated filter of {count} levels is cut short")
            if levels and left is not None and left <= 0:
                raise FilterMemoryError(
                    f"level {number} of {count} is above max_bytes = {max_bytes}, which the levels before it "
                    "take; raise it if you trust the data"
                )
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            if length > len(data) - at:
                raise FormatError(
                    f"a level of {length} bytes ends beyond the {len(data)} bytes of its filter"
                )
            try:
                levels.append(kind.from_bytes(data[at : at + length], secret=secret, max_bytes=left))
            except FilterMemoryError as error:
                # The level is given only what the levels before it leave of the limit.
                limit = f"max_bytes = {max_bytes} leaves {left}" if levels else f"max_bytes is {left}"
                text = str(error).replace(f"max_bytes is {left}", limit)
                raise FilterMemoryError(f"level {number} of {count}: {text}") from None
            left = None if left is None else left - levels[-1].nbytes
            at += length
        if at != len(data):
            raise FormatError(f"{len(data) - at} bytes follow the last level of an attenuated filter")
        try:
            return cls(levels)
        except (ParameterError, IncompatibleFilters) as error:
            raise FormatError(f"no attenuated filter has such levels: {error}") from error

    def find_distance(self, hashed: int) -> int | None:
        """Return the hops to the nearest level that finds a hash, at least 1, or None if no level does."""
        for hops, level in enumerate(self._levels, start=1):
            if level.contains_hashed(hashed):
                return hops
        return None


class Router(Generic[Name, F]):
    """A node that routes: a filter of its own keys, and an attenuated filter for each of its links.

    name: identifies the node to its neighbours. local: filter of the own keys, used and not copied; its merge
    must be a union, and it must not be strict, because several ways lead to a key and deep levels hold those
    of many nodes. depth: levels of the attenuated filters. ``advertise(to)`` returns what a neighbour needs
    to know, and ``accept(source, filter)`` takes what a neighbour sent. An advertisement leaves out what the
    neighbour itself advertised, so that a query does not run in a circle of two.
    """

    def __init__(self, name: Name, local: F, depth: int) -> None:
        if depth < 1:
            raise ParameterError(f"depth must be at least 1, got {depth}")
        check_mergeable(local)
        self.name = name
        self._local, self._depth = local, depth
        self._links: dict[Name, AttenuatedFilter[F]] = {}

    @property
    def local(self) -> F:
        """The filter of the own keys."""
        return self._local

    @property
    def depth(self) -> int:
        """Levels of each attenuated filter: the most hops of a query that finds its way."""
        return self._depth

    @property
    def links(self) -> dict[Name, AttenuatedFilter[F]]:
        """The attenuated filter of each link, by the neighbour's name."""
        return dict(self._links)

    def connect(self, neighbour: Name) -> None:
        """Add a link, through which no keys are known yet."""
        if neighbour == self.name or neighbour in self._links:
            raise ParameterError(f"{self.name!r} cannot be linked to {neighbour!r}, itself or linked already")
        self._links[neighbour] = AttenuatedFilter([self._create_empty() for _ in range(self._depth)])

    def disconnect(self, neighbour: Name) -> None:
        """Remove a link; raise ``ParameterError`` if it does not exist."""
        self._check_link(neighbour)
        del self._links[neighbour]

    def advertise(self, to: Name) -> AttenuatedFilter[F]:
        """Return the filters that ``to`` stores for its link to this node.

        Level 0 is a copy of the local filter, level i the union of level i - 1 of all other links.
        """
        levels = [self._local.copy()]
        for hops in range(1, self._depth):
            known = {neighbour: link.levels[hops - 1] for neighbour, link in self._links.items()}
            levels.append(self.unite_others(known, to))
        return AttenuatedFilter(levels)

    def unite_others(self, filters: Mapping[Name, F], to: Name) -> F:
        """Return the union of the filters of all neighbours but ``to``."""
        union = self._create_empty()
        for neighbour, filter_ in filters.items():
            if neighbour != to:
                union.merge(filter_)
        return union

    def accept(self, source: Name, advertisement: AttenuatedFilter[F]) -> None:
        """Store the keys of an advertisement of the neighbour ``source``, in filters of this node's own.

        Raises ``ParameterError`` for a neighbour without a link and for another number of levels,
        ``IncompatibleFilters`` for filters with other parameters than the local one.
        """
        self._check_link(source)
        if len(advertisement.levels) != self._depth:
            raise ParameterError(
                f"an advertisement must have depth = {self._depth} levels, got {len(advertisement.levels)}"
            )
        try:
            levels = [convert(self._local, level) for level in advertisement.levels]
        except IncompatibleFilters as error:
            raise IncompatibleFilters(f"the filters of {source!r} are unlike those here: {error}") from error
        self._links[source] = AttenuatedFilter(levels)

    def accept_hashes(self, source: Name, level: int, hashes: list[int]) -> list[int]:
        """Add hashes of new keys to a level of a link; return those that changed the level.

        Only these need to be forwarded: the bits of the others are in the filters behind already.
        """
        self._check_link(source)
        if not 0 <= level < self._depth:
            raise ParameterError(f"level must be from 0 to {self._depth - 1}, got {level}")
        new = self._links[source].levels[level].add_hashed(hashes)
        return [hashed for hashed, is_new in zip(hashes, new, strict=True) if is_new]

    def rank_links(self, hashed: int, hops: int) -> list[Name]:
        """Return the neighbours through which a hash is at most ``hops`` away, nearest first."""
        found: list[tuple[int, int, Name]] = []
        for neighbour, known in self._links.items():
            distance = known.find_distance(hashed)
            if distance is not None and distance <= hops:
                found.append((distance, len(found), neighbour))
        return [neighbour for *_, neighbour in sorted(found)]

    def _create_empty(self) -> F:
        empty = self._local.copy()
        empty.clear()
        return empty

    def _check_link(self, source: Name) -> None:
        if source not in self._links:
            raise ParameterError(f"{self.name!r} has no link to {source!r}")


def check_mergeable(filter_: object) -> None:
    """Raise unless filters like this one can be merged along every way that leads to a key."""
    row = registry.find_row(filter_)
    if row is not None and "union" not in row["capabilities"]:
        raise ParameterTypeError(
            f"a route needs filters whose merge is a union, such as BloomFilter; a {row['class']} would hold "
            "a key once for each way that leads to it"
        )
    if getattr(filter_, "strict", False):
        raise ParameterError(
            "a route needs filters with strict=False: the deepest level holds the keys of many nodes"
        )
