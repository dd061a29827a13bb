"""The filters as the keys of servers; each method is a generator of requests.

This module has what Bloom and counting filters have in common: what a client knows of a filter, how an
expired filter is created again, and the verification.

A filter with a ttl expires as a whole: the manifest and all strings at the same moment by the server's clock.
In a cluster each node uses its own clock, and the node with the manifest chooses the moment. A client that
misses a string asks the node which should have it for the time: after that moment the filter is empty, before
it something was lost. The strings have the filter's id in their keys, so an add that arrives too late writes
where no client reads; the client that sent it deletes what it wrote, and adds to the next filter.
"""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fullbloom.engines.redis.protocol import (
    SendBatch,
    Sleep,
    call,
    change_with_expiry,
    create,
    interruption_error,
    loss_error,
    parse_number,
    read_number,
    read_part,
    refusal_error,
    rollback_error,
    try_script,
)
from fullbloom.engines.redis.protocol.create import PIECE, Overtaken
from fullbloom.engines.redis.protocol.manifest import (
    BUILDING,
    MODULE,
    OWNER_BYTES,
    STABLE_BYTES,
    TAG_BYTES,
    AcknowledgedKeys,
    Manifest,
    Names,
    make_cells,
    make_expiry_command,
    make_shard,
    read_generation,
)
from fullbloom.errors import (
    EngineNameTaken,
    EngineTimeout,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom._core import WireBatch, WireCells, WireCounterBatch, WireExchange
    from fullbloom.engines.redis.protocol import Acks, Shard, Steps

T = TypeVar("T")

#: What a filter of the server's own has instead of a tag: the reply that it exists.
EXISTS = b"\x01"
#: Later than any generation.
LATER = 1 << 64


class Tags(NamedTuple):
    """What must follow the cells of each shard: the stable prefix of its tag, and the tag's length."""

    stable: tuple[bytes, ...]
    nbytes: int


def join_progress(generation: int, epoch: int) -> int:
    """Return the generation and the epoch of a string as one number, which never decreases."""
    return generation << 32 | epoch


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A filter as its manifest described it: batches are built from it, and replies compared with it."""

    manifest: Manifest
    names: Names
    cells: WireCells
    tags: Tags
    shards: tuple[Shard, ...]
    #: Keys that the server acknowledged for this snapshot.
    acknowledged: AcknowledgedKeys
    #: The latest progress seen in each shard: of one string it never decreases.
    progress: list[int]
    #: The strings that are written, too, during a reshard.
    other: Snapshot | None
    #: Shards written to since their epochs were raised, and when that was.
    touched: set[int] = field(default_factory=set)
    raised: list[float] = field(default_factory=lambda: [time.monotonic()])

    @classmethod
    def from_manifest(cls, name: str, manifest: Manifest, secret: bytes | None) -> Snapshot:
        """Return the snapshot for a manifest."""
        names = Names.from_manifest(name, manifest)
        tags = Tags(tuple(manifest.make_stable_tag(shard) for shard in range(manifest.shards)), TAG_BYTES)
        return cls(
            manifest,
            names,
            make_cells(manifest, secret),
            Tags((EXISTS,), len(EXISTS)) if manifest.backend == MODULE else tags,
            tuple(make_shard(number, key) for number, key in enumerate(names.bits)),
            AcknowledgedKeys(manifest.shards),
            [0] * manifest.shards,
            cls.from_manifest(name, manifest.with_other_layout(), secret) if manifest.other_shards else None,
        )

    @property
    def view(self) -> tuple[str, int, int]:
        """The filter's id, the layout that is read, and the other one that is written."""
        manifest = self.manifest
        other = manifest.other_layout_version + 1 if manifest.other_shards else 0
        return manifest.id, manifest.layout_version, other

    @property
    def is_copying(self) -> bool:
        """True while the old strings are read, and both old and new ones written."""
        manifest = self.manifest
        return manifest.other_shards > 0 and manifest.other_layout_version > manifest.layout_version

    def is_as_known(self, shard: int, tag: bytes) -> bool:
        """Return whether a tag is the known one."""
        return len(tag) == self.tags.nbytes and tag.startswith(self.tags.stable[shard])

    def is_own(self, shard: int, tag: bytes) -> bool:
        """Return whether a tag belongs to this filter, in any generation."""
        if self.manifest.backend == MODULE:
            return tag == EXISTS
        return self.manifest.is_own(shard, tag)

    def read_generation(self, shard: int, tag: bytes) -> int:
        """Return the generation in a tag of this filter; a later one than any for another tag."""
        has_generation = self.manifest.backend != MODULE and self.is_own(shard, tag)
        return read_generation(tag) if has_generation else LATER

    def read_progress(self, tag: bytes) -> int:
        """Return the generation and the epoch in a tag, as one number."""
        if self.manifest.backend == MODULE:
            return 0
        return join_progress(read_generation(tag), self.manifest.read_epoch(tag))

    def record_progress(self, shard: int, progress: int) -> None:
        """Remember the progress of a shard, if it is later than the known one."""
        self.progress[shard] = max(progress, self.progress[shard])

    def record_replacement(self) -> None:
        """Remember that this client has replaced all strings in this generation."""
        if self.manifest.backend != MODULE:
            for shard in range(self.manifest.shards):
                self.record_progress(shard, join_progress(self.manifest.generation, 0))

    def inherit_progress(self, old: Snapshot) -> None:
        """Take what an earlier snapshot has seen of the same strings."""
        if self.manifest.id != old.manifest.id or self.manifest.generation < old.manifest.generation:
            return
        for part in (self, self.other):
            for known in (old, old.other):
                if part and known and part.names.bits == known.names.bits:
                    part.progress[:] = known.progress

    def with_tag(self, shard: int, tag: bytes) -> Snapshot:
        """Return a copy with another tag of a shard, whose string was replaced, and without known keys."""
        stable = list(self.tags.stable)
        stable[shard] = tag[: len(stable[shard])]
        tags = Tags(tuple(stable), self.tags.nbytes)
        return replace(self, tags=tags, acknowledged=self.make_record())

    def make_record(self) -> AcknowledgedKeys:
        """Return an empty record of acknowledged keys."""
        return AcknowledgedKeys(self.manifest.shards)

    def nbytes(self, shard: int) -> int:
        """Return the bytes of a shard's cells."""
        return self.cells.range(shard)[1]


class StoredCells(ABC):
    """The common base of Bloom and counting filters: the client's knowledge of the filter."""

    snapshot: Snapshot
    #: Keys that were new when this client added them, and keys that it removed.
    num_changed = 0

    def __init__(self, name: str, manifest: Manifest, secret: bytes | None) -> None:
        """Take the manifest on the server."""
        self.name, self.secret = name, secret
        #: Replicas that must confirm what is added.
        self.acks: Acks | None = None
        #: True once the server was seen in an earlier state, until the filter is cleared or loaded.
        self.rolled_back = False
        #: When a filter with a ttl expires by this process's clock; None until the server reports it.
        self.ends: float | None = None
        self._lock = Lock()
        self.adopt(manifest)

    @property
    def manifest(self) -> Manifest:
        """The manifest that this client knows."""
        return self.snapshot.manifest

    @property
    def names(self) -> Names:
        """The keys on the server."""
        return self.snapshot.names

    @abstractmethod
    def adopt(self, manifest: Manifest) -> None:
        """Switch to a new manifest and drop the acknowledgements."""

    def compare_progress(self, part: Snapshot, shard: int, tag: bytes, known: int) -> None:
        """Raise if a string is in an earlier state than the one known before the batch was sent."""
        progress = part.read_progress(tag)
        if progress < known:
            self.rolled_back = True
            raise rollback_error(self.name)
        part.record_progress(shard, progress)

    def adopt_replacement(self, manifest: Manifest) -> None:
        """Switch to the manifest in whose generation this client has replaced all strings."""
        with self._lock:  # another thread may adopt a later generation, whose strings are not there yet
            self.adopt(manifest)
            self.snapshot.record_replacement()
            self.rolled_back = False

    @abstractmethod
    def explain_loss(self, what: str) -> Steps[Exception]:
        """Return the exception for a missing key or manifest."""

    @abstractmethod
    def read_tag(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Return the tag of a shard; raise if it does not belong to this filter."""

    @abstractmethod
    def adopt_tag(self, snapshot: Snapshot, part: Snapshot, shard: int, tag: bytes) -> None:
        """Accept a tag of another generation: the filter was cleared or loaded, with the same parameters."""

    @abstractmethod
    def count_growing(self) -> Steps[tuple[list[int], bool]]:
        """Count what only grows unless something is lost; and whether the server went back, if that shows."""

    @abstractmethod
    def count_found(self, hashes: bytes) -> Steps[int]:
        """Count the given hashes that are found; raise `Overtaken` if a string was replaced meanwhile."""

    def _exchange(
        self,
        part: Snapshot,
        batch: WireBatch | WireCounterBatch,
        *,
        once: bool = False,
        changing: bool = False,
    ) -> Steps[list[WireExchange]]:
        """Send a batch to the strings of a snapshot; raise what a server refuses."""
        shards = [part.shards[shard] for shard in batch.shards]
        exchanges: list[WireExchange]
        (exchanges,) = yield [SendBatch(batch, shards, once, self.acks if changing else None)]
        for exchange in exchanges:
            if exchange.refusals:
                raise refusal_error(self.name, exchange.refusals[0][1])
        return exchanges

    def _count_changed(self, count: int) -> None:
        with self._lock:
            self.num_changed += count


def read_tags(storage: StoredCells, known: Snapshot) -> Steps[list[bytes]]:
    """Return the tags of all strings, without epochs."""
    tags = list[bytes]()
    for shard in range(known.manifest.shards):
        tags.append((yield from storage.read_tag(shard, known))[:STABLE_BYTES])
    return tags


def read_cells(
    storage: StoredCells, known: Snapshot, tags: list[bytes], write: Callable[[int, bytes], object]
) -> Steps[None]:
    """Read all cells and ``write`` each piece; raise `Overtaken` if a tag is not the one in ``tags``."""
    for shard, key in enumerate(known.names.bits):
        (first, nbytes), is_short = known.cells.range(shard), False
        for at in range(0, nbytes, PIECE):
            piece = yield from read_part(key, at, min(PIECE, nbytes - at))
            if is_short := len(piece) != min(PIECE, nbytes - at):
                break
            write(first + at, piece)
        if (yield from storage.read_tag(shard, known))[:STABLE_BYTES] != tags[shard]:
            raise Overtaken
        if is_short:
            raise loss_error(storage.name, f"a part of the cells of shard {shard}")


#: Merges KEYS[2] into KEYS[1] if its tag begins with ARGV[2]; -1 if KEYS[2] has expired or was evicted, also
#: if it was written to since, without a time to live or a tag. BITOP alone would remove the time to live.
_MERGE = (
    b"local at = tonumber(ARGV[1]) "
    b"if redis.call('STRLEN', KEYS[2]) < at + 16 or redis.call('PTTL', KEYS[2]) < 0 then return -1 end "
    b"if redis.call('GETRANGE', KEYS[1], at, at + 7) ~= ARGV[2] then return 0 end "
    b"local left = redis.call('PTTL', KEYS[1]) "
    b"if left < 0 then redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2]) return 1 end "
    b"redis.call('BITOP', 'OR', KEYS[2], KEYS[1], KEYS[2]) redis.call('PEXPIRE', KEYS[2], %d) "
    b"redis.call('SETRANGE', KEYS[1], 0, redis.call('GETRANGE', KEYS[2], 0, at - 1)) "
    b"return 1" % create.TEMPORARY_TTL
)


def merge_string(storage: StoredCells, part: Snapshot, shard: int, other: bytes) -> Steps[None]:
    """Set the bits of another string, which expires and whose tag is all zeros, if the string exists."""
    key, at, owner = part.names.bits[shard], part.nbytes(shard), part.manifest.compute_owner(shard)
    reply = yield from try_script(_MERGE, (key, other), at, owner)
    if reply is None:  # no scripts
        is_whole = (yield from read_number(other, b"STRLEN", other)) >= at + TAG_BYTES
        is_whole = is_whole and (yield from read_number(other, b"PTTL", other)) >= 0
    else:
        is_whole = parse_number(reply) >= 0
    if not is_whole:
        raise interruption_error(storage.name, create.TEMPORARY_TTL // 1000)
    if reply is None:
        words = (b"BITOP", b"OR", key, key, other)
        if part.manifest.ttl:
            yield from change_with_expiry(key, make_expiry_command(part.manifest), *words, others=(other,))
        else:
            yield from call(key, *words)


#: Deletes a string with this filter's owner bytes, or one without a tag that does not expire.
_SWEEP = (
    b"local whole, size = tonumber(ARGV[1]), redis.call('STRLEN', KEYS[1]) "
    b"local owner = redis.call('GETRANGE', KEYS[1], whole, whole + 7) "
    b"local bare = size > 0 and size <= whole and redis.call('PTTL', KEYS[1]) == -1 "
    b"if bare or (ARGV[3] == '1' and owner == ARGV[2]) "
    b"then return redis.call('DEL', KEYS[1]) end "
    b"return 0"
)


def sweep_string(part: Snapshot, shard: int, *, own: bool) -> Steps[None]:
    """Delete a string without a tag, which an add left behind after the filter was gone.

    With ``own``, deletes one with the tag of this filter as well.
    """
    key, nbytes, owner = part.names.bits[shard], part.nbytes(shard), part.manifest.compute_owner(shard)
    with suppress(EngineNameTaken):  # something else has that key, and keeps it
        if (yield from try_script(_SWEEP, (key,), nbytes, owner, int(own))) is None:
            size = yield from read_number(key, b"STRLEN", key)
            bare = 0 < size <= nbytes and (yield from read_number(key, b"PTTL", key)) == -1
            if bare or (own and (yield from read_part(key, nbytes, OWNER_BYTES)) == owner):
                yield from call(key, b"UNLINK", key)


#: What the next filter must have in common with the expired one.
_COMMON = (
    "backend",
    "capacity",
    "fpr",
    "layout",
    "scheme",
    "hash",
    "num_bits",
    "num_hashes",
    "seed",
    "secret",
)
_CLOCK_ATTEMPTS, _CLOCK_WAIT = 200, 0.05
#: Times that an operation is begun again because the filter expired during it.
_EXPIRY_ATTEMPTS = 5


class Expired(Exception):
    """The filter has expired: it holds nothing."""


class ExpiringCells(StoredCells):
    """A filter that may have a ttl."""

    @abstractmethod
    def refresh(self) -> Steps[Snapshot]:
        """Read the manifest again, and adopt it; raise `Expired` if the filter has expired."""


def check_expiry(storage: ExpiringCells) -> Steps[None]:
    """Raise `Expired` if the filter has expired; asks the server only if this client's clock says so.

    Without this check, adds after a long pause would write to strings that are gone.
    """
    ends = storage.ends  # read once: another thread may set it to None
    if ends is None:
        key = storage.names.manifest
        left = yield from read_number(key, b"PTTL", key)
        ends = storage.ends = inf if left == -1 else time.monotonic() + max(left, 0) / 1000
    if time.monotonic() >= ends:
        storage.ends = None
        yield from storage.refresh()


def recreate(storage: ExpiringCells, old: Manifest) -> Steps[None]:
    """Create the expired filter ``old`` again, or adopt the one that another client created."""
    now = storage.manifest
    if now.id != old.id or now.expires > old.expires:  # another thread has done so, or a clear began a ttl
        return
    for part in (old, old.with_other_layout()) if old.other_shards else (old,):
        for key in Names.from_manifest(storage.name, part).bits:
            yield from call(key, b"UNLINK", key)
    for _ in range(_CLOCK_ATTEMPTS):
        manifest = yield from create.wait_until_ready(storage.name)
        if manifest is None:
            new = replace(
                old.with_layout(old.shards, 0), id=secrets.token_hex(16), generation=0, state=BUILDING
            )
            cells = make_cells(new, storage.secret)
            manifest = yield from create.create_filter(storage.name, new, cells)
        if manifest.id != old.id:
            return _adopt_next(storage, manifest)
        yield [Sleep(_CLOCK_WAIT)]  # the clock of the node with the manifest is behind
    raise EngineTimeout(
        f"filter {storage.name!r}: it has expired by the clock of one node, but not by that of another "
        f"{_CLOCK_ATTEMPTS * _CLOCK_WAIT:.0f} s later; synchronize the clocks of the cluster"
    )


def adopt_successor(storage: ExpiringCells) -> Steps[bool]:
    """Adopt the filter that another client created after the expiry; False if it does not exist."""
    manifest = yield from create.wait_until_ready(storage.name)
    if manifest is None or manifest.id == storage.manifest.id:
        return False
    _adopt_next(storage, manifest)
    return True


def _adopt_next(storage: ExpiringCells, manifest: Manifest) -> None:
    old = asdict(storage.manifest)
    manifest.require_match(storage.name, {field: old[field] for field in (*_COMMON, "ttl")})
    storage.adopt(manifest)


def run_or_recreate(storage: ExpiringCells, steps: Callable[[], Steps[T]]) -> Steps[T]:
    """Run steps, recreating the filter if it expired."""
    for _ in range(_EXPIRY_ATTEMPTS):
        old = storage.manifest
        try:
            return (yield from steps())
        except Expired:
            yield from recreate(storage, old)
    raise _make_expiry_error(storage)


def run_or_default(
    storage: ExpiringCells, steps: Callable[[], Steps[T]], default: Callable[[], T]
) -> Steps[T]:
    """Run steps that only read; return ``default()`` if the filter expired and has no successor."""
    for _ in range(_EXPIRY_ATTEMPTS):
        old = storage.manifest
        try:
            return (yield from steps())
        except Expired:
            if storage.manifest.id == old.id and not (yield from adopt_successor(storage)):
                return default()
    raise _make_expiry_error(storage)


def _make_expiry_error(storage: ExpiringCells) -> EngineTimeout:
    return EngineTimeout(
        f"filter {storage.name!r}: its ttl of {storage.manifest.ttl} s was over before this was done, "
        f"{_EXPIRY_ATTEMPTS} times; give it more"
    )
