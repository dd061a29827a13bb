"""The filter of ``fullbloom dedup``: loaded, of the memory that is left, or guessed from the input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _core, registry
from fullbloom.cli.dedup.memory import used as used_memory
from fullbloom.cli.dedup.options import FPR
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters import make
from fullbloom.cli.filters.shapes import least_bits
from fullbloom.cli.io.frames import LARGEST_WINDOW
from fullbloom.cli.io.sources import MAGICS
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.cli.dedup.options import DedupOptions
    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.filters.state import State
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import Source

#: Half of a usual L2 cache: larger blocks leave it and are slower (720 MB/s, 4 MiB 560 MB/s).
_BLOCK = 1 << 18
_LEAST_BLOCK = 1 << 16
_LEAST_FILTER = 1 << 16
#: A budget leaves this share for what the warm-up does not show, such as freed memory in pieces.
_SLACK = 100
_GUESS_BYTES = 256 << 20
_FIRST_STAGE = 1 << 21
#: The part of --memory that a zstd window may take.
_WINDOWS = 16
#: Bytes that a byte of a line takes: the buffer, and the copies that are kept and dropped.
_COPIES = 5
#: And of a record: blocks on their way, and of JSON the text of a nested key, which may be six times as long.
_CELLS, _VALUES = 8, 20


def block_size(budget: int | None) -> int:
    """Return the bytes of a block, less than usual in a small budget."""
    return _BLOCK if budget is None else max(_LEAST_BLOCK, min(_BLOCK, budget // 256))


def largest_window(memory: int | None) -> int:
    """Return the bytes of the largest zstd window to take."""
    return LARGEST_WINDOW if memory is None else min(LARGEST_WINDOW, max(1 << 20, memory // _WINDOWS))


class Sizing:
    """How the memory is shared: ``candidates`` bytes of it are for candidate duplicates, None for any."""

    def __init__(self, options: DedupOptions, inputs: Sequence[Source]) -> None:
        """Measure what a budget leaves, after a warm-up of all that is no filter."""
        self._options = options
        self._fpr = options.fpr or FPR
        self.candidates: int | None = None
        self._left = None if options.memory is None else _left(options, options.memory, inputs)

    def filter(self, state: State | None, blocks: Blocks) -> Seen:
        """Return the filter of ``state`` where it exists, else a new one."""
        options, left = self._options, self._left
        if state and state.exists:
            # Python is not the same size to the page every day: two hundredths stay within the promise.
            return state.load(None if left is None else left + 2 * (options.memory or 0) // _SLACK)
        if left is not None:
            if options.reads_twice:  # half for the filter, half for the hashes of candidate duplicates
                left = self.candidates = left // 2
            return make.within(options, left, self._fpr)
        if options.expected is not None:
            return make.sized(options, options.expected, self._fpr, quick=True)
        return make.growing(options, _lines_of(options, blocks.total, self._fpr), self._fpr, quick=True)


def _left(options: DedupOptions, memory: int, inputs: Sequence[Source]) -> int:
    """Return the bytes that the budget leaves to the filter, after a warm-up of all else."""
    import json  # noqa: F401 - the report's, before memory is measured

    block = os.urandom(block_size(memory))
    scratch = registry.get_class(registry.find_by_role("plain"))(len(block), 0.01)
    _core.add_lines(scratch, block, kept=True, dropped=True)
    _core.add_lines(scratch, block, kept=True, dropped=bool(options.dupes_output))
    del scratch, block
    used = used_memory() + memory // _SLACK + _line_bytes(options, block_size(memory))
    if any(source.windowed for source in inputs):
        used += largest_window(memory)
    if options.has_records:
        # A block, its records, hashes and answers, for each that is on its way; csv, for the header.
        used += (2 << 20) + 8 * (2 * options.threads + 1) * block_size(memory)
    least = (used + _LEAST_FILTER) * (_SLACK + 1) // _SLACK
    if memory < least:
        # What Python itself takes differs a little from run to run.
        mebibytes = -(-least // (1 << 20)) + 1
        raise Refusal(
            f"--memory {size_text(memory)} is too little: the least is {mebibytes}M, most of it Python itself"
        )
    return memory - used


def _line_bytes(options: DedupOptions, block: int) -> int:
    """Return the bytes that a longest line takes beyond a block of ``block`` bytes."""
    longest = options.longest_line
    if options.select is None:
        return _COPIES * max(longest - block, 0)
    from fullbloom.cli.io.records import format_of

    has_values = any(format_of(options, name) == "jsonl" for name in options.files or ["standard input"])
    return (_VALUES if has_values else _CELLS) * longest


def _lines_of(options: DedupOptions, total: int | None, fpr: float) -> int:
    """Return lines to make the first stage for: files tell by their size and first lines."""
    files = options.files
    if not total or not files or "-" in files:
        return _FIRST_STAGE
    if options.select:
        from fullbloom.cli.io.records import columnar

        if kind := columnar(options):
            from fullbloom.cli.io.columns import count

            return _within(count(files, kind) + 1, fpr)
    with Path(files[0]).open("rb") as file:
        sample = file.read(_BLOCK)
    lines = sample.count(b"\n") + 1
    packed = 8 if sample.startswith(MAGICS) else 1
    return _within(int(packed * total * lines / max(len(sample), 1) * 1.05) + 1024, fpr)


def _within(guess: int, fpr: float) -> int:
    """Return ``guess``, or as many lines as the memory of a guess holds."""
    most = 8 * _GUESS_BYTES * guess // least_bits(guess, max(fpr / 2, _core.least_fpr(guess)))
    return min(guess, max(most, 1))
