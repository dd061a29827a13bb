"""``fullbloom build``: write a filter of all lines to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.static import add_two_sets, check_build_options
from fullbloom.cli.io.output import require_different, require_writable
from fullbloom.cli.options import QUIET, BuildOptions, add_hashes, add_inputs, add_records, add_shape

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.reader import Reader

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
FPR = 0.01
_FIRST_STAGE = 1 << 16
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
    add_shape(parser, fpr=FPR, seed="default 0", builds=True)
    add_two_sets(parser)
    add_records(parser)
    add_hashes(parser)


def run(options: BuildOptions) -> int:
    """Build and save."""
    from fullbloom.cli.filters.files import save
    from fullbloom.cli.filters.static import build_static
    from fullbloom.cli.io.reader import Reader
    from fullbloom.cli.report import report
    from fullbloom.cli.stops import Stops

    _check(options)
    structure = options.structure
    with Stops() as stops:
        reader = Reader(options, stops)
        if structure.is_built_at_once:
            seen, lines = build_static(options, options.fpr or FPR, reader)
        else:
            seen, lines = _build(options, options.fpr or FPR, reader)
        reader.progress.clear()
        save(seen, options.out)
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
    options.check_records()
    check_build_options(options)
    if options.structure.is_forgetful:
        raise Refusal(f"--kind {options.kind} forgets lines by design, so no file of it holds all lines")
    require_different([*options.files, *(options.rest or [])], {"OUT": options.out})
    require_writable(options.out)


def _build(options: BuildOptions, fpr: float, reader: Reader) -> tuple[Filter, int]:
    """Create a filter, add all lines, and return it with their number."""
    from fullbloom.cli.filters.create import create_growing, create_sized

    structure, capacity = options.structure, options.capacity
    if capacity is None and not structure.is_growing and all(source.repeatable for source in reader.inputs):
        capacity = _count(options, reader)
        reader.rewind(options.files)
    if structure.is_growing or capacity is None:
        if options.kind is not None and not structure.is_growing:
            raise Refusal(
                f"--kind {options.kind} has a fixed size, and a pipe cannot be counted first: give --capacity"
            )
        seen = create_growing(options, capacity or _FIRST_STAGE, fpr, quick=False)
    else:
        seen = create_sized(options, capacity, fpr, quick=False)
    return seen, reader.fill(seen, structure.row)


def _count(options: BuildOptions, reader: Reader) -> int:
    if options.select:
        from fullbloom.cli.io.records import find_columnar_format

        if kind := find_columnar_format(options):
            from fullbloom.cli.io.columns import count_rows

            return max(count_rows(options.files, kind), 1)
    lines = 0
    for block in reader.blocks:
        data = bytes(block)
        lines += data.count(b"\n") + (not data.endswith(b"\n"))
        reader.progress.show()
    return max(lines, 1)
