"""A line that a person types and nobody sees."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fullbloom.cli.stops import Stops


def is_typed(files: Sequence[str]) -> bool:
    """Tell whether the only input is a terminal."""
    return list(files) in ([], ["-"]) and sys.stdin is not None and sys.stdin.isatty()


class Typed:
    """As `Blocks`, of one line, asked for without an echo."""

    name, carried, total = "standard input", False, None

    def __init__(self, stops: Stops) -> None:
        """Ask for nothing yet."""
        self._stops = stops
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the line, or nothing when the input ends before one."""
        self._stops.wait()
        try:
            line = getpass("line (not shown): ")
        except EOFError:
            return
        finally:
            self._stops.go()
        yield os.fsencode(line)
