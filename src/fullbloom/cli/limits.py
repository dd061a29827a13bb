"""How long a line may be, and what it may take: a share of --memory, where that is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.io.blocks import LONGEST_LINE
from fullbloom.cli.io.frames import LARGEST_WINDOW

if TYPE_CHECKING:
    from fullbloom.cli.options import LineOptions, RecordOptions

_LEAST = 1 << 16
#: The longest record where --max-line is not given: its cells or values are Python objects.
_LONGEST_RECORD = 16 << 20
#: The parts of --memory that are a longest line's, a longest record's and a zstd window's.
_LINES, _RECORDS, _WINDOWS = 128, 512, 16
#: Bytes that a byte of a line takes: the buffer, and the copies that are kept and dropped.
_COPIES = 5
#: And of a record: blocks on their way, and of JSON the text of a nested key, which may be six times as long.
_CELLS, _VALUES = 8, 20


def longest_line(options: LineOptions) -> int:
    """Return the bytes of the longest line to take."""
    if options.max_line is not None:
        return options.max_line
    selects = options.select is not None
    most = _LONGEST_RECORD if selects else LONGEST_LINE
    if options.memory is None:
        return most
    return max(_LEAST, min(most, options.memory // (_RECORDS if selects else _LINES)))


def line_bytes(options: RecordOptions, block: int) -> int:
    """Return the bytes that a longest line takes beyond a block of ``block`` bytes."""
    beyond = max(longest_line(options) - block, 0)
    if options.select is None:
        return _COPIES * beyond
    from fullbloom.cli.io.records import format_of

    values = any(format_of(options, name) == "jsonl" for name in options.files or ["standard input"])
    return (_VALUES if values else _CELLS) * longest_line(options)


def window(memory: int | None) -> int:
    """Return the bytes of the largest zstd window to take."""
    return LARGEST_WINDOW if memory is None else min(LARGEST_WINDOW, max(1 << 20, memory // _WINDOWS))
