"""``fullbloom build``: a filter's file from lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.filters.world import add_world
from fullbloom.cli.io.roles import require_different
from fullbloom.cli.options import QUIET, BuildOptions, add_hashes, add_inputs, add_records, add_shape

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Seen

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "write a filter of all lines to a file"
DETAIL = """Without --capacity, regular files are read twice: to count their lines, then to add them.
A pipe makes a filter that grows. The file appears when it is whole. --kind names another structure of
"fullbloom plan"; one that counts gets every line, a table each different line once. A static one, such
as "fullbloom plan --needs static" lists, is made of all lines at once, read once: --threads work at it,
and beyond half of --memory hashes wait in a nameless file of the folder for temporary files. One that
tells two sets apart needs the other set, too (--except), and answers for lines of the two only. One
that maps is made of lines of a key, a tab and a whole number."""
EXAMPLE = "fullbloom build --fpr 1e-3 words.bloom words.txt"
FPR = 0.01
_FIRST_STAGE = 1 << 16
#: Lines that may have been found wrongly without a word: one in a hundred runs.
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
    add_world(parser)
    add_records(parser)
    add_hashes(parser)


def run(options: BuildOptions) -> int:
    """Build and save."""
    from fullbloom.cli.filters.files import save
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.report import report
    from fullbloom.cli.stops import Stops

    _check(options)
    with Stops() as stops:
        inputs = sources(options.files)
        blocks = Blocks(inputs, stops, longest=options.longest_line)
        progress = Progress(blocks, quiet=options.quiet)
        if options.structure.is_world:
            from fullbloom.cli.filters.world import built_of_two

            seen, lines = built_of_two(options, stops, progress)
        elif options.structure.is_map:
            from fullbloom.cli.filters.pairs import built_of_pairs

            seen, lines = built_of_pairs(options, options.fpr or FPR, blocks, stops, progress)
        elif options.structure.is_static:
            from fullbloom.cli.filters.static import built

            seen, lines = built(options, options.fpr or FPR, blocks, inputs, stops, progress)
        else:
            seen, lines = _fill(options, blocks, inputs, stops, progress)
        progress.clear()
        save(seen, options.out)
    stats: dict[str, Any] = {"file": options.out, "lines": lines, **seen.info()}
    rate = seen.fpr()
    # A new line that a filter wrongly found was not counted.
    missed = 0.0 if options.structure.is_built_at_once or seen.num_added >= lines else lines * rate
    about = "about " if missed > _MISSED else ""
    told = f"{lines:,} lines read, {about}{seen.num_added:,} different; rate now {rate:.3g}"
    if options.structure.is_world:
        told = (
            f"{lines:,} lines read, {seen.num_included:,} different in it, {seen.num_excluded:,} in the other"
        )
    report(options, stats, [f"{options.out}: {seen!r}", told], stdout_is_free=True)
    return 0


def _fill(options: BuildOptions, blocks: Any, inputs: Any, stops: Any, progress: Any) -> tuple[Seen, int]:
    """Return a filter to which all lines were added, and how many there are."""
    from fullbloom.cli.filters.fill import fill
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources

    capacity = options.capacity
    if capacity is None and not options.structure.grows and all(source.repeatable for source in inputs):
        capacity = _count(options, blocks, progress)
        inputs = sources(options.files)
        blocks = Blocks(inputs, stops, longest=options.longest_line)
        progress.follow(blocks)
    seen = _empty(options, capacity)
    return seen, fill(options, seen, blocks, inputs, stops, progress)


def _check(options: BuildOptions) -> None:
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.pairs import check_pairs
    from fullbloom.cli.filters.static import check_options
    from fullbloom.cli.filters.world import check_world, refuse_world
    from fullbloom.cli.io.output import require_writable

    options.check_records()
    (check_world if options.structure.is_world else refuse_world)(options)
    if options.structure.is_map:
        check_pairs(options)
    check_options(options)
    if options.structure.forgets:
        raise Refusal(f"--kind {options.kind} forgets lines by design, so no file of it holds all lines")
    require_different([*options.files, *(options.rest or [])], {"OUT": options.out})
    require_writable(options.out)


def _count(options: BuildOptions, blocks: Any, progress: Any) -> int:
    if options.select:
        from fullbloom.cli.io.records import columnar

        if kind := columnar(options):
            from fullbloom.cli.io.columns import count

            return max(count(options.files, kind), 1)
    lines = 0
    for block in blocks:
        data = bytes(block)
        lines += data.count(b"\n") + (not data.endswith(b"\n"))
        progress.show()
    return max(lines, 1)


def _empty(options: BuildOptions, capacity: int | None) -> Seen:
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.make import growing, sized

    fpr = options.fpr or FPR
    if options.structure.grows:
        return growing(options, options.capacity or _FIRST_STAGE, fpr, quick=False)
    if capacity is None:
        if options.kind is not None:
            raise Refusal(
                f"--kind {options.kind} has a fixed size, and a pipe cannot be counted first: give --capacity"
            )
        return growing(options, _FIRST_STAGE, fpr, quick=False)
    return sized(options, capacity, fpr, quick=False)
