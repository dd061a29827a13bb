"""``fullbloom build``: write a filter of all lines to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import registry
from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import list_two_set_kinds
from fullbloom.cli.io.output import require_different, require_writable
from fullbloom.cli.options import (
    BUILD_FPR,
    OWN_MEMORY,
    QUIET,
    BuildOptions,
    add_hashes,
    add_inputs,
    add_records,
    add_shape,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "write a filter of all lines to a file"
DETAIL = """Without --capacity, regular files are read twice: to count their lines, then to add them.
A pipe builds a filter that grows. The file is written atomically. --kind names another structure of
"fullbloom plan"; one that counts gets every line, a table each different line once. A static one, such
as "fullbloom plan --needs static" lists, is built from all lines at once, read once, by --threads; hashes
beyond half of --memory wait in a nameless file of the folder for temporary files. One that separates two
sets needs the other set, too (--except), and answers for lines of the two only. One that maps is built
from lines of a key, a tab and a whole number."""
EXAMPLE = "fullbloom build --fpr 1e-3 words.bloom words.txt"
#: The report says "about" if more lines than this may have been found wrongly: one in a hundred runs.
_MISSED = 0.01
OPTIONS = BuildOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="OUT", help="the file to write")
    add_inputs(parser)
    parser.add_argument(
        "--capacity", type=units.count, metavar="N", help="number of different lines to expect"
    )
    parser.add_argument(
        "--memory", type=units.size, metavar="SIZE", help="memory of the whole process, for a static --kind"
    )
    add_shape(parser, fpr=BUILD_FPR, seed="default 0", builds=True)
    _add_two_sets(parser)
    add_records(parser)
    add_hashes(parser)


def _add_two_sets(parser: argparse.ArgumentParser) -> None:
    """Add the options of a --kind that separates two sets."""
    rows = list_two_set_kinds()
    names = [row["name"] for row in rows]
    levels = list(dict.fromkeys(name for row in rows for name in registry.get_class(row).kinds()))
    group = parser.add_argument_group(f"two sets, of --kind {' or '.join(names)}")
    group.add_argument(
        "--except",
        dest="rest",
        action="append",
        metavar="FILE",
        help="the other set, all other lines that will ever be looked up; may be repeated",
    )
    group.add_argument(
        "--levels",
        choices=levels,
        metavar="NAME",
        help=f"kind of the levels: {', '.join(levels)} (default bloom)",
    )
    group.add_argument(
        "--like",
        metavar="OLD",
        help="an earlier version, whose seed, secret and levels are reused, for a short fullbloom delta",
    )


def run(options: BuildOptions) -> int:
    """Build and save."""
    from fullbloom.cli.filters.builders import create_builder
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.io.hashes import record_digests
    from fullbloom.cli.io.output import save_filter
    from fullbloom.cli.io.reader import Reader
    from fullbloom.cli.report import report
    from fullbloom.cli.stops import Stops

    _check(options)
    structure = options.structure
    with lock_output(options.out), Stops() as stops:
        reader = Reader(options, stops, rest=options.rest, counts=options.needs_count)
        builder = create_builder(options, reader)
        seen, lines = builder.build()
        reader.progress.clear()
        record_digests(options, seen)
        save_filter(seen, options.out)
    stats: dict[str, Any] = {"file": options.out, "lines": lines, **seen.info()}
    rate = seen.fpr()
    # A new line that the filter wrongly found was not counted.
    missed = 0.0 if structure.is_built_at_once or seen.num_added >= lines else lines * rate
    about = "about " if missed > _MISSED else ""
    text = f"{lines:,} lines read, {about}{seen.num_added:,} different; rate now {rate:.3g}"
    if structure.is_two_set:
        text = (
            f"{lines:,} lines read, {seen.num_included:,} different in it, {seen.num_excluded:,} in the other"
        )
    report(options, stats, [f"{options.out}: {seen!r}", text], stdout_is_free=True)
    return 0


def _check(options: BuildOptions) -> None:
    """Refuse options that contradict each other or --kind, and files that cannot be written."""
    options.check_records()
    _check_kind(options)
    if options.structure.is_forgetful:
        raise Refusal(f"--kind {options.kind} forgets lines by design, so no file of it holds all lines")
    require_different([*options.files, *(options.rest or [])], {"OUT": options.out})
    require_writable(options.out)


def _check_kind(options: BuildOptions) -> None:
    kind, structure = options.kind, options.structure
    unused: dict[str, object]
    if structure.is_two_set:
        _check_two_sets(options)
    else:
        names = " or ".join(row["name"] for row in list_two_set_kinds())
        unused = {"--except": options.rest, "--levels": options.levels, "--like": options.like}
        _refuse_unused(unused, f"is of use with --kind {names} only")
    if structure.is_map:
        why = f"is of no use with --kind {kind}, which is built from lines of a key, a tab and a number"
        unused = {"--select": options.select, "--hex": options.hex, "--sha1-of": options.sha1_of}
        _refuse_unused({**unused, "--memory": options.memory}, why)
    if not structure.is_built_at_once:
        _refuse_unused({"--memory": options.memory}, "is of use with a static --kind only")
        return
    if options.capacity is not None and not structure.has_capacity:
        raise Refusal(f"--kind {kind} counts its lines itself; drop --capacity")
    if options.layout != "auto" and options.rest is None:
        raise Refusal(f"--kind {kind} has no layout {options.layout}; it has none to choose")
    if options.memory is not None and (options.work_memory or 0) <= 0:
        least, given = units.size_text(2 * OWN_MEMORY), units.size_text(options.memory)
        raise Refusal(f"--memory must be above {least}, got {given}")


def _check_two_sets(options: BuildOptions) -> None:
    if options.rest is None:
        raise Refusal(
            f"--kind {options.kind} is built from two sets: give --except FILE, the lines that are not in it"
        )
    if options.fpr is not None:
        raise Refusal(f"--kind {options.kind} has no false positives among its lines; drop --fpr")
    if [*(options.files or ["-"]), *options.rest].count("-") > 1:
        raise Refusal("standard input can be read once; give one of the two sets as a file")
    if options.like is not None:
        unused = {"--levels": options.levels, "--seed": options.seed}
        _refuse_unused(unused, f"is that of --like {options.like}")
        if options.layout != "auto":
            raise Refusal(f"--layout is that of --like {options.like}; drop it")


def _refuse_unused(options: Mapping[str, object], why: str) -> None:
    for option, value in options.items():
        if value is not None and value is not False:
            raise Refusal(f"{option} {why}; drop {option}")
