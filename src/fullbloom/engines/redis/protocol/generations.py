"""Generations of a time window: the server's time, the record in the manifest, and what a client knows.

A client that begins a generation creates all of its strings, each with a tag of its own, and records the
generation before it acknowledges a key: with the moment at which the strings expire, and a digest of the
tags. From then on no client creates strings of that generation. So a string that is missing before its end,
or whose tag is not the recorded one, is a loss, which every client notices.

The tag of a string is that of the window, with random bytes in place of the generation, which is in the key,
and with an epoch that adds raise. A string whose epoch is earlier than one that the client saw has lost keys.
Windows of version 2 have the random bytes in place of the epoch, and cannot notice that.

A client that finds the manifest without a generation that it knows writes that one back. If the manifest
records it with other tags, the generation was begun again after the server went back: it is recorded as lost,
so that every client knows.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import starmap
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol.keys import AcknowledgedKeys, make_shard
from fullbloom.engines.redis.protocol.manifest import (
    OWNER_BYTES,
    STABLE_BYTES,
    TAG_BYTES,
    WINDOW_VERSION,
    parse_manifest,
)
from fullbloom.engines.redis.protocol.requests import (
    SendBatch,
    Shard,
    Steps,
    call,
    change_if_equal,
    parse_time,
    read_value,
)
from fullbloom.errors import FormatError, FullbloomError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fullbloom._core import WireBatch, WireExchange
    from fullbloom.engines.redis.protocol.manifest import Manifest
    from fullbloom.engines.redis.protocol.requests import Acks

#: Seconds after which the server is asked for the time again: by then two clocks are 0.1 ms apart.
_TIME_INTERVAL = 1.0
#: Added on both sides to what is known of the server's time.
_SLACK = 0.001
#: Seconds for which strings outlive their last use, because the nodes of a cluster have clocks of their own.
GRACE = 60
_ID_DIGITS = 16
_DIGEST_BYTES = 8
_RANDOM_BYTES = 4
#: Seconds after which a batch reads the manifest again, even if no generation can have begun.
_READ_INTERVAL = 1.0
#: Attempts to write back a record while other clients change the manifest.
_RESTORE_ATTEMPTS = 5
#: The digest of a generation that has lost keys: no tags have it.
LOST = "0" * 2 * _DIGEST_BYTES


class Clock:
    """Lower and upper bounds of the server's time."""

    def __init__(self, key: bytes) -> None:
        """Take the key whose node has the time."""
        self._key = key
        self._queried = -_TIME_INTERVAL
        self._behind = self._ahead = 0.0

    def now(self) -> Steps[tuple[float, float]]:
        """Return the earliest and the latest time that the server can have now."""
        if time.monotonic() - self._queried >= _TIME_INTERVAL:
            sent = time.monotonic()
            seconds = parse_time((yield from call(self._key, b"TIME")))
            received = time.monotonic()
            self._behind, self._ahead = seconds - received - _SLACK, seconds - sent + _SLACK
            self._queried = received
        here = time.monotonic()
        return here + self._behind, here + self._ahead


class CurrentGenerations(NamedTuple):
    """The generations at a moment."""

    #: The oldest one in which keys are looked up.
    first: int
    #: The present one, or the two that it may be.
    earliest: int
    latest: int


class RecordedGeneration(NamedTuple):
    """A generation that has begun, as the manifest records it."""

    #: Milliseconds since 1970 at which its strings expire.
    ends: int
    #: The digest of the tags of its strings, in order.
    digest: str


class MissingStrings:
    """Generations whose strings are missing, or have unknown tags."""

    def __init__(self, missing: Iterable[int] = ()) -> None:
        """Take generations with missing strings."""
        self.missing = list(missing)
        #: Generations and shards in which an add may have left a string without a tag and without expiry.
        self.untagged: list[tuple[int, int]] = []

    def note(self, state: WindowState, generation: int, exchange: WireExchange, *, adding: bool) -> int:
        """Compare tags with the known ones; return the bits set in strings that exist."""
        known, set_ = state.tags.get(generation), 0
        for shard, tag, short, bits in exchange.states:
            if short or known is None or state.stable(tag) != known[shard]:
                self.missing.append(generation)
                self.untagged += [(generation, shard)] if adding and not tag else []
            else:
                set_ += bits
        return set_


class WindowState:
    """What a client knows of a window since it was created or cleared.

    Its knowledge only grows, so threads may share it.
    """

    def __init__(self, name: str, manifest: Manifest) -> None:
        """Take the manifest."""
        self.name, self.manifest = name, manifest
        prefix = (name.encode(), manifest.id[:_ID_DIGITS].encode(), manifest.generation)
        self._prefix = b"%s:bits:%s.%d@" % prefix
        self.recorded = recorded_generations(name, manifest)
        #: Generations before this one are recorded by now, or never will be.
        self.settled = 0
        self._shards: dict[int, list[Shard]] = {}
        #: The tags of the strings of each generation, without epochs, compared with the record.
        self.tags: dict[int, list[bytes]] = {}
        #: The latest epoch seen of each string, by generation and shard.
        self.epochs: dict[tuple[int, int], int] = {}
        #: Generations whose strings were seen in an earlier state.
        self.rolled_back: set[int] = set()
        #: Strings written to since their epochs were raised, and when that was.
        self.touched: set[tuple[int, int]] = set()
        self.raised = time.monotonic()
        #: When the manifest was read, and whether it lacked something that this client knows.
        self.read_at = time.monotonic()
        self.is_incomplete = False
        #: Acknowledged keys, by generation.
        self.acknowledged: dict[int, AcknowledgedKeys] = {}

    def key(self, generation: int, shard: int) -> bytes:
        """Return the key of a string."""
        whole = b"%s%d" % (self._prefix, generation)
        return whole if self.manifest.shards == 1 else b"%s:%d" % (whole, shard)

    def keys(self, generation: int) -> Iterator[bytes]:
        """Return the keys of all strings of a generation."""
        return (self.key(generation, shard) for shard in range(self.manifest.shards))

    def send(self, generation: int, batch: WireBatch, acks: Acks | None = None) -> SendBatch:
        """Return the request that sends a batch to a generation."""
        shards = self._shards.get(generation)
        if shards is None:
            shards = self._shards[generation] = list(starmap(make_shard, enumerate(self.keys(generation))))
        return SendBatch(batch, [shards[shard] for shard in batch.shards], acks=acks)

    def stable(self, tag: bytes) -> bytes:
        """Return the part of a tag that never changes."""
        return tag[:STABLE_BYTES] if self.has_epochs and len(tag) == TAG_BYTES else tag

    @property
    def has_epochs(self) -> bool:
        """True if the tags of the strings have epochs."""
        return self.manifest.version >= WINDOW_VERSION

    def draw_tag(self, shard: int) -> bytes:
        """Return a unique tag for a string that is created now, whoever creates another in its place."""
        tag, drawn = self.manifest.tag(shard), secrets.token_bytes(_RANDOM_BYTES)
        if self.has_epochs:
            return tag[:OWNER_BYTES] + drawn + bytes(TAG_BYTES - STABLE_BYTES)
        return tag[:STABLE_BYTES] + drawn

    def is_same_window(self, tag: bytes, other: bytes) -> bool:
        """Return whether two tags belong to the same window, which was not cleared in between."""
        owner = OWNER_BYTES if self.has_epochs else STABLE_BYTES
        return len(tag) == len(other) and tag[:owner] == other[:owner]

    def note_epoch(self, generation: int, shard: int, tag: bytes, known: int) -> None:
        """Take the epoch in a tag, and compare it with the one known before the batch was sent."""
        if not self.has_epochs:
            return
        epoch, place = int.from_bytes(tag[STABLE_BYTES:], "big"), (generation, shard)
        if epoch < known:
            self.rolled_back.add(generation)
        self.epochs[place] = max(epoch, self.epochs.get(place, 0))

    def adopt(self, manifest: Manifest, present: int) -> None:
        """Take a manifest that was read in the generation ``present`` or later."""
        oldest = present - 2 * manifest.generations
        stored, known = recorded_generations(self.name, manifest), self.recorded
        self.is_incomplete = any(
            one > present - manifest.generations and stored.get(one) != about and about.digest != LOST
            for one, about in known.items()
        )
        # The first record counts: a later one of the same generation means that its strings were lost.
        recorded = {
            **stored,
            **known,
            **{one: about for one, about in stored.items() if about.digest == LOST},
        }
        self.recorded = {one: about for one, about in recorded.items() if one >= oldest}
        for one, about in stored.items():
            if about.digest == LOST:
                self.tags.pop(one, None)
        self.manifest, self.settled = manifest, max(self.settled, present)
        self.read_at = time.monotonic()
        self._forget(oldest)

    def is_lost(self, generation: int) -> bool:
        """Return whether a generation is recorded as lost."""
        about = self.recorded.get(generation)
        return about is not None and about.digest == LOST

    def is_unread(self) -> bool:
        """Return whether the manifest was read too long ago."""
        return time.monotonic() - self.read_at >= _READ_INTERVAL

    def merge_record(
        self, stored: Mapping[int, RecordedGeneration], first: int
    ) -> dict[int, RecordedGeneration]:
        """Return a stored record with the generations from ``first`` on that this client knows."""
        merged = dict(stored)
        for one, about in list(self.recorded.items()):
            if one >= first and stored.get(one) != about:
                merged[one] = about._replace(digest=LOST) if one in stored else about
        return merged

    def _forget(self, oldest: int) -> None:
        """Forget generations before ``oldest``."""
        for known in (self.acknowledged, self.tags, self._shards):
            for one in list(known):
                if one < oldest:
                    known.pop(one, None)
        for place in list(self.epochs):
            if place[0] < oldest:
                self.epochs.pop(place, None)

    def may_have_changed(self, now: CurrentGenerations) -> bool:
        """Return whether another client may have begun a generation of the window unnoticed."""
        unsettled = range(max(now.first, min(self.settled, now.earliest)), now.latest + 1)
        return not self.recorded.keys() >= set(unsettled)

    def live(self, now: CurrentGenerations) -> list[int]:
        """Return the recorded generations that are looked up, including future ones of another clock."""
        return sorted(one for one in self.recorded if one >= now.first)

    def enter(self, generation: int, tags: list[bytes]) -> bool:
        """Take the tags of all strings of a generation; False if they differ from the record."""
        stable = [self.stable(tag) for tag in tags]
        if digest_tags(stable) != self.recorded[generation].digest:
            return False
        for shard, tag in enumerate(tags):
            self.note_epoch(generation, shard, tag, 0)
        self.tags[generation] = stable
        return True

    def note(self, generation: int, hashes: bytes, first: int) -> None:
        """Remember keys that were added; forget generations before ``first``."""
        self.acknowledged.setdefault(generation, AcknowledgedKeys(1)).note(hashes)
        if len(self.acknowledged) > self.manifest.generations:
            self._forget(first)


def with_record(manifest: Manifest, recorded: Mapping[int, RecordedGeneration]) -> Manifest:
    """Return the manifest with a record of these generations."""
    return replace(manifest, begun=format_record(recorded, _owner(manifest)))


def _owner(manifest: Manifest) -> str:
    return f"{manifest.checksum} {manifest.generation}"


def recorded_generations(name: str, manifest: Manifest) -> dict[int, RecordedGeneration]:
    """Return the generations that a manifest records; FormatError if the record was changed."""
    try:
        return parse_record(manifest.begun, _owner(manifest))
    except ValueError:
        raise FormatError(
            f"filter {name!r}: the record of its generations was changed or damaged; "
            "delete the filter and create it again"
        ) from None


def digest_tags(tags: Iterable[bytes]) -> str:
    """Return the digest of tags."""
    return blake2b(b"".join(tags), digest_size=_DIGEST_BYTES).hexdigest()


def format_record(recorded: Mapping[int, RecordedGeneration], owner: str) -> str:
    """Return the record for the manifest of ``owner``, with a checksum.

    >>> format_record({5: RecordedGeneration(1000, "ab"), 4: RecordedGeneration(900, "cd")}, "the id")
    '4:900:cd 5:1000:ab 71bb3ac1eb4b0d2b'
    """
    parts = [f"{number}:{one.ends}:{one.digest}" for number, one in sorted(recorded.items())]
    return " ".join([*parts, _checksum(owner, parts)])


def parse_record(text: str, owner: str) -> dict[int, RecordedGeneration]:
    """Return what the manifest of ``owner`` records; ValueError for anything but a `format_record`.

    >>> parse_record(format_record({4: RecordedGeneration(900, "00112233445566ff")}, "the id"), "the id")
    {4: RecordedGeneration(ends=900, digest='00112233445566ff')}
    """
    *parts, checksum = text.split(" ")
    if checksum != _checksum(owner, parts):
        raise ValueError("the record was changed")
    recorded = {}
    for part in parts:
        number, ends, digest = part.split(":")
        recorded[int(number)] = RecordedGeneration(int(ends), digest)
    return recorded


def swap_manifest(key: bytes, before: bytes, after: bytes | None) -> Steps[bool]:
    """Replace a manifest if it is still ``before``, or delete it; False if it has changed."""
    words = (b"DEL", key) if after is None else (b"SET", key, after)
    if (yield from change_if_equal(key, before, *words)):
        return True
    return after is not None and (yield from read_value(key)) == after  # sent twice


def restore_record(state: WindowState, key: bytes, clock: Clock) -> Steps[None]:
    """Write back what this client knows of generations, and the manifest at ``key`` does not.

    Only a server that went back can lack it. If it cannot be written now, a batch that reads the
    manifest again tries again.
    """
    state.is_incomplete = False
    with suppress(FullbloomError):  # this user may not write
        yield from _write_record(state, key, clock)


def _write_record(state: WindowState, key: bytes, clock: Clock) -> Steps[None]:
    for _ in range(_RESTORE_ATTEMPTS):
        stored = yield from read_value(key)
        manifest = parse_manifest(state.name, stored) if stored else None
        same = manifest is not None and manifest.id == state.manifest.id
        if stored is None or manifest is None or not same:
            return  # the next batch finds out
        if manifest.generation != state.manifest.generation:
            return
        now = yield from current_generations(state.manifest, clock)
        recorded = recorded_generations(state.name, manifest)
        merged = state.merge_record(recorded, now.first)
        after = with_record(manifest, merged) if merged != recorded else manifest
        if after is manifest or (yield from swap_manifest(key, stored, after.to_bytes())):
            state.adopt(after, state.settled)
            return


def _checksum(owner: str, parts: list[str]) -> str:
    return blake2b(" ".join([owner, *parts]).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def seconds_per_generation(manifest: Manifest) -> float:
    """Return how long a generation takes new keys."""
    return manifest.window / (manifest.generations - 1)


def current_generations(manifest: Manifest, clock: Clock) -> Steps[CurrentGenerations]:
    """Return the generations of a window at the server's time."""
    seconds = seconds_per_generation(manifest)
    earliest, latest = (int(moment // seconds) for moment in (yield from clock.now()))
    return CurrentGenerations(earliest - manifest.generations + 1, earliest, latest)


def spare_generations(manifest: Manifest) -> int:
    """Return how many generations exist that are not looked up any more."""
    return ceil(GRACE / seconds_per_generation(manifest))


def upcoming_strings(name: str, new: Manifest) -> Iterator[bytes]:
    """Return the keys of the strings that a new window will have."""
    state, present = WindowState(name, new), int(time.time() // seconds_per_generation(new))
    for generation in range(present, present + new.generations):
        yield from state.keys(generation)
