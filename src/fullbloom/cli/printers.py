"""What ``fullbloom seen`` prints for a block of lines, and when the lines are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fullbloom import _core
from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.filters.state import count_forgotten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fullbloom._core import KeyedRecords
    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Batch, Block
    from fullbloom.cli.io.output import Output
    from fullbloom.recipes.dedup import Load


T = TypeVar("T")


class Printer(ABC, Generic[T]):
    """Prints lines to ``output``, and adds them to ``seen``."""

    def __init__(self, seen: Filter, output: Output) -> None:
        """Print nothing yet."""
        self.seen = seen
        self._output = output

    @abstractmethod
    def print(self, block: T) -> tuple[int, int]:
        """Look up all lines of a block, print, then add them; return (lines, new lines)."""

    def parts(self, block: Any, load: Load | None) -> Iterable[Any]:
        """Return ``block`` in parts that are short enough for ``load`` to follow the rate."""
        return load.parts(block) if load else (block,)


class LinePrinter(Printer["Block"]):
    """Prints lines of ``mode``, "new", "old", or all after a "mark", then adds those that were printed.

    Each line is hashed once. ``is_saved``: whether an error says how many printed lines the state lacks.
    """

    def __init__(self, seen: Filter, output: Output, mode: str, *, is_saved: bool) -> None:
        """Print nothing yet."""
        super().__init__(seen, output)
        self._mode, self._is_saved = mode, is_saved
        self._selection = _core.Selection.lines(seen)
        # If adding again renews a line, lines that were seen are added too.
        self._renew = is_forgetful(seen)

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`; after an error, only printed lines are added."""
        lines, mode = self._selection.read(bytes(block)), self._mode
        new, kept, old, marks = lines.select_new(self.seen, kept=mode == "new", dropped=mode == "old")
        text = (lines.label(marks, b"new\t", b"old\t") if mode == "mark" else kept or old) or b""
        before = self._output.written
        try:
            self._output.write(text)
        except BaseException:
            printed = text.count(b"\n", 0, self._output.written - before)
            self._remember(lines, self._limit(marks, printed))
            raise
        self._remember(lines, b"\1" * len(lines) if self._renew else marks)
        return len(lines), new

    def _limit(self, marks: bytes, printed: int) -> bytes:
        """Return the marks of new lines among the first ``printed``, after which the output failed."""
        if self._mode == "mark":
            return marks[:printed]
        end = 0
        # Of old lines none: a new line before them would be old next time.
        for _ in range(printed if self._mode == "new" else 0):
            end = marks.index(1, end) + 1
        return marks[:end]

    def _remember(self, lines: KeyedRecords, marks: bytes) -> None:
        """Add the lines that ``marks`` marks; those beyond its end are not marked."""
        if not self._is_saved:
            lines.remember(self.seen, marks)
            return
        with count_forgotten(self.seen, lambda: lines.part(marks)[1] or b""):
            lines.remember(self.seen, marks)


class RecordPrinter(Printer["Batch"]):
    """Prints records of ``mode``, "new", "old", or all after a "mark", then adds them."""

    def __init__(self, seen: Filter, output: Output, mode: str) -> None:
        """Print nothing yet."""
        super().__init__(seen, output)
        self._mode = mode
        self._renew = is_forgetful(seen)

    def parts(self, block: Any, load: Load | None) -> Iterable[Any]:  # noqa: ARG002 - a batch is short
        """See `Printer`."""
        return (block,)

    def print(self, block: Batch) -> tuple[int, int]:
        """See `Printer`; a record without a key is new."""
        records = block.records
        new, kept, old, marks = records.select_new(
            self.seen, kept=self._mode == "new", dropped=self._mode == "old"
        )
        if self._mode == "mark":
            kept = records.label(marks, b"new\t", b"old\t")
            if block.header.endswith(b"\n"):
                block.header = b"mark\t" + block.header
        before = self._output.written
        try:
            self._output.write(block.join_kept(old if self._mode == "old" else kept))
        except BaseException:  # a second signal, too
            if self._mode == "new":
                records.remember(self.seen, marks, block.count_record_bytes(self._output.written - before))
            raise
        records.remember(self.seen, None if self._renew else marks)
        return len(records) - records.faults, new
