"""All lines of the inputs into a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import _core
from fullbloom.cli.filters.kinds import row_of
from fullbloom.cli.io.hashes import keys_of
from fullbloom.cli.report import note_faults
from fullbloom.recipes.dedup import fresh, remember

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.options import RecordOptions
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.stops import Stops


def fill(
    options: RecordOptions,
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
    if options.has_records:
        from fullbloom.cli.io.records import Records

        read = Records(options, inputs, stops, seen, longest=options.longest_line, keys_only=True)
        for batch in read:
            batch.records.add(seen, once=once, kept=False)
            lines += len(batch.records) - batch.records.faults
            progress.show()
        note_faults(options, read)
        return lines
    for block in keys_of(options, blocks, adds=True):
        if once:
            records, _, new, _ = fresh(block, seen)
            remember(new, seen)
        else:
            records = _core.add_lines(seen, block, kept=False)[0]
        lines += records
        progress.show()
    return lines
