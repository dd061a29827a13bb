"""A map of cells in text: blocks and colours on a terminal, plain ASCII elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from fullbloom.cli.printable import printable
from fullbloom.cli.standard import flush

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fullbloom.cells import Cells

#: Cells of a row are a multiple of 8, or of 64 if so many fit, up to the longest readable row.
_STEP, _LONG_STEP, _LONGEST = 8, 64, 128
#: Rows of a map of every cell, and of a map of regions, in which a character has the fill of many.
_ROWS, _REGION_ROWS = 32, 8
#: The value of a cell is shown if it has a few bits; above 9 it is a plus.
_MOST_BITS, _MOST_DIGIT = 8, 9
_BLOCKS = "▁▂▃▄▅▆▇█"
_FOUND, _MISSING, _PLAIN = "\x1b[1;32m", "\x1b[1;31m", "\x1b[0m"


class CellMap:
    """Lines of text; everything that may be untrusted is escaped."""

    #: Rows that fit.
    rows = _ROWS

    def __init__(self, columns: int, *, plain: bool) -> None:
        """Write nothing yet; ``plain`` is without blocks and colours."""
        self._columns = columns
        self._plain = plain
        self._lines: list[str] = []

    @classmethod
    def for_terminal(cls) -> CellMap:
        """Return a map as wide as the terminal, plain with NO_COLOR, in a file, and without UTF-8."""
        encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
        fancy = sys.stdout.isatty() and encoding == "utf8" and os.environ.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size().columns, plain=not fancy or bool(os.environ.get("NO_COLOR")))

    def write_text(self, text: str) -> None:
        """Write a line of text, escaped."""
        self._lines.append(printable(text))

    def print(self) -> None:
        """Print all lines."""
        flush("".join(f"{line}\n" for line in self._lines))

    def draw(self, title: str, cells: Cells, marked: set[int], rows: int) -> None:
        """Draw a section in about so many rows, with some cells marked."""
        from fullbloom.cells import split_regions

        margin = len(f"{cells.count:,}") + 2
        length = _round_length(min(self._columns - margin, _LONGEST))
        if cells.count <= rows * length:
            values = cells.read_values()
            total = sum(map(bool, values))
            size = 1
            characters = self._draw_cells(cells, values, marked)
        else:
            regions = list(split_regions(cells, min(rows, _REGION_ROWS) * length))
            total = sum(region.set for region in regions)
            size = regions[0].last
            fills = [(region.set, region.last - region.first) for region in regions]
            characters = self._draw_regions(cells, fills, marked, size)
        unit = "bits" if cells.width == 1 else f"cells of {cells.width} bits"
        self.write_text("")
        self.write_text(f"{title}: {cells.count:,} {unit}, {100 * total / cells.count:.1f} % set")
        self.write_text(self._legend(cells, size, marked))
        drawn = list(characters)
        for first in range(0, len(drawn), length):
            self._lines.append(f"{first * size:>{margin - 2},}  {''.join(drawn[first : first + length])}")

    def _legend(self, cells: Cells, size: int, marked: Iterable[int]) -> str:
        if size > 1:
            how = "digits are tenths, # is full" if self._plain else "taller is fuller"
            text = f"a character is {size:,} of them, . has none set, {how}"
        elif _shows_value(cells):
            text = ". is 0, + is more than 9"
        else:
            text = ". is 0"
        return f"{text}, the key's are * if set, o if not" if marked else text

    def _draw_cells(self, cells: Cells, values: Iterable[int], marked: set[int]) -> Iterator[str]:
        full = "#" if self._plain else "█"
        shown = _shows_value(cells)
        for number, value in enumerate(values):
            if number in marked:
                yield self._mark(is_set=bool(value))
            elif not value:
                yield "."
            elif shown:
                yield str(value) if value <= _MOST_DIGIT else "+"
            else:
                yield full

    def _draw_regions(
        self, cells: Cells, fills: Iterable[tuple[int, int]], marked: set[int], size: int
    ) -> Iterator[str]:
        marks: dict[int, bool] = {}
        for cell in marked:
            marks[cell // size] = marks.get(cell // size, True) and bool(cells[cell])
        for number, (held, among) in enumerate(fills):
            if number in marks:
                yield self._mark(is_set=marks[number])
            elif not held:
                yield "."
            elif self._plain:
                yield "#" if held == among else str(10 * held // among)
            else:
                yield _BLOCKS[min(len(_BLOCKS) * held // among, len(_BLOCKS) - 1)]

    def _mark(self, *, is_set: bool) -> str:
        mark = "*" if is_set else "o"
        return mark if self._plain else f"{_FOUND if is_set else _MISSING}{mark}{_PLAIN}"


def _round_length(columns: int) -> int:
    step = _LONG_STEP if columns >= _LONG_STEP else _STEP
    return max(columns // step, 1) * step


def _shows_value(cells: Cells) -> bool:
    return 1 < cells.width <= _MOST_BITS
