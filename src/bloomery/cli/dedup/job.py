"""The work of ``bloomery dedup``: inputs, filter, outputs and state, around a pass over the lines."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol

from bloomery.cli.dedup.outputs import Outputs
from bloomery.cli.dedup.sizing import Sizing, block_size
from bloomery.cli.filters.kinds import FORGETS, forgets, row_of
from bloomery.cli.filters.state import State
from bloomery.cli.io.blocks import Blocks
from bloomery.cli.io.sources import require_repeatable, sources
from bloomery.cli.progress import Progress
from bloomery.cli.report import note
from bloomery.cli.stops import Stops
from bloomery.errors import CapacityWarning
from bloomery.recipes.dedup import Tally

if TYPE_CHECKING:
    import argparse


class Pass(Protocol):
    """Reads the inputs of its job once or twice, and writes its outputs."""

    def run(self) -> None:
        """Read to the end."""


class Job:
    """One run; its fields are what passes work with and the report tells."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Open inputs and filter; nothing is written yet."""
        self.args = args
        self.stops = Stops()
        self.tally = Tally()
        self.without_key = 0
        self.inputs = sources(args.files)
        if args.verify:
            require_repeatable(self.inputs, "--verify")
        self.blocks = Blocks(self.inputs, self.stops, size=block_size(args.memory))
        self.progress = Progress(self.blocks, quiet=args.quiet)
        self.state = State(args.state, args) if args.state else None
        self.outputs = Outputs(args)
        self.sizing = Sizing(args)
        self.seen = self.sizing.filter(self.state, self.blocks)

    def rewind(self) -> None:
        """Go back to the start of the inputs."""
        self.inputs = sources(self.args.files)
        self.blocks = Blocks(self.inputs, self.stops, size=block_size(self.args.memory))
        self.progress.follow(self.blocks)

    def run(self, work: Pass) -> None:
        """Read and write; then give files their names and save the state, in this order.

        What is written and cannot be taken back is in the state however the run ends; what is
        discarded is not.
        """
        if forgets(self.seen):
            note(self.args, FORGETS.format(row_of(self.seen)["name"]))
        try:
            self.outputs.open()
            # The report says it, with the remedies of this command.
            warnings.simplefilter("ignore", CapacityWarning)
            work.run()
            self.outputs.commit(durable=self.state is not None)
            if self.state:
                self.state.save(self.seen)
        except BaseException:
            discarded = self.outputs.discardable
            self.outputs.discard()
            if self.state and not discarded:
                self.state.save(self.seen)
            raise
        finally:
            self.progress.clear()
            if self.state:
                self.state.drop_working_copy()
