"""A counting filter in strings: the counters of memory, each changed by the server.

How a key is added and removed by one BITFIELD, so that no counter ever falls below 0 and one at its maximum
is never taken from, stands where the commands are written, `bloomery_core::wire::counters`. A key is looked
for before it is removed. Where another client removes the same key at that moment, so that one of its
counters was 0 already, what was taken from the others is given back, and the key was not there.

A change that is sent twice counts twice. So only those keys of a batch are sent once more of which no reply
has come: added a second time a key is there too often, which harms nobody. A removal is never sent twice.
"""

from __future__ import annotations

from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, Final, cast

from bloomery import _core
from bloomery.engines.redis import creation, failures
from bloomery.engines.redis.acknowledged import Present
from bloomery.engines.redis.asks import Send, call
from bloomery.engines.redis.creation import PIECE
from bloomery.engines.redis.manifest import MARK_BYTES
from bloomery.engines.redis.names import Names, shard_of
from bloomery.errors import BloomeryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from bloomery._core import WireCells, WireCounterBatch, WireCounterKeys, WireCounters, WireExchange
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

    #: Does something with some of the keys, from a number on.
    Do: TypeAlias = Callable[[WireCounterKeys, int], Steps[WireCounterBatch]]

#: The layout of all counters of a key in one line.
LAYOUT: Final = "blocked"
#: Widths for which the bytes of the string are those of memory.
WIDTHS = (2, 4, 8)
#: Keys of one round trip: 0.5 MB of commands to look, 3 MB to add, 12 MB to remove.
PORTION = 8192


def cells_of(stood: Manifest, secret: bytes | None) -> WireCounters:
    """Return the counters of a filter, natively."""
    return _core.WireCounters(
        stood.num_bits // stood.counter_bits,
        stood.num_hashes,
        stood.counter_bits,
        shards=stood.shards,
        seed=stood.seed,
        secret=secret,
    )


class Counters:
    """The filter as its strings; every method is a generator of questions (`asks`)."""

    def __init__(self, name: str, stood: Manifest, secret: bytes | None) -> None:
        """Take what stands on the server."""
        self.name, self.secret = name, secret
        self.adopt(stood)

    def adopt(self, stood: Manifest) -> None:
        """Go by another manifest: what was acknowledged before is not of it."""
        self.manifest = stood
        self.names = Names.of(self.name, stood)
        self.cells = cells_of(stood, self.secret)
        self.acknowledged = Present(stood.shards)
        self.marks = [stood.mark(shard) for shard in range(stood.shards)]
        self._shards = list(starmap(shard_of, enumerate(self.names.bits)))

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
        yield from self._sent(batch)
        return batch

    def add(self, gathered: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Add keys; 1 for those that were certainly new."""
        batch = gathered.batch(start, start + PORTION, adding=True)
        yield from self._sent(batch)
        self.acknowledged.note(batch.hashes(all=True))
        return batch

    def remove(self, gathered: WireCounterKeys, start: int) -> Steps[WireCounterBatch]:
        """Remove keys; 1 for those that seemed to be there."""
        taken = (yield from self.count(gathered, start)).then()
        try:
            yield from self._sent(taken, once=True)
        except BloomeryError:  # which of them are gone is not known
            self.acknowledged.drop(taken.hashes(all=True))
            raise
        self.acknowledged.drop(taken.hashes(all=False))
        yield from self._sent(taken.then())
        return taken

    def _sent(self, batch: WireCounterBatch, *, once: bool = False) -> Steps[None]:
        """Send a batch and take what it is told; what is refused, or lost, is raised."""
        if not len(batch):
            return
        exchanges: list[WireExchange]
        (exchanges,) = yield [Send(batch, [self._shards[shard] for shard in batch.shards], once)]
        for exchange in exchanges:
            if exchange.refusals:
                raise failures.refused(self.name, exchange.refusals[0][1])
            for shard, mark, short, _ in exchange.states:
                if short or not self._is_mine(shard, mark):
                    raise self._lost(shard)
            batch.take(exchange)

    def _is_mine(self, shard: int, mark: bytes) -> bool:
        return len(mark) == MARK_BYTES and mark[:8] == self.marks[shard][:8]

    def _lost(self, shard: int) -> Exception:
        return failures.lost(self.name, f"the counters of shard {shard}")

    def gone(self, what: str) -> Steps[BloomeryError]:
        """Return the error for what is not there."""
        yield from ()
        return failures.lost(self.name, what)

    def marked(self, shard: int) -> Steps[bytes]:
        """Return the mark of a shard, which must be this filter's."""
        key, (_, nbytes) = self.names.bits[shard], self.cells.range(shard)
        mark: bytes = yield from call(key, b"GETRANGE", key, nbytes, nbytes + MARK_BYTES - 1)
        if not self._is_mine(shard, mark):
            raise self._lost(shard)
        return mark

    def forget(self, shard: int, mark: bytes) -> None:
        """Go by the mark of another generation."""
        self.marks[shard] = mark
        self.acknowledged = Present(self.manifest.shards)

    def counted(self) -> Steps[list[int]]:
        """Return what only grows while nothing is lost: of counters nothing does."""
        yield from ()
        return [0] * self.manifest.shards

    def present(self, hashes: bytes) -> Steps[int]:
        """Count those of ready hashes that are found."""
        told = yield from self.each(hashes, self.count)
        return len(told) - told.count(0)

    def cleared(self) -> Steps[None]:
        """Set every counter to 0, each string at once."""
        stood = yield from creation.same(self.name, self.manifest)
        if stood is None:
            raise failures.lost(self.name, "its manifest, or another filter has its name")
        self.adopt((yield from creation.replaced(self.name, stood, cast("WireCells", self.cells))))

    def cells_there(self) -> Steps[bytes]:
        """Return all counters, byte for byte those of a filter in memory."""
        parts = []
        for shard, key in enumerate(self.names.bits):
            yield from self.marked(shard)
            _, nbytes = self.cells.range(shard)
            for at in range(0, nbytes, PIECE):
                last = min(at + PIECE, nbytes) - 1
                parts.append((yield from call(key, b"GETRANGE", key, at, last)))
            yield from self.marked(shard)
        return b"".join(parts)
