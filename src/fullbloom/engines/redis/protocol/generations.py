"""What a client knows of a window on a server: its time, its generations, and the marks of their strings."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from hashlib import blake2b
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol.keys import Acknowledged, shard_of
from fullbloom.engines.redis.protocol.requests import Send, Shard, Steps, call, clock
from fullbloom.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fullbloom._core import WireBatch, WireExchange
    from fullbloom.engines.redis.protocol.manifest import Manifest

#: Seconds after which the server is asked for the time again: by then two clocks are 0.1 ms apart.
_ASKED_EVERY = 1.0
#: Added to what is known of the server's time, on both sides.
_SLACK = 0.001
_ID_DIGITS = 16


class Clock:
    """The server's time, as far as it is known: two bounds."""

    def __init__(self, key: bytes) -> None:
        """Take the key whose node has the time."""
        self._key = key
        self._asked = -_ASKED_EVERY
        self._behind = self._ahead = 0.0

    def now(self) -> Steps[tuple[float, float]]:
        """Return the earliest and the latest time that the server can have now."""
        if time.monotonic() - self._asked >= _ASKED_EVERY:
            sent = time.monotonic()
            told = clock((yield from call(self._key, b"TIME")))
            came = time.monotonic()
            self._behind, self._ahead, self._asked = told - came - _SLACK, told - sent + _SLACK, came
        here = time.monotonic()
        return here + self._behind, here + self._ahead


class Now(NamedTuple):
    """The generations of a moment."""

    #: The oldest one in which keys are looked for.
    first: int
    #: The present one, or the two that it may be.
    earliest: int
    latest: int


class Losses:
    """Strings that are not those which a client knows."""

    def __init__(self, missing: Iterable[int] = ()) -> None:
        """Take generations of which some are."""
        self.missing = list(missing)
        #: Those of which an add may have left a string without a mark and without an end: its shard.
        self.bare: list[tuple[int, int]] = []

    def note(self, contents: Contents, generation: int, exchange: WireExchange, *, adding: bool) -> int:
        """Compare marks with those that are known; return the bits set in strings that are there."""
        known, set_ = contents.marks.get(generation), 0
        for shard, mark, short, bits in exchange.states:
            if short or known is None or mark != known[shard]:
                self.missing.append(generation)
                self.bare += [(generation, shard)] if adding and not mark else []
            else:
                set_ += bits
        return set_


class Contents:
    """What a window holds since it was made or cleared, as far as a client knows.

    It only comes to know more, so that threads may share it.
    """

    def __init__(self, name: str, stood: Manifest) -> None:
        """Take the manifest."""
        self.name, self.manifest = name, stood
        self._base = b"%s:bits:%s.%d@" % (name.encode(), stood.id[:_ID_DIGITS].encode(), stood.generation)
        self.begun = begun_in(name, stood)
        #: Those before it are begun by now, or never will be.
        self.settled = 0
        self._shards: dict[int, list[Shard]] = {}
        #: The marks of the strings of each generation, as they were compared with the record.
        self.marks: dict[int, list[bytes]] = {}
        #: What was acknowledged, by generation.
        self.noted: dict[int, Acknowledged] = {}

    def key(self, generation: int, shard: int) -> bytes:
        """Return the name of a string."""
        whole = b"%s%d" % (self._base, generation)
        return whole if self.manifest.shards == 1 else b"%s:%d" % (whole, shard)

    def keys(self, generation: int) -> Iterator[bytes]:
        """Return the names of all strings of a generation."""
        return (self.key(generation, shard) for shard in range(self.manifest.shards))

    def send(self, generation: int, batch: WireBatch) -> Send:
        """Return the question for the keys of a batch, to a generation."""
        shards = self._shards.get(generation)
        if shards is None:
            shards = self._shards[generation] = list(starmap(shard_of, enumerate(self.keys(generation))))
        return Send(batch, [shards[shard] for shard in batch.shards])

    def learn(self, stood: Manifest, present: int) -> None:
        """Take a manifest that was read when ``present`` had come at least."""
        oldest = present - 2 * stood.generations
        # What was recorded once stays so: recorded otherwise, its strings were lost and created again.
        begun = {**begun_in(self.name, stood), **self.begun}
        self.begun = {one: about for one, about in begun.items() if one >= oldest}
        self.manifest, self.settled = stood, max(self.settled, present)
        self._forget(oldest)

    def _forget(self, oldest: int) -> None:
        """Forget what is known of generations before ``oldest``."""
        for known in (self.noted, self.marks, self._shards):
            for one in list(known):
                if one < oldest:
                    known.pop(one, None)

    def is_unknown(self, now: Now) -> bool:
        """Tell whether a generation of the window may have begun unbeknown."""
        unsettled = range(max(now.first, min(self.settled, now.earliest)), now.latest + 1)
        return not self.begun.keys() >= set(unsettled)

    def alive(self, now: Now) -> list[int]:
        """Return the begun generations in which keys are looked for; those to come for another clock, too."""
        return sorted(one for one in self.begun if one >= now.first)

    def enter(self, generation: int, marks: list[bytes]) -> bool:
        """Take the marks of all strings of a generation; False if they are not those of the record."""
        if digest(marks) != self.begun[generation].digest:
            return False
        self.marks[generation] = marks
        return True

    def note(self, generation: int, hashes: bytes, first: int) -> None:
        """Remember keys that were added; what is older than ``first`` is forgotten."""
        self.noted.setdefault(generation, Acknowledged(1)).note(hashes)
        if len(self.noted) > self.manifest.generations:
            self._forget(first)


def recording(stood: Manifest, begun: Mapping[int, Begun]) -> Manifest:
    """Return the manifest with a record of these generations."""
    return replace(stood, begun=written(begun, _owner(stood)))


def _owner(stood: Manifest) -> str:
    return f"{stood.checksum} {stood.generation}"


def begun_in(name: str, stood: Manifest) -> dict[int, Begun]:
    """Return the generations that a manifest records; FormatError where that was changed."""
    try:
        return read(stood.begun, _owner(stood))
    except ValueError:
        raise FormatError(
            f"filter {name!r}: the record of its generations was changed or damaged; delete the filter and "
            "make it again"
        ) from None


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


def _stretch(stood: Manifest) -> float:
    return stood.window / (stood.generations - 1)


def strings_to_come(name: str, new: Manifest) -> Iterator[bytes]:
    """Return the names of strings that a window will have, for the nodes that they lie on."""
    contents, present = Contents(name, new), int(time.time() // _stretch(new))
    for generation in range(present, present + new.generations):
        yield from contents.keys(generation)
