"""De-duplicate a stream in bounded memory, order kept.

>>> from fullbloom import BloomFilter
>>> list(unique(["a", "b", "a", "c", "b"], BloomFilter(1000, 1e-6)))
['a', 'b', 'c']
"""

from __future__ import annotations

import math
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom import _core, registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    #: Any filter whose ``add`` takes the key alone.
    Seen = Any
    Block = bytes | bytearray | memoryview
    Parts = tuple[int, int, bytes, bytes]

T = TypeVar("T")

#: One line in 10^12.
_SCRATCH_FPR = 1e-12
#: The rate of other structures is looked up anew after this share of new keys, and taken for a power of
#: their number between: exact to 1e-3 in the loss for the twentieth.
_RATE_STEP = 16
#: Nor is it looked up before this share of the capacity came: there is hardly a rate yet.
_FIRST_STEP = 256
#: The keys offered are summed in steps of this share of them: exact to 1e-4 in the loss.
_KEY_STEPS = 64
#: From here on nothing is kept, so what is kept says nothing any more.
_SATURATED = 1.0 - 1e-9


def keeps_copies(seen: Seen) -> bool:
    """Tell whether adding a key again takes more memory: such filters are given new keys only.

    >>> from fullbloom import BloomFilter
    >>> keeps_copies(BloomFilter(100))
    False
    """
    return hasattr(seen, "remove") or hasattr(seen, "count")


def add_new(keys: list[Any], seen: Seen) -> list[bool]:
    """Add the keys that are not there yet; one answer a key, as ``add_many`` gives.

    Raises what ``seen.add`` raises. Costs one batch add, or for filters that keep copies one
    look-up and at most one add a key.

    >>> from fullbloom import BloomFilter
    >>> add_new(["a", "b", "a"], BloomFilter(100))
    [True, True, False]
    """
    if not keeps_copies(seen):
        answers: list[bool] = seen.add_many(keys)
        return answers
    return [key not in seen and bool(seen.add(key)) for key in keys]


def unique(
    items: Iterable[T], seen: Seen, *, key: Callable[[T], object] | None = None, batch: int = 4096
) -> Iterator[T]:
    """Yield the items that ``seen`` has not met, in order, and remember them.

    Items are taken ``batch`` at a time, so the first comes out after ``batch`` were read; use
    `fullbloom.recipes.seen.only_new` where every item must come out at once. An item is lost with
    the filter's rate at its load. Raises what ``seen.add`` raises. Costs one batch add a
    batch and the memory of one batch.

    >>> from fullbloom import BloomFilter
    >>> list(unique([3, -3, 4], BloomFilter(100), key=abs))
    [3, 4]
    """
    source = iter(items)
    while chunk := list(islice(source, batch)):
        keys: list[object] = list(chunk) if key is None else [key(item) for item in chunk]
        yield from (item for item, new in zip(chunk, add_new(keys, seen), strict=True) if new)


class Load:
    """The model's false-positive rate of a filter at its counted load, without scanning bits.

    Unlike ``seen.fpr()``, `rate` costs microseconds however large the plain filter is, and a growing
    one made of plain stages: these are looked at once, when a new one opens. Other structures are
    asked for their ``fpr()`` whenever they hold a sixteenth more.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(1000, 0.01); f.update(range(1000)); 0.005 < Load(f).rate() <= 0.01
    True
    """

    def __init__(self, seen: Seen) -> None:
        """Follow ``seen``."""
        self._seen = seen
        self._role = (registry.row_of(seen) or {}).get("role")
        self._stages = 0
        self._absent = 1.0
        self._earlier = 0
        self._asked = (0, 0.0)
        self._power = 1.0
        self._line = 1.0
        self._last: _Offered | None = None
        if self._role == "plain":
            self._last = _Offered(seen.layout, seen.num_bits, seen.num_hashes)
        self._before = self.rate()

    def rate(self) -> float:
        """Return the rate now."""
        seen = self._seen
        if self._role == "growing" and seen.stages != self._stages:
            self._look_at(seen.stage_info())
        if self._last is None:
            return self._of_any(seen)
        rate = self._last.rate(max(seen.num_added - self._earlier, 0))
        # A rate of 1e-17 would be lost beside 1.
        return rate if self._absent == 1.0 else 1.0 - self._absent * (1.0 - rate)

    def _look_at(self, stages: list[dict[str, Any]]) -> None:
        """Take the rates of all stages but the last as they are from now on."""
        self._stages = len(stages)
        plain = registry.with_role("plain")["class"]
        if any(stage["class"] != plain for stage in stages):
            return
        *full, last = stages
        self._earlier = sum(stage["num_added"] for stage in full)
        self._last = _Offered.of_stage(last)
        self._absent = math.prod(1.0 - _Offered.of_stage(stage).rate(stage["num_added"]) for stage in full)

    def step(self) -> int:
        """Return how many keys may be added before `lost` is asked, so that it can follow the rate.

        >>> from fullbloom import PrefixFilter
        >>> Load(PrefixFilter(1000)).step()
        3
        """
        return sys.maxsize if self._role == "plain" else self._step(self._seen.num_added)

    def _step(self, held: int) -> int:
        capacity: int = self._seen.capacity
        return max(held // _RATE_STEP, capacity // _FIRST_STEP, 1)

    def parts(self, block: Block) -> Iterator[Block]:
        r"""Yield ``block`` in parts of whole lines, each of about `step` lines when it is asked for.

        >>> from fullbloom import BloomFilter
        >>> [bytes(part) for part in Load(BloomFilter(1000)).parts(b"a\nb\n")]
        [b'a\nb\n']
        """
        if self.step() * self._line >= len(block):
            yield block
            return
        data, start = bytes(block), 0
        self._line = len(data) / (data.count(b"\n") + 1)
        while start < len(data):
            end = data.find(b"\n", start + int((self.step() - 1) * self._line)) + 1 or len(data)
            yield memoryview(data)[start:end]
            start = end

    def lost(self, kept: int, *, deferred: bool = False) -> float:
        """Return how many new keys were probably taken for known since the last call, ``kept`` being kept.

        Of u new keys at rate p, u p are lost and u (1 - p) kept: that is p / (1 - p) for each kept.
        ``deferred`` says that all were looked up before the first was added. Otherwise call it after every
        `step` keys: what a structure's rate was between two calls is not known.
        """
        offered = self._last if self._role == "plain" else None
        lost = 0.0 if offered is None else offered.keys - offered.kept
        before, after = _odds(self._before), 0.0
        self._before = self.rate()
        if deferred:
            return kept * before if kept else 0.0
        if offered is not None:
            return offered.keys - offered.kept - lost
        after = _odds(self._before)
        # By Simpson's rule, the middle being the geometric one.
        return kept * (before + 4 * math.sqrt(before * after) + after) / 6 if kept else 0.0

    def _of_any(self, seen: Seen) -> float:
        held, (asked, rate) = seen.num_added, self._asked
        if not asked or abs(held - asked) >= self._step(asked):
            now: float = seen.fpr()
            if 0 < asked != held > 0 and rate > 0.0 and now > 0.0:
                # A rate falls where something was forgotten, and rises from there.
                self._power = max(math.log(now / rate) / math.log(held / asked), 0.0)
            self._asked = (held, now)
            return now
        grown: float = rate * (held / asked) ** self._power
        return min(grown, 1.0)


def _odds(rate: float) -> float:
    return rate / (1.0 - rate) if rate < 1.0 else math.inf


class _Offered:
    """How many different keys a Bloom filter was offered, from the number that it kept.

    A key that is taken for known sets no bit, so the bits are those of all keys offered. The laws ask
    for these; the filter counts those kept: d kept / d keys = 1 - p(keys), summed by midpoints.
    """

    def __init__(self, layout: str, num_bits: int, num_hashes: int) -> None:
        self._shape = (layout, num_bits, num_hashes)
        self.keys = self.kept = 0.0

    @classmethod
    def of_stage(cls, stage: dict[str, Any]) -> _Offered:
        """Return that of a line of ``stage_info``."""
        return cls(stage["layout"], stage["num_bits"], stage["num_hashes"])

    def rate(self, kept: int) -> float:
        """Return the rate with ``kept`` keys, which may only grow from call to call."""
        here = self._at(self.keys)
        while kept - self.kept >= 1 and here < _SATURATED:
            longest = max(1.0, kept / _KEY_STEPS, self.keys / _KEY_STEPS)
            step = min(longest, (kept - self.kept) / (1.0 - here))
            self.kept += step * (1.0 - self._at(self.keys + step / 2))
            self.keys += step
            here = self._at(self.keys)
        return here

    def _at(self, keys: float) -> float:
        return _core.fpr_at(*self._shape, round(keys))


class Tally:
    """What became of the records so far."""

    __slots__ = ("kept", "lost", "records")  # no dataclass: importing these would take 4 ms of every start

    def __init__(self) -> None:
        """Begin at zero."""
        self.records = self.kept = 0
        self.lost = 0.0

    def count(self, records: int, kept: int, lost: float) -> None:
        """Add a block, of which ``lost`` new records were probably dropped: see `Load.lost`."""
        self.records += records
        self.kept += kept
        self.lost += lost

    @property
    def wrongly_dropped(self) -> float:
        """Expected number of new records dropped; never more than were dropped in all.

        >>> tally = Tally(); tally.count(150, 90, 10.0); tally.wrongly_dropped
        10.0
        """
        return min(self.lost, float(self.records - self.kept))


def new_lines(block: Block, seen: Seen, *, dropped: bool = False) -> Parts:
    r"""Add the lines of ``block``; return (lines, new ones, their bytes, the others' bytes).

    A line ends at a newline; a carriage return before it is not part of the key. The others are
    collected only when ``dropped``. A filter that keeps copies of a key gets every line: use `fresh`
    and `remember` for those. Costs one pass over the block without the GIL.

    >>> from fullbloom import BloomFilter
    >>> new_lines(b"a\nb\na\n", BloomFilter(100), dropped=True)
    (3, 2, b'a\nb\n', b'a\n')
    """
    records, kept, new, old = _core.add_lines(seen, block, kept=True, dropped=dropped)
    return records, kept, new or b"", old or b""


def scratch(keys: int) -> Seen:
    """Return a throw-away filter that finds repetitions among ``keys`` keys.

    >>> scratch(100).add("a")
    True
    """
    # "auto" would size each layout it may stand for: a fifth of the time of a block.
    layout = next(name for name in registry.layouts("auto") if name not in registry.layouts("one_line"))
    return registry.class_of(registry.with_role("plain"))(keys + 1, _SCRATCH_FPR, layout=layout)


def fresh(block: Block, seen: Seen, *, dropped: bool = False) -> Parts:
    r"""As `new_lines`, but leave ``seen`` as it is, so that lines are remembered once they are written.

    Repetitions inside the block are dropped too. Follow it with `remember` on what was written.
    Costs about twice as much as `new_lines`.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(100)
    >>> fresh(b"a\nb\na\n", f), f.num_added
    ((3, 2, b'a\nb\n', b''), 0)
    """
    records, _, found, absent = _core.check_lines(seen, block, found=dropped, absent=True)
    if not absent:
        return records, 0, b"", found or b""
    within = scratch(absent.count(b"\n"))
    _, kept, new, again = _core.add_lines(within, absent, kept=True, dropped=dropped)
    return records, kept, new or b"", (found or b"") + (again or b"")


def remember(lines: Block, seen: Seen) -> None:
    r"""Add ``lines``, whole ones only, without collecting anything.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(100); remember(b"a\nb\n", f); "b" in f
    True
    """
    if lines:
        _core.add_lines(seen, lines, kept=False)
