"""Handles Ctrl-C from the first lines of the package on, if it starts as a command; imported first."""

import _signal  # type: ignore[import-not-found] # what is made of it in Python takes 1 ms, in which Ctrl-C comes
import os
import sys

__all__ = ["hand_over"]


def _started_as_command() -> bool:
    """True for the script ``fullbloom`` and for ``python -m fullbloom``."""
    script = (getattr(sys, "argv", None) or [""])[0].replace("\\", "/").rpartition("/")[2]
    return script in {"fullbloom", "fullbloom.exe"} or sys.orig_argv[1:3] == ["-m", "fullbloom"]


def _interrupted(_number: int, _frame: object) -> None:
    """One line and the exit code of the command line, which is not yet there to say so itself."""
    sys.stderr.write("fullbloom: interrupted\n")
    sys.stderr.flush()
    os._exit(130)  # CPython 3.11 makes a RuntimeError of what is raised while a class is made


def _answer() -> None:
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _interrupted)


def hand_over() -> None:
    """Make Ctrl-C a KeyboardInterrupt again, for a command line that answers it."""
    if _signal.getsignal(_signal.SIGINT) is _interrupted:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


if _started_as_command():
    _answer()
