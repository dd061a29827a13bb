"""What ``fullbloom seen`` prints for a block of lines, and when the lines are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.io.blocks import select_whole_lines
from fullbloom.recipes.dedup import find_new_lines, remember
from fullbloom.recipes.seen import mark_lines, old_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Batch, Block
    from fullbloom.cli.io.output import Output
    from fullbloom.recipes.dedup import Load


T = TypeVar("T")


class Printer(ABC, Generic[T]):
    """Prints lines to ``output``, and adds them to ``seen``."""

    #: True if all lines of a block are looked up before the first is added.
    is_deferred = False

    def __init__(self, seen: Filter, output: Output) -> None:
        """Print nothing yet."""
        self.seen = seen
        self._output = output

    @abstractmethod
    def print(self, block: T) -> tuple[int, int]:
        """Print whole lines and add them; return (lines, new lines)."""

    def parts(self, block: Any, load: Load | None) -> Iterable[Any]:
        """Return ``block`` in parts that are short enough for ``load`` to follow the rate."""
        return load.parts(block) if load else (block,)


class MarkPrinter(Printer["Block"]):
    """Prints all lines after "new" or "old"."""

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`."""
        records, new, text = mark_lines(bytes(block), self.seen)
        self._output.write(text)
        return records, new


class OldLinePrinter(Printer["Block"]):
    """Prints lines that were seen before."""

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`."""
        records, new, text = old_lines(block, self.seen)
        self._output.write(text)
        return records, new


class NewLinePrinter(Printer["Block"]):
    """Prints new lines, then adds them by ``remember_new``."""

    is_deferred = True

    def __init__(self, seen: Filter, output: Output, remember_new: Callable[[bytes, Filter], None]) -> None:
        """Print nothing yet."""
        super().__init__(seen, output)
        self._remember_new = remember_new
        # If adding again renews a line, lines that were seen are added too.
        self._renew = is_forgetful(seen)

    def print(self, block: Block) -> tuple[int, int]:
        """See `Printer`; only printed lines are added."""
        records, new, text, known = find_new_lines(block, self.seen, dropped=self._renew)
        before = self._output.written
        try:
            self._output.write(text)
        finally:
            self._remember_new(select_whole_lines(text, self._output.written - before), self.seen)
            remember(known, self.seen)
        return records, new


class RecordPrinter(Printer["Batch"]):
    """Prints records of ``mode``, "new", "old", or all after a "mark", then adds them."""

    is_deferred = True

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
