"""Generations of a time window: the server's time, the record in the manifest, their strings.

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
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.engines.redis.protocol import (
    HASH_BYTES,
    Call,
    SendBatch,
    Steps,
    call,
    parse_text,
    parse_time,
    read_value,
)
from fullbloom.engines.redis.protocol.create import (
    NewString,
    Renewal,
    claim_name,
    swap_manifest,
    write_string,
)
from fullbloom.engines.redis.protocol.manifest import (
    ID_DIGITS,
    MAX_GENERATIONS,
    OWNER_BYTES,
    STABLE_BYTES,
    TAG_BYTES,
    WINDOW_VERSION,
    AcknowledgedKeys,
    make_colocated_key,
    make_shard,
    parse_manifest,
)
from fullbloom.engines.redis.protocol.plan import PORTION
from fullbloom.errors import (
    EngineError,
    EngineFull,
    EngineNameTaken,
    EngineTimeout,
    EngineUnavailable,
    FormatError,
    FullbloomError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fullbloom._core import WireBatch, WireCells, WireExchange
    from fullbloom.engines.redis.protocol import Acks, Shard
    from fullbloom.engines.redis.protocol.manifest import Manifest

#: Seconds after which the server's time is read again: by then two clocks are 0.1 ms apart.
_TIME_INTERVAL = 1.0
#: Added to both bounds of the server's time.
_SLACK = 0.001
#: Seconds for which strings outlive their last use, because the nodes of a cluster have clocks of their own.
GRACE = 60
_DIGEST_BYTES = 8
_RANDOM_BYTES = 4
#: Seconds after which a batch reads the manifest again, even if no generation can have begun.
_READ_INTERVAL = 1.0
#: Attempts to write back a record while other clients change the manifest.
_RESTORE_ATTEMPTS = 5
#: Recorded generations of one window: those that it needs, and as many of a node whose clock was ahead.
_MAX_RECORDED = 8 * MAX_GENERATIONS
#: Larger than any number of a generation, and any millisecond since 1970.
_MAX_NUMBER = 1 << 60
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
        #: For each batch that was added to some of them, whether a key was new there.
        self.new: list[bytes] = []

    def record(self, state: WindowState, generation: int, exchange: WireExchange, *, adding: bool) -> int:
        """Compare tags with the known ones; return the number of bits set in strings that exist."""
        known, bits_set = state.tags.get(generation), 0
        for shard, tag, short, bits in exchange.states:
            if short or known is None or state.strip_epoch(tag) != known[shard]:
                self.missing.append(generation)
                self.untagged += [(generation, shard)] if adding and not tag else []
            else:
                bits_set += bits
        return bits_set


class Portion:
    """Hashes that are sent to several generations."""

    def __init__(self, cells: WireCells, hashes: bytes) -> None:
        """Take hashes of 8 bytes each."""
        self._cells, self.hashes = cells, hashes
        #: The batch that looks them up; its answers are those of the last exchange.
        self.lookup = cells.hashed(hashes).batch(0, PORTION)
        #: Those that were new by a pass that is over, or when the window turned out to be cleared.
        self.new = bytes(len(self))

    def __len__(self) -> int:
        """Return the number of hashes."""
        return len(self.hashes) // HASH_BYTES

    def to_add(self) -> WireBatch:
        """Return a new batch that adds them."""
        return self._cells.hashed(self.hashes, adding=True).batch(0, PORTION)


class WindowState:
    """What a client knows of a window since it was created or cleared.

    Its knowledge only grows, so threads may share it.
    """

    def __init__(self, name: str, manifest: Manifest) -> None:
        """Take the manifest."""
        self.name, self.manifest = name, manifest
        prefix = (name.encode(), manifest.id[:ID_DIGITS].encode(), manifest.generation)
        self._prefix = b"%s:bits:%s.%d@" % prefix
        self.recorded = read_record(name, manifest)
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
        self._lock = Lock()

    def make_key(self, generation: int, shard: int = 0) -> bytes:
        """Return the key of a string."""
        whole = b"%s%d" % (self._prefix, generation)
        return whole if self.manifest.shards == 1 else b"%s:%d" % (whole, shard)

    def list_keys(self, generation: int) -> list[bytes]:
        """Return the keys of all strings of a generation."""
        return [self.make_key(generation, shard) for shard in range(self.manifest.shards)]

    def make_request(self, generation: int, batch: WireBatch, acks: Acks | None = None) -> SendBatch:
        """Return the request that sends a batch to a generation."""
        shards = self._shards.get(generation)
        if shards is None:
            shards = self._shards[generation] = list(
                starmap(make_shard, enumerate(self.list_keys(generation)))
            )
        return SendBatch(batch, [shards[shard] for shard in batch.shards], acks=acks)

    def strip_epoch(self, tag: bytes) -> bytes:
        """Return the part of a tag that never changes."""
        return tag[:STABLE_BYTES] if self.has_epochs and len(tag) == TAG_BYTES else tag

    @property
    def has_epochs(self) -> bool:
        """True if the tags of the strings have epochs."""
        return self.manifest.version >= WINDOW_VERSION

    def draw_tag(self, shard: int) -> bytes:
        """Return a unique tag for a string that is created now, whoever creates another in its place."""
        tag, drawn = self.manifest.make_tag(shard), secrets.token_bytes(_RANDOM_BYTES)
        if self.has_epochs:
            return tag[:OWNER_BYTES] + drawn + bytes(TAG_BYTES - STABLE_BYTES)
        return tag[:STABLE_BYTES] + drawn

    def is_same_window(self, tag: bytes, other: bytes) -> bool:
        """Return whether two tags belong to the same window, which was not cleared in between."""
        owner = OWNER_BYTES if self.has_epochs else STABLE_BYTES
        return len(tag) == len(other) and tag[:owner] == other[:owner]

    def record_epoch(self, generation: int, shard: int, tag: bytes, known: int) -> None:
        """Take the epoch in a tag, and compare it with the one known before the batch was sent."""
        if not self.has_epochs:
            return
        epoch, place = int.from_bytes(tag[STABLE_BYTES:], "big"), (generation, shard)
        if epoch < known:
            self.rolled_back.add(generation)
        self.epochs[place] = max(epoch, self.epochs.get(place, 0))

    def adopt(self, manifest: Manifest, present: int) -> None:
        """Take a manifest that was read in the generation ``present`` or later."""
        oldest, stored = present - 2 * manifest.generations, read_record(self.name, manifest)
        lost = {one: about for one, about in stored.items() if about.digest == LOST}
        with self._lock:  # another thread may know of a generation that this manifest lacks
            known = self.recorded
            self.is_incomplete = any(
                one > present - manifest.generations and stored.get(one) != about and about.digest != LOST
                for one, about in known.items()
            )
            # The first record counts: a later one of the same generation means that its strings were lost.
            recorded = {**stored, **known, **lost}
            self.recorded = {one: about for one, about in recorded.items() if one >= oldest}
            for one in lost:
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

    def list_live(self, now: CurrentGenerations) -> list[int]:
        """Return the recorded generations that are looked up, including future ones of another clock."""
        return sorted(one for one in self.recorded if one >= now.first)

    def adopt_tags(self, generation: int, tags: list[bytes]) -> bool:
        """Take the tags of all strings of a generation; False if they differ from the record."""
        stable = [self.strip_epoch(tag) for tag in tags]
        about = self.recorded.get(generation)  # another thread may have forgotten one that has ended
        if about is None or digest_tags(stable) != about.digest:
            return False
        for shard, tag in enumerate(tags):
            self.record_epoch(generation, shard, tag, 0)
        self.tags[generation] = stable
        return True

    def find_record(self, generation: int) -> AcknowledgedKeys:
        """Return the record of the acknowledged keys of a generation."""
        return self.acknowledged.setdefault(generation, AcknowledgedKeys(1))

    def record_keys(self, generation: int, hashes: bytes, first: int) -> None:
        """Remember keys that were added; forget generations before ``first``."""
        self.find_record(generation).record(hashes)
        if len(self.acknowledged) > self.manifest.generations:
            self._forget(first)


def with_record(manifest: Manifest, recorded: Mapping[int, RecordedGeneration]) -> Manifest:
    """Return the manifest with a record of these generations."""
    return replace(manifest, begun=format_record(recorded, _make_owner(manifest)))


def _make_owner(manifest: Manifest) -> str:
    return f"{manifest.checksum} {manifest.generation}"


def read_record(name: str, manifest: Manifest) -> dict[int, RecordedGeneration]:
    """Return the generations that a manifest records; FormatError if the record was changed."""
    try:
        return parse_record(manifest.begun, _make_owner(manifest))
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
    return " ".join([*parts, _compute_checksum(owner, parts)])


def parse_record(text: str, owner: str) -> dict[int, RecordedGeneration]:
    """Return what the manifest of ``owner`` records; ValueError for anything but a `format_record`.

    >>> parse_record(format_record({4: RecordedGeneration(900, "00112233445566ff")}, "the id"), "the id")
    {4: RecordedGeneration(ends=900, digest='00112233445566ff')}
    """
    *parts, checksum = text.split(" ")
    if checksum != _compute_checksum(owner, parts):
        raise ValueError("the record was changed")
    if len(parts) > _MAX_RECORDED:  # each is looked up with every batch
        raise ValueError("more generations than a window has")
    recorded = {}
    for part in parts:
        number, ends, digest = part.split(":")
        recorded[int(number)] = RecordedGeneration(int(ends), digest)
    if format_record(recorded, owner) != text or not all(map(_is_possible, recorded.items())):
        raise ValueError("a generation that no window has")
    return recorded


def _is_possible(recorded: tuple[int, RecordedGeneration]) -> bool:
    number, (ends, digest) = recorded
    has_digest = len(digest) == 2 * _DIGEST_BYTES and set(digest) <= set("0123456789abcdef")
    return 0 <= number < _MAX_NUMBER and 0 <= ends < _MAX_NUMBER and has_digest


def restore_record(state: WindowState, key: bytes, clock: Clock) -> Steps[None]:
    """Write back the generations that this client knows, and the manifest at ``key`` lacks.

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
        now = yield from query_generations(state.manifest, clock)
        recorded = read_record(state.name, manifest)
        merged = state.merge_record(recorded, now.first)
        after = with_record(manifest, merged) if merged != recorded else manifest
        if after is manifest or (yield from swap_manifest(state.name, stored, after)):
            state.adopt(after, state.settled)
            return


def _compute_checksum(owner: str, parts: list[str]) -> str:
    return blake2b(" ".join([owner, *parts]).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def compute_generation_seconds(manifest: Manifest) -> float:
    """Return how long a generation takes new keys."""
    return manifest.window / (manifest.generations - 1)


def compute_end(manifest: Manifest, generation: int) -> int:
    """Return the millisecond since 1970 at which the strings of a generation expire."""
    seconds = compute_generation_seconds(manifest)
    return ceil(((generation + manifest.generations) * seconds + GRACE) * 1000)


def query_generations(manifest: Manifest, clock: Clock) -> Steps[CurrentGenerations]:
    """Return the generations of a window at the server's time."""
    seconds = compute_generation_seconds(manifest)
    earliest, latest = (int(moment // seconds) for moment in (yield from clock.now()))
    return CurrentGenerations(earliest - manifest.generations + 1, earliest, latest)


def count_spare_generations(manifest: Manifest) -> int:
    """Return how many generations exist that are not looked up any more."""
    return ceil(GRACE / compute_generation_seconds(manifest))


def list_upcoming_keys(name: str, new: Manifest) -> list[bytes]:
    """Return the keys of the strings that a new window will have."""
    state, present = WindowState(name, new), int(time.time() // compute_generation_seconds(new))
    generations = range(present, present + new.generations)
    return [key for generation in generations for key in state.list_keys(generation)]


#: Creates a string of ARGV[1] zero bytes, followed by a tag and with an expiry, unless it exists; returns the
#: tag of the string that exists.
_CREATE = (
    b"if redis.call('EXISTS', KEYS[1]) == 0 then "
    b"redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2]) redis.call('PEXPIREAT', KEYS[1], ARGV[3]) end "
    b"return redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + #ARGV[2] - 1)"
)


def create_strings(new: Sequence[NewString], ends: int) -> Steps[list[bytes]]:
    """Create the missing strings, which expire at the millisecond ``ends``.

    Returns the tags of all that exist then, b"" for those that have expired.
    """
    scripts = [(b"EVAL", _CREATE, 1, one.key, one.nbytes, one.tag, ends) for one in new]
    try:
        replies = yield [Call(one.key, words) for one, words in zip(new, scripts, strict=True)]
        return [parse_text(reply, TAG_BYTES) or b"" for reply in replies]
    except (EngineTimeout, EngineUnavailable, EngineFull, EngineNameTaken):
        raise
    except EngineError:  # no scripts
        tags = list[bytes]()
        for one in new:
            try:
                yield from write_string(one, Renewal())
                yield from call(one.temporary, b"PEXPIREAT", one.temporary, ends)
                tags += [(yield from claim_name(one))]
            finally:
                yield from call(one.temporary, b"UNLINK", one.temporary)
        return tags


def make_new_string(key: bytes, nbytes: int, tag: bytes) -> NewString:
    """Return a string to be created, whose temporary key no other client has."""
    return NewString(make_colocated_key(key, b"new:" + tag.hex().encode()), key, nbytes, tag)
