"""De-duplicate a stream in bounded memory, order kept.

>>> from bloomery import BloomFilter
>>> list(unique(["a", "b", "a", "c", "b"], BloomFilter(1000, 1e-6)))
['a', 'b', 'c']
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from bloomery import BloomFilter, ScalableBloomFilter, _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    #: Any filter whose ``add`` takes the key alone.
    Seen = Any
    Block = bytes | bytearray | memoryview
    Sifted = tuple[int, int, bytes, bytes]

T = TypeVar("T")

#: Rate of the throw-away filter that finds repetitions inside one block: below one line in 10^12.
_WITHIN_BLOCK_FPR = 1e-12


#: The rate of other structures is looked up anew after this share of new keys.
_RATE_STEP = 32


def keeps_copies(seen: Seen) -> bool:
    """Tell whether adding a key again takes more room: such filters are given new keys only.

    >>> from bloomery import BloomFilter
    >>> keeps_copies(BloomFilter(100))
    False
    """
    return hasattr(seen, "remove") or hasattr(seen, "count")


def add_new(keys: list[Any], seen: Seen) -> list[bool]:
    """Add the keys that are not there yet; one answer a key, as ``add_many`` gives.

    Raises what ``seen.add`` raises. Costs one batch add, or for filters that keep copies one
    look-up and at most one add a key.

    >>> from bloomery import BloomFilter
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
    `bloomery.recipes.seen.only_new` where every item must come out at once. An item is lost with
    the filter's rate at its load. Raises what ``seen.add`` raises. Costs one batch add a
    batch and the memory of one batch.

    >>> from bloomery import BloomFilter
    >>> list(unique([3, -3, 4], BloomFilter(100), key=abs))
    [3, 4]
    """
    source = iter(items)
    while chunk := list(islice(source, batch)):
        keys: list[object] = list(chunk) if key is None else [key(item) for item in chunk]
        yield from (item for item, new in zip(chunk, add_new(keys, seen), strict=True) if new)


class Load:
    """The model's false-positive rate of a filter at its counted load, without scanning bits.

    Unlike ``seen.fpr()``, `rate` costs microseconds however large the filter is; of a growing
    filter the stages are looked at once, when a new one opens. Structures other than these two are
    asked for their ``fpr()`` whenever they hold some hundredths more.

    >>> from bloomery import BloomFilter
    >>> f = BloomFilter(1000, 0.01); f.update(range(1000)); 0.005 < Load(f).rate() <= 0.01
    True
    """

    def __init__(self, seen: Seen) -> None:
        """Follow ``seen``."""
        self._seen = seen
        self._stages = 0
        self._denied = 1.0
        self._earlier = 0
        self._last: tuple[str, int, int] = ("classic", 1, 1)
        self._asked: tuple[int, float] | None = None

    def rate(self) -> float:
        """Return the rate now."""
        seen = self._seen
        if isinstance(seen, BloomFilter):
            return _core.fpr_at(seen.layout, seen.num_bits, seen.num_hashes, seen.num_added)
        if not isinstance(seen, ScalableBloomFilter):
            return self._of_any(seen)
        if seen.stages != self._stages:
            *full, last = seen.stage_info()
            self._stages = seen.stages
            self._earlier = sum(stage["num_added"] for stage in full)
            self._last = (last["layout"], last["num_bits"], last["num_hashes"])
            self._denied = 1.0
            for stage in full:
                shape = (stage["layout"], stage["num_bits"], stage["num_hashes"])
                self._denied *= 1.0 - _core.fpr_at(*shape, stage["num_added"])
        return 1.0 - self._denied * (1.0 - _core.fpr_at(*self._last, max(seen.num_added - self._earlier, 0)))

    def _of_any(self, seen: Seen) -> float:
        held = seen.num_added
        if self._asked is None or abs(held - self._asked[0]) > held // _RATE_STEP:
            self._asked = (held, seen.fpr())
        return self._asked[1]


@dataclass(slots=True)
class Tally:
    """What became of the records so far."""

    records: int = 0
    kept: int = 0
    lost: float = 0.0

    def count(self, records: int, kept: int, rate: float) -> None:
        """Add a block: of u truly new records u * rate are dropped, so kept * rate / (1 - rate)."""
        self.records += records
        self.kept += kept
        self.lost += kept * rate / (1.0 - rate) if rate < 1.0 else float(records - kept)

    @property
    def wrongly_dropped(self) -> float:
        """Expected number of new records dropped; never more than were dropped in all.

        >>> tally = Tally(); tally.count(150, 90, 0.1); tally.wrongly_dropped
        10.0
        """
        return min(self.lost, float(self.records - self.kept))


def sift(block: Block, seen: Seen, *, dropped: bool = False) -> Sifted:
    r"""Add the lines of ``block``; return (lines, new ones, their bytes, the others' bytes).

    A line ends at a newline; a carriage return before it is not part of the key. The others are
    collected only when ``dropped``. A filter that keeps copies of a key gets every line: use `fresh`
    and `remember` for those. Costs one pass over the block without the GIL.

    >>> from bloomery import BloomFilter
    >>> sift(b"a\nb\na\n", BloomFilter(100), dropped=True)
    (3, 2, b'a\nb\n', b'a\n')
    """
    records, kept, new, old = _core.add_lines(seen, block, kept=True, dropped=dropped)
    return records, kept, new or b"", old or b""


def fresh(block: Block, seen: Seen, *, dropped: bool = False) -> Sifted:
    r"""As `sift`, but leave ``seen`` as it is, so that lines are remembered once they are written.

    Repetitions inside the block are dropped too. Follow it with `remember` on what was written.
    Costs about twice as much as `sift`.

    >>> from bloomery import BloomFilter
    >>> f = BloomFilter(100)
    >>> fresh(b"a\nb\na\n", f), f.num_added
    ((3, 2, b'a\nb\n', b''), 0)
    """
    records, _, found, absent = _core.check_lines(seen, block, found=dropped, absent=True)
    if not absent:
        return records, 0, b"", found or b""
    within = BloomFilter(absent.count(b"\n") + 1, _WITHIN_BLOCK_FPR, layout="classic")
    _, kept, new, again = _core.add_lines(within, absent, kept=True, dropped=dropped)
    return records, kept, new or b"", (found or b"") + (again or b"")


def remember(lines: Block, seen: Seen) -> None:
    r"""Add ``lines``, whole ones only, without collecting anything.

    >>> from bloomery import BloomFilter
    >>> f = BloomFilter(100); remember(b"a\nb\n", f); "b" in f
    True
    """
    if lines:
        _core.add_lines(seen, lines, kept=False)
