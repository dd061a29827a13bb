"""A filter in plain strings: cells behind which stands whose they are.

A shard is a string: cells, then a mark of 16 bytes. Each batch asks for the marks of the strings it touches
behind its keys, so that a server which lost a string, or has another filter's in its place, is found out by
the next batch.
"""

from __future__ import annotations

from array import array
from functools import partial
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from bloomery import _core
from bloomery.engines.redis import failures, manifest, terms
from bloomery.engines.redis.acknowledged import Acknowledged
from bloomery.engines.redis.asks import Send, call
from bloomery.engines.redis.lasting import Expired, now
from bloomery.engines.redis.names import Names, shard_of
from bloomery.errors import ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bloomery._core import WireBatch, WireCells, WireExchange, WireKeys
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

_WORD = 8
#: Keys of one round trip: 1 MB of commands to look, 5 MB to add.
PORTION = 16384


def cells_of(stood: Manifest, secret: bytes | None) -> WireCells:
    """Return the cells of a filter, natively."""
    return _core.WireCells(
        stood.num_bits,
        stood.num_hashes,
        layout=stood.layout,
        scheme=stood.scheme,
        hash=stood.hash,
        shards=stood.shards,
        seed=stood.seed,
        secret=secret,
        native=stood.backend == manifest.MODULE,
    )


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
        """Take what stands on the server."""
        self.name = name
        #: True of a filter that was not there before.
        self.fresh = False
        self.secret = secret
        self.adopt(stood)

    def adopt(self, stood: Manifest) -> None:
        """Go by another manifest: what was acknowledged before is not of it."""
        self.manifest = stood
        self.names = Names.of(self.name, stood)
        self.cells = cells_of(stood, self.secret)
        self.acknowledged = Acknowledged(stood.shards)
        self.marks = [stood.mark(shard) for shard in range(stood.shards)]
        self._shards = list(starmap(shard_of, enumerate(self.names.bits)))
        #: Of a filter with a ttl: when it is over by this process's clock; None until the server said it.
        self.ends: float | None = None
        #: The strings that keys are written to, too, while the filter goes to another number of shards.
        self.other = Strings(self.name, stood.other(), self.secret) if stood.other_shards else None

    @property
    def view(self) -> tuple[int, int]:
        """Which strings are read, and which others written to."""
        return self.manifest.cut, self.manifest.other_shards and self.manifest.other_cut + 1

    def one(self, key: Any, *, adding: bool) -> Steps[bool]:
        """Look for one key, or add it: True when it was found, or new."""
        batches = yield from self._settled(lambda: self.cells.one(key, adding=adding), adding=adding)
        return any(batch.any for batch in batches)

    def many(self, keys: Any, *, adding: bool, answer: bool = True) -> Steps[Any]:
        """Look for many keys, or add them; the answers in the kind of the keys, if they are wanted."""
        if not hasattr(keys, "__len__") and not hasattr(keys, "__arrow_c_stream__"):
            return (yield from iterated(self.many, keys, adding=adding, answer=answer))
        gathered = self.cells.keys(keys, adding=adding)
        yield from self._portions(gathered, adding=adding)
        return gathered.answers(keys) if answer else None

    def hashed(self, hashes: Any, *, adding: bool) -> Steps[Any]:
        """Look for the keys of ready hashes, or add them; the answers in the kind of the hashes."""
        gathered = self.cells.hashed(_words(hashes), adding=adding)
        yield from self._portions(gathered, adding=adding)
        return gathered.answers(hashes)

    def _portions(self, gathered: WireKeys, *, adding: bool) -> Steps[None]:
        for start in range(0, len(gathered), PORTION):
            for batch in (yield from self._settled(partial(self._portion, gathered, start), adding=adding)):
                gathered.take(batch)

    def _portion(self, gathered: WireKeys, start: int) -> WireBatch:
        return gathered.batch(start, start + PORTION, self.cells)

    def _settled(self, make: Callable[[], WireBatch], *, adding: bool) -> Steps[list[WireBatch]]:
        """Send a batch, and once more whenever the filter went to other strings meanwhile.

        An add is new if any of them said so; a look is answered by the last. After the end of a term the
        answers are those of the next one; there are none to a look, unless a client has begun it.
        """
        batches: list[WireBatch] = []
        while True:
            batches.append(make())
            try:
                if (yield from self._sent(batches[-1], adding=adding)):
                    return batches if adding else batches[-1:]
            except Expired:
                if adding:
                    batches.clear()
                    yield from terms.anew(self)
                elif not (yield from terms.found(self)):
                    return batches[-1:]

    def each(self, hashes: bytes, *, adding: bool) -> Steps[bytes]:
        """Look for ready hashes, or add them; a byte for each, as `one` answers."""
        gathered = self.cells.hashed(hashes, adding=adding)
        answers = b""
        for start in range(0, len(gathered), PORTION):
            batches = yield from self._settled(partial(self._portion, gathered, start), adding=adding)
            answers += either([batch.answers for batch in batches])
        return answers

    def present(self, hashes: bytes) -> Steps[int]:
        """Count those of ready hashes that are found."""
        gathered = self.cells.hashed(hashes)
        found = 0
        for start in range(0, len(gathered), PORTION):
            batch = gathered.batch(start, start + PORTION)
            for exchange in (yield from self._exchanged(batch)):
                batch.take(exchange)
            found += batch.count
        return found

    def _exchanged(self, batch: WireBatch) -> Steps[list[WireExchange]]:
        """Send a batch; what a server refuses is raised."""
        exchanges: list[WireExchange]
        (exchanges,) = yield [Send(batch, [self._shards[shard] for shard in batch.shards])]
        for exchange in exchanges:
            if exchange.refusals:
                raise failures.refused(self.name, exchange.refusals[0][1])
        return exchanges

    def _sent(self, batch: WireBatch, *, adding: bool) -> Steps[bool]:
        """Send a batch and take its answers; False if the filter is in other strings than it was sent to."""
        if self.manifest.ttl:
            yield from terms.begun(self)
        if adding and self.other is not None:
            beside = self.other.cells.hashed(batch.hashes, adding=True).batch(0, len(batch))
            if not (yield from self._sent_to(self.other, beside, adding=True)):
                return False
        if not (yield from self._sent_to(self, batch, adding=adding)):
            return False
        if adding:
            self.acknowledged.note(batch.hashes)
        return True

    def _sent_to(self, part: Strings, batch: WireBatch, *, adding: bool) -> Steps[bool]:
        exchanges = yield from part._exchanged(batch)
        states = [state for exchange in exchanges for state in exchange.states]
        for exchange in exchanges:
            batch.take(exchange)
        if any(short or mark != part.marks[shard] for shard, mark, short, _ in states) and not (
            yield from self._looked_into(part, states)
        ):
            return False
        if adding:
            for shard, _, _, bits in states:
                part.acknowledged.bits[shard] += bits
        return True

    def _looked_into(self, part: Strings, states: list[tuple[int, bytes, bool, int]]) -> Steps[bool]:
        """Find out why a mark is another one than before: whether the answers hold, or what was lost."""
        view = self.view
        yield from self.refreshed()
        if self.view != view:
            return False
        for shard, mark, short, _ in states:
            if short or mark[:8] + mark[12:] != part.marks[shard][:8] + part.marks[shard][12:]:
                raise (yield from self.gone(f"the cells of shard {shard}", part.names.bits[shard]))
            if mark != part.marks[shard]:
                part.forget(shard, mark)
        return True

    def forget(self, shard: int, mark: bytes) -> None:
        """Go by the mark of another generation: the filter was cleared or loaded, and has the same cells."""
        self.marks[shard] = mark
        self.acknowledged = Acknowledged(self.manifest.shards)

    def refreshed(self) -> Steps[None]:
        """Read the manifest once more, and go by it if it is a later generation of this filter."""
        data = yield from call(self.names.manifest, b"GET", self.names.manifest)
        if data is None:
            raise (yield from self.gone("its manifest"))
        stood = manifest.read(self.name, data)
        if stood.id != self.manifest.id:
            raise (yield from self.gone("the filter: another one of this name was made since"))
        if stood.state == manifest.DELETING:
            raise failures.lost(self.name, "the filter: it is being deleted")
        if stood.generation != self.manifest.generation:
            self.adopt(stood)

    def gone(self, what: str, key: bytes | None = None) -> Steps[Exception]:
        """Return what it means that a key, or the manifest, is gone: its term is over, or it was lost."""
        if self.manifest.ttl and (yield from now(key or self.names.manifest)) >= self.manifest.expires:
            return Expired()
        return failures.lost(self.name, what)

    def need_cells(self, what: str) -> None:
        """Raise where the server keeps the cells to itself."""

    def marked(self, shard: int) -> Steps[bytes]:
        """Return the mark of a shard, which must be this filter's."""
        key = self.names.bits[shard]
        _, nbytes = self.cells.range(shard)
        mark: bytes = yield from call(key, b"GETRANGE", key, nbytes, nbytes + manifest.MARK_BYTES - 1)
        if len(mark) != manifest.MARK_BYTES or mark[:8] != self.marks[shard][:8]:
            yield from self.refreshed()
            raise (yield from self.gone(f"the cells of shard {shard}", key))
        return mark

    @property
    def nbytes(self) -> int | None:
        """Bytes of all cells; None where the server keeps them to itself."""
        return sum(self.cells.range(shard)[1] for shard in range(self.cells.shards))

    def load(self) -> Steps[Load]:
        """Ask how full the filter is."""
        ones, cells = (yield from terms.looked(self, self._set, int)), self.cells
        return Load(cells.fpr(ones), *cells.approx_count(ones), cells.fill(ones))

    def _set(self) -> Steps[int]:
        return sum((yield from self.ones()))

    def counted(self) -> Steps[list[int]]:
        """Count what only grows while nothing is lost."""
        return (yield from self.ones())

    def ones(self) -> Steps[list[int]]:
        """Count the set bits of each shard."""
        yield from self.refreshed()
        counts = []
        for shard, key in enumerate(self.names.bits):
            _, nbytes = self.cells.range(shard)
            counts.append((yield from call(key, b"BITCOUNT", key, 0, nbytes - 1)))
        return counts


def either(answers: list[bytes]) -> bytes:
    """Return 1 where any has it."""
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
