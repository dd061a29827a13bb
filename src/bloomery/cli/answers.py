"""What ``bloomery seen`` prints of a block of lines, and when the lines are remembered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from bloomery.cli.filters.kinds import forgets
from bloomery.recipes.dedup import fresh, remember
from bloomery.recipes.seen import mark_lines, old_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from bloomery.cli.filters.kinds import Seen
    from bloomery.cli.io.blocks import Block
    from bloomery.cli.io.output import Output


class Answers(ABC):
    """Answers to ``output``, by what ``seen`` holds."""

    #: All lines of a block are looked up before the first is added.
    deferred = False

    def __init__(self, seen: Seen, output: Output) -> None:
        """Print nothing yet."""
        self.seen = seen
        self._output = output

    @abstractmethod
    def answer(self, block: Block) -> tuple[int, int]:
        """Answer whole lines and remember them; return (lines, new lines)."""


class Marked(Answers):
    """All lines, behind "new" or "old"."""

    def answer(self, block: Block) -> tuple[int, int]:
        """See `Answers`."""
        records, new, text = mark_lines(bytes(block), self.seen)
        self._output.write(text)
        return records, new


class Old(Answers):
    """Lines that came by before."""

    def answer(self, block: Block) -> tuple[int, int]:
        """See `Answers`."""
        records, new, text = old_lines(block, self.seen)
        self._output.write(text)
        return records, new


class New(Answers):
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
