"""Reports: one JSON object, or lines for people."""

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


def plain(value: Any) -> Any:
    """Return ``value`` with what JSON cannot say (infinity, not a number) as None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def report(options: Options, stats: Mapping[str, Any], lines: Sequence[str], *, stdout_is_free: bool) -> None:
    """Print the end of a command.

    With ``--json`` the stats are one line: on stdout when it carries nothing else, else on stderr.
    Without, ``lines`` go to stderr, or to stdout when that is free; ``--quiet`` silences them.
    """
    text = ""
    if options.json:
        text = json.dumps(plain(dict(stats))) + "\n"
    elif not options.quiet:
        text = "".join(f"{printable(line)}\n" for line in lines)
    if stdout_is_free:
        flush(text)
    else:
        print(text, end="", file=sys.stderr, flush=True)


def valued(value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def note(options: Options, text: str) -> None:
    """Warn in one line on stderr, unless ``--quiet``."""
    if not options.quiet:
        complain(text)


def note_faults(options: Options, records: Records) -> None:
    """Note how many records were left out, and what is wrong with the first."""
    if records.faults:
        s = "" if records.faults == 1 else "s"
        note(options, f"{records.faults:,} record{s} left out; the first: {records.first_fault}")


def complain(text: str) -> None:
    """Say in one line on stderr what ``--quiet`` does not silence."""
    print(f"fullbloom: {one_line(text)}", file=sys.stderr, flush=True)
