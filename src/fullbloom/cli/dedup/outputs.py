"""Where the lines of ``fullbloom dedup`` go: those that are kept, those that are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.io.output import Output

if TYPE_CHECKING:
    from fullbloom.cli.dedup.options import DedupOptions


class Outputs:
    """Both outputs; one that was not asked for takes nothing."""

    def __init__(self, options: DedupOptions) -> None:
        """Open nothing yet."""
        self._options = options
        self._kept: Output | None = None
        self._dropped: Output | None = None
        #: Whether dropped lines are asked for.
        self.wants_dropped = bool(options.dupes_output)

    def open(self) -> None:
        """Open what was asked for."""
        if not self._options.no_output:
            self._kept = Output(self._options.output)
        if self.wants_dropped:
            self._dropped = Output(self._options.dupes_output)

    @property
    def direct(self) -> bool:
        """True when kept lines go out and cannot be taken back."""
        return self._kept is not None and self._kept.direct

    @property
    def discardable(self) -> bool:
        """True when kept lines are still held back from their file."""
        return self._kept is not None and not self._kept.direct

    @property
    def written(self) -> int:
        """Bytes of kept lines that are written."""
        return self._kept.written if self._kept else 0

    def keep(self, lines: bytes) -> None:
        """Write kept lines; after an error, `written` says how far they came."""
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
        """Remove files that have not got their names yet."""
        for output in (self._kept, self._dropped):
            if output is not None:
                output.discard()
