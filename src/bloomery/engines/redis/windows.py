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

from bloomery import _core
from bloomery.engines.redis import creation, failures
from bloomery.engines.redis.acknowledged import Acknowledged, Verification
from bloomery.engines.redis.asks import Call, Send, call
from bloomery.engines.redis.names import Names, shard_of
from bloomery.engines.redis.strings import PORTION, cells_of, either, iterated
from bloomery.errors import FilterLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bloomery._core import WireBatch, WireCells, WireExchange
    from bloomery.engines.redis.asks import Ask, Steps
    from bloomery.engines.redis.manifest import Manifest

#: Seconds after which the server is asked for the time again: by then two clocks are 0.1 ms apart.
_ASKED_EVERY = 1.0
#: Added to what is known of the server's time, on both sides.
_SLACK = 0.001
#: Seconds for which strings outlive their last use: the nodes of a cluster may have clocks of their own.
_KEPT = 60
#: Turns 0 into 1 and 1 into 0.
_OTHER = bytes([1, 0]) + bytes(254)
_WORD = 8


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
        #: Hashes keys and keeps their order, which cells in shards do not.
        self.hasher = _core.WireCells(512, 8, seed=stood.seed, secret=secret)
        self.names = Names(name)
        self.clock = Clock(self.names.manifest)
        self.stretch = stood.window / (stood.generations - 1)
        self.adopt(stood)

    def adopt(self, stood: Manifest) -> None:
        """Go by this manifest: that before was cleared."""
        self.manifest = stood
        #: Strings that this client has made: generation and shard.
        self._made: set[tuple[int, int]] = set()
        #: What was acknowledged, by generation.
        self._noted: dict[int, Acknowledged] = {}

    def key(self, generation: int, shard: int = 0) -> bytes:
        """Return the name of a string."""
        whole = b"%s:bits:@%d" % (self.names.name, generation)
        return whole if self.manifest.shards == 1 else b"%s:%d" % (whole, shard)

    def _at(self, seconds: float) -> int:
        return int(seconds // self.stretch)

    def _alive(self) -> Steps[range]:
        """Return the generations in which keys are looked for."""
        earliest, latest = yield from self.clock.now()
        return range(self._at(earliest) - self.manifest.generations + 1, self._at(latest) + 1)

    def one(self, key: Any, *, adding: bool) -> Steps[bool]:
        """Look for one key, or add it: True when it was found, or new."""
        answers = yield from self.each(self.hasher.one(key).hashes, adding=adding)
        return bool(answers[0])

    def many(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look for many keys, or add them; the answers in the kind of the keys, if they are wanted."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            return (yield from iterated(self.many, keys, adding=adding, answer=answer))
        gathered = self.hasher.keys(keys)
        told = yield from self.each(gathered.batch(0, len(gathered)).hashes, adding=adding)
        if not answer:
            return None
        gathered.give(told)
        return gathered.answers(keys)

    def each(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look for ready hashes, or add them; a byte for each, as `one` answers."""
        told, size = b"", _WORD * PORTION
        for start in range(0, len(hashes), size):
            portion = _Portion(self.cells, hashes[start : start + size])
            while True:
                try:
                    told += yield from (self._added(portion) if adding else self._found(portion))
                except _Cleared:
                    continue
                break
        return told

    def _found(self, portion: _Portion) -> Steps[bytes]:
        alive = yield from self._alive()
        return either((yield from self._asked(portion, alive, ())))

    def _added(self, portion: _Portion) -> Steps[bytes]:
        """Add to the present, and look in what is older: new is what is new there and nowhere here."""
        told: list[bytes] | None = None
        written = set[int]()
        while True:
            earliest, latest = yield from self.clock.now()
            present = {self._at(earliest), self._at(latest)} - written
            if not present:
                return either([portion.new, either(told or []).translate(_OTHER)])
            for generation in present:
                yield from self._prepared(portion.shards, generation)
            first = min(present)
            older = range(first - self.manifest.generations + 1, first) if told is None else range(0)
            answers = yield from self._asked(portion, older, sorted(present))
            for generation in present:
                self._noted.setdefault(generation, Acknowledged(1)).note(portion.hashes)
            if told is None:  # later generations have what was just added
                known, new = answers[: len(older)], answers[len(older) :]
                told = [*known, *(one.translate(_OTHER) for one in new)]
            written |= present

    def _prepared(self, shards: list[int], generation: int) -> Steps[None]:
        """Make strings of a generation where they are not there: whoever does, they are the same."""
        missing = [shard for shard in shards if (generation, shard) not in self._made]
        if not missing:
            return
        ends = ceil(((generation + self.manifest.generations) * self.stretch + _KEPT) * 1000)
        asks: list[Ask] = []
        for shard in missing:
            key, (_, nbytes) = self.key(generation, shard), self.cells.range(shard)
            asks.append(Call(key, (b"SETRANGE", key, nbytes, self.manifest.mark(shard))))
            asks.append(Call(key, (b"PEXPIREAT", key, ends)))
        yield asks[::2]
        yield asks[1::2]
        alive = range(generation - self.manifest.generations, generation + 1)
        self._made = {made for made in self._made if made[0] in alive}
        self._made.update((generation, shard) for shard in missing)
        self._noted = {noted: of for noted, of in self._noted.items() if noted in alive}

    def _asked(self, portion: _Portion, looked: Sequence[int], added: Sequence[int]) -> Steps[list[bytes]]:
        """Look in some generations and add to others, at the same time; a byte a hash of each."""
        each = [(generation, portion.looked) for generation in looked]
        each += [(generation, portion.added()) for generation in added]
        asks: list[Ask] = [
            Send(batch, [shard_of(shard, self.key(generation, shard)) for shard in portion.shards])
            for generation, batch in each
        ]
        told: list[list[WireExchange]] = (yield asks) if asks else []
        answers, missing, there = list[bytes](), list[tuple[int, int, bool]](), 0
        for number, ((generation, batch), exchanges) in enumerate(zip(each, told, strict=True)):
            adding, before = number >= len(looked), len(missing)
            for exchange in exchanges:
                if exchange.refusals:
                    raise failures.refused(self.name, exchange.refusals[0][1])
                batch.take(exchange)
                for shard, mark, _, bits in exchange.states:
                    if mark[:8] != self.manifest.mark(shard)[:8]:
                        missing.append((generation, shard, adding))
                    else:
                        there += 1
                    if adding:
                        self._noted.setdefault(generation, Acknowledged(1)).bits[0] += bits
            answers.append(batch.answers)
            if adding and len(missing) > before:
                # What was new in a string that is not marked was nowhere before.
                portion.new = either([portion.new, batch.answers])
        # A mark that was found tells that the window stands: other strings were not written to yet.
        if missing and (not there or any(adding or (g, s) in self._made for g, s, adding in missing)):
            yield from self._missed(missing)
        return answers

    def _missed(self, missing: list[tuple[int, int, bool]]) -> Steps[None]:
        """Find out why strings are not there: nobody wrote to them, they were cleared, or lost."""
        stood = yield from creation.same(self.name, self.manifest)
        if stood is None:
            raise failures.lost(self.name, "its manifest, or another filter has its name")
        if stood.generation != self.manifest.generation:
            self.adopt(stood)
            raise _Cleared
        made = {(generation, shard) for generation, shard, _ in missing} & self._made
        self._made -= made
        if made:
            raise failures.lost(self.name, "a generation")
        if any(adding for _, _, adding in missing):
            raise _Cleared  # as another task or thread found out in between

    def verified(self, *, restarted: bool) -> Steps[Verification]:
        """Compare what the server has with what this client knows that it acknowledged."""
        stood = yield from creation.same(self.name, self.manifest)
        if stood is not None and stood.generation != self.manifest.generation:
            self.adopt(stood)
        lost, checked, found, bits, ones = list[int](), 0, 0, 0, 0
        for generation, noted in sorted(self._noted.items()):
            hashes, least = noted.hashes(), noted.bits[0]
            told, there = b"", 0
            if stood is not None:
                try:
                    (told,) = yield from self._asked(_Portion(self.cells, hashes), [generation], ())
                    there = yield from self._ones(generation)
                except FilterLost:
                    lost.append(generation)
                except _Cleared:
                    return (yield from self.verified(restarted=restarted))
            if generation not in (yield from self._alive()):
                continue  # it has been forgotten, as it should
            checked, found, bits, ones = (
                checked + len(hashes) // _WORD,
                found + sum(told),
                bits + least,
                ones + there,
            )
            if there >= least:
                noted.bits[0] = there
        ok = stood is not None and not lost and found == checked and ones >= bits
        return Verification(ok, stood is None, restarted, tuple(lost), checked, checked - found, bits, ones)

    def _ones(self, generation: int) -> Steps[int]:
        ones = 0
        for shard in range(self.manifest.shards):
            key, (_, nbytes) = self.key(generation, shard), self.cells.range(shard)
            ones += yield from call(key, b"BITCOUNT", key, 0, nbytes - 1)
        return ones

    def fills(self) -> Steps[list[int]]:
        """Count the set bits of each generation, oldest first."""
        counts = list[int]()
        for generation in (yield from self._alive()):
            ones = yield from self._ones(generation)
            counts.append(ones)
        return counts

    def fpr(self) -> Steps[float]:
        """Compute the rate of false positives at the present load."""
        absent = 1.0
        for ones in (yield from self.fills()):
            absent *= 1 - self.cells.fpr(ones)
        return 1 - absent

    def cleared(self) -> Steps[None]:
        """Forget every key. Who finds strings gone finds the next generation of the manifest."""
        key, after = self.names.manifest, self.manifest.next()
        yield from call(key, b"SET", key, after.to_bytes(), b"XX")
        yield from self._unlinked()
        self.adopt(after)

    def _unlinked(self) -> Steps[None]:
        alive = yield from self._alive()
        keys = [self.key(generation, shard) for generation in alive for shard in range(self.manifest.shards)]
        yield [Call(key, (b"UNLINK", key)) for key in keys]

    def deleted(self) -> Steps[bool]:
        """Delete the window; True when it was there."""
        key = self.names.manifest
        was = yield from call(key, b"DEL", key)
        yield from self._unlinked()
        return bool(was)


class _Portion:
    """Hashes that are asked of several generations."""

    def __init__(self, cells: WireCells, hashes: bytes) -> None:
        """Take hashes of 8 bytes each."""
        self._cells, self.hashes = cells, hashes
        #: To be looked for: its answers are those of the exchange that it took last.
        self.looked = cells.hashed(hashes).batch(0, PORTION)
        self.shards = self.looked.shards
        #: Those that were new when it was found out that the window was cleared.
        self.new = bytes(len(hashes) // _WORD)

    def added(self) -> WireBatch:
        """Return them as a batch of its own, to be added."""
        return self._cells.hashed(self.hashes, adding=True).batch(0, PORTION)


class _Cleared(Exception):
    """The window was cleared; what was asked is to be asked again."""
