"""A filter in plain strings: cells followed by a 16-byte tag that says whose they are.

Each batch asks for the tags of the strings it touches behind its keys, so that a server which lost a string,
has another filter's in its place, or went back to an earlier state of it, is found out by the next batch.

What a batch is built from is one `Snapshot`, which is never changed, only replaced as a whole: the replies
are compared with the snapshot that the commands were written from, whatever other threads or tasks find out
meanwhile. Where they differ, the manifest is read again, and the batch is sent again from another snapshot.
"""

from __future__ import annotations

import time
from array import array
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom import _core
from fullbloom.engines.redis.protocol import create, errors, expire, manifest
from fullbloom.engines.redis.protocol.expire import Expired
from fullbloom.engines.redis.protocol.keys import Acknowledged, Names, Snapshot
from fullbloom.engines.redis.protocol.requests import (
    Acks,
    Pause,
    Send,
    Steps,
    call,
    now,
    read_number,
    read_part,
)
from fullbloom.errors import (
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    FullbloomError,
    ParameterTypeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fullbloom._core import WireBatch, WireCells, WireExchange, WireKeys
    from fullbloom.engines.redis.protocol.manifest import Manifest

    #: What a server said of a shard: its number, its tag, whether it was too short, bits that were set.
    State = tuple[int, bytes, bool, int]

_WORD = 8
#: Keys of one round trip: 1 MB of commands to look, 5 MB to add.
PORTION = 16384
#: Seconds after which an add raises the epoch of the strings it wrote to.
RAISED_EVERY = 0.25
#: How often a batch is sent again at once, and at all; seconds between the tries after that.
_FREELY, _TURNS, _WAIT = 4, 200, 0.05
#: One shard, in which hashes keep their order.
_IN_ORDER = _core.WireCells(512, 8)


class Load(NamedTuple):
    """How full a filter is."""

    fpr: float
    #: Estimated number of keys, and its standard deviation.
    keys: float
    keys_sd: float
    #: Share of set bits; None where the server keeps them to itself.
    fill: float | None


class Strings:
    """The filter as its strings; every method is a generator of questions (`asks`)."""

    def __init__(self, name: str, stood: Manifest, secret: bytes | None) -> None:
        """Take the manifest that is on the server."""
        self.name = name
        #: True of a filter that was not there before.
        self.fresh = False
        self.secret = secret
        #: Replicas that must have what is added.
        self.acks: Acks | None = None
        #: True since the server was found to have gone back, until the filter is cleared or loaded.
        self.went_back = False
        self._one = Lock()
        self.adopt(stood)

    def adopt(self, stood: Manifest) -> None:
        """Go by another manifest: what was acknowledged before is not of it."""
        self._replaced(Snapshot.of(self.name, stood, self.secret))

    def _replaced(self, snapshot: Snapshot) -> None:
        was = getattr(self, "snapshot", None)
        if was is None or was.manifest.id != snapshot.manifest.id or _is_cleared(was, snapshot):
            self.went_back = False
        self.snapshot = snapshot
        #: Of a filter with a ttl: when it is over by this process's clock; None until the server said it.
        self.ends: float | None = None

    @property
    def manifest(self) -> Manifest:
        """The manifest that this client knows."""
        return self.snapshot.manifest

    @property
    def names(self) -> Names:
        """The keys on the server."""
        return self.snapshot.names

    @property
    def cells(self) -> WireCells:
        """The cells, natively."""
        return self.snapshot.cells

    @property
    def acknowledged(self) -> Acknowledged:
        """What this client knows that the server acknowledged."""
        return self.snapshot.acknowledged

    def one(self, key: Any, *, adding: bool) -> Steps[bool]:
        """Look for one key, or add it: True when it was found, or new."""
        answers = yield from self._settled(lambda cells: cells.one(key, adding=adding), adding=adding)
        return answers == b"\1"

    def many(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look for many keys, or add them; the answers in the kind of the keys, if they are wanted."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            return (yield from iterated(self.many, keys, adding=adding, answer=answer))
        gathered = self.cells.keys(keys, adding=adding)
        gathered.give((yield from self._portions(gathered, adding=adding)))
        return gathered.answers(keys) if answer else None

    def hashed(self, hashes: Any, *, adding: bool) -> Steps[Any]:
        """Look for the keys of ready hashes, or add them; the answers in the kind of the hashes."""
        gathered = self.cells.hashed(_words(hashes), adding=adding)
        gathered.give((yield from self._portions(gathered, adding=adding)))
        return gathered.answers(hashes)

    def each(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look for ready hashes, or add them; a byte for each, as `one` answers."""
        return (yield from self._portions(self.cells.hashed(hashes, adding=adding), adding=adding))

    def _portions(self, gathered: WireKeys, *, adding: bool) -> Steps[bytes]:
        answers = []
        for start in range(0, len(gathered), PORTION):
            portion = partial(gathered.batch, start, start + PORTION)
            answers.append((yield from self._settled(portion, adding=adding)))
        return b"".join(answers)

    def _settled(self, make: Callable[[WireCells], WireBatch], *, adding: bool) -> Steps[bytes]:
        """Send a batch, and once more whenever the filter went to other strings meanwhile; a byte a key.

        An add is new if any of them said so; a look is answered by the last. After the end of a term the
        answers are those of the next one; there are none to a look, unless a client has begun it.
        """
        told: list[bytes] = []
        for turn in count():
            if turn >= _FREELY:
                yield [Pause(_WAIT)]
            if turn >= _TURNS:
                raise EngineTimeout(
                    f"filter {self.name!r}: it goes from strings to strings faster than a batch is sent; "
                    "try again"
                )
            snapshot = self.snapshot
            try:
                if snapshot.manifest.ttl:
                    yield from expire.begun(self)
                    snapshot = self.snapshot
                answers, settled = yield from self._sent(snapshot, make, adding=adding)
            except Expired:
                if adding:
                    told.clear()
                    yield from expire.anew(self, snapshot.manifest)
                elif self.manifest.id == snapshot.manifest.id and not (yield from expire.found(self)):
                    return bytes(len(make(snapshot.cells)))
                continue
            told.append(answers)
            if settled:
                return either(told) if adding else told[-1]
        raise AssertionError  # count() does not end

    def _sent(
        self, snapshot: Snapshot, make: Callable[[WireCells], WireBatch], *, adding: bool
    ) -> Steps[tuple[bytes, bool]]:
        """Send a batch by a snapshot; its answers, and whether the filter is in those strings still."""
        if self.went_back:
            raise errors.rolled_back(self.name)
        other, late = snapshot.other if adding else None, set[int]()
        if other is not None:
            beside = make(other.cells)
            late = yield from self._sent_to(snapshot, other, beside, adding=True)
        batch = make(snapshot.cells)
        moved = yield from self._sent_to(snapshot, snapshot, batch, adding=adding)
        answers = batch.answers
        if late and snapshot.is_copying and other is not None:
            # Where the new strings are read already, they say what is new.
            answers = _mixed(make, other.cells, late, beside.answers, answers)
        if late or moved:
            return answers, False
        if adding:
            snapshot.acknowledged.note(batch.hashes)
            yield from raised(snapshot)
        return answers, True

    def present(self, hashes: bytes) -> Steps[int]:
        """Count those of ready hashes that are found."""
        snapshot = self.snapshot
        gathered = snapshot.cells.hashed(hashes)
        found = 0
        for start in range(0, len(gathered), PORTION):
            batch = gathered.batch(start, start + PORTION)
            for exchange in (yield from self._exchanged(snapshot, batch)):
                batch.take(exchange)
            found += batch.count
        return found

    def _exchanged(
        self, part: Snapshot, batch: WireBatch, *, adding: bool = False
    ) -> Steps[list[WireExchange]]:
        """Send a batch; what a server refuses is raised."""
        exchanges: list[WireExchange]
        shards = [part.shards[shard] for shard in batch.shards]
        (exchanges,) = yield [
            Send(batch, shards, acks=self.acks) if adding and self.acks else Send(batch, shards)
        ]
        for exchange in exchanges:
            if exchange.refusals:
                raise errors.refused(self.name, exchange.refusals[0][1])
        return exchanges

    def _sent_to(
        self, snapshot: Snapshot, part: Snapshot, batch: WireBatch, *, adding: bool
    ) -> Steps[set[int]]:
        """Send a batch to the strings of a snapshot, or to the others that it writes to.

        Returns the shards that were found in another state, if the filter is in other strings by now.
        """
        known = {shard: part.epochs[shard] for shard in batch.shards}
        exchanges = yield from self._exchanged(part, batch, adding=adding)
        states: list[State] = [state for exchange in exchanges for state in exchange.states]
        for exchange in exchanges:
            batch.take(exchange)
        changed = [state for state in states if state[2] or not part.is_as_known(state[0], state[1])]
        if changed:
            late = yield from self._explained(snapshot, part, changed, adding=adding)
            if late:
                return late
        else:
            for shard, tag, _, _ in states:
                self._check_epoch(part, shard, part.epoch_of(tag), known[shard])
        if adding:
            for shard, _, _, bits in states:
                part.acknowledged.bits[shard] += bits
            part.touched.update(known)
        return set()

    def _check_epoch(self, part: Snapshot, shard: int, epoch: int, known: int) -> None:
        """Raise where a shard is in an earlier epoch than it was known in before it was asked."""
        if epoch < known:
            self.went_back = True
            raise errors.rolled_back(self.name)
        part.epochs[shard] = max(epoch, part.epochs[shard])

    def _explained(
        self, snapshot: Snapshot, part: Snapshot, changed: list[State], *, adding: bool
    ) -> Steps[set[int]]:
        """Find out why tags are others than before.

        Returns the shards if the filter is in other strings by now; none if the answers hold. Raises what was
        lost.
        """
        try:
            now_ = yield from self.refreshed(snapshot)
        except (FullbloomError, Expired):
            if adding:
                yield from self._swept(part, changed, own=False)
            raise
        late = {shard for shard, _, _, _ in changed}
        if now_.view != snapshot.view:
            if adding:
                yield from self._swept(part, changed, own=False)
            return late
        for shard, tag, short, _ in changed:
            if short or not part.is_own(shard, tag):
                raise (yield from self.gone(f"the cells of shard {shard}", part.names.bits[shard], snapshot))
            self.retag(snapshot, part, shard, tag)
        return set()

    def _swept(self, part: Snapshot, changed: list[State], *, own: bool) -> Steps[None]:
        """Delete what an add has left where there is no filter, as far as the server can be reached."""
        if part.manifest.backend == manifest.MODULE:
            return
        with suppress(FullbloomError):
            for shard, tag, _, _ in changed:
                if not part.is_own(shard, tag):
                    key, mark = part.names.bits[shard], part.manifest.mark(shard)
                    yield from create.swept(key, part.nbytes(shard), mark, own=own)

    def swept(self, snapshot: Snapshot) -> Steps[None]:
        """Delete what is left of a filter whose manifest is gone."""
        for part in (snapshot, snapshot.other):
            if part is not None and part.manifest.backend == manifest.STRINGS:
                for shard, key in enumerate(part.names.bits):
                    yield from create.swept(key, part.nbytes(shard), part.manifest.mark(shard), own=True)

    def retag(self, snapshot: Snapshot, part: Snapshot, shard: int, tag: bytes) -> None:
        """Go by the tag of another generation: the filter was cleared or loaded, and has the same cells."""
        with self._one:
            if self.snapshot is not snapshot:  # another thread has found out more
                return
            if part.is_as_known(shard, tag):
                return
            new = part.retagged(shard, tag)
            self.snapshot = new if part is snapshot else replace(snapshot, other=new)

    def refreshed(self, known: Snapshot | None = None) -> Steps[Snapshot]:
        """Read the manifest once more, and go by it if it is a later generation of this filter."""
        known = self.snapshot if known is None else known
        there = yield from create.stored(self.name)
        if there is None:
            raise (yield from self.gone("its manifest", None, known))
        stood = there[1]
        if stood.id != known.manifest.id:
            what = "the filter: another one of this name was made since"
            raise (yield from self.gone(what, None, known))
        if stood.state == manifest.DELETING:
            raise errors.lost(self.name, "the filter: it is being deleted")
        if stood.generation < known.manifest.generation:
            self.went_back = True
            raise errors.rolled_back(self.name)
        with self._one:
            mine = self.snapshot.manifest
            newer = stood.generation > mine.generation or stood.expires > mine.expires
            if stood.id == mine.id and newer:
                self._replaced(Snapshot.of(self.name, stood, self.secret))
            return self.snapshot

    def gone(self, what: str, key: bytes | None = None, known: Snapshot | None = None) -> Steps[Exception]:
        """Return what it means that a key, or the manifest, is gone: its term is over, or it was lost."""
        snapshot = self.snapshot if known is None else known
        stood = snapshot.manifest
        if stood.ttl and (yield from now(key or snapshot.names.manifest)) >= stood.expires:
            return Expired()
        return errors.lost(self.name, what)

    def need_cells(self, what: str) -> None:
        """Raise where the server keeps the cells to itself."""

    def marked(self, shard: int, known: Snapshot | None = None) -> Steps[bytes]:
        """Return the tag of a shard, which must be this filter's."""
        snapshot = self.snapshot if known is None else known
        key = snapshot.names.bits[shard]
        tag = yield from read_part(key, snapshot.nbytes(shard), manifest.MARK_BYTES)
        if not snapshot.is_own(shard, tag):
            yield from self.refreshed(self.snapshot)
            raise (yield from self.gone(f"the cells of shard {shard}", key, snapshot))
        return tag

    @property
    def nbytes(self) -> int | None:
        """Bytes of all cells; None where the server keeps them to itself."""
        cells = self.cells
        return sum(cells.range(shard)[1] for shard in range(cells.shards))

    def load(self) -> Steps[Load]:
        """Ask how full the filter is."""
        ones, cells = (yield from expire.looked(self, self._set, int)), self.cells
        return Load(cells.fpr(ones), *cells.approx_count(ones), cells.fill(ones))

    def _set(self) -> Steps[int]:
        return sum((yield from self.ones()))

    def counted(self) -> Steps[list[int]]:
        """Count what only grows while nothing is lost."""
        return (yield from self.ones())

    def ones(self) -> Steps[list[int]]:
        """Count the set bits of each shard."""
        snapshot = yield from self.refreshed()
        counts = []
        for shard, key in enumerate(snapshot.names.bits):
            nbytes = snapshot.nbytes(shard)
            ones = yield from read_number(key, b"BITCOUNT", key, 0, nbytes - 1)
            counts.append(min(max(ones, 0), 8 * nbytes))
        return counts


def raised(snapshot: Snapshot) -> Steps[None]:
    """Raise the epochs of the shards that were written to, once in a while.

    The epoch is behind all that was acknowledged before. What keeps a server from raising it is no fault of
    an add: the next one tries again.
    """
    if snapshot.manifest.version == 1 or snapshot.manifest.backend == manifest.MODULE:
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
                epoch = yield from _epoch_raised(part, shard)
                part.epochs[shard] = max(epoch, part.epochs[shard])


#: Raises the epoch of a string whose tag begins with ARGV[2]; -1 where it has another.
_RAISE = (
    b"local at = tonumber(ARGV[1]) "
    b"if redis.call('GETRANGE', KEYS[1], at, at + #ARGV[2] - 1) ~= ARGV[2] then return -1 end "
    b"return redis.call('BITFIELD', KEYS[1], 'OVERFLOW', 'SAT', 'INCRBY', 'u32', (at + 12) * 8, 1)[1]"
)


def _epoch_raised(part: Snapshot, shard: int) -> Steps[int]:
    """Raise the epoch of a shard; the new one, or -1 where the string is not what it was."""
    key, at, stable = part.names.bits[shard], part.nbytes(shard), part.tags.stable[shard]
    try:
        return (yield from read_number(key, b"EVAL", _RAISE, 1, key, at, stable))
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:  # no scripts
        if (yield from read_part(key, at, len(stable))) != stable:
            return -1
        place = (at + manifest.STABLE_BYTES) * 8
        words = (b"BITFIELD", key, b"OVERFLOW", b"SAT", b"INCRBY", b"u32", place, 1)
        answer = yield from call(key, *words)
        return answer[0] if isinstance(answer, list) and answer and isinstance(answer[0], int) else -1


def _is_cleared(was: Snapshot, now_: Snapshot) -> bool:
    """Tell whether a later generation is one of other keys: no step of a reshard."""
    return was.view == now_.view and not now_.manifest.other_shards


def _mixed(
    make: Callable[[WireCells], WireBatch], cells: WireCells, late: set[int], there: bytes, here: bytes
) -> bytes:
    """Return the answers of ``there`` for keys in the shards ``late``, and those of ``here`` for others."""
    if len(here) == 1:
        return there
    hashes = make(_IN_ORDER).hashes
    answers = bytearray(here)
    for number in range(len(here)):
        one = cells.hashed(hashes[_WORD * number : _WORD * (number + 1)])
        if one.batch(0, 1).shards[0] in late:
            answers[number] = there[number]
    return bytes(answers)


def either(answers: list[bytes]) -> bytes:
    """Return 1 where any has it."""
    if len(answers) == 1:
        return answers[0]
    held = 0
    for one in answers:
        held |= int.from_bytes(one, "little")
    return held.to_bytes(len(answers[0]), "little")


def _words(hashes: Any) -> bytes:
    """Return hashes as 8 bytes each; ParameterTypeError for what is no list or buffer of 64-bit hashes."""
    try:
        view = memoryview(array("Q", hashes) if isinstance(hashes, (list, tuple)) else hashes)
    except (TypeError, OverflowError):
        view = memoryview(b"")
    if view.ndim != 1 or view.itemsize != _WORD or view.format not in {"Q", "L", "<Q", "<L", "=Q", "=L"}:
        raise ParameterTypeError(
            f"hashes must be a list, or a buffer of unsigned 64-bit numbers, got {type(hashes).__name__}"
        )
    return view.tobytes()


def iterated(
    many: Callable[..., Steps[Any]], keys: Iterable[Any], *, adding: bool, answer: bool
) -> Steps[Any]:
    """Ask ``many`` of what cannot be asked at once: a portion of an iterator's keys at a time."""
    ahead = iter(keys)
    answers: list[bool] = []
    while some := list(islice(ahead, PORTION)):
        answers += (yield from many(some, adding=adding, answer=answer)) or []
    return answers if answer else None
