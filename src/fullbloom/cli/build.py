"""``fullbloom build``: a filter's file from lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.filters.world import add_world
from fullbloom.cli.io.roles import require_different
from fullbloom.cli.options import QUIET, add_hashes, add_inputs, add_records, add_shape

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Seen

__all__ = ["DETAIL", "EXAMPLE", "HELP", "QUIET", "configure", "run"]

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


def run(args: argparse.Namespace) -> int:
    """Build and save."""
    from fullbloom.cli.filters.files import save
    from fullbloom.cli.filters.kinds import is_map, is_static, is_world
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.limits import longest_line
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.report import report
    from fullbloom.cli.stops import Stops

    _check(args)
    with Stops() as stops:
        inputs = sources(args.files)
        blocks = Blocks(inputs, stops, longest=longest_line(args))
        progress = Progress(blocks, quiet=args.quiet)
        if is_world(args.kind):
            from fullbloom.cli.filters.world import built_of_two

            seen, lines = built_of_two(args, stops, progress)
        elif is_map(args.kind):
            from fullbloom.cli.filters.pairs import built_of_pairs

            seen, lines = built_of_pairs(args, args.fpr or FPR, blocks, stops, progress)
        elif is_static(args.kind):
            from fullbloom.cli.filters.static import built

            seen, lines = built(args, args.fpr or FPR, blocks, inputs, stops, progress)
        else:
            seen, lines = _filled(args, blocks, inputs, stops, progress)
        progress.clear()
        save(seen, args.out)
    stats: dict[str, Any] = {"file": args.out, "lines": lines, **seen.info()}
    rate = seen.fpr()
    about = "about " if _is_estimated(args.kind, seen, lines, rate) else ""
    told = f"{lines:,} lines read, {about}{seen.num_added:,} different; rate now {rate:.3g}"
    if is_world(args.kind):
        told = (
            f"{lines:,} lines read, {seen.num_included:,} different in it, {seen.num_excluded:,} in the other"
        )
    report(args, stats, [f"{args.out}: {seen!r}", told], stdout_is_free=True)
    return 0


def _is_estimated(kind: str | None, seen: Seen, lines: int, rate: float) -> bool:
    """Tell whether ``num_added`` may lack lines: a new one that a filter found wrongly was not counted."""
    from fullbloom.cli.filters.kinds import is_map, is_static

    if is_map(kind) or is_static(kind) or seen.num_added >= lines:
        return False
    return lines * rate > _MISSED


def _filled(
    args: argparse.Namespace, blocks: Any, inputs: Any, stops: Any, progress: Any
) -> tuple[Seen, int]:
    """Return a filter to which all lines were added, and how many there are."""
    from fullbloom.cli.filters.fill import fill
    from fullbloom.cli.filters.kinds import grows
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.limits import longest_line

    capacity = args.capacity
    if capacity is None and not grows(args.kind) and all(source.repeatable for source in inputs):
        capacity = _count(args, blocks, progress)
        inputs = sources(args.files)
        blocks = Blocks(inputs, stops, longest=longest_line(args))
        progress.follow(blocks)
    seen = _empty(args, capacity)
    return seen, fill(args, seen, blocks, inputs, stops, progress)


def _check(args: argparse.Namespace) -> None:
    from fullbloom import registry
    from fullbloom.cli.failures import Refusal, refuse_idle_options
    from fullbloom.cli.filters.kinds import is_map, is_static, is_world
    from fullbloom.cli.filters.pairs import check_pairs
    from fullbloom.cli.filters.static import check_options
    from fullbloom.cli.filters.world import check_world, refuse_world
    from fullbloom.cli.io.output import require_writable

    refuse_idle_options(args)
    world = is_world(args.kind)
    (check_world if world else refuse_world)(args)
    if is_map(args.kind):
        check_pairs(args)
    check_options(args, static=world or is_map(args.kind) or is_static(args.kind))
    if args.kind is not None and registry.forgets(registry.row_named(args.kind)):
        raise Refusal(f"--kind {args.kind} forgets lines by design, so no file of it holds all lines")
    require_different([*args.files, *(args.rest or [])], {"OUT": args.out})
    require_writable(args.out)


def _count(args: argparse.Namespace, blocks: Any, progress: Any) -> int:
    if args.select:
        from fullbloom.cli.io.records import columnar

        if kind := columnar(args):
            from fullbloom.cli.io.columns import count

            return max(count(args.files, kind), 1)
    lines = 0
    for block in blocks:
        data = bytes(block)
        lines += data.count(b"\n") + (not data.endswith(b"\n"))
        progress.show()
    return max(lines, 1)


def _empty(args: argparse.Namespace, capacity: int | None) -> Seen:
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.kinds import grows
    from fullbloom.cli.filters.make import growing, sized

    fpr = args.fpr or FPR
    if grows(args.kind):
        return growing(args, args.capacity or _FIRST_STAGE, fpr, quick=False)
    if capacity is None:
        if args.kind is not None:
            raise Refusal(
                f"--kind {args.kind} has a fixed size, and a pipe cannot be counted first: give --capacity"
            )
        return growing(args, _FIRST_STAGE, fpr, quick=False)
    return sized(args, capacity, fpr, quick=False)
