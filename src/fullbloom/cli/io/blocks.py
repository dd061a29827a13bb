"""Blocks: whole lines of all inputs, a buffer at a time."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from getpass import getpass
from typing import TYPE_CHECKING

from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.signatures import HEAD, require_lines
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fullbloom import _core
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.stops import Stops

Block = bytes | bytearray | memoryview


class Blocks:
    """Whole lines of all inputs, in blocks of about ``size`` bytes.

    A longer line makes its block longer; one of more than ``longest`` bytes is refused. A last line without
    newline is completed if another input follows. A block of a live input never waits to be full. With
    ``tick``, an empty block comes after so many idle seconds.
    """

    def __init__(
        self,
        inputs: Sequence[Source],
        stops: Stops,
        *,
        longest: int,
        size: int = 1 << 20,
        tick: float | None = None,
    ) -> None:
        """Read ``inputs`` in order."""
        self.inputs = inputs
        self._stops = stops
        self._longest = longest
        #: A buffer of the longest line and its newline finds every line that is longer.
        self._size = min(size, longest + 1)
        self._tick = tick
        self._buffer = bytearray(self._size)
        self._filled = 0
        #: The present input, and whether its first block begins with a line that the one before did not end.
        self.name, self.carried = "", False
        #: Bytes of the present input before the buffer.
        self._passed = 0

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, before decompression."""
        return sum(source.taken for source in self.inputs)

    @property
    def total(self) -> int | None:
        """Bytes of all inputs, when every one has a size."""
        sizes = [source.size for source in self.inputs]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def is_repeatable(self) -> bool:
        """True if all inputs can be read a second time."""
        return all(source.repeatable for source in self.inputs)

    def __iter__(self) -> Iterator[memoryview]:
        """Yield views, each valid until the next; of repeatable inputs from the first line, each time."""
        for source in self.inputs:
            if source.repeatable:
                source.rewind()
        self._filled = 0
        unfinished = False
        for source in self.inputs:
            if unfinished:
                self._reserve(1)
                self._buffer[self._filled : self._filled + 1] = b"\n"
                self._filled += 1
            self._passed = -self._filled
            self.name, self.carried = source.name, unfinished
            yield from self._read(source, completed=unfinished)
            unfinished = bool(self._filled)
            source.close()
        if self._filled:
            with memoryview(self._buffer) as view:
                yield view[: self._filled]

    def _read(self, source: Source, *, completed: bool) -> Iterator[memoryview]:
        cut = self._filled if completed else 0  # the completing newline ends a line, if data follows
        first: int | None = self._filled  # where the bytes begin that show whether these are lines
        while True:
            while self._tick is not None and not cut and not self._ready(source, self._tick):
                yield memoryview(b"")
            if self._filled > self._longest and not cut:
                line = f"{source.name}: the line at byte {max(self._passed, 0):,}"
                most = size_text(self._longest)
                raise Refusal(f"{line} is longer than {most}; raise --max-line, or give a file of lines")
            count = self._fill(source)
            if count == 0:
                if completed and cut == self._filled:  # nothing followed: take the newline back
                    self._filled -= 1
                    return
            else:
                completed = False
                start = self._filled - count
                cut = max(cut, self._buffer.rfind(b"\n", start, self._filled) + 1)
                if self._filled < self._size and self._ready(source, 0):
                    continue
            if first is not None and (cut or count == 0):
                require_lines(bytes(self._buffer[first : min(first + HEAD, self._filled)]), source.name)
                first = None
            if cut:
                with memoryview(self._buffer) as view, view[:cut] as block:
                    yield block
                self._drop(cut)
                cut = 0
            if count == 0:
                return

    def _ready(self, source: Source, timeout: float | None) -> bool:
        self._stops.wait()
        try:
            return source.is_ready(timeout)
        finally:
            self._stops.go()

    def _fill(self, source: Source) -> int:
        self._reserve(self._longest + 1 - self._filled)
        self._stops.wait()
        try:
            with memoryview(self._buffer) as view, view[self._filled :] as free:
                count = source.readinto(free)
        finally:
            self._stops.go()
        self._filled += count
        return count

    def _reserve(self, most: int) -> None:
        if self._filled == len(self._buffer):  # one line fills it: a quarter more each time
            self._buffer.extend(bytes(max(min(max(self._size, len(self._buffer) // 4), most), 1)))

    def _drop(self, cut: int) -> None:
        rest = self._filled - cut
        self._buffer[:rest] = self._buffer[cut : self._filled]
        self._filled = rest
        self._passed += cut
        most = self._size if len(self._buffer) > 2 * self._size and rest < self._size else self._longest + 1
        del self._buffer[most:]


def count_lines(block: Block) -> int:
    """Return the number of lines in a block; the last one may lack its newline."""
    data = bytes(block)
    return data.count(b"\n") + (not data.endswith(b"\n"))


def select_whole_lines(block: bytes, nbytes: int) -> bytes:
    """Return the lines that the first ``nbytes`` of a block contain whole; its last may lack its newline."""
    return block if nbytes >= len(block) else block[: block.rfind(b"\n", 0, nbytes) + 1]


def split_lines(block: Block) -> list[bytes]:
    """Return the lines of a block as keys: without newlines, and without carriage returns before them."""
    return [line.removesuffix(b"\r") for line in bytes(block).removesuffix(b"\n").split(b"\n")]


def is_typed(files: Sequence[str]) -> bool:
    """Return whether the only input is a terminal."""
    return list(files) in ([], ["-"]) and sys.stdin is not None and sys.stdin.isatty()


class TypedLine:
    """As `Blocks`, of one line that is typed without an echo."""

    name, carried, total = "standard input", False, None

    def __init__(self, stops: Stops) -> None:
        """Read nothing yet."""
        self._stops = stops
        self.bytes_read = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the line, or nothing when the input ends before one."""
        self._stops.wait()
        try:
            line = getpass("line (not shown): ")
        except EOFError:
            return
        finally:
            self._stops.go()
        yield os.fsencode(line)


@dataclass(slots=True)
class Batch:
    """Records of one block, and a header or byte order mark to write before them."""

    records: _core.KeyedRecords
    header: bytes = b""

    def join_kept(self, part: bytes | None) -> bytes:
        """Return the bytes to write for ``part``, the records of the first output."""
        return self.header + part if self.header and part else part or self.header

    def join_dropped(self, part: bytes | None) -> bytes:
        """Return the bytes to write for ``part``, records of the second output; None if it has none."""
        return b"" if part is None else self.header + part

    def count_record_bytes(self, written: int) -> int:
        """Return how many of ``written`` bytes of `join_kept` are records."""
        return max(written - len(self.header), 0)
