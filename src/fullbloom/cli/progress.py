"""Progress on stderr, only if it is a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, TypeVar

from fullbloom.cli.units import duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fullbloom.cli.io.blocks import Blocks, TypedLine

T = TypeVar("T")

_EVERY_SECONDS = 0.2
#: No time left is shown before this share of a pass: its pace so far says little about the rest.
_FIRST_ESTIMATE = 50


class Progress:
    """One line that is overwritten: bytes, share, rate and time left of a pass.

    Silent unless stderr is a terminal.
    """

    def __init__(self, blocks: Blocks | TypedLine | None, *, quiet: bool) -> None:
        """Start the clock; without ``blocks`` only lines that the caller gives are shown."""
        self._blocks = blocks
        self._started = self._began = self._shown_at = time.monotonic()
        self._shown = False
        self._active = not quiet and sys.stderr is not None and sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def follow(self, blocks: Blocks | TypedLine) -> None:
        """Show another pass from now on; `seconds` still counts from the start."""
        self._blocks = blocks
        self._began = time.monotonic()

    def follow_steps(self, blocks: Blocks | TypedLine, steps: Iterable[T]) -> Iterator[T]:
        """Yield the ``steps`` of a pass over ``blocks``; show how far it is after each."""
        self.follow(blocks)
        for step in steps:
            yield step
            self.show()

    def show(self, line: str | None = None) -> None:
        """Overwrite the line, by ``line`` if given, at most five times a second."""
        if not self._active:
            return
        now = time.monotonic()
        if now - self._shown_at < _EVERY_SECONDS:
            return
        self._shown_at, self._shown = now, True
        line = line or self._format(max(now - self._began, 1e-9))
        # A line that wraps could not be overwritten.
        sys.stderr.write(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    def _format(self, seconds: float) -> str:
        """Return the line, ``seconds`` after the start of the pass."""
        if self._blocks is None:
            return ""
        taken, total = self._blocks.bytes_read, self._blocks.total
        share = f" of {size_text(total)} ({100 * taken // total} %)" if total else ""
        left = ""
        if total and total / _FIRST_ESTIMATE <= taken <= total:
            left = f", {duration_text((total - taken) * seconds / taken)} left"
        return f"{size_text(taken)}{share}, {size_text(taken / seconds)}/s{left}"

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = False
