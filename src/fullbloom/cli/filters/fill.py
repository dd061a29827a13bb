"""All lines of the inputs into a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import _core
from fullbloom.cli.filters.kinds import row_of
from fullbloom.cli.io.hashes import keys_of
from fullbloom.cli.reading import has_records, tell_faults
from fullbloom.recipes.dedup import fresh, remember

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.stops import Stops


def fill(
    args: argparse.Namespace,
    seen: Seen,
    blocks: Blocks,
    inputs: Sequence[Source],
    stops: Stops,
    progress: Progress,
) -> int:
    """Add every line, its hash, or with ``--select`` the key of every record; return how many were read.

    A filter that counts gets every line, a table each different line once.
    """
    # Copies of one line would fill a few slots and then be refused.
    once = row_of(seen)["once"]
    lines = 0
    if has_records(args):
        from fullbloom.cli.io.records import Records
        from fullbloom.cli.limits import longest_line

        read = Records(args, inputs, stops, seen, longest=longest_line(args), keys_only=True)
        for batch in read:
            batch.records.add(seen, once=once, kept=False)
            lines += len(batch.records) - batch.records.faults
            progress.show()
        tell_faults(args, read)
        return lines
    for block in keys_of(args, blocks, adds=True):
        if once:
            records, _, new, _ = fresh(block, seen)
            remember(new, seen)
        else:
            records = _core.add_lines(seen, block, kept=False)[0]
        lines += records
        progress.show()
    return lines
