"""Mark each item of a live stream as new or seen before, at once.

>>> from fullbloom import BloomFilter
>>> list(mark(["a", "b", "a"], BloomFilter(1000)))
[(True, 'a'), (True, 'b'), (False, 'a')]
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom import _core
from fullbloom.recipes.dedup import add_new, keeps_copies, new_lines, remember, scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    #: Any filter whose ``add`` takes the key alone.
    Seen = Any
    Block = bytes | bytearray | memoryview

T = TypeVar("T")


def _steady() -> float:
    """Return the seconds of a monotonic clock, which includes time asleep if the system supports that."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Clock:
    """Advances the time of a filter with a window in seconds, and never moves it back.

    seen: a filter created with ``window=``. wall: seconds since 1970, read once, for the time since the file
    of ``seen`` was written. After that only ``steady`` counts, so setting the system clock has no effect. If
    ``wall`` is behind the filter's time, time continues from the filter's: keys are remembered longer, never
    shorter.

    >>> from fullbloom import AgingBloomFilter
    >>> now = iter([5.0, 5.0, 100.0]); seen = AgingBloomFilter(100, window=10.0)
    >>> clock = Clock(seen, wall=lambda: 1e9, steady=lambda: next(now))
    >>> clock.tick(), seen.add("a"), clock.tick(), "a" in seen
    (0, True, 2, False)
    """

    def __init__(
        self, seen: Seen, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady
    ) -> None:
        """Read both clocks."""
        self._seen, self._steady = seen, steady
        self._began, now = steady(), wall()
        #: Seconds by which ``wall`` was behind the filter.
        self.behind = 0.0 if seen.now is None else max(seen.now - now, 0.0)
        self._start = now + self.behind

    def tick(self) -> int:
        """Advance the filter to the current time; return the number of expired generations."""
        now = self._start + (self._steady() - self._began)
        seen = self._seen
        expired: int = seen.advance(now if seen.now is None else max(now, seen.now))
        return expired


def mark(
    items: Iterable[T],
    seen: Seen,
    *,
    key: Callable[[T], object] | None = None,
    clock: Clock | None = None,
) -> Iterator[tuple[bool, T]]:
    """Yield (new, item) for every item as it comes, and add it.

    ``new`` is False for a duplicate, and wrongly False at the filter's current false-positive rate. ``clock``
    advances a filter with a window in seconds before each item. Raises the errors of ``seen.add``. Costs one
    scalar add per item, with a clock 0.5 us more.

    >>> from fullbloom import BloomFilter
    >>> [new for new, _ in mark(["x", "X"], BloomFilter(100), key=str.lower)]
    [True, False]
    """
    for item in items:
        if clock is not None:
            clock.tick()
        yield add_new([item if key is None else key(item)], seen)[0], item


def only_new(
    items: Iterable[T],
    seen: Seen,
    *,
    key: Callable[[T], object] | None = None,
    clock: Clock | None = None,
) -> Iterator[T]:
    """Yield the items not seen before, each as soon as it comes.

    The contract, errors and cost are those of `mark`.

    >>> from fullbloom import BloomFilter
    >>> list(only_new(iter("abca"), BloomFilter(100)))
    ['a', 'b', 'c']
    """
    return (item for new, item in mark(items, seen, key=key, clock=clock) if new)


def mark_lines(
    block: bytes, seen: Seen, *, new: bytes = b"new\t", old: bytes = b"old\t"
) -> tuple[int, int, bytes]:
    r"""Add the lines of ``block``; return (lines, new lines, every line with its mark as a prefix).

    >>> from fullbloom import BloomFilter
    >>> mark_lines(b"a\nb\na\n", BloomFilter(100))
    (3, 2, b'new\ta\nnew\tb\nold\ta\n')
    """
    ended = _lines(block)
    news = add_new([line.removesuffix(b"\n").removesuffix(b"\r") for line in ended], seen)
    marked = b"".join((new if is_new else old) + line for is_new, line in zip(news, ended, strict=True))
    return len(ended), sum(news), marked


def old_lines(block: Block, seen: Seen) -> tuple[int, int, bytes]:
    r"""Add the lines of ``block``; return (lines, new lines, those seen before, in order).

    >>> from fullbloom import BloomFilter
    >>> old_lines(b"a\nb\na\n", BloomFilter(100))
    (3, 2, b'a\n')
    """
    if not keeps_copies(seen):
        records, new, _, old = _core.add_lines(seen, block, kept=False, dropped=True)
        return records, new, old or b""
    ended = _lines(bytes(block))
    news = add_new([line.removesuffix(b"\n").removesuffix(b"\r") for line in ended], seen)
    return (
        len(ended),
        sum(news),
        b"".join(line for is_new, line in zip(news, ended, strict=True) if not is_new),
    )


def find_marks(block: bytes, seen: Seen) -> list[tuple[bool, bytes]]:
    r"""Return (new, line) for every line of ``block`` without changing ``seen``: add them once written.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(100)
    >>> find_marks(b"a\nb\na\n", f), f.num_added
    ([(True, b'a\n'), (True, b'b\n'), (False, b'a\n')], 0)
    """
    ended = _lines(block)
    keys = [line.removesuffix(b"\n").removesuffix(b"\r") for line in ended]
    firsts, found = scratch(len(keys)).add_many(keys), seen.contains_many(keys)
    return [
        (is_first and not is_known, line)
        for is_first, is_known, line in zip(firsts, found, ended, strict=True)
    ]


def find_old_lines(block: Block, seen: Seen) -> tuple[int, int, bytes, bytes]:
    r"""Return (lines, new lines, their bytes, the others' bytes, in order) without changing ``seen``.

    Costs three passes over the block without the GIL.

    >>> from fullbloom import BloomFilter
    >>> f = BloomFilter(100)
    >>> find_old_lines(b"a\nb\na\n", f), f.num_added
    ((3, 2, b'a\nb\n', b'a\n'), 0)
    """
    records, _, found, _ = _core.check_lines(seen, block, found=True, absent=False)
    within = scratch(records)
    remember(found or b"", within)
    return new_lines(block, within, dropped=True)


def _lines(block: bytes) -> list[bytes]:
    """Return the lines with their newlines; the last may lack its own."""
    lines = block.split(b"\n")
    tail = lines.pop()
    return [line + b"\n" for line in lines] + ([tail] if tail else [])
