"""What ``fullbloom seen`` prints of a block of lines, and when the lines are remembered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fullbloom.cli.filters.kinds import forgets
from fullbloom.recipes.dedup import fresh, remember
from fullbloom.recipes.seen import mark_lines, old_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.batch import Batch
    from fullbloom.cli.io.blocks import Block
    from fullbloom.cli.io.output import Output
    from fullbloom.recipes.dedup import Load


T = TypeVar("T")


class Answers(ABC, Generic[T]):
    """Answers to ``output``, by what ``seen`` holds."""

    #: All lines of a block are looked up before the first is added.
    deferred = False

    def __init__(self, seen: Seen, output: Output) -> None:
        """Print nothing yet."""
        self.seen = seen
        self._output = output

    @abstractmethod
    def answer(self, block: T) -> tuple[int, int]:
        """Answer whole lines and remember them; return (lines, new lines)."""

    def parts(self, block: Any, load: Load | None) -> Iterable[Any]:
        """Return ``block`` in parts of which each is answered for at the rate that ``load`` follows."""
        return load.parts(block) if load else (block,)


class Marked(Answers["Block"]):
    """All lines, behind "new" or "old"."""

    def answer(self, block: Block) -> tuple[int, int]:
        """See `Answers`."""
        records, new, text = mark_lines(bytes(block), self.seen)
        self._output.write(text)
        return records, new


class Old(Answers["Block"]):
    """Lines that came by before."""

    def answer(self, block: Block) -> tuple[int, int]:
        """See `Answers`."""
        records, new, text = old_lines(block, self.seen)
        self._output.write(text)
        return records, new


class New(Answers["Block"]):
    """New lines, remembered by ``remember_new`` once they are out."""

    deferred = True

    def __init__(self, seen: Seen, output: Output, remember_new: Callable[[bytes, Seen], None]) -> None:
        """Print nothing yet."""
        super().__init__(seen, output)
        self._remember_new = remember_new
        # Where adding again renews a line, lines that were seen are added too.
        self._renew = forgets(seen)

    def answer(self, block: Block) -> tuple[int, int]:
        """See `Answers`; only what went out is remembered."""
        records, new, text, known = fresh(block, self.seen, dropped=self._renew)
        before = self._output.written
        try:
            self._output.write(text)
        finally:
            out = self._output.written - before
            whole = text if out == len(text) else text[: text.rfind(b"\n", 0, out) + 1]
            self._remember_new(whole, self.seen)
            remember(known, self.seen)
        return records, new


class OfRecords(Answers["Batch"]):
    """Records of ``mode``, "new", "old", or all behind a "mark"; they are remembered once they are out."""

    deferred = True

    def __init__(self, seen: Seen, output: Output, mode: str) -> None:
        """Print nothing yet."""
        super().__init__(seen, output)
        self._mode = mode
        self._renew = forgets(seen)

    def parts(self, block: Any, load: Load | None) -> Iterable[Any]:  # noqa: ARG002 - a batch is short
        """See `Answers`."""
        return (block,)

    def answer(self, block: Batch) -> tuple[int, int]:
        """See `Answers`; of a record without a key nothing is known, so it is new."""
        records = block.records
        new, kept, old, marks = records.fresh(
            self.seen, kept=self._mode == "new", dropped=self._mode == "old"
        )
        if self._mode == "mark":
            kept = records.marked(marks, b"new\t", b"old\t")
            if block.header.endswith(b"\n"):
                block.header = b"mark\t" + block.header
        before = self._output.written
        try:
            self._output.write(block.kept(old if self._mode == "old" else kept))
        except OSError:
            if self._mode == "new":
                records.remember(self.seen, marks, block.printed(self._output.written - before))
            raise
        records.remember(self.seen, None if self._renew else marks)
        return len(records) - records.faults, new
