"""From arguments to an exit code: dispatch, and every error as one line."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Interrupted, Refusal, explain
from fullbloom.cli.printable import one_line
from fullbloom.cli.standard import flush, occupy_descriptors
from fullbloom.errors import FullbloomError, KeyDomainWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 2


def run(arguments: Sequence[str]) -> int:
    """Parse ``arguments``, run their command and return its exit code."""
    try:
        occupy_descriptors()
        return _print_version() if arguments in (["--version"], ["-V"]) else _run_command(arguments)
    except (Interrupted, KeyboardInterrupt) as error:
        _print_error("interrupted")
        return 128 + (error.number if isinstance(error, Interrupted) else 2)
    except BrokenPipeError:  # the reader has enough: this needs no message
        return _silence_stdout(ERROR)
    except (Refusal, FullbloomError, OSError, MemoryError) as error:
        _print_error(explain(error))
        return _silence_stdout(ERROR)


def _print_version() -> int:
    """Print the version without argparse, which alone would double the start-up time."""
    from fullbloom import __version__

    flush(f"fullbloom {__version__}\n")
    return 0


def _run_command(arguments: Sequence[str]) -> int:
    from fullbloom.cli.parser import parse

    try:
        command, options = parse(arguments)
    except SystemExit as stop:  # argparse has printed an error, or the help
        flush()
        return int(stop.code or 0)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_rest, **_named: (
            None if options.quiet else _print_error(_explain_warning(message, options))
        )
        code = command.run(options)
    flush()
    return code


def _explain_warning(message: Warning | str, options: Any) -> str:
    """Return the text of a warning, with the options that help."""
    if isinstance(message, KeyDomainWarning):
        if options.key is not None:
            return f"{message}; --key is a text: give --key-type int for a number"
        return f"{message}; lines are texts: give --select COLUMN --key-type int for numbers"
    return str(message)


def _print_error(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"fullbloom: {one_line(text)}\n")
        sys.stderr.flush()


def _silence_stdout(code: int) -> int:
    """Point stdout at the null device, since Python flushes it once more at exit; return ``code``."""
    with suppress(OSError, ValueError, AttributeError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
    return code
