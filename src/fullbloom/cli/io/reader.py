"""Reading all lines or records of files, with progress, until a signal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.cli.io.blocks import Block, Blocks
from fullbloom.cli.io.hashes import hash_blocks
from fullbloom.cli.io.sources import open_sources
from fullbloom.cli.progress import Progress
from fullbloom.cli.report import note_faults
from fullbloom.recipes.dedup import fresh, remember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fullbloom import registry
    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.options import RecordOptions
    from fullbloom.cli.stops import Stops


class Reader:
    """The lines or records of files."""

    def __init__(self, options: RecordOptions, stops: Stops) -> None:
        """Open the files of ``options``; a missing one is refused here, before any work."""
        self._options, self.stops = options, stops
        self._open(options.files)
        self.progress = Progress(self.blocks, quiet=options.quiet)

    def _open(self, files: Sequence[str]) -> None:
        self.inputs = open_sources(files)
        self.blocks = Blocks(self.inputs, self.stops, longest=self._options.longest_line)

    def rewind(self, files: Sequence[str]) -> None:
        """Start at the first of ``files``."""
        self._open(files)
        self.progress.follow(self.blocks)

    def read(
        self,
        target: Any,
        add_records: Callable[[_core.KeyedRecords], object],
        add_lines: Callable[[Block], int],
    ) -> int:
        """Pass on all records, hashed for ``target``, or all lines or their hashes; return how many.

        ``add_lines`` returns the number of lines in its block.
        """
        lines, options = 0, self._options
        counts = (
            self._read_records(target, add_records)
            if options.has_records
            else map(add_lines, hash_blocks(options, self.blocks))
        )
        for count in counts:
            lines += count
            self.progress.show()
        return lines

    def _read_records(
        self, target: Any, add_records: Callable[[_core.KeyedRecords], object]
    ) -> Iterator[int]:
        from fullbloom.cli.io.records import Records

        options = self._options
        records = Records(
            options, self.inputs, self.stops, target, longest=options.longest_line, keys_only=True
        )
        for batch in records:
            add_records(batch.records)
            yield len(batch.records) - batch.records.faults
        note_faults(options, records)

    def fill(self, seen: Filter, row: registry.Row) -> int:
        """Add every line, its hash, or with ``--select`` the key of every record; return how many were read.

        A filter that counts gets every line, a table (``row["once"]``) each different line once: copies of
        one line would fill a few slots and then be refused.
        """
        once = row["once"]

        def add_lines(block: Block) -> int:
            if not once:
                return _core.add_lines(seen, block, kept=False)[0]
            records, _, new, _ = fresh(block, seen)
            remember(new, seen)
            return records

        return self.read(seen, lambda records: records.add(seen, once=once, kept=False), add_lines)
