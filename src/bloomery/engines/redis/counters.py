"""A counting filter in a string: the counters of memory, each changed by the server.

A key's k counters are changed by one BITFIELD, which no other command comes between. Adding is
``OVERFLOW SAT INCRBY +1``: a counter that has reached its maximum T stays there. T may stand for more than T
keys, so that it must never be taken from again; and no counter may fall below 0. Both are held by four steps
a counter in the BITFIELD that removes, whatever other clients do::

    SAT  INCRBY -1    T -> T - 1,  c -> c - 1,  0 -> 0
    WRAP INCRBY +1    T - 1 -> T,  c - 1 -> c,  0 -> 1    only what was T is T now
    FAIL INCRBY -T    T -> 0;      every other one would fall below 0, and is left
    WRAP INCRBY -1    0 -> T,      c -> c - 1,  1 -> 0

A key is looked for before it is removed. Where another client removes the same key at that moment, so that
one of its counters was 0 already, what was taken from the others is given back, and the key was not there.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bloomery import _core
from bloomery.engines.redis import failures
from bloomery.engines.redis.asks import Call, Calls, call
from bloomery.engines.redis.manifest import MARK_BYTES
from bloomery.engines.redis.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.manifest import Manifest

#: The layout of all counters of a key in one line.
LAYOUT: Final = "blocked"
#: Widths for which the bytes of the string are those of memory.
WIDTHS = (2, 4, 8)
#: Keys of one round trip.
PORTION = 1024
_STEPS = 5

Words = tuple[bytes | int, ...]


class Cells:
    """How long the string is, for those who make it."""

    def __init__(self, nbytes: int) -> None:
        """Take its length without the mark."""
        self.nbytes = nbytes
        self.shards = 1

    def range(self, _shard: int) -> tuple[int, int]:
        """Return the first byte, and how many there are."""
        return 0, self.nbytes


class Counters:
    """The filter as its string; every method is a generator of questions (`asks`)."""

    def __init__(self, name: str, stood: Manifest, secret: bytes | None) -> None:
        """Take what stands on the server."""
        self.name, self.manifest = name, stood
        self.names = Names(name)
        # Never written to: its pages stay unused. It knows where the counters of a key are.
        self.memory = _core.CountingBloomFilter(
            stood.capacity,
            stood.fpr,
            counter_bits=stood.counter_bits,
            layout=LAYOUT,
            seed=stood.seed,
            secret=secret,
        )
        self.most = (1 << stood.counter_bits) - 1
        self.cells = Cells(self.memory.nbytes)
        self._field = b"u%d" % stood.counter_bits
        self._mark = stood.mark(0)

    def at(self, key: Any) -> list[int]:
        """Return the numbers that the server has for the first bits of a key's counters."""
        width = self.manifest.counter_bits
        # A server counts the bits of a byte from the other end.
        return [bit & ~7 | (8 - width - (bit & 7)) for bit in (p * width for p in self.memory.positions(key))]

    def _look(self, at: list[int]) -> Words:
        return (b"BITFIELD_RO", self.names.bits[0], *(w for p in at for w in (b"GET", self._field, p)))

    def _add(self, at: list[int]) -> Words:
        steps = (w for p in at for w in (b"INCRBY", self._field, p, 1))
        return (b"BITFIELD", self.names.bits[0], b"OVERFLOW", b"SAT", *steps)

    def _remove(self, at: list[int]) -> Words:
        field = self._field
        steps: list[bytes | int] = []
        for p in at:
            steps += [b"GET", field, p]
            for overflow, by in ((b"SAT", -1), (b"WRAP", 1), (b"FAIL", -self.most), (b"WRAP", -1)):
                steps += [b"OVERFLOW", overflow, b"INCRBY", field, p, by]
        return (b"BITFIELD", self.names.bits[0], *steps)

    def _asked(self, commands: list[Words]) -> Steps[list[Any]]:
        """Send commands and ask for the mark behind them; what is refused, or lost, is raised."""
        key, nbytes = self.names.bits[0], self.cells.nbytes
        mark: Words = (b"GETRANGE", key, nbytes, nbytes + MARK_BYTES - 1)
        (replies,) = yield [Calls([Call(key, words) for words in (*commands, mark)])]
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        answers: list[Any] = replies[:-1]
        mark_there = replies[-1]
        if isinstance(mark_there, str):  # of a client that decodes
            mark_there = mark_there.encode("utf-8", "surrogateescape")
        if mark_there[:8] != self._mark[:8]:
            raise failures.lost(self.name, "its counters")
        return answers

    def counted(self, keys: Iterable[Any]) -> Steps[list[int]]:
        """Return the least counter of each key."""
        rest, counts = iter(keys), list[int]()
        while portion := list(islice(rest, PORTION)):
            told = yield from self._asked([self._look(self.at(key)) for key in portion])
            counts += [min(counters) for counters in told]
        return counts

    def added(self, keys: Iterable[Any]) -> Steps[list[bool]]:
        """Add keys in order; True for those that were certainly new."""
        rest, new = iter(keys), list[bool]()
        while portion := list(islice(rest, PORTION)):
            told = yield from self._asked([self._add(self.at(key)) for key in portion])
            new += [min(counters) == 1 for counters in told]
        return new

    def removed(self, keys: Iterable[Any]) -> Steps[list[bool]]:
        """Remove keys in order; True for those that seemed to be there."""
        rest, gone = iter(keys), list[bool]()
        while portion := list(islice(rest, PORTION)):
            places = [self.at(key) for key in portion]
            told = yield from self._asked([self._look(at) for at in places])
            there = [number for number, counters in enumerate(told) if min(counters)]
            taken = yield from self._taken([places[number] for number in there])
            went = dict(zip(there, taken, strict=True))
            gone += [went.get(number, False) for number in range(len(portion))]
        return gone

    def _taken(self, places: list[list[int]]) -> Steps[list[bool]]:
        """Take one from the counters of each key; whether none of them was 0."""
        if not places:
            return []
        told = yield from self._asked([self._remove(at) for at in places])
        before = [counters[::_STEPS] for counters in told]
        back = [
            self._add([p for p, count in zip(at, counts, strict=True) if 0 < count < self.most])
            for at, counts in zip(places, before, strict=True)
            if not all(counts) and any(0 < count < self.most for count in counts)
        ]
        if back:
            yield from self._asked(back)
        return [all(counts) for counts in before]

    def cells_there(self) -> Steps[bytes]:
        """Return all counters, byte for byte those of a filter in memory."""
        key = self.names.bits[0]
        data: bytes = yield from call(key, b"GETRANGE", key, 0, self.cells.nbytes + MARK_BYTES - 1)
        if data[self.cells.nbytes :][:8] != self._mark[:8]:
            raise failures.lost(self.name, "its counters")
        return data[: self.cells.nbytes]
