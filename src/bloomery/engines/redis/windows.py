"""A window of time on a server: generations of strings that take turns by the server's clock.

Generation e is the string of the e-th stretch of ``window / (generations - 1)`` seconds since 1970, by the
server's TIME. A key goes to the generation of the present, and is looked for in the ``generations`` latest
ones, so that it is remembered for ``window`` seconds at least and ``window * g / (g - 1)`` at most: the rule
of `RollingBloomFilter`. Nobody turns them: the strings of a generation come with its first key, and vanish by
themselves (PEXPIREAT) when it is the last one no more.

What time the server has is known by when a TIME was sent and answered, to within the round trip. A key that
comes while the present may be either of two generations goes to both; and once it is written, the latest
moment at which that can have been is looked at once more. So no client's clock matters, nor how late a batch
arrives.
"""

from __future__ import annotations

import time
from math import ceil
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis import failures
from bloomery.engines.redis.asks import Call, Send, call
from bloomery.engines.redis.manifest import read
from bloomery.engines.redis.names import Names, shard_of
from bloomery.engines.redis.strings import PORTION, cells_of, either, iterated

if TYPE_CHECKING:
    from bloomery._core import WireBatch, WireExchange, WireKeys
    from bloomery.engines.redis.asks import Ask, Steps
    from bloomery.engines.redis.manifest import Manifest

#: Seconds after which the server is asked for the time again: by then two clocks are 0.1 ms apart.
_ASKED_EVERY = 1.0
#: Added to what is known of the server's time, on both sides.
_SLACK = 0.001
#: Seconds for which strings outlive their last use: the nodes of a cluster may have clocks of their own.
_KEPT = 60


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
            seconds, micros = yield from call(self._key, b"TIME")
            came = time.monotonic()
            told = int(seconds) + int(micros) / 1e6
            self._behind, self._ahead, self._asked = told - came - _SLACK, told - sent + _SLACK, came
        here = time.monotonic()
        return here + self._behind, here + self._ahead


class Window:
    """The window as its strings; every method is a generator of questions (`asks`)."""

    def __init__(self, name: str, stood: Manifest, secret: bytes | None) -> None:
        """Take what stands on the server."""
        self.name, self.cells = name, cells_of(stood, secret)
        self.clock = Clock(Names(name).manifest)
        self.stretch = stood.window / (stood.generations - 1)
        self.adopt(stood)

    def adopt(self, stood: Manifest) -> None:
        """Go by this manifest: that before was cleared."""
        self.manifest, self._mark = stood, stood.mark(0)
        #: Generations whose strings this client has made.
        self._made: set[int] = set()

    def key(self, generation: int) -> bytes:
        """Return the name of a generation's string."""
        return b"%s:bits:@%d" % (self.name.encode(), generation)

    def _at(self, seconds: float) -> int:
        return int(seconds // self.stretch)

    def _alive(self) -> Steps[range]:
        """Return the generations in which keys are looked for."""
        earliest, latest = yield from self.clock.now()
        return range(self._at(earliest) - self.manifest.generations + 1, self._at(latest) + 1)

    def one(self, key: Any, *, adding: bool) -> Steps[bool]:
        """Look for one key, or add it: True when it was found, or new."""
        answers = yield from self.each(self.cells.one(key).hashes, adding=adding)
        return bool(answers[0])

    def many(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look for many keys, or add them; the answers in the kind of the keys, if they are wanted."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            return (yield from iterated(self.many, keys, adding=adding, answer=answer))
        gathered = self.cells.keys(keys, adding=adding)
        told = yield from self._portions(gathered, adding=adding)
        gathered.give(told)
        return gathered.answers(keys) if answer else None

    def each(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look for ready hashes, or add them; a byte for each, as `one` answers."""
        return (yield from self._portions(self.cells.hashed(hashes, adding=adding), adding=adding))

    def _portions(self, gathered: WireKeys, *, adding: bool) -> Steps[bytes]:
        ask = self._added if adding else self._found
        told = b""
        for start in range(0, len(gathered), PORTION):
            batch = gathered.batch(start, start + PORTION)
            while True:
                try:
                    told += yield from ask(batch.hashes)
                except _Cleared:
                    continue
                break
        return told

    def _found(self, hashes: bytes) -> Steps[bytes]:
        alive = yield from self._alive()
        answers = yield from self._asked(hashes, alive, adding=False)
        return either(answers)

    def _added(self, hashes: bytes) -> Steps[bytes]:
        """Add to the present, and look in what is older: new is what is new there and nowhere here."""
        known, written = bytes(len(hashes) // 8), set[int]()
        while True:
            earliest, latest = yield from self.clock.now()
            present = {self._at(earliest), self._at(latest)} - written
            if not present:
                return bytes(1 - one for one in known)
            first = not written
            if first:
                older = range(min(present) - self.manifest.generations + 1, min(present))
                known = either([known, *(yield from self._asked(hashes, older, adding=False))])
            for generation in sorted(present):
                yield from self._prepared(generation)
                (new,) = yield from self._asked(hashes, [generation], adding=True)
                if first:  # later ones have what was just added
                    known = either([known, bytes(1 - one for one in new)])
                written.add(generation)

    def _prepared(self, generation: int) -> Steps[None]:
        """Make the string of a generation if it is not there: whoever does, it is the same."""
        if generation in self._made:
            return
        key, (_, nbytes) = self.key(generation), self.cells.range(0)
        ends = ceil(((generation + self.manifest.generations) * self.stretch + _KEPT) * 1000)
        yield from call(key, b"SETRANGE", key, nbytes, self._mark)
        yield from call(key, b"PEXPIREAT", key, ends)
        alive = range(generation - self.manifest.generations, generation + 1)
        self._made = {one for one in self._made if one in alive} | {generation}

    def _asked(self, hashes: bytes, generations: Any, *, adding: bool) -> Steps[list[bytes]]:
        """Ask generations at the same time; a byte a hash of each."""
        batches: list[WireBatch] = []
        asks: list[Ask] = []
        for generation in generations:
            gathered = self.cells.hashed(hashes, adding=adding)
            batches.append(gathered.batch(0, len(gathered)))
            asks.append(Send(batches[-1], [shard_of(0, self.key(generation))]))
        told: list[list[WireExchange]] = (yield asks) if asks else []
        for generation, batch, exchanges in zip(generations, batches, told, strict=True):
            for exchange in exchanges:
                if exchange.refusals:
                    raise failures.refused(self.name, exchange.refusals[0][1])
                for _, mark, _, _ in exchange.states:
                    if mark[:8] != self._mark[:8]:
                        yield from self._missed(generation)
                batch.take(exchange)
        return [batch.answers for batch in batches]

    def _missed(self, generation: int) -> Steps[None]:
        """Find out why a string is not there: nobody wrote to it, it was cleared, or it was lost."""
        key = Names(self.name).manifest
        data = yield from call(key, b"GET", key)
        stood = None if data is None else read(self.name, data)
        if stood is None or stood.id != self.manifest.id:
            raise failures.lost(self.name, "its manifest, or another filter has its name")
        if stood.generation != self.manifest.generation:
            self.adopt(stood)
            raise _Cleared
        if generation in self._made:
            self._made.discard(generation)
            raise failures.lost(self.name, "a generation")

    def fills(self) -> Steps[list[int]]:
        """Count the set bits of each generation, oldest first."""
        counts = []
        _, nbytes = self.cells.range(0)
        for generation in (yield from self._alive()):
            key = self.key(generation)
            counts.append((yield from call(key, b"BITCOUNT", key, 0, nbytes - 1)))
        return counts

    def cleared(self) -> Steps[None]:
        """Forget every key. Who finds strings gone finds the next generation of the manifest."""
        key, after = Names(self.name).manifest, self.manifest.next()
        yield from call(key, b"SET", key, after.to_bytes(), b"XX")
        yield from self._unlinked()
        self.adopt(after)

    def _unlinked(self) -> Steps[None]:
        alive = yield from self._alive()
        yield [Call(self.key(generation), (b"UNLINK", self.key(generation))) for generation in alive]

    def deleted(self) -> Steps[bool]:
        """Delete the window; True when it was there."""
        key = Names(self.name).manifest
        was = yield from call(key, b"DEL", key)
        yield from self._unlinked()
        return bool(was)


class _Cleared(Exception):
    """The window was cleared; what was asked is to be asked again."""
