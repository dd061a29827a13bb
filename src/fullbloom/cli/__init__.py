"""The command line ``fullbloom``; every command is one module of this package."""

from __future__ import annotations

import sys

from fullbloom import _begin, _core

TYPE_CHECKING = False  # typing takes longer to import than all the rest of a start
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on ``argv`` (default: the process' arguments); return the exit code.

    0: done, or all found; 1: some absent; 2: an error, printed in one line on stderr; 130: stopped by
    Ctrl-C. Nothing is raised.

    >>> main(["plan", "--quiet", "--items", "1000", "--fpr", "0.01"])
    0
    """
    hook = sys.unraisablehook
    if hook is sys.__unraisablehook__:
        sys.unraisablehook = _core.repeat_interrupt  # an import drops a Ctrl-C that comes in its callback
    try:
        _begin.hand_over()
        from fullbloom.cli.app import run

        return run(sys.argv[1:] if argv is None else list(argv))
    except (KeyboardInterrupt, RuntimeError, AttributeError) as error:  # while modules were imported
        # CPython 3.11 turns an exception raised while a class is created into a RuntimeError, and argparse
        # turns one raised before it has saved the state that it restores into an AttributeError.
        raised = (error, error.__cause__, error.__context__)
        if not any(isinstance(one, KeyboardInterrupt) for one in raised):
            raise
        sys.stderr.write("fullbloom: interrupted\n")
        return 130
    finally:
        sys.unraisablehook = hook
