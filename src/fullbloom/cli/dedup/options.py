"""The options of ``fullbloom dedup``, and which of them exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal, refuse_idle_options
from fullbloom.cli.io.roles import require_different
from fullbloom.cli.options import add_inputs, add_records, add_shape, add_state

if TYPE_CHECKING:
    import argparse

#: One wrongly dropped line in a million; a tenth of that costs 4.8 bits a line more (classic).
FPR = 1e-6


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_inputs(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where the kept lines go; appears when it is whole"
    )
    parser.add_argument("--dupes-output", metavar="FILE", help="where the dropped lines go")
    parser.add_argument("--no-output", action="store_true", help="only count, or only learn with --state")
    parser.add_argument(
        "--verify", action="store_true", help="exact: a second pass looks at candidate duplicates only"
    )
    parser.add_argument(
        "--keep",
        choices=("first", "last"),
        default="first",
        help="which of several lines or records with one key: the first, or by a second pass the last",
    )
    add_state(parser)
    parser.add_argument(
        "--memory", type=units.size, metavar="SIZE", help="memory of the whole process, such as 64M"
    )
    parser.add_argument(
        "--expected", type=units.count, metavar="N", help="number of different lines to expect"
    )
    add_shape(parser, fpr=FPR, seed="default: drawn for each run")
    parser.add_argument(
        "--keyed",
        action="store_true",
        help="draw a secret for this run, not a seed only: for lines of strangers (10 to 42 %% slower)",
    )
    add_records(parser)


def check(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before any work."""
    refuse_idle_options(args)
    if args.verify and args.state:
        raise Refusal("--verify reads all lines twice, so it cannot go with the --state of earlier lines")
    if args.keep == "last" and (args.state or args.verify):
        option = "--state" if args.state else "--verify"
        raise Refusal(f"--keep last reads all lines twice, and no line is lost by it: drop {option}")
    if args.no_output and args.output:
        raise Refusal("--no-output and --output exclude each other")
    for option, name in (("--output", args.output), ("--dupes-output", args.dupes_output)):
        if name == "":
            raise Refusal(f"{option} names a file, got an empty text; name one, or drop it")
    if args.keyed and (args.state or args.secret_file or args.seed is not None):
        raise Refusal(
            "--keyed draws a secret for one run: it goes with none of --state, --secret-file and --seed; "
            "give a --secret-file where the secret is needed again"
        )
    output = None if args.no_output else args.output or "-"
    written = {"--output": output, "--dupes-output": args.dupes_output, "--state": args.state}
    require_different(args.files, written, replaced="--output")
    if args.kind is not None:
        _check_kind(args, args.kind)


def _check_kind(args: argparse.Namespace, kind: str) -> None:
    from fullbloom import registry
    from fullbloom.cli.filters.kinds import grows

    row = registry.row_named(kind)
    if grows(kind):
        if args.memory or args.expected:
            raise Refusal(f"--kind {kind} grows: it takes neither --memory nor --expected")
        return
    if not (args.memory or args.expected or args.state):
        raise Refusal(f"--kind {kind} has a fixed size: give --memory or --expected")
    if "write-in-place" not in row["capabilities"] and args.memory and args.state:
        raise Refusal(f"--kind {kind} does not go with both --memory and --state; give --expected instead")
    if (args.verify or args.keep == "last") and registry.forgets(row):
        option = "--verify" if args.verify else "--keep last"
        raise Refusal(f"--kind {kind} forgets lines by design, so {option} cannot be exact")
