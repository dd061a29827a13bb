"""A filter in plain strings: cells followed by a 16-byte owner tag.

Each batch reads, behind its keys, the tags of the strings that it touches. So the next batch notices a server
that lost a string, has another filter's string in its place, or returned to an earlier state.

A batch is built from a `Snapshot`, which never changes and is only replaced as a whole: replies are compared
with the snapshot that the commands were written from, whatever other threads or tasks find out meanwhile. If
they differ, the manifest is read again, and the batch is sent again from another snapshot.
"""

from __future__ import annotations

import time
from array import array
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom.engines.redis.protocol import (
    HASH_BYTES,
    Sleep,
    Steps,
    call,
    count_bits,
    create,
    loss_error,
    parse_number,
    read_part,
    read_time,
    reply_error,
    rollback_error,
    try_script,
)
from fullbloom.engines.redis.protocol.create import Overtaken
from fullbloom.engines.redis.protocol.manifest import (
    DELETING,
    MODULE,
    STABLE_BYTES,
    STRINGS,
    TAG_BYTES,
    read_generation,
)
from fullbloom.engines.redis.protocol.plan import PORTION
from fullbloom.engines.redis.storage import (
    LATER,
    Expired,
    ExpiringCells,
    Snapshot,
    adopt_successor,
    check_expiry,
    join_progress,
    recreate,
    run_or_default,
    sweep_string,
)
from fullbloom.engines.redis.storage.verification import (
    Attempt,
    MovedShards,
    Verification,
    combine_attempts,
    judge_answers,
    select_answers,
    verify_expiring,
)
from fullbloom.errors import EngineTimeout, FullbloomError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fullbloom._core import WireBatch, WireCells, WireKeys
    from fullbloom.engines.redis.protocol.manifest import AcknowledgedKeys, Manifest

    #: The reply about a shard: its number, its tag, whether the string was too short, bits that were set.
    ShardReply = tuple[int, bytes, bool, int]

#: Seconds after which an add raises the epoch of the strings it wrote to.
RAISED_EVERY = 0.25
_MAX_EPOCH = (1 << 32) - 1
#: Retries without a pause, and in all; seconds between the later ones.
_IMMEDIATE_RETRIES, _MAX_RETRIES, _WAIT = 4, 200, 0.05


class LoadEstimate(NamedTuple):
    """How full a filter is."""

    fpr: float
    #: Estimated number of keys, and its standard deviation.
    keys: float
    keys_sd: float
    #: Share of set bits; None if the server does not show them.
    fill: float | None


class Strings(ExpiringCells):
    """The filter as its strings; each method is a generator of requests."""

    #: True of a filter that this client has just created.
    is_new = False

    def adopt(self, manifest: Manifest) -> None:
        """Switch to a new manifest and drop the acknowledgements."""
        self._adopt_snapshot(Snapshot.from_manifest(self.name, manifest, self.secret))

    def _adopt_snapshot(self, snapshot: Snapshot) -> None:
        old = getattr(self, "snapshot", None)
        if old is None or old.manifest.id != snapshot.manifest.id or _is_cleared(old, snapshot):
            self.rolled_back = False
        else:
            snapshot.inherit_progress(old)
        self.snapshot = snapshot
        self.ends = None

    @property
    def cells(self) -> WireCells:
        """The native cells."""
        return self.snapshot.cells

    @property
    def acknowledged(self) -> AcknowledgedKeys:
        """The keys that the server acknowledged to this client."""
        return self.snapshot.acknowledged

    def hash_key(self, key: Any) -> bytes:
        """Return the hash of one key."""
        return self.cells.one(key).hashes

    def run_batch(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look up or add many keys; return the answers in the container type of the keys, if requested."""
        if not is_collection(keys):
            steps = partial(self.run_batch, adding=adding, answer=answer)
            return (yield from run_iterator(keys, PORTION, steps, answer=answer))
        batch = self.cells.keys(keys, adding=adding)
        batch.give((yield from self._send_portions(batch, adding=adding)))
        return batch.answers(keys) if answer else None

    def run_hashed_batch(self, hashes: Any, *, adding: bool) -> Steps[Any]:
        """Look up or add the keys of given hashes; return the answers in the container type of the hashes."""
        batch = self.cells.hashed(_read_hashes(hashes), adding=adding)
        batch.give((yield from self._send_portions(batch, adding=adding)))
        return batch.answers(hashes)

    def run_hashes(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look up or add given hashes; return a byte for each: 1 if found, or new."""
        return self._send_portions(self.cells.hashed(hashes, adding=adding), adding=adding)

    def _send_portions(self, keys: WireKeys, *, adding: bool) -> Steps[bytes]:
        if 0 < len(keys) <= PORTION:
            return (yield from self._send_until_final(partial(keys.batch, 0, PORTION), adding=adding))
        answers = []
        for start in range(0, len(keys), PORTION):
            portion = partial(keys.batch, start, start + PORTION)
            answers.append((yield from self._send_until_final(portion, adding=adding)))
        return b"".join(answers)

    def _send_until_final(self, make: Callable[[WireCells], WireBatch], *, adding: bool) -> Steps[bytes]:
        """Send a batch, and resend it whenever a reshard has moved the filter; return one byte per key.

        An added key is new if any attempt says so; for lookups the last attempt counts. If the filter
        expires, adds recreate it, and lookups find nothing unless another client has done so.
        """
        attempts: list[Attempt] = []
        for number in count():
            if number >= _IMMEDIATE_RETRIES:
                yield [Sleep(_WAIT)]
            if number >= _MAX_RETRIES:
                raise EngineTimeout(
                    f"filter {self.name!r}: it is resharded faster than a batch can be sent; try again"
                )
            snapshot = self.snapshot
            try:
                if snapshot.manifest.ttl:
                    yield from check_expiry(self)
                    snapshot = self.snapshot
                attempt = yield from self._send(snapshot, make, adding=adding)
            except Expired:
                if adding:
                    attempts.clear()
                    yield from recreate(self, snapshot.manifest)
                    continue
                if self.manifest.id == snapshot.manifest.id and not (yield from adopt_successor(self)):
                    return bytes(len(make(snapshot.cells)))
                continue
            attempts.append(attempt)
            if attempt.is_final:
                if not adding:
                    return attempt.answers
                answers = combine_attempts(attempts)
                self._count_changed(answers.count(1))
                return answers
        raise AssertionError  # count() does not end

    def _send(
        self, snapshot: Snapshot, make: Callable[[WireCells], WireBatch], *, adding: bool
    ) -> Steps[Attempt]:
        """Send a batch by a snapshot."""
        if self.rolled_back:
            yield from self._require_cleared(snapshot)
            nothing = bytes(len(make(snapshot.cells)))
            return Attempt(nothing, nothing, nothing, is_final=False)
        other, late = snapshot.other if adding else None, MovedShards()
        if other is not None:
            copy = make(other.cells)
            late = yield from self._send_to(snapshot, other, copy, adding=True)
        batch = make(snapshot.cells)
        moved = yield from self._send_to(snapshot, snapshot, batch, adding=adding)
        answers = batch.answers
        if not adding:
            return Attempt(answers, answers, answers, is_final=not moved)
        likely, generation = bytes(len(answers)), snapshot.manifest.generation
        if other is None or not snapshot.is_copying:
            # Read in this state and the next one or two; then other strings are.
            until = generation + (2 if other is None else 3)
            answers, likely = judge_answers(make, snapshot.cells, moved, until, answers)
            first = answers
        else:
            # Old strings that have expired no longer say what is new.
            answers, _ = judge_answers(make, snapshot.cells, moved, LATER, answers)
            first, likely = judge_answers(make, other.cells, late, generation + 4, copy.answers)
            if late:
                # Where clients read the new strings already, a key must be new in both: its tag is read after
                # it was added, which may have been while other clients still went by the old strings.
                both = bytes(new & old for new, old in zip(first, answers, strict=True))
                answers = select_answers(make, other.cells, set(late), both, answers)
        if late or moved:
            return Attempt(answers, likely, first, is_final=False)
        snapshot.acknowledged.record(batch.hashes)
        yield from raise_epochs(snapshot)
        return Attempt(answers, likely, first, is_final=True)

    def _require_cleared(self, snapshot: Snapshot) -> Steps[None]:
        """Raise unless another client has cleared the filter since it was rolled back."""
        yield from self.refresh(snapshot)
        if self.rolled_back:
            raise rollback_error(self.name)

    def count_found(self, hashes: bytes) -> Steps[int]:
        """Count the given hashes that are found; raise `Overtaken` if a string was replaced meanwhile."""
        snapshot = self.snapshot
        keys = snapshot.cells.hashed(hashes)
        found = 0
        for start in range(0, len(keys), PORTION):
            batch = keys.batch(start, start + PORTION)
            for exchange in (yield from self._exchange(snapshot, batch)):
                if any(
                    short or not snapshot.is_as_known(shard, tag) for shard, tag, short, _ in exchange.states
                ):
                    raise Overtaken
                batch.take(exchange)
            found += batch.count
        return found

    def _send_to(
        self, snapshot: Snapshot, part: Snapshot, batch: WireBatch, *, adding: bool
    ) -> Steps[MovedShards]:
        """Send a batch to the strings of a snapshot, or to the other ones that it writes.

        Returns the shards whose tags changed, if the filter is in other strings by now.
        """
        known, counted = {shard: part.progress[shard] for shard in batch.shards}, part.acknowledged.counted
        exchanges = yield from self._exchange(part, batch, changing=adding)
        replies: list[ShardReply] = [reply for exchange in exchanges for reply in exchange.states]
        for exchange in exchanges:
            batch.take(exchange)
        changed = [reply for reply in replies if reply[2] or not part.is_as_known(reply[0], reply[1])]
        if changed:
            late = yield from self._explain_tags(snapshot, part, changed, adding=adding)
            if late:
                return late
        for shard, tag, _, _ in replies:
            self.compare_progress(part, shard, tag, known[shard])
        if adding:
            for shard, _, _, bits in replies:
                self._record_bits(part, shard, bits, counted)
            part.touched.update(known)
        return MovedShards()

    def _record_bits(self, part: Snapshot, shard: int, bits: int, counted: int) -> None:
        """Remember that bits of a shard were set."""
        part.acknowledged.add_bits(shard, bits, counted)

    def _explain_tags(
        self, snapshot: Snapshot, part: Snapshot, changed: list[ShardReply], *, adding: bool
    ) -> Steps[MovedShards]:
        """Find out why tags have changed.

        Returns the shards if the filter is in other strings by now, none if the answers are valid. Raises
        what was lost.
        """
        try:
            current = yield from self.refresh(snapshot)
        except (FullbloomError, Expired):
            if adding:
                yield from self._sweep_bare(part, changed)
            raise
        if current.view != snapshot.view:
            if adding:
                yield from self._sweep_bare(part, changed)
            return MovedShards(
                (shard, LATER if short else part.read_generation(shard, tag))
                for shard, tag, short, _ in changed
            )
        for shard, tag, short, _ in changed:
            if short or not part.is_own(shard, tag):
                raise (yield from self._explain_shard_loss(shard, part.names.bits[shard], current))
            self.adopt_tag(snapshot, part, shard, tag)
        return MovedShards()

    def _explain_shard_loss(self, shard: int, key: bytes, known: Snapshot) -> Steps[Exception]:
        return self.explain_loss(f"the cells of shard {shard}", key, known)

    def _sweep_bare(self, part: Snapshot, changed: list[ShardReply]) -> Steps[None]:
        """Delete strings that an add wrote without a filter, as far as the server can be reached."""
        if part.manifest.backend == STRINGS:
            with suppress(FullbloomError):
                for shard, tag, _, _ in changed:
                    if not part.is_own(shard, tag):
                        yield from sweep_string(part, shard, own=False)

    def sweep(self, snapshot: Snapshot) -> Steps[None]:
        """Delete the strings of a filter whose manifest is gone."""
        for part in (snapshot, snapshot.other):
            if part is not None and part.manifest.backend == STRINGS:
                for shard in range(part.manifest.shards):
                    yield from sweep_string(part, shard, own=True)

    def adopt_tag(self, snapshot: Snapshot, part: Snapshot, shard: int, tag: bytes) -> None:
        """Accept a tag of another generation: the filter was cleared or loaded, with the same parameters."""
        with self._lock:
            # Another thread may have found out more.
            if self.snapshot is not snapshot or part.is_as_known(shard, tag):
                return
            new = part.with_tag(shard, tag)
            self.snapshot = new if part is snapshot else replace(snapshot, other=new)

    def refresh(self, known: Snapshot | None = None) -> Steps[Snapshot]:
        """Read the manifest again, and adopt it if it is a later generation of this filter."""
        known = self.snapshot if known is None else known
        stored = yield from create.read_manifest(self.name)
        if stored is None:
            raise (yield from self.explain_loss("its manifest", None, known))
        manifest = stored[1]
        if manifest.id != known.manifest.id:
            what = "the filter: another one of this name was created since"
            raise (yield from self.explain_loss(what, None, known))
        if manifest.state == DELETING:
            raise loss_error(self.name, "the filter: it is being deleted")
        if manifest.generation < known.manifest.generation:
            self.rolled_back = True
            raise rollback_error(self.name)
        with self._lock:
            mine = self.snapshot.manifest
            newer = manifest.generation > mine.generation or manifest.expires > mine.expires
            if manifest.id == mine.id and newer:
                self._adopt_snapshot(Snapshot.from_manifest(self.name, manifest, self.secret))
            return self.snapshot

    def explain_loss(
        self, what: str, key: bytes | None = None, known: Snapshot | None = None
    ) -> Steps[Exception]:
        """Return the exception for a missing key or manifest: the filter has expired, or it was lost."""
        snapshot = self.snapshot if known is None else known
        manifest = snapshot.manifest
        if manifest.ttl and (yield from read_time(key or snapshot.names.manifest)) >= manifest.expires:
            return Expired()
        return loss_error(self.name, what)

    def require_cells(self, what: str) -> None:
        """Raise if the server does not show the cells."""

    def read_tag(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Return the tag of a shard; raise if it does not belong to this filter."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        tag = yield from read_part(key, snapshot.nbytes(shard), TAG_BYTES)
        if not snapshot.is_own(shard, tag):
            yield from self.refresh(self.snapshot)
            raise (yield from self._explain_shard_loss(shard, key, snapshot))
        return tag

    @property
    def nbytes(self) -> int | None:
        """Bytes of all cells; None if the server does not show them."""
        cells = self.cells
        return sum(cells.range(shard)[1] for shard in range(cells.shards))

    def estimate_load(self) -> Steps[LoadEstimate]:
        """Estimate how full the filter is."""
        ones, cells = (yield from run_or_default(self, self._sum_ones, int)), self.cells
        return LoadEstimate(cells.fpr(ones), *cells.approx_count(ones), cells.fill(ones))

    def _sum_ones(self) -> Steps[int]:
        return sum((yield from self.count_ones()))

    def count_growing(self) -> Steps[tuple[list[int], bool]]:
        """Count what only grows unless something is lost: the set bits of each shard."""
        return (yield from self.count_ones()), False

    def count_ones(self) -> Steps[list[int]]:
        """Count the set bits of each shard."""
        snapshot = yield from self.refresh()
        counts = []
        for shard, key in enumerate(snapshot.names.bits):
            counts.append((yield from count_bits(key, snapshot.nbytes(shard))))
        return counts

    def verify(self, *, restarted: bool) -> Steps[Verification]:
        """Compare what the server has with what it acknowledged to this client."""
        return verify_expiring(self, restarted=restarted)


def raise_epochs(snapshot: Snapshot) -> Steps[None]:
    """Raise the epochs of the shards that were written to, once in a while.

    An epoch confirms all that was acknowledged before. If the server cannot raise it now, the add succeeds
    all the same, and the next one tries again.
    """
    if snapshot.manifest.version == 1 or snapshot.manifest.backend == MODULE:
        return
    at = time.monotonic()
    if at - snapshot.raised[0] < RAISED_EVERY:
        return
    snapshot.raised[0] = at
    with suppress(FullbloomError):
        for part in (snapshot, snapshot.other):
            if part is None:
                continue
            for shard in list(part.touched):
                part.touched.discard(shard)
                try:
                    epoch = yield from raise_epoch(
                        part.names.bits[shard], part.nbytes(shard), part.tags.stable[shard]
                    )
                except BaseException:
                    part.touched.add(shard)
                    raise
                if epoch >= 0:
                    generation = read_generation(part.tags.stable[shard])
                    part.record_progress(shard, join_progress(generation, epoch))


#: Raises the epoch of a string whose tag begins with ARGV[2]; returns -1 for another tag.
_RAISE_EPOCH = (
    b"local at = tonumber(ARGV[1]) "
    b"if redis.call('GETRANGE', KEYS[1], at, at + #ARGV[2] - 1) ~= ARGV[2] then return -1 end "
    b"return redis.call('BITFIELD', KEYS[1], 'OVERFLOW', 'SAT', 'INCRBY', 'u32', (at + 12) * 8, 1)[1]"
)


def raise_epoch(key: bytes, at: int, stable: bytes) -> Steps[int]:
    """Raise the epoch in the tag at ``at``; return the new one, or -1 if the string was replaced."""
    reply = yield from try_script(_RAISE_EPOCH, (key,), at, stable)
    if reply is None:
        if (yield from read_part(key, at, len(stable))) != stable:
            return -1
        place = (at + STABLE_BYTES) * 8
        words = (b"BITFIELD", key, b"OVERFLOW", b"SAT", b"INCRBY", b"u32", place, 1)
        replies = yield from call(key, *words)
        reply = replies[0] if isinstance(replies, list) and replies else None
    epoch = parse_number(reply)
    if not -1 <= epoch <= _MAX_EPOCH:
        raise reply_error("no epoch")
    return epoch


def _is_cleared(old: Snapshot, new: Snapshot) -> bool:
    """Return whether the later of two generations holds other keys, rather than being a step of a reshard."""
    is_later = old.manifest.generation < new.manifest.generation
    return is_later and old.view == new.view and not new.manifest.other_shards


def _read_hashes(hashes: Any) -> bytes:
    """Return hashes as 8 bytes each; ParameterTypeError unless it is a list or buffer of 64-bit hashes."""
    try:
        view = memoryview(array("Q", hashes) if isinstance(hashes, (list, tuple)) else hashes)
    except (TypeError, OverflowError):
        view = memoryview(b"")
    if view.ndim != 1 or view.itemsize != HASH_BYTES or view.format not in {"Q", "L", "<Q", "<L", "=Q", "=L"}:
        raise ParameterTypeError(
            f"hashes must be a list, or a buffer of unsigned 64-bit numbers, got {type(hashes).__name__}"
        )
    return view.tobytes()


def is_collection(keys: Any) -> bool:
    """Return whether keys are complete, rather than coming from an iterator."""
    return hasattr(keys, "__len__") or hasattr(keys, "__arrow_c_stream__")


def run_iterator(
    keys: Iterable[Any], size: int, steps: Callable[[list[Any]], Steps[Any]], *, answer: bool
) -> Steps[list[Any] | None]:
    """Run steps on portions of an iterator's keys; return the answers, if requested."""
    remaining, answers = iter(keys), list[Any]()
    while portion := list(islice(remaining, size)):
        answers += (yield from steps(portion)) or []
    return answers if answer else None
