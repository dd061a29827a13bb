"""The values of a map, written beside its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.io.blocks import split_lines

if TYPE_CHECKING:
    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Block
    from fullbloom.cli.io.output import Output


def write_values(seen: Filter, block: Block, output: Output | None) -> tuple[int, int]:
    """Write each line in the map, a tab and its value; return how many lines there are, and were found."""
    lines = split_lines(block)
    found = seen.contains_many(lines)
    if output:
        pairs = zip(lines, found, seen.get_many(lines), strict=True)
        output.write(b"".join(b"%b\t%d\n" % (line, value) for line, is_in, value in pairs if is_in))
    return len(lines), sum(found)
