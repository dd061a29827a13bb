"""Answer "seen before?" for every item of a live stream, at once.

>>> from bloomery import BloomFilter
>>> list(mark(["a", "b", "a"], BloomFilter(1000)))
[(True, 'a'), (True, 'b'), (False, 'a')]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from bloomery import _core
from bloomery.recipes.dedup import add_new, keeps_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    #: Any filter whose ``add`` takes the key alone.
    Seen = Any
    Block = bytes | bytearray | memoryview

T = TypeVar("T")


def mark(
    items: Iterable[T], seen: Seen, *, key: Callable[[T], object] | None = None
) -> Iterator[tuple[bool, T]]:
    """Yield (new, item) for every item as it comes, and remember it.

    ``new`` is False for a repetition, and wrongly so with the filter's rate at its load. Raises
    what ``seen.add`` raises. Costs one scalar add an item.

    >>> from bloomery import BloomFilter
    >>> [new for new, _ in mark(["x", "X"], BloomFilter(100), key=str.lower)]
    [True, False]
    """
    for item in items:
        yield add_new([item if key is None else key(item)], seen)[0], item


def only_new(items: Iterable[T], seen: Seen, *, key: Callable[[T], object] | None = None) -> Iterator[T]:
    """Yield the items not seen before, each as soon as it comes.

    Contract, errors and cost are those of `mark`.

    >>> from bloomery import BloomFilter
    >>> list(only_new(iter("abca"), BloomFilter(100)))
    ['a', 'b', 'c']
    """
    return (item for new, item in mark(items, seen, key=key) if new)


def mark_lines(
    block: bytes, seen: Seen, *, new: bytes = b"new\t", old: bytes = b"old\t"
) -> tuple[int, int, bytes]:
    r"""Add the lines of ``block``; return (lines, new lines, every line behind its mark).

    >>> from bloomery import BloomFilter
    >>> mark_lines(b"a\nb\na\n", BloomFilter(100))
    (3, 2, b'new\ta\nnew\tb\nold\ta\n')
    """
    ended = _lines(block)
    news = add_new([line.removesuffix(b"\n").removesuffix(b"\r") for line in ended], seen)
    marked = b"".join((new if is_new else old) + line for is_new, line in zip(news, ended, strict=True))
    return len(ended), sum(news), marked


def old_lines(block: Block, seen: Seen) -> tuple[int, int, bytes]:
    r"""Add the lines of ``block``; return (lines, new lines, those seen before, in order).

    >>> from bloomery import BloomFilter
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


def _lines(block: bytes) -> list[bytes]:
    """Return the lines with their newlines; the last may lack its own."""
    lines = block.split(b"\n")
    tail = lines.pop()
    return [line + b"\n" for line in lines] + ([tail] if tail else [])
