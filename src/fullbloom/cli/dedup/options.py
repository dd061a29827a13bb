"""The options of ``fullbloom dedup``, and which of them exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.output import require_different
from fullbloom.cli.options import StateOptions, add_inputs, add_records, add_shape, add_state

if TYPE_CHECKING:
    import argparse

#: One wrongly dropped line in a million; a tenth of that costs 4.8 bits per line more (classic).
FPR = 1e-6


@dataclass(frozen=True, kw_only=True)
class DedupOptions(StateOptions):
    """Options of ``fullbloom dedup``."""

    output: str | None
    dupes_output: str | None
    no_output: bool
    #: Draw a secret for this run.
    keyed: bool

    @property
    def reads_twice(self) -> bool:
        """Whether a second pass decides which lines are kept."""
        return self.exact or self.keep == "last"

    @property
    def needs_output_file(self) -> bool:
        """Whether columns can only be written to a file, because the state is saved once they are whole."""
        return bool(self.state) and not (self.output or self.no_output)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_inputs(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="where the kept lines go; written atomically")
    parser.add_argument("--dupes-output", metavar="FILE", help="where the dropped lines go")
    parser.add_argument("--no-output", action="store_true", help="only count, or only learn with --state")
    parser.add_argument(
        "--verify",
        dest="exact",
        action="store_true",
        help="exact: a second pass looks at candidate duplicates only",
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


def check(options: DedupOptions) -> None:
    """Refuse options that contradict each other, before any work."""
    options.check_records()
    if options.exact and options.state:
        raise Refusal("--verify reads all lines twice, so it cannot go with the --state of earlier lines")
    if options.keep == "last" and (options.state or options.exact):
        option = "--state" if options.state else "--verify"
        raise Refusal(f"--keep last reads all lines twice, and no line is lost by it: drop {option}")
    if options.no_output and options.output:
        raise Refusal("--no-output and --output exclude each other")
    for option, name in (("--output", options.output), ("--dupes-output", options.dupes_output)):
        if name == "":
            raise Refusal(f"{option} names a file, got an empty text; name one, or drop it")
    if options.keyed and (options.state or options.secret_file or options.seed is not None):
        raise Refusal(
            "--keyed draws a secret for one run: it goes with none of --state, --secret-file and --seed; "
            "give a --secret-file if the secret is needed again"
        )
    if options.kind is not None:
        _check_kind(options)
    output = None if options.no_output else options.output or "-"
    written = {"--output": output, "--dupes-output": options.dupes_output, "--state": options.state}
    require_different(options.files, written, replaced="--output")


def _check_kind(options: DedupOptions) -> None:
    kind, structure = options.kind, options.structure
    if structure.is_growing:
        if options.memory or options.expected:
            raise Refusal(f"--kind {kind} grows: it takes neither --memory nor --expected")
        return
    if not (options.memory or options.expected or options.state):
        raise Refusal(f"--kind {kind} has a fixed size: give --memory or --expected")
    if "write-in-place" not in structure.row["capabilities"] and options.memory and options.state:
        raise Refusal(f"--kind {kind} does not go with both --memory and --state; give --expected instead")
    if options.reads_twice and structure.is_forgetful:
        option = "--verify" if options.exact else "--keep last"
        raise Refusal(f"--kind {kind} forgets lines by design, so {option} cannot be exact")
