"""The work of ``bloomery dedup``: filter, passes, outputs, state."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from bloomery import BloomFilter, _core
from bloomery.cli import filters, memory
from bloomery.cli.dedup import FPR
from bloomery.cli.failures import Refusal
from bloomery.cli.inputs import Blocks, require_repeatable, sources
from bloomery.cli.output import Output
from bloomery.cli.progress import Progress
from bloomery.cli.report import note
from bloomery.cli.state import State, remember_printed
from bloomery.cli.stops import Stops
from bloomery.cli.units import size_text
from bloomery.errors import CapacityWarning
from bloomery.recipes.dedup import Load, Tally, fresh, keeps_copies, remember, sift

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Seen = filters.Seen

#: Half of a usual L2 cache: larger blocks leave it and are slower (720 MB/s, 4 MiB 560 MB/s).
_BLOCK = 1 << 18
_LEAST_BLOCK = 1 << 16
_LEAST_FILTER = 1 << 16
#: A budget leaves this share for what the warm-up does not show, such as freed memory in pieces.
_SLACK = 100
_GUESS_BYTES = 256 << 20
_FIRST_STAGE = 1 << 21


class Job:
    """One run; its fields are what the report tells."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Open inputs and filter; nothing is written yet."""
        self.args = args
        self.stops = Stops()
        self.tally = Tally()
        self.without_key = 0
        self.inputs = sources(args.files)
        if args.verify:
            require_repeatable(self.inputs, "--verify")
        size = _BLOCK
        if args.memory is not None:
            size = max(_LEAST_BLOCK, min(_BLOCK, args.memory // 256))
        self.blocks = Blocks(self.inputs, self.stops, size=size)
        self.progress = Progress(self.blocks, quiet=args.quiet)
        self.state = State(args.state, args) if args.state else None
        self.suspects_limit: int | None = None
        self.output: Output | None = None
        self.dupes: Output | None = None
        self.seen = self._filter(size)

    def _filter(self, block_size: int) -> Seen:
        args, fpr = self.args, self.args.fpr or FPR
        room = self._room(block_size) if args.memory is not None else None
        if self.state and self.state.exists:
            # Python is not the same size to the page every day: two hundredths stay within the promise.
            return self.state.load(None if room is None else room + 2 * args.memory // _SLACK)
        if room is not None:
            if args.verify:  # half for the filter, half for the hashes of suspects
                room = self.suspects_limit = room // 2
            if args.kind not in {None, "bloom"}:
                return filters.of_kind_in_memory(args, room, fpr)
            if args.expected is not None:
                return filters.in_memory_for(args, room, args.expected, fpr)
            return filters.in_memory(args, room, fpr)
        if args.expected is not None:
            return filters.sized(args, args.expected, fpr, quick=True)
        return filters.growing(args, self._guess(fpr), fpr, quick=True)

    def _room(self, block_size: int) -> int:
        """Return the bytes that the budget leaves to the filter, after a warm-up of all else."""
        import json  # noqa: F401 - the report's, before memory is measured

        block = os.urandom(block_size)
        scratch = BloomFilter(block_size, 0.01)
        _core.add_lines(scratch, block, kept=True, dropped=True)
        _core.add_lines(scratch, block, kept=True, dropped=bool(self.args.dupes_output))
        del scratch, block
        used = memory.peak() + self.args.memory // _SLACK
        if self.args.select:
            used += 8 << 20  # records, keys and answers of a batch, as Python objects
        least = (used + _LEAST_FILTER) * (_SLACK + 1) // _SLACK
        if self.args.memory < least:
            mebibytes = (
                -(-least // (1 << 20)) + 1
            )  # what Python itself takes differs a little from run to run
            raise Refusal(
                f"--memory {size_text(self.args.memory)} is too little: "
                f"the least is {mebibytes}M, most of it Python itself"
            )
        room: int = self.args.memory - used
        return room

    def _guess(self, fpr: float) -> int:
        """Return lines to make the first stage for: files tell by their size and first lines."""
        from bloomery.plan import least_fpr

        total = self.blocks.total
        if not total or any(source.path == "-" for source in self.inputs):
            return _FIRST_STAGE
        with Path(self.inputs[0].path).open("rb") as file:
            sample = file.read(_BLOCK)
        lines = sample.count(b"\n") + 1
        packed = 8 if sample.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")) else 1
        guess = int(packed * total * lines / max(len(sample), 1) * 1.05) + 1024
        most = 8 * _GUESS_BYTES * guess // _core.size_for("classic", guess, max(fpr / 2, least_fpr(guess)))[0]
        return min(guess, max(most, 1))

    def run(self) -> None:
        """Read, sift, write; then give files their names and save the state, in this order.

        What is written and cannot be taken back is in the state however the run ends; what is
        discarded is not.
        """
        if filters.forgets(self.seen):
            note(self.args, filters.FORGETS.format(filters.row_of(self.seen)["name"]))
        try:
            self._open_outputs()
            # The report says it, with the remedies of this command.
            warnings.simplefilter("ignore", CapacityWarning)
            self._pass()
            self._close_outputs()
            if self.state:
                self.state.save(self.seen)
        except BaseException:
            out = self.output is None or self.output.direct
            for output in (self.output, self.dupes):
                if output is not None:
                    output.discard()
            if self.state and out:
                self.state.save(self.seen)
            raise
        finally:
            self.progress.clear()
            if self.state:
                self.state.drop_working_copy()

    def _open_outputs(self) -> None:
        if not self.args.no_output:
            self.output = Output(self.args.output)
        if self.args.dupes_output:
            self.dupes = Output(self.args.dupes_output)

    def _close_outputs(self) -> None:
        for output in (self.output, self.dupes):
            if output is not None:
                output.commit(durable=self.state is not None)

    def _pass(self) -> None:
        if self.args.select:
            from bloomery.cli.dedup_records import select_pass

            select_pass(self)
        elif self.args.verify:
            self._verified()
        else:
            self._lines(fresh if self.state or keeps_copies(self.seen) else sift)

    def _lines(self, step: Callable[..., tuple[int, int, bytes, bytes]]) -> None:
        seen = self.seen
        # Where adding again renews a line, lines that were seen are added too.
        renew = step is fresh and filters.forgets(seen)
        dropped = self.dupes is not None or renew
        load = Load(seen)
        for block in self.blocks:
            records, kept, new, old = step(block, seen, dropped=dropped)
            self.emit(new, old)
            if step is fresh:
                self._remember(new)
            if renew:
                remember(old, seen)
            self.tally.count(records, kept, load.lost(kept))
            self.progress.show()

    def emit(self, new: bytes, old: bytes) -> None:
        """Write one block's lines; what a failed write did get out is remembered in the state."""
        try:
            before = self.output.written if self.output else 0
            if self.output and new:
                self.output.write(new)
        except OSError:
            if self.state and self.output:
                whole = new[: self.output.written - before].rfind(b"\n") + 1
                self._remember(new[:whole])
            raise
        if self.dupes and old:
            self.dupes.write(old)

    def _remember(self, new: bytes) -> None:
        out = self.state is not None and self.output is not None and self.output.direct
        (remember_printed if out else remember)(new, self.seen)

    def _verified(self) -> None:
        suspects = _core.Suspects()
        for block in self.blocks:
            suspects.note(self.seen, block, once=keeps_copies(self.seen))
            if self.suspects_limit is not None and suspects.nbytes > self.suspects_limit:
                raise Refusal(
                    f"--memory {size_text(self.args.memory)} does not hold the suspects of --verify: "
                    "so many lines repeat; raise it"
                )
            self.progress.show()
        self.blocks = Blocks(sources(self.args.files), self.stops, size=_BLOCK)
        self.progress.follow(self.blocks)
        for block in self.blocks:
            records, kept, new, old = suspects.sift(block, dropped=self.dupes is not None)
            self.emit(new or b"", old or b"")
            self.tally.count(records, kept, 0.0)
            self.progress.show()
