"""Outputs of ``fullbloom dedup``: kept lines, and dropped lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.io.output import Output

if TYPE_CHECKING:
    from fullbloom.cli.dedup.options import DedupOptions


class Outputs:
    """Both outputs; one that the options do not name writes nothing."""

    def __init__(self, options: DedupOptions) -> None:
        """Open nothing yet."""
        self._options = options
        self._kept: Output | None = None
        self._dropped: Output | None = None
        self.wants_dropped = bool(options.dupes_output)

    def open(self) -> None:
        """Open the outputs that the options name."""
        if not self._options.no_output:
            self._kept = Output(self._options.output)
        if self.wants_dropped:
            self._dropped = Output(self._options.dupes_output)

    @property
    def is_direct(self) -> bool:
        """True if kept lines are printed and cannot be discarded."""
        return self._kept is not None and self._kept.is_direct

    @property
    def is_discardable(self) -> bool:
        """True if kept lines can still be discarded with their file."""
        return self._kept is not None and not self._kept.is_direct

    @property
    def bytes_written(self) -> int:
        """Bytes of kept lines that are written."""
        return self._kept.written if self._kept else 0

    def keep(self, lines: bytes) -> None:
        """Write kept lines; after an error, `bytes_written` counts what was written."""
        if self._kept and lines:
            self._kept.write(lines)

    def drop(self, lines: bytes) -> None:
        """Write dropped lines."""
        if self._dropped and lines:
            self._dropped.write(lines)

    def commit(self, *, durable: bool) -> None:
        """Give files their names."""
        for output in (self._kept, self._dropped):
            if output is not None:
                output.commit(durable=durable)

    def discard(self) -> None:
        """Remove files that do not have their names yet."""
        for output in (self._kept, self._dropped):
            if output is not None:
                output.discard()
