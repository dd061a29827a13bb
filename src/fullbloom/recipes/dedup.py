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
#: The rate of other structures is read again after this share of new keys, and interpolated as a power of
#: their number: exact to 1e-3 in the loss for 1/20.
_RATE_STEP = 16
#: The rate is not read before this share of the capacity is in use, since it is still almost 0.
_FIRST_STEP = 256
#: Step of the sum over offered keys, as a share of them: exact to 1e-4 in the loss.
_KEY_STEPS = 64
#: Above this rate the filter keeps no keys, so their number carries no information.
_SATURATED = 1.0 - 1e-9


def keeps_copies(seen: Seen) -> bool:
    """Return whether adding a key again takes more memory; callers add only new keys to such filters.

    >>> from fullbloom import BloomFilter
    >>> keeps_copies(BloomFilter(100))
    False
    """
    return hasattr(seen, "remove") or hasattr(seen, "count")


def add_new(keys: list[Any], seen: Seen) -> list[bool]:
    """Add the keys that are not present; return whether each was new, as ``add_many`` does.

    Raises the errors of ``seen.add``. Costs one batch add, or for filters that keep copies one lookup and at
    most one add per key.

    >>> from fullbloom import BloomFilter
    >>> add_new(["a", "b", "a"], BloomFilter(100))
    [True, True, False]
    """
    if not keeps_copies(seen):
        results: list[bool] = seen.add_many(keys)
        return results
    return [key not in seen and bool(seen.add(key)) for key in keys]


def unique(
    items: Iterable[T], seen: Seen, *, key: Callable[[T], object] | None = None, batch: int = 4096
) -> Iterator[T]:
    """Yield the items that are not in ``seen``, in order, and add them.

    Reads ``batch`` items at a time before it yields the first; use `fullbloom.recipes.seen.only_new` if each
    item must come out at once. An item is lost at the filter's current false-positive rate. Raises the errors
    of ``seen.add``. Costs one batch add per batch and the memory of one batch.

    >>> from fullbloom import BloomFilter
    >>> list(unique([3, -3, 4], BloomFilter(100), key=abs))
    [3, 4]
    """
    source = iter(items)
    while chunk := list(islice(source, batch)):
        keys: list[object] = list(chunk) if key is None else [key(item) for item in chunk]
        yield from (item for item, new in zip(chunk, add_new(keys, seen), strict=True) if new)


class Load:
    """The false-positive rate of a filter by its model at the counted load, without scanning bits.

    Unlike ``seen.fpr()``, `rate` costs microseconds for plain filters of any size and for growing filters
    with plain stages, which it reads once when a new stage opens. For other structures it calls ``fpr()``
    whenever they hold 1/16 more keys.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(1000, 0.01); f.update(range(1000)); 0.005 < Load(f).rate() <= 0.01
    True
    """

    def __init__(self, seen: Seen) -> None:
        """Follow ``seen``."""
        self._seen = seen
        self._role = (registry.find_row(seen) or {}).get("role")
        self._stages = 0
        self._absent = 1.0
        self._earlier = 0
        self._measured = (0, 0.0)
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
            self._read_stages(seen.stage_info())
        if self._last is None:
            return self._interpolate(seen)
        rate = self._last.rate(max(seen.num_added - self._earlier, 0))
        # A rate of 1e-17 would be lost beside 1.
        return rate if self._absent == 1.0 else 1.0 - self._absent * (1.0 - rate)

    def _read_stages(self, stages: list[dict[str, Any]]) -> None:
        """Store the rates of all stages except the last, which no longer change."""
        self._stages = len(stages)
        plain = registry.find_by_role("plain")["class"]
        if any(stage["class"] != plain for stage in stages):
            return
        *full, last = stages
        self._earlier = sum(stage["num_added"] for stage in full)
        self._last = _Offered.of_stage(last)
        self._absent = math.prod(1.0 - _Offered.of_stage(stage).rate(stage["num_added"]) for stage in full)

    def step(self) -> int:
        """Return the number of keys that may be added before the next call of `lost`.

        >>> from fullbloom import PrefixFilter
        >>> Load(PrefixFilter(1000)).step()
        3
        """
        return sys.maxsize if self._role == "plain" else self._step(self._seen.num_added)

    def _step(self, held: int) -> int:
        capacity: int = self._seen.capacity
        return max(held // _RATE_STEP, capacity // _FIRST_STEP, 1)

    def parts(self, block: Block) -> Iterator[Block]:
        r"""Yield ``block`` in parts of whole lines, each of about `step` lines at that time.

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

    def count_lost(self, kept: int, *, deferred: bool = False) -> float:
        """Return the expected number of new keys treated as known since the last call, given those kept.

        Of u new keys at rate p, u p are lost and u (1 - p) kept: p / (1 - p) for each key kept. Set
        ``deferred`` if all keys were looked up before the first was added. Otherwise call it after every
        `step` keys, since the rate between two calls is unknown.
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
        # Simpson's rule, with the geometric mean in the middle.
        return kept * (before + 4 * math.sqrt(before * after) + after) / 6 if kept else 0.0

    def _interpolate(self, seen: Seen) -> float:
        held, (measured, rate) = seen.num_added, self._measured
        if not measured or abs(held - measured) >= self._step(measured):
            now: float = seen.fpr()
            if 0 < measured != held > 0 and rate > 0.0 and now > 0.0:
                # The rate falls when the filter forgets keys, and rises from there.
                self._power = max(math.log(now / rate) / math.log(held / measured), 0.0)
            self._measured = (held, now)
            return now
        grown: float = rate * (held / measured) ** self._power
        return min(grown, 1.0)


def _odds(rate: float) -> float:
    return rate / (1.0 - rate) if rate < 1.0 else math.inf


class _Offered:
    """The number of distinct keys offered to a Bloom filter, from the number of keys that it kept.

    A false positive sets no bit, so the bits are those of all keys offered. The laws need that number; the
    filter counts only keys kept: d kept / d keys = 1 - p(keys), summed by midpoints.
    """

    def __init__(self, layout: str, num_bits: int, num_hashes: int) -> None:
        self._shape = (layout, num_bits, num_hashes)
        self.keys = self.kept = 0.0

    @classmethod
    def of_stage(cls, stage: dict[str, Any]) -> _Offered:
        """Create it from an entry of ``stage_info``."""
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
    """Counts of records read, kept and probably lost."""

    __slots__ = ("kept", "lost", "records")  # not a dataclass: that import adds 4 ms to every start

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
    collected only if ``dropped``. For a filter that keeps copies of a key, which would get every line, use
    `find_new_lines` and `remember`. Costs one pass over the block without the GIL.

    >>> from fullbloom import BloomFilter
    >>> new_lines(b"a\nb\na\n", BloomFilter(100), dropped=True)
    (3, 2, b'a\nb\n', b'a\n')
    """
    records, kept, new, old = _core.add_lines(seen, block, kept=True, dropped=dropped)
    return records, kept, new or b"", old or b""


def scratch(keys: int) -> Seen:
    """Return a temporary filter that finds duplicates among ``keys`` keys.

    >>> scratch(100).add("a")
    True
    """
    # "auto" would size every layout that it may select, which takes 1/5 of the time of a block.
    layout = next(name for name in registry.layouts("auto") if name not in registry.layouts("one_line"))
    return registry.get_class(registry.find_by_role("plain"))(keys + 1, _SCRATCH_FPR, layout=layout)


def find_new_lines(block: Block, seen: Seen, *, dropped: bool = False) -> Parts:
    r"""Return the same as `new_lines` without changing ``seen``, so that lines can be added once written.

    Duplicates inside the block are dropped too. After writing the lines, pass them to `remember`.
    Costs about twice as much as `new_lines`.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(100)
    >>> find_new_lines(b"a\nb\na\n", f), f.num_added
    ((3, 2, b'a\nb\n', b''), 0)
    """
    records, _, found, absent = _core.check_lines(seen, block, found=dropped, absent=True)
    if not absent:
        return records, 0, b"", found or b""
    within = scratch(absent.count(b"\n"))
    _, kept, new, again = _core.add_lines(within, absent, kept=True, dropped=dropped)
    return records, kept, new or b"", (found or b"") + (again or b"")


def remember(lines: Block, seen: Seen) -> None:
    r"""Add ``lines``, which must be whole, and return nothing.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(100); remember(b"a\nb\n", f); "b" in f
    True
    """
    if lines:
        _core.add_lines(seen, lines, kept=False)
