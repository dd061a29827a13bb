"""What ``fullbloom seen`` prints for a block of lines, and when the lines are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.io.blocks import select_whole_lines
from fullbloom.recipes.dedup import find_new_lines, remember
from fullbloom.recipes.seen import find_marks, find_old_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    """Looks up all lines of a block, prints, then adds the lines that were printed by ``remember_new``."""

    def __init__(self, seen: Filter, output: Output, remember_new: Callable[[bytes, Filter], None]) -> None:
        """Print nothing yet."""
        super().__init__(seen, output)
        self._remember_new = remember_new
        # If adding again renews a line, lines that were seen are added too.
        self._renew = is_forgetful(seen)

    def _remember(self, new: bytes, known: bytes) -> None:
        self._remember_new(new, self.seen)
        if self._renew:
            remember(known, self.seen)


class MarkPrinter(LinePrinter):
    """Prints all lines after "new" or "old"."""

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`; only printed lines are added."""
        marks = find_marks(bytes(block), self.seen)
        text = b"".join([(b"new\t" if is_new else b"old\t") + line for is_new, line in marks])
        before = self._output.written
        try:
            self._output.write(text)
        finally:
            out = self._output.written - before
            printed = marks if out == len(text) else marks[: text.count(b"\n", 0, out)]
            new = b"".join([line for is_new, line in printed if is_new])
            self._remember(new, b"".join([line for is_new, line in printed if not is_new and self._renew]))
        return len(marks), sum(is_new for is_new, _ in marks)


class OldLinePrinter(LinePrinter):
    """Prints lines that were seen before."""

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`; after an error, no line of the block is added: a new one would be old next time."""
        records, new, text, known = find_old_lines(block, self.seen)
        self._output.write(known)
        self._remember(text, known)
        return records, new


class NewLinePrinter(LinePrinter):
    """Prints new lines."""

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`; only printed lines are added."""
        records, new, text, known = find_new_lines(block, self.seen, dropped=self._renew)
        before = self._output.written
        try:
            self._output.write(text)
        finally:
            self._remember(select_whole_lines(text, self._output.written - before), known)
        return records, new


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
        except OSError:
            if self._mode == "new":
                records.remember(self.seen, marks, block.count_record_bytes(self._output.written - before))
            raise
        records.remember(self.seen, None if self._renew else marks)
        return len(records) - records.faults, new
