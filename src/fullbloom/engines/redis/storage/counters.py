"""A counting filter in strings: the counters of memory, each changed by the server.

How a key is added and removed by one BITFIELD, so that no counter ever falls below 0 and one at its maximum
is never taken from, stands where the commands are written, `fullbloom_core::wire::counters`. A key is looked
for before it is removed. Where another client removes the same key at that moment, so that one of its
counters was 0 already, what was taken from the others is given back, and the key was not there.

A change that is sent twice counts twice. So only those keys of a batch are sent once more of which no reply
has come: added a second time a key is there too often, which harms nobody. A removal is never sent twice.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from fullbloom.engines.redis.protocol import create, errors
from fullbloom.engines.redis.protocol.create import PIECE
from fullbloom.engines.redis.protocol.keys import Names, Present, Snapshot, Tags, counters_of, shard_of
from fullbloom.engines.redis.protocol.manifest import MARK_BYTES, Manifest
from fullbloom.engines.redis.protocol.requests import Acks, Pause, Send, Steps, read_part
from fullbloom.engines.redis.storage.strings import raised
from fullbloom.errors import EngineTimeout, FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from fullbloom._core import WireCells, WireCounterBatch, WireCounterKeys, WireCounters, WireExchange

    #: Does something with some of the keys, from a number on.
    Do: TypeAlias = Callable[[WireCounterKeys, int], Steps[WireCounterBatch]]

#: Keys of one round trip: 0.5 MB of commands to look, 3 MB to add, 12 MB to remove.
PORTION = 8192
#: Tries to clear that others overtake, and seconds between them.
_TRIES, _WAIT = 100, 0.02


@dataclass(frozen=True, eq=False)
class Counted(Snapshot):
    """A filter of counters as its manifest said it is."""

    cells: WireCounters  # type: ignore[assignment]
    acknowledged: Present  # type: ignore[assignment]

    @classmethod
    def of(cls, name: str, stood: Manifest, secret: bytes | None) -> Counted:
        """Return what a manifest says."""
        names = Names.of(name, stood)
        return cls(
            stood,
            names,
            counters_of(stood, secret),
            Tags(tuple(stood.stable(shard) for shard in range(stood.shards)), MARK_BYTES),
            tuple(shard_of(number, key) for number, key in enumerate(names.bits)),
            Present(stood.shards),
            [0] * stood.shards,
            None,
        )

    def fresh(self) -> Present:  # type: ignore[override]
        """Remember nothing yet."""
        return Present(self.manifest.shards)


class Counters:
    """The filter as its strings; every method is a generator of questions (`asks`)."""

    def __init__(self, name: str, stood: Manifest, secret: bytes | None) -> None:
        """Take what stands on the server."""
        self.name, self.secret = name, secret
        #: Replicas that must have what is added.
        self.acks: Acks | None = None
        #: True since the server was found to have gone back, until the filter is cleared.
        self.went_back = False
        self._one = Lock()
        self.adopt(stood)

    def adopt(self, stood: Manifest) -> None:
        """Switch to a new manifest and drop the acknowledgements."""
        was = getattr(self, "snapshot", None)
        if was is None or was.manifest.id != stood.id or was.manifest.generation < stood.generation:
            self.went_back = False
        self.snapshot = Counted.of(self.name, stood, self.secret)

    @property
    def manifest(self) -> Manifest:
        """The manifest that this client knows."""
        return self.snapshot.manifest

    @property
    def names(self) -> Names:
        """The keys on the server."""
        return self.snapshot.names

    @property
    def cells(self) -> WireCounters:
        """The counters, natively."""
        return self.snapshot.cells

    @property
    def acknowledged(self) -> Present:
        """What this client knows that the server acknowledged."""
        return self.snapshot.acknowledged

    def many(self, keys: Any, do: Do, *, counts: bool = False, answer: bool = True) -> Steps[Any]:
        """Do something with many keys, in order; what was told, in the kind of the keys, if it is wanted."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            ahead, told = iter(keys), list[Any]()
            while some := list(islice(ahead, PORTION)):
                told += (yield from self.many(some, do, counts=counts, answer=answer)) or []
            return told if answer else None
        gathered = self.cells.keys(keys)
        yield from self._portions(gathered, do)
        if not answer:
            return None
        return gathered.counts(keys) if counts else gathered.answers(keys)

    def each(self, hashes: bytes, do: Do) -> Steps[bytes]:
        """Do something with the keys of ready hashes; a byte for each, as it was told."""
        gathered = self.cells.hashed(hashes)
        yield from self._portions(gathered, do)
        return gathered.told

    def _portions(self, gathered: WireCounterKeys, do: Do) -> Steps[None]:
        for start in range(0, len(gathered), PORTION):
            gathered.take((yield from do(gathered, start)))

    def count(self, gathered: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Tell the least counter of each key."""
        batch = gathered.batch(start, start + PORTION)
        yield from self._sent(self.snapshot, batch)
        return batch

    def add(self, gathered: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Add keys; 1 for those that were certainly new."""
        batch, snapshot = gathered.batch(start, start + PORTION, adding=True), self.snapshot
        yield from self._sent(snapshot, batch, changing=True)
        snapshot.acknowledged.note(batch.hashes(all=True))
        yield from raised(snapshot)
        return batch

    def remove(self, gathered: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Remove keys; 1 for those that seemed to be there."""
        taken, snapshot = (yield from self.count(gathered, start)).then(), self.snapshot
        try:
            yield from self._sent(snapshot, taken, once=True, changing=True)
        except FullbloomError:  # which of them are gone is not known
            snapshot.acknowledged.drop(taken.hashes(all=True))
            raise
        snapshot.acknowledged.drop(taken.hashes(all=False))
        yield from self._sent(snapshot, taken.then(), changing=True)
        yield from raised(snapshot)
        return taken

    def _sent(
        self, snapshot: Counted, batch: WireCounterBatch, *, once: bool = False, changing: bool = False
    ) -> Steps[None]:
        """Send a batch and take what it is told; what is refused, or lost, is raised."""
        if self.went_back:
            raise errors.rolled_back(self.name)
        if not len(batch):
            return
        known = {shard: snapshot.epochs[shard] for shard in batch.shards}
        exchanges: list[WireExchange]
        acks = self.acks if changing else None
        (exchanges,) = yield [Send(batch, [snapshot.shards[shard] for shard in batch.shards], once, acks)]
        for exchange in exchanges:
            if exchange.refusals:
                raise errors.refused(self.name, exchange.refusals[0][1])
        states = [state for exchange in exchanges for state in exchange.states]
        missing = [shard for shard, tag, short, _ in states if short or not snapshot.is_own(shard, tag)]
        if missing:
            if changing and (yield from create.same(self.name, snapshot.manifest)) is None:
                yield from self._swept(snapshot, missing)
            raise self._lost(missing[0])
        for shard, tag, _, _ in states:
            yield from self._check(snapshot, shard, tag, known[shard])
        for exchange in exchanges:
            batch.take(exchange)
        if changing:
            snapshot.touched.update(known)

    def _check(self, snapshot: Counted, shard: int, tag: bytes, known: int) -> Steps[None]:
        """Raise where a string is in an earlier state than it was known in before it was asked."""
        if snapshot.is_as_known(shard, tag):
            epoch = snapshot.epoch_of(tag)
            if epoch < known:
                self.went_back = True
                raise errors.rolled_back(self.name)
            snapshot.epochs[shard] = max(epoch, snapshot.epochs[shard])
            return
        stood = yield from self._same(snapshot)
        with self._one:
            if self.snapshot is not snapshot:  # another thread has found out more
                return
            if stood.generation > snapshot.manifest.generation:
                self.adopt(stood)
            else:
                self.snapshot = cast("Counted", snapshot.retagged(shard, tag))

    def _same(self, snapshot: Counted) -> Steps[Manifest]:
        """Return the manifest, which must be of this filter and not of an earlier generation."""
        stood = yield from create.same(self.name, snapshot.manifest)
        if stood is None:
            raise errors.lost(self.name, "its manifest, or another filter has its name")
        if stood.generation < snapshot.manifest.generation:
            self.went_back = True
            raise errors.rolled_back(self.name)
        return stood

    def _swept(self, snapshot: Counted, missing: list[int]) -> Steps[None]:
        """Delete what a change has left where there is no filter, as far as the server can be reached."""
        with suppress(FullbloomError):
            for shard in missing:
                key, nbytes = snapshot.names.bits[shard], snapshot.nbytes(shard)
                yield from create.swept(key, nbytes, snapshot.manifest.mark(shard), own=False)

    def _lost(self, shard: int) -> Exception:
        return errors.lost(self.name, f"the counters of shard {shard}")

    def gone(self, what: str) -> Steps[FullbloomError]:
        """Return the error for what is not there."""
        yield from ()
        return errors.lost(self.name, what)

    def marked(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Return the tag of a shard, which must be this filter's."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        tag = yield from read_part(key, snapshot.nbytes(shard), MARK_BYTES)
        if not snapshot.is_own(shard, tag):
            raise self._lost(shard)
        return tag

    def retag(self, snapshot: Snapshot, _part: Snapshot, shard: int, tag: bytes) -> None:
        """Go by the tag of another generation."""
        with self._one:
            if self.snapshot is snapshot and not snapshot.is_as_known(shard, tag):
                self.snapshot = cast("Counted", snapshot.retagged(shard, tag))

    def counted(self) -> Steps[list[int]]:
        """Return what only grows while nothing is lost: of counters nothing does."""
        yield from ()
        return [0] * self.manifest.shards

    def present(self, hashes: bytes) -> Steps[int]:
        """Count those of ready hashes that are found."""
        gathered = self.cells.hashed(hashes)
        for start in range(0, len(gathered), PORTION):
            batch = gathered.batch(start, start + PORTION)
            snapshot = self.snapshot
            (exchanges,) = yield [Send(batch, [snapshot.shards[shard] for shard in batch.shards])]
            for exchange in exchanges:
                if exchange.refusals:
                    raise errors.refused(self.name, exchange.refusals[0][1])
                batch.take(exchange)
            gathered.take(batch)
        return len(gathered.told) - gathered.told.count(0)

    def cleared(self) -> Steps[None]:
        """Set every counter to 0, each string at once."""
        for turn in range(_TRIES):
            if turn:
                yield [Pause(min(_WAIT * turn, 20 * _WAIT))]
            stood = yield from create.same(self.name, self.manifest)
            if stood is None:
                raise errors.lost(self.name, "its manifest, or another filter has its name")
            with suppress(create.Overtaken):
                cells = cast("WireCells", self.cells)
                self.adopt((yield from create.replaced(self.name, stood, cells)))
                self.went_back = False
                return
        raise EngineTimeout(f"filter {self.name!r}: other clients keep changing it; try again")

    def deleted(self) -> Steps[bool]:
        """Delete the filter; True when there was one."""
        known = self.snapshot
        was = yield from create.deleted(self.name)
        for shard, key in enumerate(known.names.bits):
            yield from create.swept(key, known.nbytes(shard), known.manifest.mark(shard), own=True)
        return was

    def cells_there(self) -> Steps[bytes]:
        """Return all counters, byte for byte those of a filter in memory."""
        parts, known = [], self.snapshot
        for shard, key in enumerate(known.names.bits):
            yield from self.marked(shard, known)
            nbytes = known.nbytes(shard)
            for at in range(0, nbytes, PIECE):
                size = min(PIECE, nbytes - at)
                data = yield from read_part(key, at, size)
                if len(data) != size:
                    raise self._lost(shard)
                parts.append(data)
            yield from self.marked(shard, known)
        return b"".join(parts)
