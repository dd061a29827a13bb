"""Ctrl-C, SIGTERM and SIGHUP, handled only where no work is half done."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fullbloom.cli.failures import Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType
    from typing import Self


#: Those of them that the system has; Windows knows no SIGHUP.
_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


#: The active ones, the innermost last.
_ACTIVE: list[Stops] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal raise `Interrupted` at once, where no work is half done."""
    active = _ACTIVE[-1] if _ACTIVE else None
    if active is not None:
        active.wait()
    try:
        yield
    finally:
        if active is not None:
            active.go()


class Stops:
    """While active, a signal raises `Interrupted` inside a wait for input, else at the next one.

    Between two waits a block is written and added to the filter, which must happen together. A second signal
    raises at once, in case the reader of our output hangs.
    """

    def __init__(self) -> None:
        """Handle no signal yet."""
        self._pending = 0
        self._waiting = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Install the handlers, leaving ignored signals ignored (nohup, background jobs)."""
        _ACTIVE.append(self)
        for number in _STOPS:
            before = signal.getsignal(number)
            if before is signal.SIG_IGN:
                continue
            try:
                signal.signal(number, self._handle)
            except ValueError:  # not the main thread: its signals are not ours
                return self
            self._before[number] = before
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the former handlers."""
        _ACTIVE.remove(self)
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._waiting or self._pending:
            self._waiting = False
            raise Interrupted(number)
        self._pending = number

    def wait(self) -> None:
        """Begin a wait; raise `Interrupted` if a signal came before."""
        self._waiting = True
        if self._pending:
            self._waiting = False
            raise Interrupted(self._pending)

    def go(self) -> None:
        """End the wait."""
        self._waiting = False
