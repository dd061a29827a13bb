"""``fullbloom check``: test whether lines are in a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fullbloom.cli.foreign_options import KnownFilterOptions, add_known_records
from fullbloom.cli.options import add_hashes, add_inputs, add_secret

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Blocks, TypedLine
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.records import Records
    from fullbloom.cli.progress import Progress

HELP = "print the lines that a filter holds"
DETAIL = """Exit code 0: all lines were found (wrongly, for some, with the filter's rate); 1: some are
certainly absent; 2: an error. A FILTER that separates two sets answers for lines of these only. A FILTER
of another program reads lines as keys of its type. With --hex and --sha1-of no line is printed, nor shown
while it is typed on a terminal: use the exit code, --count or --json."""
EXAMPLE = "fullbloom check words.bloom --absent typed.txt"
QUIET = "print nothing and stop at the first absent line: use the exit code"


@dataclass(frozen=True, kw_only=True)
class CheckOptions(KnownFilterOptions):
    """Options of ``fullbloom check``."""

    absent: bool
    count: bool
    verify: Literal["header", "full"]
    values: bool


OPTIONS = CheckOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom or another program wrote")
    add_inputs(parser)
    parser.add_argument("--absent", action="store_true", help="print the absent lines instead")
    parser.add_argument("--count", action="store_true", help="print only how many lines would be printed")
    parser.add_argument(
        "--verify", choices=("header", "full"), default="header", help="how much of FILTER to check"
    )
    parser.add_argument(
        "--values", action="store_true", help="print found lines with a tab and what FILTER maps them to"
    )
    add_secret(parser)
    add_known_records(parser)
    add_hashes(parser)


def run(options: CheckOptions) -> int:
    """Look all lines up; return 0 if none is absent, else 1."""
    from fullbloom.cli.filters.foreign import is_foreign
    from fullbloom.cli.io.blocks import Blocks, TypedLine, is_typed
    from fullbloom.cli.io.hashes import warn_of_digests
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.sources import open_sources
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.report import note, note_faults, report
    from fullbloom.cli.stops import Stops

    options, seen = _open(options)
    _check_values(options, seen)
    secret = options.has_hashes
    output = None if options.count or options.quiet or secret else Output(None)
    with Stops() as stops:
        typed = secret and is_typed(options.files)
        inputs = [] if typed else open_sources(options.files)
        blocks = TypedLine(stops) if typed else Blocks(inputs, stops, longest=options.longest_line)
        progress = Progress(blocks, quiet=options.quiet)
        if options.has_records:
            from fullbloom.cli.io.records import Records

            keys_only = output is None
            read = Records(options, inputs, stops, seen, longest=options.longest_line, keys_only=keys_only)
            lines, found = _check_records(options, read, output, progress)
            note_faults(options, read)
        else:
            lines, found = _check_lines(options, seen, blocks, output, progress)
        progress.clear()
    if not is_foreign(seen):
        warn_of_digests(options, seen, lines=lines, found=found)
    if secret and not (options.count or options.json):
        note(options, f"{found:,} of {lines:,} found")
    stats = {
        "lines": lines,
        "found": found,
        "absent": lines - found,
        "fpr": seen.fpr() if options.json else None,
    }
    if options.json or options.count:
        report(options, stats, [str(lines - found if options.absent else found)], stdout_is_free=not output)
    return 0 if found == lines else 1


def _open(options: CheckOptions) -> tuple[CheckOptions, Filter]:
    """Return the filter, and the options as they apply to it."""
    from fullbloom.cli.filters.files import require_lines
    from fullbloom.cli.filters.foreign import is_foreign, open_any

    options.check_formats()
    seen = open_any(options.description, options.filter, options.secret_file, verify=options.verify)
    if is_foreign(seen):
        return options.for_foreign(seen), seen
    require_lines(seen, options.filter, adds=False)
    return options.for_own(), seen


def _check_values(options: CheckOptions, seen: Filter) -> None:
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.foreign import is_foreign
    from fullbloom.cli.filters.kinds import get_row, list_maps

    if not options.values:
        return
    if is_foreign(seen) or get_row(seen) not in list_maps():
        raise Refusal(f"{options.filter}: a {type(seen).__name__} has no values; drop --values")
    given = {"--absent": options.absent, "--select": options.select, "--hex": options.hex}
    given["--sha1-of"] = options.sha1_of
    for option, value in given.items():
        if value:
            raise Refusal(f"--values and {option} exclude each other; drop one of them")


def _check_lines(
    options: CheckOptions, seen: Filter, blocks: Blocks | TypedLine, output: Output | None, progress: Progress
) -> tuple[int, int]:
    """Look lines up and print those that the options select; return (lines, lines found)."""
    from fullbloom import _core
    from fullbloom.cli.io.hashes import hash_blocks

    lines = found = 0
    if options.values:
        from fullbloom.cli.filters.values import write_values
    for block in hash_blocks(options, blocks):
        if options.values:
            records, hits = write_values(seen, block, output)
        else:
            records, hits, inside, outside = _core.check_lines(
                seen, block, found=bool(output) and not options.absent, absent=bool(output) and options.absent
            )
            if output:
                output.write(inside or outside or b"")
        lines, found = lines + records, found + hits
        if options.quiet and not options.json and found < lines:
            break
        progress.show()
    return lines, found


def _check_records(
    options: CheckOptions, read: Records, output: Output | None, progress: Progress
) -> tuple[int, int]:
    """As `_check_lines`, for records; one without a key is absent."""
    lines = found = 0
    for batch in read:
        hits, inside, outside = batch.records.check(
            read.seen, found=bool(output) and not options.absent, absent=bool(output) and options.absent
        )
        lines, found = lines + len(batch.records) - batch.records.faults, found + hits
        if output:
            output.write(batch.join_kept(outside if options.absent else inside))
        if options.quiet and not options.json and found < lines:
            break
        progress.show()
    return lines, found
