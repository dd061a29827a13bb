"""A window of time on a server: generations of strings that take turns by the server's clock.

Generation e is the strings of the e-th stretch of ``window / (generations - 1)`` seconds since 1970, by the
server's TIME. A key goes to the generation of the present, and is looked for in the ``generations`` latest
ones, so that it is remembered for ``window`` seconds at least and ``window * g / (g - 1)`` at most: the rule
of `RollingBloomFilter`. Nobody turns them: a generation begins with its first key, and its strings vanish by
themselves (PEXPIREAT) when it is the last one no more.

The client that adds the first key of a generation creates all of its strings and records it in the manifest
(`generations`). A client that meets a generation for the first time compares the marks of all its strings
with the record, and from then on those of the strings that each batch touches. A generation that is not
recorded has no keys: one of the past stays so, for the present one the manifest is read in the round trip of
the batch.

What time the server has is known by when a TIME was sent and answered, to within the round trip. A key that
comes while the present may be either of two generations goes to both; and once it is written, the latest
moment at which that can have been is looked at once more. So no client's clock matters, nor how late a batch
arrives.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom import _core
from fullbloom.engines.redis.protocol import errors, generations, manifest
from fullbloom.engines.redis.protocol.generations import (
    Begun,
    Clock,
    Contents,
    Losses,
    Now,
    _stretch,
    begun_in,
    recording,
)
from fullbloom.engines.redis.protocol.keys import Acknowledged, Names, beside, cells_of, shard_of
from fullbloom.engines.redis.protocol.requests import (
    Ask,
    Call,
    Send,
    Steps,
    call,
    guarded,
    is_done,
    read_number,
    read_part,
    read_text,
    text,
)
from fullbloom.engines.redis.protocol.verify import Verification
from fullbloom.engines.redis.storage.strings import PORTION, either, iterated
from fullbloom.errors import (
    EngineError,
    EngineFull,
    EngineNameTaken,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom._core import WireBatch, WireCells, WireExchange
    from fullbloom.engines.redis.protocol.manifest import Manifest

#: Seconds for which strings outlive their last use: the nodes of a cluster may have clocks of their own.
_KEPT = 60
#: Milliseconds for which a string lasts that has not got its name yet.
_CREATED_WITHIN = 60_000
#: Turns 0 into 1 and 1 into 0.
_OTHER = bytes([1, 0]) + bytes(254)
_WORD = 8
#: Creates a string of ARGV[1] zero bytes, with a mark behind them and an end, if there is none; returns the
#: mark of the one that is there.
_CREATE = (
    b"if redis.call('EXISTS', KEYS[1]) == 0 then "
    b"redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2]) redis.call('PEXPIREAT', KEYS[1], ARGV[3]) end "
    b"return redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + #ARGV[2] - 1)"
)


class Window:
    """The window as its strings; every method is a generator of questions (`asks`)."""

    def __init__(self, name: str, stood: Manifest, secret: bytes | None) -> None:
        """Take what is stored on the server."""
        self.name, self.cells = name, cells_of(stood, secret)
        #: Hashes keys and keeps their order, which cells in shards do not.
        self.hasher = _core.WireCells(512, 8, seed=stood.seed, secret=secret)
        self.names = Names(name)
        self.clock = Clock(self.names.manifest)
        self.stretch = _stretch(stood)
        self.contents = Contents(name, stood)

    @property
    def manifest(self) -> Manifest:
        """The manifest that was read last."""
        return self.contents.manifest

    def key(self, generation: int, shard: int = 0) -> bytes:
        """Return the name of a string."""
        return self.contents.key(generation, shard)

    def _at(self, seconds: float) -> int:
        return int(seconds // self.stretch)

    def _now(self) -> Steps[Now]:
        earliest, latest = yield from self.clock.now()
        at = self._at(earliest)
        return Now(at - self.manifest.generations + 1, at, self._at(latest))

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
                contents = self.contents
                try:
                    told += yield from (
                        self._added(contents, portion) if adding else self._found(contents, portion)
                    )
                except _Again:
                    continue
                break
        return told

    def _found(self, contents: Contents, portion: _Portion) -> Steps[bytes]:
        now = yield from self._now()
        known = contents.alive(now)
        unknown = contents.is_unknown(now)
        answers = yield from self._asked(contents, portion, known, (), now if unknown else None)
        if more := [one for one in contents.alive(now) if one not in known]:
            answers += yield from self._asked(contents, portion, more, ())
        return either([bytes(len(portion)), *answers])

    def _added(self, contents: Contents, portion: _Portion) -> Steps[bytes]:
        """Add to the present, and look in what is older: new is what is new there and nowhere here."""
        told: list[bytes] | None = None
        written = set[int]()
        while True:
            now = yield from self._now()
            present = sorted({now.earliest, now.latest} - written)
            if not present:
                return either([portion.new, either(told or []).translate(_OTHER)])
            for generation in present:
                yield from self._begin(contents, generation)
            if told is None and contents.is_unknown(now):
                yield from self._refreshed(contents)
            older = [one for one in contents.alive(now) if one not in present] if told is None else []
            answers = yield from self._asked(contents, portion, older, present)
            for generation in present:
                contents.note(generation, portion.hashes, now.first)
            if told is None:  # later generations have what was just added
                known, new = answers[: len(older)], answers[len(older) :]
                told = [*known, *(one.translate(_OTHER) for one in new)]
            written.update(present)

    def _asked(
        self,
        contents: Contents,
        portion: _Portion,
        looked: Sequence[int],
        added: Sequence[int],
        reading: Now | None = None,
    ) -> Steps[list[bytes]]:
        """Look in some generations and add to others, at the same time; a byte a hash of each.

        reading: when the manifest is to be read along with them.
        """
        fresh = [one for one in looked if one not in contents.marks]
        marks = [(one, self.cells.marks()) for one in fresh]
        each = [(one, portion.looked) for one in looked] + [(one, portion.added()) for one in added]
        asks: list[Ask] = [contents.send(one, batch) for one, batch in (*marks, *each)]
        if reading is not None:
            key = self.names.manifest
            asks.append(Send(_core.WireText(key), [shard_of(0, key)]))
        told = yield from self._exchanged(asks)
        losses = Losses()
        for (generation, _), exchanges in zip(marks, told, strict=False):
            if not self._entered(contents, generation, exchanges):
                losses.missing.append(generation)
        answers = list[bytes]()
        for (generation, batch), exchanges in zip(each, told[len(marks) :], strict=False):
            adding = len(answers) >= len(looked)
            for exchange in exchanges:
                batch.take(exchange)
                bits = losses.note(contents, generation, exchange, adding=adding)
                if adding:
                    contents.noted.setdefault(generation, Acknowledged(1)).bits[0] += bits
            answers.append(batch.answers)
            if adding and generation in losses.missing:
                # What was new in a string that is not there was nowhere before, if the window was cleared.
                portion.new = either([portion.new, batch.answers])
        if reading is not None:
            self._learn(contents, told[-1][0].states[0][1], reading)
        if losses.missing:
            yield from self._missed(contents, losses)
        return answers

    def _exchanged(self, asks: list[Ask]) -> Steps[list[list[WireExchange]]]:
        """Exchange several batches at once; what a server refuses is raised."""
        told: list[list[WireExchange]] = yield asks
        for exchange in (exchange for exchanges in told for exchange in exchanges):
            if exchange.refusals:
                raise errors.refused(self.name, exchange.refusals[0][1])
        return told

    def _entered(self, contents: Contents, generation: int, exchanges: list[WireExchange]) -> bool:
        marks = [b""] * self.cells.shards
        for exchange in exchanges:
            for shard, mark, _, _ in exchange.states:
                marks[shard] = mark
        return contents.enter(generation, marks)

    def _enter(self, contents: Contents, generation: int) -> Steps[None]:
        """Compare the marks of all strings of a generation with the record."""
        (exchanges,) = yield from self._exchanged([contents.send(generation, self.cells.marks())])
        if not self._entered(contents, generation, exchanges):
            yield from self._missed(contents, Losses([generation]))

    def _begin(self, contents: Contents, generation: int) -> Steps[None]:
        """Make sure that a generation is recorded, and that its strings are there."""
        while generation not in contents.marks:
            if generation in contents.begun:
                yield from self._enter(contents, generation)
                continue
            stood = yield from self._refreshed(contents)
            if generation not in contents.begun:
                yield from self._create(contents, generation, stood)

    def _create(self, contents: Contents, generation: int, stood: bytes) -> Steps[None]:
        """Create the strings of a generation where they are missing, and record it in the manifest ``stood``.

        Clients that do so at the same time find each other's strings, and one of them records them. One that
        was held up in between creates what was lost since with marks that are not those of the record.
        """
        before = manifest.read(self.name, stood)
        ends = ceil(((generation + before.generations) * self.stretch + _KEPT) * 1000)
        wanted = [generations.drawn(before.mark(shard)) for shard in range(before.shards)]
        strings = [
            _String(key, self.cells.range(shard)[1], wanted[shard], ends)
            for shard, key in enumerate(contents.keys(generation))
        ]
        marks = yield from self._created(strings)
        for one, mark in zip(strings, marks, strict=True):
            if not mark:  # the generation is over
                raise _Again
            if not generations.is_of(mark, one.mark):
                raise EngineNameTaken(
                    f"filter {self.name!r}: the server has a key {one.key.decode()!r} that is no string of "
                    "it; delete that key"
                )
        now = yield from self._now()
        # What another client may still look in stays recorded.
        oldest = now.first - before.generations
        begun = {one: about for one, about in begun_in(self.name, before).items() if one >= oldest}
        begun[generation] = Begun(ends, generations.digest(marks))
        after = recording(before, begun)
        if (yield from _replaced(self.names.manifest, stood, after.to_bytes())):
            contents.marks[generation] = marks
            contents.learn(after, contents.settled)

    def _created(self, strings: list[_String]) -> Steps[list[bytes]]:
        """Create strings where none are; return the marks that are there now, b"" where none is."""
        words = [(b"EVAL", _CREATE, 1, one.key, one.nbytes, one.mark, one.ends) for one in strings]
        try:
            answers = yield [Call(one.key, each) for one, each in zip(strings, words, strict=True)]
            return [text(answer, manifest.MARK_BYTES) or b"" for answer in answers]
        except (EngineTimeout, EngineUnavailable, EngineFull, EngineNameTaken):
            raise
        except EngineError:  # no scripts
            marks = list[bytes]()
            for one in strings:
                marks += [(yield from _created_by_name(one))]
            return marks

    def _refreshed(self, contents: Contents) -> Steps[bytes]:
        """Read the manifest, and return it; raise where it is another one, or the window was cleared."""
        now, key = (yield from self._now()), self.names.manifest
        stood = yield from _stored(key)
        self._learn(contents, stood or b"", now)
        return stood or b""

    def _learn(self, contents: Contents, data: bytes, now: Now) -> None:
        """Take a manifest that was read at ``now`` or later."""
        stood = manifest.read(self.name, data) if data else None
        if stood is None or stood.id != contents.manifest.id:
            raise errors.lost(self.name, "its manifest, or another filter has its name")
        if stood.generation != contents.manifest.generation:
            if self.contents is contents:
                self.contents = Contents(self.name, stood)
            raise _Again
        contents.learn(stood, now.earliest)

    def _missed(self, contents: Contents, losses: Losses) -> Steps[None]:
        """Find out why strings are not there: they have ended, the window was cleared, or they were lost."""
        keys = [(contents.key(*one), contents.begun[one[0]].ends) for one in losses.bare]
        try:
            yield from self._refreshed(contents)
        except (_Again, FilterLost):
            if keys:
                yield [Call(key, (b"UNLINK", key)) for key, _ in keys]
            raise
        if keys:
            yield [Call(key, (b"PEXPIREAT", key, ends)) for key, ends in keys]
        now = yield from self._now()
        lost = sorted({one for one in losses.missing if one >= now.first})
        if not lost:
            raise _Again
        raise errors.lost(
            self.name, f"strings of generation {', '.join(map(str, lost))}, which is within the window"
        )

    def verified(self, *, restarted: bool) -> Steps[Verification]:
        """Compare what the server has with what is recorded, and what this client knows was acknowledged."""
        while True:
            contents, is_there = self.contents, True
            try:
                yield from self._refreshed(contents)
            except FilterLost:
                is_there = False
            except _Again:
                continue
            try:
                return (yield from self._verified(contents, is_there=is_there, restarted=restarted))
            except _Again:
                continue

    def _verified(self, contents: Contents, *, is_there: bool, restarted: bool) -> Steps[Verification]:
        now = yield from self._now()
        lost, checked, found, bits, ones = list[int](), 0, 0, 0, 0
        for generation in contents.alive(now):
            noted = contents.noted.get(generation) or Acknowledged(1)
            hashes, least, there, told = noted.hashes(), noted.bits[0], 0, b""
            if is_there:
                try:
                    there = yield from self._ones(contents, generation)
                    if hashes:
                        (told,) = yield from self._asked(
                            contents, _Portion(self.cells, hashes), [generation], ()
                        )
                except FilterLost:
                    lost.append(generation)
                    there, told = 0, b""
            checked, found = checked + len(hashes) // _WORD, found + sum(told)
            bits, ones = bits + least, ones + there
            if there >= least:
                noted.bits[0] = there
        ok = is_there and not lost and found == checked and ones >= bits
        return Verification(ok, not is_there, restarted, tuple(lost), checked, checked - found, bits, ones)

    def _ones(self, contents: Contents, generation: int) -> Steps[int]:
        """Count the set bits of a generation, all strings of which must be there."""
        ones = 0
        for shard, key in enumerate(contents.keys(generation)):
            ones += yield from read_number(key, b"BITCOUNT", key, 0, self.cells.range(shard)[1] - 1)
        yield from self._enter(contents, generation)
        return ones

    def fills(self) -> Steps[list[int]]:
        """Count the set bits of each generation that was begun, oldest first."""
        while True:
            contents = self.contents
            try:
                yield from self._refreshed(contents)
                counts = list[int]()
                for generation in contents.alive((yield from self._now())):
                    ones = yield from self._ones(contents, generation)
                    counts.append(ones)
            except _Again:
                continue
            return counts

    def fpr(self) -> Steps[float]:
        """Compute the rate of false positives at the present load."""
        absent = 1.0
        for ones in (yield from self.fills()):
            absent *= 1 - self.cells.fpr(ones)
        return 1 - absent

    def cleared(self) -> Steps[None]:
        """Forget every key. Clients find the next generation of the manifest when they miss a string."""
        key = self.names.manifest
        while True:
            data = yield from _stored(key)
            stood = manifest.read(self.name, data) if data else None
            if data is None or stood is None or stood.id != self.manifest.id:
                raise errors.lost(self.name, "its manifest, or another filter has its name")
            after = recording(stood.next(), {})
            if (yield from _replaced(key, data, after.to_bytes())):
                yield from self._unlinked(Contents(self.name, stood))
                self.contents = Contents(self.name, after)
                return

    def _unlinked(self, contents: Contents) -> Steps[None]:
        """Delete the strings that were recorded, and those that a client may have begun."""
        now = yield from self._now()
        alive = {*contents.begun, *range(now.first, now.latest + 1)}
        yield [Call(key, (b"UNLINK", key)) for one in alive for key in contents.keys(one)]

    def deleted(self) -> Steps[bool]:
        """Delete the window that is there now; True when one was."""
        key, was = self.names.manifest, False
        while True:
            data = yield from _stored(key)
            stood = manifest.read(self.name, data) if data else None
            if data is None or stood is None or not stood.window:
                break
            was = True
            if (yield from _replaced(key, data, None)):
                yield from self._unlinked(Contents(self.name, stood))
                break
        yield from self._unlinked(self.contents)
        return was


class _String(NamedTuple):
    """A string to be created: its name, bytes of cells, mark, and the millisecond of its end."""

    key: bytes
    nbytes: int
    mark: bytes
    ends: int


def _created_by_name(one: _String) -> Steps[bytes]:
    """Create a string under another name and give it its own if nobody has it, where scripts are refused."""
    fresh = beside(one.key, b"new:" + one.mark.hex().encode())
    yield from call(fresh, b"SET", fresh, b"", b"PX", _CREATED_WITHIN)
    yield from call(fresh, b"SETRANGE", fresh, one.nbytes, one.mark)
    yield from call(fresh, b"PEXPIREAT", fresh, one.ends)
    try:
        if not (yield from is_done(one.key, b"RENAMENX", fresh, one.key)):
            yield from call(fresh, b"UNLINK", fresh)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # sent twice, or over by now
        yield from call(fresh, b"UNLINK", fresh)
    return (yield from read_part(one.key, one.nbytes, len(one.mark)))


class _Portion:
    """Hashes that are asked of several generations."""

    def __init__(self, cells: WireCells, hashes: bytes) -> None:
        """Take hashes of 8 bytes each."""
        self._cells, self.hashes = cells, hashes
        #: To be looked for: its answers are those of the exchange that it took last.
        self.looked = cells.hashed(hashes).batch(0, PORTION)
        #: Those that were new when it was found out that the window was cleared.
        self.new = bytes(len(self))

    def __len__(self) -> int:
        """Return the number of hashes."""
        return len(self.hashes) // _WORD

    def added(self) -> WireBatch:
        """Return them as a batch of its own, to be added."""
        return self._cells.hashed(self.hashes, adding=True).batch(0, PORTION)


class _Again(Exception):
    """The window was cleared, or a generation has ended: what was asked is to be asked once more."""


def _replaced(key: bytes, before: bytes, after: bytes | None) -> Steps[bool]:
    """Replace a manifest if it is still ``before``, or delete it; False where it is another one."""
    words = (b"DEL", key) if after is None else (b"SET", key, after)
    if (yield from guarded(key, before, *words)):
        return True
    return after is not None and (yield from _stored(key)) == after  # sent twice


def _stored(key: bytes) -> Steps[bytes | None]:
    """Return the manifest as it is stored."""
    return (yield from read_text(key, manifest.MOST_BYTES, b"GET", key))
