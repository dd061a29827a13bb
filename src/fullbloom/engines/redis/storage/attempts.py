"""What a batch says that is sent again: the filter may go to other strings while it is on its way."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from fullbloom import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom._core import WireBatch, WireCells

_WORD = 8
#: A single shard, which keeps the order of hashes.
_IN_ORDER = _core.WireCells(512, 8)


class Moved(dict[int, int]):
    """Shards that have moved to other strings, and the generation in which they were written."""


class Attempt(NamedTuple):
    """What a batch says that was sent once: a byte for each key."""

    #: Found, or new.
    answers: bytes
    #: New unless another client has added it since: the next attempt decides, by `first`.
    likely: bytes
    #: True if the key was not in the strings that are read, or will be next.
    first: bytes
    #: Whether the filter still uses those strings.
    settled: bool


def choose(
    make: Callable[[WireCells], WireBatch], cells: WireCells, shards: set[int], there: bytes, elsewhere: bytes
) -> bytes:
    """Return the answers ``there`` for keys in ``shards``, and the answers ``elsewhere`` for others."""
    hashes = make(_IN_ORDER).hashes
    answers = bytearray(elsewhere)
    for number in range(len(elsewhere)):
        one = cells.hashed(hashes[_WORD * number : _WORD * (number + 1)])
        if one.batch(0, 1).shards[0] in shards:
            answers[number] = there[number]
    return bytes(answers)


def judge(
    make: Callable[[WireCells], WireBatch], cells: WireCells, moved: Moved, until: int, answers: bytes
) -> tuple[bytes, bytes]:
    """Return the keys that are new, and those that are new if nobody added them to the next strings.

    ``until`` is the generation in which clients read other strings. What was written in the one before may
    have missed the copy to those. What was written later says nothing, as others have answered without it.
    """
    if not moved:
        return answers, bytes(len(answers))
    nothing, late = bytes(len(answers)), {shard for shard, at in moved.items() if at >= until}
    copied = {shard for shard, at in moved.items() if at == until - 1}
    likely = choose(make, cells, copied, answers, nothing) if copied else nothing
    return (choose(make, cells, late | copied, nothing, answers) if late | copied else answers), likely


def combine_attempts(attempts: list[Attempt]) -> bytes:
    """Return 1 for each key that is new by any attempt."""
    new = [one.answers for one in attempts]
    for one, after in pairwise(attempts):
        new.append(bytes(likely & first for likely, first in zip(one.likely, after.first, strict=True)))
    return combine_answers(new)


def combine_answers(answers: list[bytes]) -> bytes:
    """Return 1 for each key for which any of the answers is 1."""
    if len(answers) == 1:
        return answers[0]
    union = 0
    for one in answers:
        union |= int.from_bytes(one, "little")
    return union.to_bytes(len(answers[0]), "little")
