"""Reports: one JSON object, or lines of text."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from fullbloom.cli.printable import one_line, printable
from fullbloom.cli.standard import flush

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fullbloom.cli.io.records import Records
    from fullbloom.cli.options import Options


def to_json(value: Any) -> Any:
    """Return ``value`` with None for what JSON cannot represent: infinity, not a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def report(options: Options, stats: Mapping[str, Any], lines: Sequence[str], *, stdout_is_free: bool) -> None:
    """Print the report at the end of a command.

    With ``--json`` the stats are one line: on stdout if ``stdout_is_free``, else on stderr. Otherwise
    ``lines`` go to stderr, or to stdout if that is free; ``--quiet`` silences them.
    """
    text = ""
    if options.json:
        text = json.dumps(to_json(dict(stats))) + "\n"
    elif not options.quiet:
        text = "".join(f"{printable(line)}\n" for line in lines)
    if stdout_is_free:
        flush(text)
    else:
        print(text, end="", file=sys.stderr, flush=True)


def format_value(value: Any) -> str:
    """Format a value for people."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def note(options: Options, text: str) -> None:
    """Warn in one line on stderr, unless ``--quiet``."""
    if not options.quiet:
        complain(text)


def note_faults(options: Options, records: Records) -> None:
    """Print how many records were left out, and the error of the first."""
    if records.faults:
        s = "" if records.faults == 1 else "s"
        note(options, f"{records.faults:,} record{s} left out; the first: {records.first_fault}")


def complain(text: str) -> None:
    """Print one line on stderr, with ``--quiet``, too."""
    print(f"fullbloom: {one_line(text)}", file=sys.stderr, flush=True)
