"""``fullbloom insert``: more lines for a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli.io.roles import require_different
from fullbloom.cli.options import QUIET, RecordOptions, add_hashes, add_inputs, add_records, add_secret

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Seen

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "add lines to a filter's file"
DETAIL = """The file is replaced when all lines are in, so that it is the old one or the new whatever
happens; this takes memory for the whole filter. With --in-place the lines go into the file as it lies:
Ctrl-C leaves it sound with the lines so far, a kill or a crash leaves it to be opened anew by another
run with --in-place, and then some of the lines may be missing."""
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
    from fullbloom.cli.filters.fill import fill
    from fullbloom.cli.filters.state import held
    from fullbloom.cli.filters.types import warn_of_types
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.report import report
    from fullbloom.cli.stops import Stops

    options.check_records()
    require_different(options.files, {"FILTER": options.filter})
    inputs = sources(options.files)
    with held(options.filter, "FILTER"), Stops() as stops:
        seen = _opened(options)
        before, types = seen.num_added, seen.key_domains
        blocks = Blocks(inputs, stops, longest=options.longest_line)
        progress = Progress(blocks, quiet=options.quiet)
        try:
            lines = fill(options, seen, blocks, inputs, stops, progress)
            progress.clear()
            warn_of_types(types, seen)
            stats: dict[str, Any] = {"file": options.filter, "lines": lines, "new": seen.num_added - before}
            stats |= seen.info()
            shown = repr(seen)
            if not options.in_place:
                seen.save(options.filter)
        finally:
            if options.in_place:
                seen.close()  # what was added is whole in the file
    told = f"{lines:,} lines read, {stats['new']:,} new"
    report(options, stats, [f"{options.filter}: {shown}", told], stdout_is_free=True)
    return 0


def _opened(options: InsertOptions) -> Seen:
    """Return the filter of the file, every byte checked, as one that can be added to."""
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.files import load
    from fullbloom.cli.filters.kinds import forgets, row_of
    from fullbloom.cli.filters.secret import secret_from

    found = load(options.filter, options.secret_file, verify="header" if options.in_place else "full")
    row = row_of(found)
    if forgets(found):
        raise Refusal(
            f"{options.filter}: a {type(found).__name__} forgets lines by design; "
            "add to it with fullbloom seen --state"
        )
    if not options.in_place:
        return found.copy()
    if "write-in-place" not in row["capabilities"]:
        raise Refusal(f"{options.filter}: a {type(found).__name__} is not written in place; drop --in-place")
    found.close()
    return fullbloom.open(options.filter, mode="r+", secret=secret_from(options.secret_file))
