"""``fullbloom seen``: has this line come by before? For live streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.roles import require_different
from fullbloom.cli.options import QUIET, StateOptions, add_inputs, add_records, add_shape, add_state
from fullbloom.cli.window import Window, window

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from fullbloom.cli.answers import Answers
    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.filters.state import State
    from fullbloom.cli.filters.time import Time
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "filter a live stream by what came by before"
DETAIL = """Every line is answered as soon as it is whole. With --state the filter lives on from run to
run; it is saved every --save-every seconds and at the end, also on Ctrl-C and on a closed pipe. A
--kind that forgets by design passes a line as new when the last one like it is long ago: give it a
--window, of time (90s, 15min, 1h, 7d) or of different lines (1000000, 1M). A line is remembered for one
window after it came last, at least, and for two at most. Time is that of this machine when a line comes."""
EXAMPLE = "tail -F app.log | fullbloom seen --state seen.bloom --new-only"
FPR = 1e-6
_FIRST_STAGE = 1 << 16
_BLOCK = 1 << 16
#: A clock that is set right by less is not worth a line.
_SET_BACK = 1.0
#: Lines in a window of time where --expected does not say: 11 MiB at a millionth.
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
    group.add_argument("--old-only", action="store_true", help="print lines that came by before")
    group.add_argument("--mark", action="store_true", help='print all lines, behind "new" or "old" and a tab')
    parser.add_argument(
        "--expected",
        type=units.count,
        metavar="N",
        help="number of different lines to expect; in a --window of time 1M of them, unless given",
    )
    parser.add_argument(
        "--window",
        type=window,
        metavar="LENGTH",
        help="remember a line for this time, such as 15min, or until so many other lines came, such as 1M",
    )
    add_shape(parser, fpr=FPR, seed="default: drawn for each run, as a secret where there is no --state")
    add_records(parser)


def run(options: SeenOptions) -> int:
    """Answer until the input ends."""
    from fullbloom.cli.filters.kinds import warn_of_forgetting
    from fullbloom.cli.filters.state import open_state
    from fullbloom.cli.filters.time import Time
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.records import Records
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.report import note, note_faults, report
    from fullbloom.cli.stops import Stops

    options.check_records()
    require_different(options.files, {"the answers": "-", "--state": options.state})
    inputs = sources(options.files)
    with open_state(options) as state, Stops() as stops:
        output = Output(None)
        seen = state.load() if state and state.exists else _empty(options)
        warning = warn_of_forgetting(seen)
        if warning and options.window is None:
            note(options, warning)
        time = Time(seen)
        if time.behind > _SET_BACK:
            late = units.duration_text(time.behind)
            note(options, f"the clock is {late} behind that of the state: its lines are remembered longer")
        tick = options.save_every if state else None
        how: dict[str, Any] = {"size": _block(seen), "longest": options.longest_line, "tick": tick}
        blocks: Blocks | Records = Blocks(inputs, stops, **how)
        if options.has_records:
            blocks = Records(options, inputs, stops, seen, **how)
        try:
            lines, new, lost = _answer_all(_answers(options, seen, output), blocks, state, time)
        finally:
            if state:
                state.save(seen)
        if isinstance(blocks, Records):
            note_faults(options, blocks)
    stats = {"lines": lines, "new": new, "old": lines - new, "filter_count": seen.num_added}
    report(
        options, stats, [f"{lines:,} lines, {new:,} new, {lines - new:,} seen before"], stdout_is_free=False
    )
    return 1 if _overfull(seen, lines, new, lost) or time.crowded() else 0


def _block(seen: Seen) -> int:
    """Return the bytes of a block, whose lines are all looked up before the first is added: none ages."""
    from fullbloom.cli.filters.kinds import forgets

    # A different line takes 4 bytes or more, for all but 16,000 of them: a 16th of the window at most.
    return min(_BLOCK, max(seen.capacity // 4, 1)) if forgets(seen) else _BLOCK


def _overfull(seen: Seen, lines: int, new: int, lost: float) -> bool:
    """Say, with ``--quiet`` too, that more lines were wrongly answered than --fpr allows; return whether."""
    from fullbloom.cli.filters.overfull import most_lost
    from fullbloom.cli.report import complain

    most = most_lost(seen, new, lost, lines - new)
    if most:
        text = f"the filter holds {seen.num_added:,} lines and was sized for {seen.capacity:,}"
        complain(f"{text}: up to {most:,.0f} lines taken for old may be new; give more --expected")
    return bool(most)


def _empty(options: SeenOptions) -> Seen:
    from fullbloom.cli.filters.make import growing, sized

    # SipHash: 1 to 18 % of a whole run. A secret that nobody keeps is of no use to a state.
    options = options.draw_hash(keyed=options.state is None)
    if options.window is not None:
        return _windowed(options, options.window)
    if options.expected is not None:
        if options.structure.grows:
            raise Refusal(f"--kind {options.kind} grows: it does not take --expected")
        return sized(options, options.expected, options.fpr or FPR, quick=True)
    if options.kind is not None and not options.structure.grows:
        raise Refusal(f"--kind {options.kind} has a fixed size: give --expected")
    return growing(options, _FIRST_STAGE, options.fpr or FPR, quick=True)


def _windowed(options: SeenOptions, window: Window) -> Seen:
    from fullbloom.cli.filters import make
    from fullbloom.cli.filters.kinds import windowed

    known = [row["name"] for row in windowed()]
    if options.kind is None:
        options = replace(options, kind=known[0])
    if options.kind not in known:
        raise Refusal(f"--kind {options.kind} has no --window; {' and '.join(known)} have one")
    if window.lines is not None and options.expected is not None:
        raise Refusal("--window counts lines here, so it says how many to expect: drop --expected")
    return make.windowed(options, window, options.expected or _IN_WINDOW, options.fpr or FPR)


def _answers(options: SeenOptions, seen: Seen, output: Output) -> Answers[Any]:
    from fullbloom.cli import answers
    from fullbloom.cli.filters.state import remember_printed
    from fullbloom.recipes.dedup import remember

    if options.has_records:
        mode = "mark" if options.mark else "old" if options.old_only else "new"
        return answers.OfRecords(seen, output, mode)
    if options.mark:
        return answers.Marked(seen, output)
    if options.old_only:
        return answers.Old(seen, output)
    return answers.New(seen, output, remember_printed if options.state else remember)


def _answer_all(
    answers: Answers[Any], blocks: Iterable[Any], state: State | None, time: Time
) -> tuple[int, int, float]:
    """Answer every line, save the state from time to time; return lines, new lines, new ones not told."""
    from fullbloom.cli.filters.kinds import forgets
    from fullbloom.recipes.dedup import Load

    lines, new, lost = 0, 0, 0.0
    # What forgets is never too full.
    load = None if forgets(answers.seen) else Load(answers.seen)
    for block in blocks:
        time.pass_by()
        for part in answers.parts(block, load):
            records, fresh = answers.answer(part)
            lines, new = lines + records, new + fresh
            lost += load.lost(fresh, deferred=answers.deferred) if load else 0.0
        time.look()
        if state:
            state.save_in_time(answers.seen)
    return lines, new, lost
