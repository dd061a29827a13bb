"""Errors that end a command early."""

from __future__ import annotations


class Refusal(Exception):
    """The command cannot continue; the message is the one line that is printed."""


class Interrupted(Exception):
    """A signal arrived; raised only where no work is half done."""

    def __init__(self, number: int) -> None:
        """Store the signal's number; the exit code is 128 more."""
        super().__init__(number)
        self.number = number


def explain(error: BaseException) -> str:
    """Return the message of an error: the file, if there is one, and the reason."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    if isinstance(error, MemoryError) and not str(error):
        return "out of memory; give --memory, a lower capacity or a higher fpr"
    return str(error) or type(error).__name__
