"""``fullbloom seen``: find repeated lines in a live stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.io.output import require_different
from fullbloom.cli.options import QUIET, StateOptions, add_inputs, add_records, add_shape, add_state
from fullbloom.cli.window import Window, parse_window

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.filters.overfull import WindowClock
    from fullbloom.cli.filters.state import State
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.printers import Printer

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "filter a live stream by the lines seen before"
DETAIL = """Every line is processed as soon as it is complete. With --state the filter is kept from run to
run; it is saved every --save-every seconds and at the end, also on Ctrl-C and on a closed pipe. A
--kind that forgets by design passes a line as new when the last one like it is long ago: give it a
--window, of time (90s, 15min, 1h, 7d) or of different lines (1000000, 1M). A line is remembered for at
least one window after it came last, and for at most two. Time is that of this machine when a line comes."""
EXAMPLE = "tail -F app.log | fullbloom seen --state seen.bloom --new-only"
FPR = 1e-6
_FIRST_STAGE = 1 << 16
_BLOCK = 1 << 16
#: A clock that is behind by fewer seconds is not reported.
_SET_BACK = 1.0
#: Lines in a window of time without --expected: 11 MiB at a millionth.
_IN_WINDOW = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SeenOptions(StateOptions):
    """Options of ``fullbloom seen``."""

    new_only: bool
    old_only: bool


OPTIONS = SeenOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_inputs(parser)
    add_state(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--new-only", action="store_true", help="print lines that are new (default)")
    group.add_argument("--old-only", action="store_true", help="print lines that were seen before")
    group.add_argument("--mark", action="store_true", help='print all lines, after "new" or "old" and a tab')
    parser.add_argument(
        "--expected",
        type=units.count,
        metavar="N",
        help="number of different lines to expect; by default 1M in a --window of time",
    )
    parser.add_argument(
        "--window",
        type=parse_window,
        metavar="LENGTH",
        help="remember a line for this time, such as 15min, or until so many other lines came, such as 1M",
    )
    add_shape(parser, fpr=FPR, seed="default: drawn for each run, as a secret without --state")
    add_records(parser)


def run(options: SeenOptions) -> int:
    """Print lines until the input ends."""
    from fullbloom.cli.filters.kinds import warn_of_forgetting
    from fullbloom.cli.filters.overfull import WindowClock
    from fullbloom.cli.filters.state import open_state
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.records import Records
    from fullbloom.cli.io.sources import open_sources
    from fullbloom.cli.report import note, note_faults, report
    from fullbloom.cli.stops import Stops

    options.check_records()
    require_different(options.files, {"the answers": "-", "--state": options.state})
    inputs = open_sources(options.files)
    with open_state(options) as state, Stops() as stops:
        output = Output(None)
        seen = state.load() if state and state.exists else _create_filter(options)
        warning = warn_of_forgetting(seen)
        if warning and options.window is None:
            note(options, warning)
        clock = WindowClock(seen)
        if clock.behind > _SET_BACK:
            late = units.duration_text(clock.behind)
            note(options, f"the clock is {late} behind that of the state: its lines are remembered longer")
        tick = options.save_every if state else None
        how: dict[str, Any] = {"size": _block_size(seen), "longest": options.longest_line, "tick": tick}
        blocks: Blocks | Records = Blocks(inputs, stops, **how)
        if options.has_records:
            blocks = Records(options, inputs, stops, seen, **how)
        try:
            lines, new, lost = _print_all(_create_printer(options, seen, output), blocks, state, clock)
        except BaseException:
            if state and (state.exists or seen.num_added):  # an input that is refused creates no state
                state.save(seen)
            raise
        if state:
            state.save(seen)
        if isinstance(blocks, Records):
            note_faults(options, blocks)
    stats = {"lines": lines, "new": new, "old": lines - new, "filter_count": seen.num_added}
    report(
        options, stats, [f"{lines:,} lines, {new:,} new, {lines - new:,} seen before"], stdout_is_free=False
    )
    return 1 if _warn_if_overfull(seen, lines, new, lost) or clock.warn_if_overfull() else 0


def _block_size(seen: Filter) -> int:
    """Return the bytes of a block, whose lines are all looked up before the first is added: none ages."""
    # A different line takes 4 bytes or more, except for 16,000 of them: at most a 16th of the window.
    return min(_BLOCK, max(seen.capacity // 4, 1)) if is_forgetful(seen) else _BLOCK


def _warn_if_overfull(seen: Filter, lines: int, new: int, lost: float) -> bool:
    """Warn, with ``--quiet`` too, of more false positives than --fpr allows; return whether there are."""
    from fullbloom.cli.filters.overfull import most_lost
    from fullbloom.cli.report import complain

    most = most_lost(seen, new, lost, lines - new)
    if most:
        text = f"the filter holds {seen.num_added:,} lines and was sized for {seen.capacity:,}"
        complain(f"{text}: up to {most:,.0f} lines treated as old may be new; give more --expected")
    return bool(most)


def _create_filter(options: SeenOptions) -> Filter:
    from fullbloom.cli.filters.create import create_growing, create_sized

    # SipHash: 1 to 18 % of a whole run. A state cannot use a secret that is not kept.
    options = options.draw_hash(keyed=options.state is None)
    if options.window is not None:
        return _create_windowed(options, options.window)
    if options.expected is not None:
        if options.structure.is_growing:
            raise Refusal(f"--kind {options.kind} grows: it does not take --expected")
        return create_sized(options, options.expected, options.fpr or FPR, quick=True)
    if options.kind is not None and not options.structure.is_growing:
        raise Refusal(f"--kind {options.kind} has a fixed size: give --expected")
    return create_growing(options, _FIRST_STAGE, options.fpr or FPR, quick=True)


def _create_windowed(options: SeenOptions, window: Window) -> Filter:
    from fullbloom.cli.filters.create import create_windowed
    from fullbloom.cli.filters.kinds import list_windowed

    known = [row["name"] for row in list_windowed()]
    if options.kind is None:
        options = replace(options, kind=known[0])
    if options.kind not in known:
        raise Refusal(f"--kind {options.kind} has no --window; {' and '.join(known)} have one")
    if window.lines is not None and options.expected is not None:
        raise Refusal("--window counts lines here, so it says how many to expect: drop --expected")
    return create_windowed(options, window, options.expected or _IN_WINDOW, options.fpr or FPR)


def _create_printer(options: SeenOptions, seen: Filter, output: Output) -> Printer[Any]:
    from fullbloom.cli.printers import LinePrinter, RecordPrinter

    mode = "mark" if options.mark else "old" if options.old_only else "new"
    if options.has_records:
        return RecordPrinter(seen, output, mode)
    return LinePrinter(seen, output, mode, is_saved=options.state is not None)


def _print_all(
    printer: Printer[Any], blocks: Iterable[Any], state: State | None, clock: WindowClock
) -> tuple[int, int, float]:
    """Print all lines, saving the state from time to time; return lines, new lines, and new ones lost."""
    from fullbloom.recipes.dedup import Load

    lines, new, lost = 0, 0, 0.0
    # A filter that forgets is never overfull.
    load = None if is_forgetful(printer.seen) else Load(printer.seen)
    for block in blocks:
        clock.advance()
        for part in printer.parts(block, load):
            records, fresh = printer.print(part)
            lines, new = lines + records, new + fresh
            lost += load.count_lost(fresh, deferred=True) if load else 0.0
        clock.measure()
        if state:
            state.save_in_time(printer.seen)
    return lines, new, lost
