"""What ends a command early."""

from __future__ import annotations


class Refusal(Exception):
    """The command cannot go on; the message is the one line that a person reads."""


class Interrupted(Exception):
    """A signal asked to stop; raised only where nothing is half done."""

    def __init__(self, number: int) -> None:
        """Remember the signal's number; the exit code is 128 more."""
        super().__init__(number)
        self.number = number


def explain(error: BaseException) -> str:
    """Say to a person what is wrong: the file, when there is one, and why."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    if isinstance(error, MemoryError) and not str(error):
        return "out of memory; give --memory, a lower capacity or a higher fpr"
    return str(error) or type(error).__name__
