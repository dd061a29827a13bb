"""Reading all lines or records of files, with progress, until a signal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom import _core
from fullbloom.cli.io.blocks import Block, Blocks, count_lines
from fullbloom.cli.io.hashes import hash_blocks
from fullbloom.cli.io.sources import open_sources
from fullbloom.cli.progress import Progress
from fullbloom.cli.report import note_faults
from fullbloom.recipes.dedup import find_new_lines, remember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from fullbloom import registry
    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.options import RecordOptions
    from fullbloom.cli.stops import Stops


class Target(NamedTuple):
    """What takes the keys of one set of files.

    ``keys`` is the filter or buffer whose hash the keys get. ``add_lines`` returns the number of lines in its
    block. Without ``add_records``, lines are passed on as they are, whatever the options say of their keys.
    """

    keys: Any
    add_lines: Callable[[Block], int]
    add_records: Callable[[_core.KeyedRecords], object] | None
    #: Keys that were new, of a filter that does not count them itself.
    count_new: Callable[[], int] = int

    @classmethod
    def of_filter(cls, seen: Filter, row: registry.Row) -> Self:
        """Add every line to ``seen``, its hash, or with ``--select`` the key of every record.

        A filter that counts gets every line, a table (``row["once"]``) each different line once: copies of
        one line would fill a few slots and then be refused.
        """
        once = row["once"]

        def add_lines(block: Block) -> int:
            if not once:
                return _core.add_lines(seen, block, kept=False)[0]
            records, _, new, _ = find_new_lines(block, seen)
            remember(new, seen)
            return records

        return cls(seen, add_lines, lambda records: records.add(seen, once=once, kept=False))

    @classmethod
    def of_foreign(cls, seen: Any) -> Self:
        """Add the key of every line or record to a filter of another program."""
        new = 0

        def add_lines(block: Block) -> int:
            nonlocal new
            lines, added, _, _ = _core.add_lines(seen, block, kept=False)
            new += added
            return lines

        def add_records(records: _core.KeyedRecords) -> None:
            nonlocal new
            new += records.add(seen, kept=False)[0] - records.without_key

        return cls(seen, add_lines, add_records, lambda: new)

    @classmethod
    def of_buffer(cls, keys: _core.KeyBuffer) -> Self:
        """Collect the hash of every key."""
        return cls(keys, keys.lines, keys.records)


class Reader:
    """The lines or records of one set of files, or of two."""

    def __init__(
        self,
        options: RecordOptions,
        stops: Stops,
        *,
        rest: Sequence[str] | None = None,
        counts: bool = False,
    ) -> None:
        """Open the files of ``options``, and of the set ``rest``; refuse a missing one before any work.

        ``counts``: count their lines or rows first, if they can be read twice.
        """
        self._options, self.stops = options, stops
        files = [options.files] if rest is None else [options.files, rest]
        inputs = [open_sources(paths) for paths in files]
        self.sets = [Blocks(sources, stops, longest=options.longest_line) for sources in inputs]
        blocks = self.sets[0]
        self.progress = Progress(blocks, quiet=options.quiet)
        #: Lines or rows, at least 1; None if they were not counted.
        self.num_lines: int | None = None
        if not counts or not blocks.is_repeatable:
            return
        if kind := options.columnar_format:
            from fullbloom.cli.io.columns import count_rows

            lines = count_rows(options.files, kind)
        else:
            lines = sum(map(count_lines, self.progress.follow_steps(blocks, blocks)))
        self.num_lines = max(lines, 1)

    def fill(self, targets: Sequence[Target]) -> int:
        """Read every set into its target; return how many lines or records there were."""
        return sum(
            sum(self.progress.follow_steps(blocks, self._pass_on(blocks, target)))
            for blocks, target in zip(self.sets, targets, strict=True)
        )

    def _pass_on(self, blocks: Blocks, target: Target) -> Iterator[int]:
        if target.add_records is None:
            return map(target.add_lines, blocks)
        if self._options.has_records:
            return self._pass_records_on(blocks, target.keys, target.add_records)
        return map(target.add_lines, hash_blocks(self._options, blocks))

    def _pass_records_on(
        self, blocks: Blocks, keys: Any, add: Callable[[_core.KeyedRecords], object]
    ) -> Iterator[int]:
        from fullbloom.cli.io.records import Records

        options = self._options
        records = Records(
            options, blocks.inputs, self.stops, keys, longest=options.longest_line, keys_only=True
        )
        for batch in records:
            add(batch.records)
            yield len(batch.records) - batch.records.faults
        note_faults(options, records)

    def watch(self, done: int, total: int) -> None:
        """Show the progress of building from what was read; end it after a signal."""
        self.stops.wait()
        self.stops.go()
        self.progress.show(f"building, {100 * done // max(total, 1)} %")
