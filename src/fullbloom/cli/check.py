"""``fullbloom check``: which lines a filter holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.options import add_hashes, add_inputs, add_records, add_secret
from fullbloom.cli.reading import has_records, tell_faults

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.records import Records
    from fullbloom.cli.io.typed import Typed
    from fullbloom.cli.progress import Progress

HELP = "print the lines that a filter holds"
DETAIL = """Exit code 0: all lines were found (wrongly, for some, with the filter's rate); 1: some are
certainly absent; 2: an error. A FILTER that tells two sets apart answers for lines of these only. With
--hex and --sha1-of no line is printed, nor shown where it is typed on a terminal: the exit code answers,
and the numbers of --count and --json."""
EXAMPLE = "fullbloom check words.bloom --absent typed.txt"
QUIET = "print nothing and stop at the first absent line: the exit code answers"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom wrote")
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
    add_records(parser)
    add_hashes(parser)


def run(args: argparse.Namespace) -> int:
    """Look all lines up; return 0 when none was absent, else 1."""
    from fullbloom.cli.failures import refuse_idle_options
    from fullbloom.cli.filters.files import load
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.io.typed import Typed, is_typed
    from fullbloom.cli.limits import longest_line
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.report import note, report
    from fullbloom.cli.stops import Stops

    refuse_idle_options(args)
    seen = load(args.filter, args, verify=args.verify, adds=False)
    _check_values(args, seen)
    secret = args.hex or args.sha1_of
    output = None if args.count or args.quiet or secret else Output(None)
    with Stops() as stops:
        typed = secret and is_typed(args.files)
        inputs = [] if typed else sources(args.files)
        blocks = Typed(stops) if typed else Blocks(inputs, stops, longest=longest_line(args))
        progress = Progress(blocks, quiet=args.quiet)
        if has_records(args):
            from fullbloom.cli.io.records import Records

            keys_only = output is None
            read = Records(args, inputs, stops, seen, longest=longest_line(args), keys_only=keys_only)
            lines, found = _records_looked_up(args, read, output, progress)
            tell_faults(args, read)
        else:
            lines, found = _looked_up(args, seen, blocks, output, progress)
        progress.clear()
    if secret and not (args.count or args.json):
        note(args, f"{found:,} of {lines:,} found")
    stats = {
        "lines": lines,
        "found": found,
        "absent": lines - found,
        "fpr": seen.fpr() if args.json else None,
    }
    if args.json or args.count:
        report(args, stats, [str(lines - found if args.absent else found)], stdout_is_free=not output)
    return 0 if found == lines else 1


def _check_values(args: argparse.Namespace, seen: Seen) -> None:
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.kinds import maps, row_of

    if not args.values:
        return
    if row_of(seen) not in maps():
        raise Refusal(f"{args.filter}: a {type(seen).__name__} has no values; drop --values")
    for option in ("absent", "select", "hex", "sha1_of"):
        if getattr(args, option):
            raise Refusal(f"--values and --{option.replace('_', '-')} exclude each other; drop one of them")


def _looked_up(
    args: argparse.Namespace, seen: Seen, blocks: Blocks | Typed, output: Output | None, progress: Progress
) -> tuple[int, int]:
    """Print what is asked for; return (lines, lines found)."""
    from fullbloom import _core
    from fullbloom.cli.io.hashes import keys_of

    lines = found = 0
    if args.values:
        from fullbloom.cli.filters.pairs import write_values
    for block in keys_of(args, blocks):
        if args.values:
            records, hits = write_values(seen, block, output)
        else:
            records, hits, inside, outside = _core.check_lines(
                seen, block, found=bool(output) and not args.absent, absent=bool(output) and args.absent
            )
            if output:
                output.write(inside or outside or b"")
        lines, found = lines + records, found + hits
        if args.quiet and not args.json and found < lines:
            break
        progress.show()
    return lines, found


def _records_looked_up(
    args: argparse.Namespace, read: Records, output: Output | None, progress: Progress
) -> tuple[int, int]:
    """As `_looked_up`, of records; one without a key is absent."""
    lines = found = 0
    for batch in read:
        hits, inside, outside = batch.records.check(
            read.seen, found=bool(output) and not args.absent, absent=bool(output) and args.absent
        )
        lines, found = lines + len(batch.records) - batch.records.faults, found + hits
        if output:
            output.write(batch.kept(outside if args.absent else inside))
        if args.quiet and not args.json and found < lines:
            break
        progress.show()
    return lines, found
