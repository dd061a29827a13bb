"""Counting filters in strings: the counters of memory, changed by the server.

A key is added or removed by one BITFIELD, by which no counter falls below 0 and one at its maximum never
decreases; `fullbloom_core::wire::counters` writes the commands. A key is looked up before it is removed. If
another client removes the same key at that moment, so that one of its counters was 0 already, what was taken
from its other counters is given back, and the key counts as absent.

Retrying would change a counter twice. So only those keys of a batch are sent again that got no reply: a key
added a second time is counted once too often, which harms no other. A removal is never sent twice.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from random import randrange
from typing import TYPE_CHECKING, Any, cast

from fullbloom.engines.redis.protocol import create, errors
from fullbloom.engines.redis.protocol.create import PIECE
from fullbloom.engines.redis.protocol.keys import (
    Names,
    PresentKeys,
    Snapshot,
    StoredCells,
    Tags,
    make_shard,
    native_counters,
)
from fullbloom.engines.redis.protocol.manifest import TAG_BYTES, Manifest
from fullbloom.engines.redis.protocol.requests import MAX_ATTEMPTS, SendBatch, Steps, back_off, read_part
from fullbloom.engines.redis.storage.strings import LoadEstimate, raise_epochs
from fullbloom.errors import EngineTimeout, FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from fullbloom._core import WireCells, WireCounterBatch, WireCounterKeys, WireCounters, WireExchange

    #: An operation on some of the keys, from a number on.
    Operation: TypeAlias = Callable[[WireCounterKeys, int], Steps[WireCounterBatch]]

#: Keys of one round trip: 0.5 MB of commands to look up, 3 MB to add, 12 MB to remove.
PORTION = 8192
#: Bytes of a hash, and of a cache line.
_HASH, _LINE = 8, 64
#: Bytes of counters from which the number of keys is estimated: within 1 % of it in two of three filters.
_SAMPLE = 1 << 16


@dataclass(frozen=True, eq=False)
class CounterSnapshot(Snapshot):
    """A counting filter as its manifest described it."""

    cells: WireCounters  # type: ignore[assignment]
    acknowledged: PresentKeys  # type: ignore[assignment]

    @classmethod
    def of(cls, name: str, manifest: Manifest, secret: bytes | None) -> CounterSnapshot:
        """Return the snapshot for a manifest."""
        names = Names.of(name, manifest)
        return cls(
            manifest,
            names,
            native_counters(manifest, secret),
            Tags(tuple(manifest.stable_tag(shard) for shard in range(manifest.shards)), TAG_BYTES),
            tuple(make_shard(number, key) for number, key in enumerate(names.bits)),
            PresentKeys(manifest.shards),
            [0] * manifest.shards,
            None,
        )

    def find_shard(self, byte: int) -> int:
        """Return the shard that holds a byte of the filter."""
        return next(shard for shard in range(self.manifest.shards) if byte < sum(self.cells.range(shard)))

    def forget_keys(self) -> PresentKeys:  # type: ignore[override]
        """Return an empty record of keys."""
        return PresentKeys(self.manifest.shards)


class Counters(StoredCells):
    """The filter as its strings; each method is a generator of requests."""

    snapshot: CounterSnapshot
    #: Keys that were new when this client added them, and keys that it removed.
    num_changed = 0

    def adopt(self, manifest: Manifest) -> None:
        """Switch to a new manifest and drop the acknowledgements."""
        old = getattr(self, "snapshot", None)
        if old is None or old.manifest.id != manifest.id or old.manifest.generation < manifest.generation:
            self.rolled_back = False
        self.snapshot = CounterSnapshot.of(self.name, manifest, self.secret)

    @property
    def cells(self) -> WireCounters:
        """The native counters."""
        return self.snapshot.cells

    @property
    def acknowledged(self) -> PresentKeys:
        """The keys that the server acknowledged to this client."""
        return self.snapshot.acknowledged

    def many(self, keys: Any, do: Operation, *, counts: bool = False, answer: bool = True) -> Steps[Any]:
        """Run an operation on many keys, in order; return the answers in the container type of the keys."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            remaining, answers = iter(keys), list[Any]()
            while portion := list(islice(remaining, PORTION)):
                answers += (yield from self.many(portion, do, counts=counts, answer=answer)) or []
            return answers if answer else None
        batch = self.cells.keys(keys)
        yield from self._run_portions(batch, do)
        if not answer:
            return None
        return batch.counts(keys) if counts else batch.answers(keys)

    def each(self, hashes: bytes, do: Operation) -> Steps[bytes]:
        """Run an operation on the keys of given hashes; return a byte for each."""
        keys = self.cells.hashed(hashes)
        yield from self._run_portions(keys, do)
        return keys.results

    def _run_portions(self, keys: WireCounterKeys, do: Operation) -> Steps[None]:
        for start in range(0, len(keys), PORTION):
            keys.take((yield from do(keys, start)))

    def count(self, keys: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Read the least counter of each key."""
        batch = keys.batch(start, start + PORTION)
        yield from self._send(self.snapshot, batch)
        return batch

    def add(self, keys: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Add keys; 1 for each that was certainly new."""
        batch, snapshot = keys.batch(start, start + PORTION, adding=True), self.snapshot
        yield from self._send(snapshot, batch, changing=True)
        snapshot.acknowledged.note(batch.hashes(all=True))
        self._count_changed(batch)
        yield from raise_epochs(snapshot)
        return batch

    def _count_changed(self, batch: WireCounterBatch) -> None:
        with self._lock:
            self.num_changed += len(batch.hashes(all=False)) // _HASH

    def remove(self, keys: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Remove keys; 1 for each that was probably present."""
        taken, snapshot = (yield from self.count(keys, start)).then(), self.snapshot
        try:
            yield from self._send(snapshot, taken, once=True, changing=True)
        except FullbloomError:  # it is unknown which of them are removed
            snapshot.acknowledged.drop(taken.hashes(all=True))
            raise
        snapshot.acknowledged.drop(taken.hashes(all=False))
        yield from self._send(snapshot, taken.then(), changing=True)
        self._count_changed(taken)
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
            yield from self._check_cleared(snapshot)
        if not len(batch):
            return
        known = {shard: snapshot.epochs[shard] for shard in batch.shards}
        exchanges: list[WireExchange]
        acks = self.acks if changing else None
        (exchanges,) = yield [
            SendBatch(batch, [snapshot.shards[shard] for shard in batch.shards], once, acks)
        ]
        for exchange in exchanges:
            if exchange.refusals:
                raise errors.refusal(self.name, exchange.refusals[0][1])
        replies = [reply for exchange in exchanges for reply in exchange.states]
        missing = [shard for shard, tag, short, _ in replies if short or not snapshot.is_own(shard, tag)]
        if missing:
            if changing and (yield from create.read_same_manifest(self.name, snapshot.manifest)) is None:
                yield from self._sweep(snapshot, missing)
            raise self._loss(missing[0])
        for shard, tag, _, _ in replies:
            yield from self._check(snapshot, shard, tag, known[shard])
        for exchange in exchanges:
            batch.take(exchange)
        if changing:
            snapshot.touched.update(known)

    def _check(self, snapshot: CounterSnapshot, shard: int, tag: bytes, known: int) -> Steps[None]:
        """Raise if a string is in an earlier state than the one known before the batch was sent."""
        if snapshot.is_as_known(shard, tag):
            epoch = snapshot.read_epoch(tag)
            if epoch < known:
                self.rolled_back = True
                raise errors.rollback(self.name)
            snapshot.epochs[shard] = max(epoch, snapshot.epochs[shard])
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
            raise errors.loss(self.name, "its manifest, or another filter has its name")
        if manifest.generation < snapshot.manifest.generation:
            self.rolled_back = True
            raise errors.rollback(self.name)
        return manifest

    def _check_cleared(self, snapshot: CounterSnapshot) -> Steps[None]:
        """Raise, unless another client has cleared the filter since it was rolled back."""
        manifest = yield from self._read_same_manifest(snapshot)
        if manifest.generation == snapshot.manifest.generation:
            raise errors.rollback(self.name)
        self.adopt(manifest)

    def _sweep(self, snapshot: CounterSnapshot, missing: list[int]) -> Steps[None]:
        """Delete strings that a change wrote without a filter, as far as the server can be reached."""
        with suppress(FullbloomError):
            for shard in missing:
                key, nbytes = snapshot.names.bits[shard], snapshot.nbytes(shard)
                yield from create.sweep_string(key, nbytes, snapshot.manifest.tag(shard), own=False)

    def _loss(self, shard: int) -> Exception:
        return errors.loss(self.name, f"the counters of shard {shard}")

    def explain_loss(self, what: str) -> Steps[FullbloomError]:
        """Return the exception for a missing key or manifest."""
        yield from ()
        return errors.loss(self.name, what)

    def read_tag(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Return the tag of a shard; raise if it does not belong to this filter."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        tag = yield from read_part(key, snapshot.nbytes(shard), TAG_BYTES)
        if not snapshot.is_own(shard, tag):
            raise self._loss(shard)
        return tag

    def adopt_tag(self, snapshot: Snapshot, _part: Snapshot, shard: int, tag: bytes) -> None:
        """Accept a tag of another generation."""
        with self._lock:
            if self.snapshot is snapshot and not snapshot.is_as_known(shard, tag):
                self.snapshot = cast("CounterSnapshot", snapshot.with_tag(shard, tag))

    def count_growing(self) -> Steps[list[int]]:
        """Return what only grows unless something is lost: nothing, as counters are decremented, too."""
        yield from ()
        return [0] * self.manifest.shards

    def count_found(self, hashes: bytes) -> Steps[int]:
        """Count the given hashes that are found."""
        keys = self.cells.hashed(hashes)
        for start in range(0, len(keys), PORTION):
            batch = keys.batch(start, start + PORTION)
            snapshot = self.snapshot
            (exchanges,) = yield [SendBatch(batch, [snapshot.shards[shard] for shard in batch.shards])]
            for exchange in exchanges:
                if exchange.refusals:
                    raise errors.refusal(self.name, exchange.refusals[0][1])
                batch.take(exchange)
            keys.take(batch)
        return len(keys.results) - keys.results.count(0)

    def clear(self) -> Steps[None]:
        """Set all counters to 0; each string changes atomically."""
        for attempt in range(MAX_ATTEMPTS):
            yield from back_off(attempt)
            manifest = yield from create.read_same_manifest(self.name, self.manifest)
            if manifest is None:
                raise errors.loss(self.name, "its manifest, or another filter has its name")
            with suppress(create.Overtaken):
                cells = cast("WireCells", self.cells)
                self.adopt((yield from create.replace_strings(self.name, manifest, cells)))
                self.rolled_back = False
                return
        raise EngineTimeout(f"filter {self.name!r}: other clients keep changing it; try again")

    def delete(self) -> Steps[bool]:
        """Delete the filter; True if it existed."""
        known = self.snapshot
        existed = yield from create.delete_filter(self.name)
        for shard, key in enumerate(known.names.bits):
            yield from create.sweep_string(key, known.nbytes(shard), known.manifest.tag(shard), own=True)
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
                raise self._loss(shard)
            sample += data
            if len(sample) >= _SAMPLE:
                break
        return sample

    def read_counters(self) -> Steps[bytes]:
        """Return all counters, byte for byte as in memory."""
        parts, known = [], self.snapshot
        for shard, key in enumerate(known.names.bits):
            yield from self.read_tag(shard, known)
            nbytes = known.nbytes(shard)
            for at in range(0, nbytes, PIECE):
                size = min(PIECE, nbytes - at)
                data = yield from read_part(key, at, size)
                if len(data) != size:
                    raise self._loss(shard)
                parts.append(data)
            yield from self.read_tag(shard, known)
        return b"".join(parts)
