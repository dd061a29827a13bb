"""``--window``: how long a line is remembered, in lines or in seconds."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from fullbloom.cli import units
from fullbloom.cli.printable import shorten

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)")
#: The clock of a file counts seconds since 1970 to a microsecond; a thousandth is far from its last digit.
_LEAST, _MOST = 1e-3, 1e9


@dataclass(frozen=True, slots=True)
class Window:
    """A number of different lines, or of seconds; the other is None."""

    text: str
    lines: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        """Return the text of the option."""
        return self.text


def parse_window(text: str) -> Window:
    """Parse ``90s``, ``15min``, ``1h``, ``7d``, ``2w``, or a number of lines: ``1000000``, ``1e6``, ``1M``.

    >>> parse_window("15min").seconds, parse_window("1M").lines
    (900.0, 1000000)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or match[2] == "k":
        try:
            return Window(text, lines=units.count(text))
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(_describe_fault(text)) from None
    if match[2] not in _SECONDS:
        raise argparse.ArgumentTypeError(_describe_fault(text))
    seconds = float(match[1]) * _SECONDS[match[2]]
    if not _LEAST <= seconds <= _MOST:
        raise argparse.ArgumentTypeError(
            f"a window is between a thousandth of a second and 30 years, got {shorten(text)}"
        )
    return Window(text, seconds=seconds)


def _describe_fault(text: str) -> str:
    return f"{shorten(text)!r} is not a window; write a time (90s, 15min, 1h, 7d) or a number of lines (1M)"
