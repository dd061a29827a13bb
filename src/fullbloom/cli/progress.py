"""Progress on stderr, only when a person watches it."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from fullbloom.cli.units import duration_text, size_text

if TYPE_CHECKING:
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.typed import Typed

_EVERY_SECONDS = 0.2
#: Before this share of a pass its pace tells little of the rest.
_TELLING = 50


class Progress:
    """One line that is written over: bytes, share, rate, time left of a pass.

    Silent when stderr is no terminal.
    """

    def __init__(self, blocks: Blocks | Typed, *, quiet: bool) -> None:
        """Start the clock."""
        self._blocks = blocks
        self._started = self._began = self._shown_at = time.monotonic()
        self._shown = False
        self._active = not quiet and sys.stderr is not None and sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def follow(self, blocks: Blocks | Typed) -> None:
        """Show another pass from now on; the clock of the whole goes on."""
        self._blocks = blocks
        self._began = time.monotonic()

    def show(self, line: str | None = None) -> None:
        """Write the line anew, or ``line``, at most five times a second."""
        if not self._active:
            return
        now = time.monotonic()
        if now - self._shown_at < _EVERY_SECONDS:
            return
        self._shown_at, self._shown = now, True
        line = line or self._line(max(now - self._began, 1e-9))
        # A line that wraps could not be written over.
        sys.stderr.write(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}")
        sys.stderr.flush()

    def _line(self, seconds: float) -> str:
        """Return what there is to say ``seconds`` after the start of the pass."""
        taken, total = self._blocks.taken, self._blocks.total
        share = f" of {size_text(total)} ({100 * taken // total} %)" if total else ""
        left = ""
        if total and total / _TELLING <= taken <= total:
            left = f", {duration_text((total - taken) * seconds / taken)} left"
        return f"{size_text(taken)}{share}, {size_text(taken / seconds)}/s{left}"

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = False
