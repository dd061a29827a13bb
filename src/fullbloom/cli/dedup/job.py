"""The work of ``fullbloom dedup``: inputs, filter, outputs and state, around a pass over the lines."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol

from fullbloom.cli.dedup.outputs import Outputs
from fullbloom.cli.dedup.sizing import Sizing, block_size, largest_window
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import warn_of_forgetting
from fullbloom.cli.io.blocks import Blocks
from fullbloom.cli.io.sources import open_sources, require_repeatable
from fullbloom.cli.progress import Progress
from fullbloom.cli.report import note
from fullbloom.cli.stops import Stops
from fullbloom.errors import CapacityWarning
from fullbloom.recipes.dedup import Tally

if TYPE_CHECKING:
    from fullbloom.cli.dedup.options import DedupOptions
    from fullbloom.cli.filters.state import State


class Pass(Protocol):
    """Reads the inputs of its job once or twice, and writes its outputs."""

    def run(self) -> None:
        """Read to the end."""


class Job:
    """One run: its fields are used by the passes and the report."""

    def __init__(self, options: DedupOptions, state: State | None) -> None:
        """Open inputs and filter; nothing is written yet."""
        self.options = options
        self.stops = Stops()
        self.tally = Tally()
        self.without_key = 0
        #: Records that cannot be read, with --skip-bad, and the error of the first.
        self.faults, self.first_fault = 0, ""
        self.block_size, self.longest = block_size(options.memory), options.longest_line
        self._open_inputs()
        self._first_pass: int | None = None
        self.progress = Progress(self.blocks, quiet=options.quiet)
        self.state = state
        self.outputs = Outputs(options)
        if not (self.state and self.state.exists):
            # A secret costs SipHash: 22 to 42 % of 5M lines, 0 to 3 % of 1M records.
            keyed = options.keyed or bool(options.select and not self.state)
            self.options = options = options.draw_hash(keyed=keyed)
        self.sizing = Sizing(options, self.inputs)
        self.seen = self.sizing.load(state) if state and state.exists else self.sizing.create(self.blocks)

    def _open_inputs(self) -> None:
        options = self.options
        self.inputs = open_sources(options.files, window=largest_window(options.memory))
        if options.reads_twice:
            require_repeatable(self.inputs, "--verify" if options.exact else "--keep last")
        self.blocks = Blocks(self.inputs, self.stops, size=self.block_size, longest=self.longest)

    def rewind(self) -> None:
        """Go back to the start of the inputs."""
        self._first_pass = self.blocks.bytes_read
        self._open_inputs()
        self.progress.follow(self.blocks)

    def _require_unchanged(self) -> None:
        """Refuse the result of two passes over unlike input: of new lines the second knows no duplicate."""
        if self._first_pass not in {None, self.blocks.bytes_read}:
            raise Refusal(
                "the input grew or shrank between its two passes, so the output may have duplicates or lack "
                "lines; run it again when nobody writes to the input"
            )

    def save_in_time(self) -> None:
        """Save the state from time to time, if all lines in it are printed and cannot be discarded."""
        if self.state and not self.outputs.is_discardable:
            self.state.save_in_time(self.seen)

    def run(self, work: Pass) -> None:
        """Read and write; then commit the outputs and save the state, in this order.

        However the run ends, the state contains the lines that were written and not discarded.
        """
        if warning := warn_of_forgetting(self.seen):
            note(self.options, warning)
        try:
            self.outputs.open()
            # The report warns of it, with the remedies of this command.
            warnings.simplefilter("ignore", CapacityWarning)
            work.run()
            self._require_unchanged()
            self.outputs.commit(durable=self.state is not None)
            if self.state:
                self.state.save(self.seen)
        except BaseException:
            discarded = self.outputs.is_discardable
            self.outputs.discard()
            # An input that is refused creates no state.
            if self.state and not discarded and (self.state.exists or self.seen.num_added):
                self.state.save(self.seen)
            raise
        finally:
            self.progress.clear()
            if self.state:
                self.state.drop_working_copy()
