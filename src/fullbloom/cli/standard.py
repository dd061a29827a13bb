"""The standard streams: the next file opened must not get the descriptor of a closed one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from fullbloom.cli.failures import Refusal


def occupy_descriptors() -> None:
    """Open those of descriptors 0, 1 and 2 that are closed, on the null device.

    1 is opened for reading, so that a write fails: results must not be lost. Messages may.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for good
    if sys.stderr is None:  # print() would use standard output instead
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    # A name that the terminal's encoding cannot represent is escaped, as stderr does by default.
    with suppress(AttributeError, OSError):  # a caller of main() may have replaced it by any object
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def require_input() -> None:
    """Refuse to read a standard input that was closed at the start."""
    if sys.__stdin__ is None:
        raise Refusal("standard input is closed; name files, or redirect it from one")


def require_output() -> None:
    """Refuse to write to a standard output that was closed at the start."""
    if sys.__stdout__ is None:
        raise Refusal("standard output is closed; redirect it to a file, or to /dev/null")


def flush(text: str = "") -> None:
    """Write ``text`` and flush standard output; an error names it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        require_output()
        raise OSError(error.errno, error.strerror, "standard output") from error
