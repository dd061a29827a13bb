"""Progress on stderr, only when a person watches it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from bloomery.cli.units import size_text

if TYPE_CHECKING:
    from bloomery.cli.io.blocks import Blocks

_EVERY_SECONDS = 0.2


class Progress:
    """One line that is written over: bytes, share, rate. Silent when stderr is no terminal."""

    def __init__(self, blocks: Blocks, *, quiet: bool) -> None:
        """Start the clock."""
        self._blocks = blocks
        self._started = self._shown_at = time.monotonic()
        self._shown = False
        self._active = not quiet and sys.stderr is not None and sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def follow(self, blocks: Blocks) -> None:
        """Show another pass from now on; the clock goes on."""
        self._blocks = blocks

    def show(self) -> None:
        """Write the line anew, at most five times a second."""
        if not self._active:
            return
        now = time.monotonic()
        if now - self._shown_at < _EVERY_SECONDS:
            return
        self._shown_at, self._shown = now, True
        taken, total = self._blocks.taken, self._blocks.total
        share = f" of {size_text(total)} ({100 * taken // total} %)" if total else ""
        rate = size_text(taken / max(now - self._started, 1e-9))
        sys.stderr.write(f"\r\033[K{size_text(taken)}{share}, {rate}/s")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = False
