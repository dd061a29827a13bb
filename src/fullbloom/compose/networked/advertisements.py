"""Attenuated filters of nodes that are elements, kept current by messages between neighbours."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom.errors import FullbloomError, ParameterError, PeerError

from .attenuated import AttenuatedFilter, HashFilter, Router
from .compatibility import check_alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .element import ProcessingElement

__all__ = ["announce_hashes", "exchange_advertisements"]

F = TypeVar("F", bound=HashFilter)
_HASH_BYTES = 8
#: A hash takes 40 bytes here: these are 40 MB from each neighbour.
_MOST_HASHES = 1 << 20


def exchange_advertisements(
    element: ProcessingElement,
    router: Router[int, F],
    *,
    secret: bytes | None = None,
    max_bytes: int | None = None,
) -> None:
    """Build the attenuated filters of all links again; every element of the network calls this function.

    router: the node of this element, named by its rank; its links are the ranks of its neighbours. secret:
    that of keyed filters. max_bytes: most bytes of cells of a filter that a neighbour sends; by default, only
    the length of its message limits them. In round i of ``depth``, an element sends its neighbours level i,
    the union of what it received from all others in round i - 1: one filter in each direction of a link and
    round (`theory.attenuated_bits`). If a round fails, the router keeps the filters that it had.

    Raises ``PeerError`` if a neighbour fails, or sends anything but a filter of the same parameters,
    ``ParameterError`` if the router is not named by the rank, or for a keyed filter without its secret.

    >>> from fullbloom import BloomFilter, hash_key
    >>> from fullbloom.compose.networked import Router, run_local
    >>> def job(element):
    ...     local = BloomFilter(100, 0.001)
    ...     local.update([f"key {element.rank}"])
    ...     node = Router(element.rank, local, depth=2)
    ...     for neighbour in {element.rank - 1, element.rank + 1} & {0, 1, 2}:  # three in a row
    ...         node.connect(neighbour)
    ...     exchange_advertisements(element, node)
    ...     return node.rank_links(hash_key("key 2"), hops=2)
    >>> run_local(3, job)
    [[1], [2], []]
    """
    _check_name(element, router)
    if getattr(router.local, "keyed", False) and secret is None:
        raise ParameterError("the filter has a secret; pass it as secret=")
    received: dict[int, list[F]] = {neighbour: [] for neighbour in router.links}
    for hops in range(router.depth):
        known = {neighbour: levels[hops - 1] for neighbour, levels in received.items() if hops}
        for neighbour in received:
            level = router.unite_others(known, neighbour) if hops else router.local
            element.send(neighbour, level.to_bytes())
        for neighbour, levels in received.items():
            message = element.receive(neighbour)
            try:
                level = type(router.local).from_bytes(message, secret=secret, max_bytes=max_bytes)
                check_alike(router.local, level)
            except FullbloomError as error:
                raise PeerError(neighbour, f"sent a filter that cannot be used: {error}") from error
            levels.append(level)
    for neighbour, levels in received.items():
        router.accept(neighbour, AttenuatedFilter(levels))


def announce_hashes(
    element: ProcessingElement,
    router: Router[int, Any],
    hashes: Sequence[int],
    *,
    max_hashes: int = _MOST_HASHES,
) -> None:
    """Add keys to this element's node and announce them to all within ``depth`` hops.

    Every element of the network calls this function, with the hashes of its own new keys or none. max_hashes:
    most hashes of a message, which may have to carry the new keys of all nodes within ``depth`` hops; 2^20 by
    default, the same in all elements. In each of ``depth`` rounds, an element sends
    each neighbour the hashes, 64 bits each, that changed one of its filters in the round before, or an empty
    message: `theory.attenuated_messages` hashes for a new key at most.

    Raises ``PeerError`` if a neighbour fails or sends anything but hashes; then `exchange_advertisements`
    makes the filters right again. Raises ``ParameterError`` if the router is not named by the rank.

    >>> from fullbloom import BloomFilter, hash_key
    >>> from fullbloom.compose.networked import Router, run_local
    >>> def job(element):
    ...     node = Router(element.rank, BloomFilter(100, 0.001), depth=2)
    ...     for neighbour in {element.rank - 1, element.rank + 1} & {0, 1, 2}:
    ...         node.connect(neighbour)
    ...     announce_hashes(element, node, [hash_key("paper.pdf")] if element.rank == 2 else [])
    ...     return node.rank_links(hash_key("paper.pdf"), hops=2)
    >>> run_local(3, job)
    [[1], [2], []]
    """
    _check_name(element, router)
    neighbours, new = list(router.links), router.local.add_hashed(hashes)
    fresh = [hashed for hashed, is_new in zip(hashes, new, strict=True) if is_new]
    # What each neighbour sent that was new, and what is new here.
    sources: dict[int, list[int]] = {element.rank: fresh}
    for level in range(router.depth):
        for neighbour in neighbours:
            parts = (part for source, part in sources.items() if source != neighbour)
            element.send(neighbour, _pack(dict.fromkeys(hashed for part in parts for hashed in part)))
        sources = {}
        for neighbour in neighbours:
            part = _unpack(element.receive(neighbour), neighbour, max_hashes)
            sources[neighbour] = router.accept_hashes(neighbour, level, part)


def _check_name(element: ProcessingElement, router: Router[int, Any]) -> None:
    if router.name != element.rank:
        raise ParameterError(f"the router must be named by its rank, {element.rank}, got {router.name!r}")


def _pack(hashes: dict[int, None]) -> bytes:
    return struct.pack(f"<{len(hashes)}Q", *hashes)


def _unpack(message: bytes, source: int, most: int) -> list[int]:
    count, rest = divmod(len(message), _HASH_BYTES)
    if rest or count > most:
        raise PeerError(
            source,
            f"sent an invalid announcement: {len(message)} bytes are not those of at most {most} hashes",
        )
    return list(struct.unpack(f"<{count}Q", message))
