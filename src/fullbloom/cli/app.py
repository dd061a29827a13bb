"""From arguments to an exit code: dispatch, and every error as one line."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from fullbloom.cli.failures import Interrupted, Refusal, explain
from fullbloom.cli.printable import one_line
from fullbloom.cli.standard import flush, occupy
from fullbloom.errors import FullbloomError, KeyDomainWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 2


def run(arguments: Sequence[str]) -> int:
    """Parse ``arguments``, run their command and return its exit code."""
    try:
        occupy()
        return _version() if arguments in (["--version"], ["-V"]) else _guarded(arguments)
    except (Interrupted, KeyboardInterrupt) as error:
        _say("interrupted")
        return 128 + (error.number if isinstance(error, Interrupted) else 2)
    except BrokenPipeError:  # the reader has enough: nothing to tell
        return _leave(ERROR)
    except (Refusal, FullbloomError, OSError, MemoryError) as error:
        _say(explain(error))
        return _leave(ERROR)


def _version() -> int:
    """Answer without argparse: it alone would double the start-up time."""
    from fullbloom import __version__

    flush(f"fullbloom {__version__}\n")
    return 0


def _guarded(arguments: Sequence[str]) -> int:
    from fullbloom.cli.parser import parse

    try:
        command, options = parse(arguments)
    except SystemExit as stop:  # argparse has said why, or printed the help that was asked for
        flush()
        return int(stop.code or 0)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_rest, **_named: (
            None if options.quiet else _say(_told(message))
        )
        code = command.run(options)
    flush()
    return code


def _told(message: Warning | str) -> str:
    """Return the text of a warning, with the options of the shell that help."""
    if isinstance(message, KeyDomainWarning):
        return f"{message}; lines are texts: give --select COLUMN --key-type int for numbers"
    return str(message)


def _say(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"fullbloom: {one_line(text)}\n")
        sys.stderr.flush()


def _leave(code: int) -> int:
    """Return ``code`` after pointing stdout elsewhere: Python flushes it once more at its exit."""
    with suppress(OSError, ValueError, AttributeError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
    return code
