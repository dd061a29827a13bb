"""``bloomery seen``: has this line come by before? For live streams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bloomery.cli import units
from bloomery.cli.failures import Refusal
from bloomery.cli.parser import QUIET, add_inputs, add_shape
from bloomery.cli.roles import require_different

if TYPE_CHECKING:
    import argparse

    from bloomery.cli.filters import Seen
    from bloomery.cli.inputs import Blocks
    from bloomery.cli.output import Output
    from bloomery.cli.state import State

__all__ = ["DETAIL", "EXAMPLE", "HELP", "QUIET", "configure", "run"]

HELP = "filter a live stream by what came by before"
DETAIL = """Every line is answered as soon as it is whole. With --state the filter lives on from run to
run; it is saved every --save-every seconds and at the end, also on Ctrl-C and on a closed pipe. A
--kind that forgets by design passes a line as new when the last one like it is long ago."""
EXAMPLE = "tail -F app.log | bloomery seen --state seen.bloom --new-only"
FPR = 1e-6
_FIRST_STAGE = 1 << 16


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_inputs(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--new-only", action="store_true", help="print lines that are new (default)")
    group.add_argument("--old-only", action="store_true", help="print lines that came by before")
    group.add_argument("--mark", action="store_true", help='print all lines, behind "new" or "old" and a tab')
    parser.add_argument("--state", metavar="FILE", help="go on with this filter; made if missing")
    parser.add_argument(
        "--save-every",
        type=units.seconds,
        default=60.0,
        metavar="SECONDS",
        help="save the state (default 60)",
    )
    parser.add_argument(
        "--expected", type=units.count, metavar="N", help="number of different lines to expect"
    )
    add_shape(parser, fpr=FPR)


def run(args: argparse.Namespace) -> int:
    """Answer until the input ends."""
    from bloomery.cli import filters
    from bloomery.cli.inputs import Blocks, sources
    from bloomery.cli.output import Output
    from bloomery.cli.report import note, report
    from bloomery.cli.state import State, held
    from bloomery.cli.stops import Stops

    require_different(args.files, {"the answers": "-", "--state": args.state})
    inputs = sources(args.files)
    with held(args.state), Stops() as stops:
        output = Output(None)
        state = State(args.state, args) if args.state else None
        seen = state.load() if state and state.exists else _empty(args)
        if filters.forgets(seen):
            note(args, filters.FORGETS.format(filters.row_of(seen)["name"]))
        blocks = Blocks(inputs, stops, size=1 << 16, tick=args.save_every if state else None)
        try:
            lines, new = _answer(args, seen, blocks, output, state)
        finally:
            if state:
                state.save(seen)
    facts = {"lines": lines, "new": new, "old": lines - new, "filter_count": seen.num_added}
    report(args, facts, [f"{lines:,} lines, {new:,} new, {lines - new:,} seen before"], stdout_is_free=False)
    return 0


def _empty(args: argparse.Namespace) -> Seen:
    from bloomery.cli import filters

    if args.expected is not None:
        if filters.grows(args.kind):
            raise Refusal(f"--kind {args.kind} grows: it does not take --expected")
        return filters.sized(args, args.expected, args.fpr or FPR, quick=True)
    if args.kind is not None and not filters.grows(args.kind):
        raise Refusal(f"--kind {args.kind} has a fixed size: give --expected")
    return filters.growing(args, _FIRST_STAGE, args.fpr or FPR, quick=True)


def _answer(
    args: argparse.Namespace, seen: Seen, blocks: Blocks, output: Output, state: State | None
) -> tuple[int, int]:
    from bloomery import _core
    from bloomery.cli import filters
    from bloomery.cli.state import remember_printed
    from bloomery.recipes.dedup import fresh, keeps_copies, remember
    from bloomery.recipes.seen import mark_lines, old_lines

    lines = new = 0
    # Where adding again renews a line, lines that were seen are added too.
    renew = filters.forgets(seen)
    saved = time.monotonic()
    for block in blocks:
        if args.mark:
            records, fresh_ones, text = mark_lines(bytes(block), seen)
            output.write(text)
        elif args.old_only and keeps_copies(seen):
            records, fresh_ones, text = old_lines(bytes(block), seen)
            output.write(text)
        elif args.old_only:
            records, fresh_ones, _, text_or_none = _core.add_lines(seen, block, kept=False, dropped=True)
            output.write(text_or_none or b"")
        else:
            records, fresh_ones, text, known = fresh(block, seen, dropped=renew)
            before = output.written
            try:
                output.write(text)
            finally:  # only what went out is remembered
                out = output.written - before
                whole = text if out == len(text) else text[: text.rfind(b"\n", 0, out) + 1]
                (remember_printed if state else remember)(whole, seen)
                remember(known, seen)
        lines, new = lines + records, new + fresh_ones
        if state and time.monotonic() - saved >= args.save_every:
            state.save(seen)
            saved = time.monotonic()
    return lines, new
