"""``fullbloom insert``: add lines to a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli.io.output import require_different
from fullbloom.cli.options import QUIET, RecordOptions, add_hashes, add_inputs, add_records, add_secret

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Filter

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "add lines to a filter's file"
DETAIL = """The file is replaced once all lines are added, so it is either the old one or the new one;
this takes memory for the whole filter. With --in-place the lines are written into the file itself: Ctrl-C
leaves it valid with the lines so far; after a kill or a crash, open it with another run with --in-place,
and some of the lines may be missing."""
EXAMPLE = "fullbloom insert words.bloom typed.txt"


@dataclass(frozen=True, kw_only=True)
class InsertOptions(RecordOptions):
    """Options of ``fullbloom insert``."""

    filter: str
    in_place: bool


OPTIONS = InsertOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom wrote")
    add_inputs(parser)
    parser.add_argument(
        "--in-place", action="store_true", help="write into the file, for filters larger than memory"
    )
    add_secret(parser)
    add_records(parser)
    add_hashes(parser)


def run(options: InsertOptions) -> int:
    """Add and save."""
    from fullbloom.cli.filters.files import warn_of_types
    from fullbloom.cli.filters.kinds import get_row
    from fullbloom.cli.filters.state import lock_file
    from fullbloom.cli.io.hashes import record_digests
    from fullbloom.cli.io.reader import Reader, Target
    from fullbloom.cli.report import report
    from fullbloom.cli.stops import Stops

    options.check_records()
    require_different(options.files, {"FILTER": options.filter})
    stops = Stops()
    reader = Reader(options, stops)
    with lock_file(options.filter, "FILTER"), stops:
        seen = _open(options)
        before, types = seen.num_added, seen.key_domains
        try:
            lines = reader.fill([Target.of_filter(seen, get_row(seen))])
            reader.progress.clear()
            record_digests(options, seen)
            warn_of_types(types, seen)
            stats: dict[str, Any] = {"file": options.filter, "lines": lines, "new": seen.num_added - before}
            stats |= seen.info()
            shown = repr(seen)
            if not options.in_place:
                seen.save(options.filter)
        finally:
            if options.in_place:
                seen.close()  # the file contains every line that was added
    text = f"{lines:,} lines read, {stats['new']:,} new"
    report(options, stats, [f"{options.filter}: {shown}", text], stdout_is_free=True)
    return 0


def _open(options: InsertOptions) -> Filter:
    """Return the filter of the file, fully checked, open for adding."""
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.files import load
    from fullbloom.cli.filters.kinds import get_row, is_forgetful
    from fullbloom.cli.secret import read_secret

    found = load(options.filter, options.secret_file, verify="header" if options.in_place else "full")
    row = get_row(found)
    if is_forgetful(found):
        raise Refusal(
            f"{options.filter}: a {type(found).__name__} forgets lines by design; "
            "add to it with fullbloom seen --state"
        )
    if not options.in_place:
        return found.copy()
    if "write-in-place" not in row["capabilities"]:
        raise Refusal(f"{options.filter}: a {type(found).__name__} is not written in place; drop --in-place")
    found.close()
    return fullbloom.open(options.filter, mode="r+", secret=read_secret(options.secret_file))
