"""The filter of ``fullbloom dedup``: loaded, sized by the memory that is left, or by the input."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _core, registry
from fullbloom.cli.dedup.options import FPR
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.create import create_growing, create_sized, create_within, least_bits
from fullbloom.cli.io.frames import LARGEST_WINDOW
from fullbloom.cli.io.sources import MAGICS
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.cli.dedup.options import DedupOptions
    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.filters.state import State
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import Source

#: Half of a usual L2 cache: larger blocks leave it and are slower (720 MB/s, 4 MiB 560 MB/s).
_BLOCK = 1 << 18
_LEAST_BLOCK = 1 << 16
_LEAST_FILTER = 1 << 16
#: The share of a budget reserved for what the warm-up does not show, such as freed memory in pieces.
_SLACK = 100
_GUESS_BYTES = 256 << 20
_FIRST_STAGE = 1 << 21
#: The part of --memory that a zstd window may take.
_WINDOWS = 16
#: Bytes that a byte of a line takes: the buffer, and the copies that are kept and dropped.
_COPIES = 5
#: And of a record: blocks under way, and in JSON the text of a nested key, which may be six times as long.
_CELLS, _VALUES = 8, 20
#: Assumed memory of this process if the system does not report it: Python with all imports has 20 to 40 MiB.
_ASSUMED_MEMORY = 64 << 20


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it.

    On Linux ``ru_maxrss`` includes the program that started this one, so a large parent would be counted;
    ``VmHWM`` is this program's own.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def block_size(budget: int | None) -> int:
    """Return the bytes of a block: fewer in a small budget."""
    return _BLOCK if budget is None else max(_LEAST_BLOCK, min(_BLOCK, budget // 256))


def largest_window(memory: int | None) -> int:
    """Return the bytes of the largest zstd window to accept."""
    return LARGEST_WINDOW if memory is None else min(LARGEST_WINDOW, max(1 << 20, memory // _WINDOWS))


class Sizing:
    """Divides the memory: ``candidates`` bytes of it are for candidate duplicates, None without a limit."""

    def __init__(self, options: DedupOptions, inputs: Sequence[Source]) -> None:
        """Measure the memory left for the filter, after a warm-up of everything else."""
        self._options = options
        self._fpr = options.fpr or FPR
        self.candidates: int | None = None
        self._left = None if options.memory is None else _measure_left(options, options.memory, inputs)

    def load(self, state: State) -> Filter:
        """Return the filter of ``state``, within the memory."""
        if self._left is None:
            return state.load()
        # Python's own size varies by some pages from run to run; two hundredths stay within the limit.
        return state.load(self._left + 2 * (self._options.memory or 0) // _SLACK)

    def create(self, blocks: Blocks) -> Filter:
        """Return a new filter, within the memory, for --expected lines, or growing."""
        options, left = self._options, self._left
        if left is not None:
            if options.reads_twice:  # half for the filter, half for the hashes of candidate duplicates
                left = self.candidates = left // 2
            return create_within(options, left, self._fpr)
        if options.expected is not None:
            return create_sized(options, options.expected, self._fpr, quick=True)
        return create_growing(options, _guess_lines(options, blocks.total, self._fpr), self._fpr, quick=True)


def _measure_left(options: DedupOptions, memory: int, inputs: Sequence[Source]) -> int:
    """Return the bytes that the budget leaves for the filter, after a warm-up of everything else."""
    import json  # noqa: F401 - the report's, before memory is measured

    block = os.urandom(block_size(memory))
    scratch = registry.get_class(registry.find_by_role("plain"))(len(block), 0.01)
    _core.add_lines(scratch, block, kept=True, dropped=True)
    _core.add_lines(scratch, block, kept=True, dropped=bool(options.dupes_output))
    del scratch, block
    used = (peak_memory() or _ASSUMED_MEMORY) + memory // _SLACK + _line_bytes(options, block_size(memory))
    if any(source.has_window for source in inputs):
        used += largest_window(memory)
    if options.has_records:
        # A block, its records, hashes and results, for each block under way; csv, for the header.
        used += (2 << 20) + 8 * (2 * options.threads + 1) * block_size(memory)
    least = (used + _LEAST_FILTER) * (_SLACK + 1) // _SLACK
    if memory < least:
        # Python's own memory differs a little from run to run.
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
    has_values = any(options.find_format(name) == "jsonl" for name in options.files or ["standard input"])
    return (_VALUES if has_values else _CELLS) * longest


def _guess_lines(options: DedupOptions, total: int | None, fpr: float) -> int:
    """Return the lines to size the first stage for, from the files' size and first lines."""
    files = options.files
    if not total or not files or "-" in files:
        return _FIRST_STAGE
    if kind := options.columnar_format:
        from fullbloom.cli.io.columns import count_rows

        guess = count_rows(files, kind) + 1
    else:
        with Path(files[0]).open("rb") as file:
            sample = file.read(_BLOCK)
        lines = sample.count(b"\n") + 1
        packed = 8 if sample.startswith(MAGICS) else 1
        guess = int(packed * total * lines / max(len(sample), 1) * 1.05) + 1024
    # No more lines than fit the memory of a guess.
    most = 8 * _GUESS_BYTES * guess // least_bits(guess, max(fpr / 2, _core.least_fpr(guess)))
    return min(guess, max(most, 1))
