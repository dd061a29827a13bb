"""Counting filters in strings: the counters of memory, changed by the server.

A key is added or removed by one BITFIELD, by which no counter falls below 0 and one at its maximum never
decreases; `fullbloom_core::wire::counters` writes the commands. A key is looked up before it is removed. If
another client removes the same key at that moment, so that one of its counters was 0 already, what was taken
from its other counters is given back, and the key counts as absent.

Retrying would change a counter twice. So only those keys of a batch are sent again that got no reply: a key
added a second time is counted once too often, which harms no other. A removal is never sent twice.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import randrange
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from fullbloom.engines.redis.protocol import (
    HASH_BYTES,
    MAX_ATTEMPTS,
    Steps,
    back_off,
    contention_error,
    create,
    loss_error,
    read_part,
    rollback_error,
)
from fullbloom.engines.redis.protocol.create import Overtaken
from fullbloom.engines.redis.protocol.manifest import (
    DELETING,
    REMEMBERED,
    TAG_BYTES,
    Manifest,
    Names,
    make_counters,
    make_shard,
)
from fullbloom.engines.redis.protocol.plan import COUNTER_PORTION
from fullbloom.engines.redis.storage import (
    Snapshot,
    StoredCells,
    Tags,
    read_cells,
    read_tags,
    sweep_string,
)
from fullbloom.engines.redis.storage.strings import (
    LoadEstimate,
    is_collection,
    raise_epochs,
    run_iterator,
)
from fullbloom.engines.redis.storage.verification import Verification, verify_cells
from fullbloom.errors import FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from fullbloom._core import WireCounterBatch, WireCounterKeys, WireCounters

    #: An operation on some of the keys, from a number on.
    Operation: TypeAlias = Callable[[WireCounterKeys, int], Steps[WireCounterBatch]]

#: Bytes of a cache line of counters.
_LINE = 64
#: Bytes of counters from which the number of keys is estimated: within 1 % of it in two of three filters.
_SAMPLE = 1 << 16


class PresentKeys:
    """The hashes of the last keys that a client added and did not remove, and how often it added them."""

    def __init__(self, shards: int) -> None:
        """Start without keys."""
        self._times: dict[int, int] = {}
        self._lock = Lock()
        #: As those of `AcknowledgedKeys`; always 0, because removals clear bits.
        self.bits = [0] * shards

    def raise_bits(self, ones: list[int]) -> None:
        """Do nothing: no bits are counted."""

    def record(self, hashes: bytes) -> None:
        """Remember the hashes of keys that were added."""
        with self._lock:  # threads may share a filter
            times = self._times
            for hash_ in array("Q", hashes[-REMEMBERED * HASH_BYTES :]):
                times[hash_] = times.pop(hash_, 0) + 1
            if len(times) > 2 * REMEMBERED:  # rare enough to cost nothing per key
                self._times = dict(self._list_last())

    def drop(self, hashes: bytes) -> None:
        """Forget an occurrence of each key that was removed."""
        with self._lock:
            for hash_ in array("Q", hashes):
                if (times := self._times.get(hash_, 0)) > 1:
                    self._times[hash_] = times - 1
                else:
                    self._times.pop(hash_, None)

    def _list_last(self) -> islice[tuple[int, int]]:
        return islice(self._times.items(), max(0, len(self._times) - REMEMBERED), None)

    def hashes(self) -> bytes:
        """Return the remembered hashes."""
        with self._lock:
            return array("Q", [hash_ for hash_, _ in self._list_last()]).tobytes()


@dataclass(frozen=True, eq=False)
class CounterSnapshot(Snapshot):
    """A counting filter as its manifest described it."""

    cells: WireCounters  # type: ignore[assignment]
    acknowledged: PresentKeys  # type: ignore[assignment]

    @classmethod
    def from_manifest(cls, name: str, manifest: Manifest, secret: bytes | None) -> CounterSnapshot:
        """Return the snapshot for a manifest."""
        names = Names.from_manifest(name, manifest)
        return cls(
            manifest,
            names,
            make_counters(manifest, secret),
            Tags(tuple(manifest.make_stable_tag(shard) for shard in range(manifest.shards)), TAG_BYTES),
            tuple(make_shard(number, key) for number, key in enumerate(names.bits)),
            PresentKeys(manifest.shards),
            [0] * manifest.shards,
            None,
        )

    def find_shard(self, byte: int) -> int:
        """Return the shard that holds a byte of the filter."""
        return next(shard for shard in range(self.manifest.shards) if byte < sum(self.cells.range(shard)))

    def make_record(self) -> PresentKeys:  # type: ignore[override]
        """Return an empty record of keys."""
        return PresentKeys(self.manifest.shards)


class Counters(StoredCells):
    """The filter as its strings; each method is a generator of requests."""

    snapshot: CounterSnapshot

    def adopt(self, manifest: Manifest) -> None:
        """Switch to a new manifest and drop the acknowledgements."""
        old = getattr(self, "snapshot", None)
        if old is None or old.manifest.id != manifest.id or old.manifest.generation < manifest.generation:
            self.rolled_back = False
        self.snapshot = CounterSnapshot.from_manifest(self.name, manifest, self.secret)

    @property
    def cells(self) -> WireCounters:
        """The native counters."""
        return self.snapshot.cells

    @property
    def acknowledged(self) -> PresentKeys:
        """The keys that the server acknowledged to this client."""
        return self.snapshot.acknowledged

    def hash_key(self, key: Any) -> bytes:
        """Return the hash of one key."""
        return self.cells.hash(key)

    def run_batch(
        self, keys: Any, operate: Operation, *, counts: bool = False, answer: bool = True
    ) -> Steps[Any]:
        """Run an operation on many keys, in order; return the answers in the container type of the keys."""
        if not is_collection(keys):
            steps = partial(self.run_batch, operate=operate, counts=counts, answer=answer)
            return (yield from run_iterator(keys, COUNTER_PORTION, steps, answer=answer))
        batch = self.cells.keys(keys)
        yield from self._run_portions(batch, operate)
        if not answer:
            return None
        return batch.counts(keys) if counts else batch.answers(keys)

    def run_hashes(self, hashes: bytes, operate: Operation) -> Steps[bytes]:
        """Run an operation on the keys of given hashes; return a byte for each."""
        keys = self.cells.hashed(hashes)
        yield from self._run_portions(keys, operate)
        return keys.results

    def _run_portions(self, keys: WireCounterKeys, operate: Operation) -> Steps[None]:
        for start in range(0, len(keys), COUNTER_PORTION):
            keys.take((yield from operate(keys, start)))

    def count(self, keys: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Read the least counter of each key."""
        batch = keys.batch(start, start + COUNTER_PORTION)
        yield from self._send(self.snapshot, batch)
        return batch

    def add(self, keys: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Add keys; 1 for each that was certainly new."""
        batch, snapshot = keys.batch(start, start + COUNTER_PORTION, adding=True), self.snapshot
        yield from self._send(snapshot, batch, changing=True)
        snapshot.acknowledged.record(batch.hashes(all=True))
        self._count_changed(len(batch.hashes(all=False)) // HASH_BYTES)
        yield from raise_epochs(snapshot)
        return batch

    def remove(self, keys: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Remove keys; 1 for each that was probably present."""
        taken, snapshot = (yield from self.count(keys, start)).then(), self.snapshot
        try:
            yield from self._send(snapshot, taken, once=True, changing=True)
        except GeneratorExit:
            raise
        except BaseException:  # the task may be cancelled; it is unknown which others are removed
            snapshot.acknowledged.drop(taken.hashes(all=True))
            with suppress(FullbloomError):  # what is known to be taken from other keys
                yield from self._send(snapshot, taken.then(), changing=True)
            raise
        snapshot.acknowledged.drop(taken.hashes(all=False))
        yield from self._send(snapshot, taken.then(), changing=True)
        self._count_changed(len(taken.hashes(all=False)) // HASH_BYTES)
        yield from raise_epochs(snapshot)
        return taken

    def _send(
        self,
        snapshot: CounterSnapshot,
        batch: WireCounterBatch,
        *,
        once: bool = False,
        changing: bool = False,
    ) -> Steps[None]:
        """Send a batch and take the replies; raise what is refused or lost."""
        if self.rolled_back:
            yield from self._require_cleared(snapshot)
        if not len(batch):
            return
        known = {shard: snapshot.progress[shard] for shard in batch.shards}
        exchanges = yield from self._exchange(snapshot, batch, once=once, changing=changing)
        replies = [reply for exchange in exchanges for reply in exchange.states]
        missing = [shard for shard, tag, short, _ in replies if short or not snapshot.is_own(shard, tag)]
        if missing:
            if changing and (yield from self._is_deleted(snapshot)):
                with suppress(FullbloomError):  # as far as the server can be reached
                    for shard in missing:
                        yield from sweep_string(snapshot, shard, own=False)
            raise self._make_loss(missing[0])
        for shard, tag, _, _ in replies:
            yield from self._compare_tag(snapshot, shard, tag, known[shard])
        for exchange in exchanges:
            batch.take(exchange)
        if changing:
            snapshot.touched.update(known)

    def _is_deleted(self, snapshot: CounterSnapshot) -> Steps[bool]:
        """Return whether the filter is deleted, or is being deleted."""
        manifest = yield from create.read_same_manifest(self.name, snapshot.manifest)
        return manifest is None or manifest.state == DELETING

    def _compare_tag(self, snapshot: CounterSnapshot, shard: int, tag: bytes, known: int) -> Steps[None]:
        """Raise if a string is in an earlier state than the one known; adopt the tag of a replaced one."""
        self.compare_progress(snapshot, shard, tag, known)
        if snapshot.is_as_known(shard, tag):
            return
        manifest = yield from self._read_same_manifest(snapshot)
        with self._lock:
            if self.snapshot is not snapshot:  # another thread has found out more
                return
            if manifest.generation > snapshot.manifest.generation:
                self.adopt(manifest)
            else:
                self.snapshot = cast("CounterSnapshot", snapshot.with_tag(shard, tag))

    def _read_same_manifest(self, snapshot: CounterSnapshot) -> Steps[Manifest]:
        """Return the manifest; raise if another filter has the name, or its generation is an earlier one."""
        manifest = yield from create.read_same_manifest(self.name, snapshot.manifest)
        if manifest is None:
            raise loss_error(self.name, "its manifest, or another filter has its name")
        if manifest.generation < snapshot.manifest.generation:
            self.rolled_back = True
            raise rollback_error(self.name)
        return manifest

    def _require_cleared(self, snapshot: CounterSnapshot) -> Steps[None]:
        """Raise unless another client has cleared the filter since it was rolled back."""
        manifest = yield from self._read_same_manifest(snapshot)
        if manifest.generation == snapshot.manifest.generation:
            raise rollback_error(self.name)
        self.adopt(manifest)

    def _make_loss(self, shard: int) -> FullbloomError:
        return loss_error(self.name, f"the counters of shard {shard}")

    def explain_loss(self, what: str) -> Steps[Exception]:
        """Return the exception for a missing key or manifest."""
        yield from ()
        return loss_error(self.name, what)

    def read_tag(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Return the tag of a shard; raise if it does not belong to this filter."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        tag = yield from read_part(key, snapshot.nbytes(shard), TAG_BYTES)
        if not snapshot.is_own(shard, tag):
            raise self._make_loss(shard)
        return tag

    def adopt_tag(self, snapshot: Snapshot, _part: Snapshot, shard: int, tag: bytes) -> None:
        """Accept a tag of another generation: the filter was cleared."""
        with self._lock:
            if self.snapshot is snapshot and not snapshot.is_as_known(shard, tag):
                self.snapshot = cast("CounterSnapshot", snapshot.with_tag(shard, tag))

    def count_growing(self) -> Steps[tuple[list[int], bool]]:
        """Return what only grows unless something is lost: nothing, as counters are decremented, too."""
        yield from ()
        return [0] * self.manifest.shards, False

    def count_found(self, hashes: bytes) -> Steps[int]:
        """Count the given hashes that are found; raise `Overtaken` if a string was replaced meanwhile."""
        keys, snapshot = self.cells.hashed(hashes), self.snapshot
        for start in range(0, len(keys), COUNTER_PORTION):
            batch = keys.batch(start, start + COUNTER_PORTION)
            for exchange in (yield from self._exchange(snapshot, batch)):
                if any(
                    short or not snapshot.is_as_known(shard, tag) for shard, tag, short, _ in exchange.states
                ):
                    raise Overtaken
                batch.take(exchange)
            keys.take(batch)
        return len(keys.results) - keys.results.count(0)

    def clear(self) -> Steps[None]:
        """Set all counters to 0; each string changes atomically."""
        for attempt in range(MAX_ATTEMPTS):
            yield from back_off(attempt)
            manifest = yield from create.read_same_manifest(self.name, self.manifest)
            if manifest is None:
                raise loss_error(self.name, "its manifest, or another filter has its name")
            with suppress(Overtaken):
                after = yield from create.replace_strings(self.name, manifest, self.cells)
                self.adopt_replacement(after)
                return
        raise contention_error(self.name)

    def delete(self) -> Steps[bool]:
        """Delete the filter; True if it existed."""
        known = self.snapshot
        existed = yield from create.delete_filter(self.name)
        for shard in range(known.manifest.shards):
            yield from sweep_string(known, shard, own=True)
        return existed

    def estimate_load(self) -> Steps[LoadEstimate]:
        """Estimate how full the filter is, from all of its counters or from some neighbouring lines."""
        known = self.snapshot
        lines = sum(known.nbytes(shard) for shard in range(known.manifest.shards)) // _LINE
        # Every line holds as many keys as any other, up to chance.
        start = randrange(lines) * _LINE if lines * _LINE > _SAMPLE else 0  # noqa: S311 - a sample
        keys, keys_sd, fpr = self.cells.estimate((yield from self._read_sample(known, start)))
        return LoadEstimate(fpr, keys, keys_sd, None)

    def _read_sample(self, known: CounterSnapshot, start: int) -> Steps[bytes]:
        """Read the counters from byte ``start`` of the filter on, at most once around."""
        sample = b""
        first, shards = known.find_shard(start), known.manifest.shards
        for shard in (*range(first, shards), *range(first)):
            key, (begin, nbytes) = known.names.bits[shard], known.cells.range(shard)
            at = start - begin if shard == first else 0
            yield from self.read_tag(shard, known)
            data = yield from read_part(key, at, min(_SAMPLE - len(sample), nbytes - at))
            if len(data) % _LINE or not data:
                raise self._make_loss(shard)
            sample += data
            if len(sample) >= _SAMPLE:
                break
        return sample

    def read_counters(self) -> Steps[bytes]:
        """Return all counters, byte for byte as in memory."""
        for attempt in range(MAX_ATTEMPTS):
            yield from back_off(attempt)
            known, pieces = self.snapshot, dict[int, bytes]()
            with suppress(Overtaken):
                tags = yield from read_tags(self, known)
                yield from read_cells(self, known, tags, pieces.__setitem__)
                return b"".join(pieces.values())
        raise contention_error(self.name)

    def verify(self, *, restarted: bool) -> Steps[Verification]:
        """Compare what the server has with what it acknowledged to this client."""
        return verify_cells(self, restarted=restarted)
