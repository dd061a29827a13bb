"""The generations of a window that clients have begun, as its manifest records them.

A client that begins a generation creates all of its strings, each with a mark of its own, and records the
generation before it acknowledges a key: with the moment at which the strings vanish, and a digest of the
marks. From then on nobody creates strings of that generation. So a string that is missing before its end, or
that has another mark than the recorded one, is a loss, which every client finds.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DIGEST_BYTES = 8
_DRAWN_BYTES = 4


class Begun(NamedTuple):
    """A generation that was begun."""

    #: Milliseconds since 1970 at which its strings vanish.
    ends: int
    #: The digest of the marks of its strings, in their order.
    digest: str


def digest(marks: Iterable[bytes]) -> str:
    """Return the digest of marks."""
    return blake2b(b"".join(marks), digest_size=_DIGEST_BYTES).hexdigest()


def drawn(mark: bytes) -> bytes:
    """Return the mark of a string that is created now: no other has it, whoever creates one in its place."""
    return mark[:-_DRAWN_BYTES] + secrets.token_bytes(_DRAWN_BYTES)


def is_of(mark: bytes, other: bytes) -> bool:
    """Tell whether two marks are of the same window, before it was cleared once more."""
    return len(mark) == len(other) and mark[:-_DRAWN_BYTES] == other[:-_DRAWN_BYTES]


def written(begun: Mapping[int, Begun], owner: str) -> str:
    """Return the record as the manifest of ``owner`` has it, with a checksum.

    >>> written({5: Begun(1000, "ab"), 4: Begun(900, "cd")}, "the id")
    '4:900:cd 5:1000:ab 71bb3ac1eb4b0d2b'
    """
    parts = [f"{number}:{one.ends}:{one.digest}" for number, one in sorted(begun.items())]
    return " ".join([*parts, _checksum(owner, parts)])


def read(text: str, owner: str) -> dict[int, Begun]:
    """Return what the manifest of ``owner`` records; ValueError for what `written` has not written.

    >>> read(written({4: Begun(900, "00112233445566ff")}, "the id"), "the id")
    {4: Begun(ends=900, digest='00112233445566ff')}
    """
    *parts, checksum = text.split(" ")
    if checksum != _checksum(owner, parts):
        raise ValueError("the record was changed")
    begun = {}
    for part in parts:
        number, ends, marks = part.split(":")
        begun[int(number)] = Begun(int(ends), marks)
    return begun


def _checksum(owner: str, parts: list[str]) -> str:
    return blake2b(" ".join([owner, *parts]).encode(), digest_size=_DIGEST_BYTES).hexdigest()
