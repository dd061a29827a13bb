"""Passes over lines: they differ in when a line is added to the filter, and which lines are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import _core
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.filters.state import remember_printed
from fullbloom.cli.io.blocks import select_whole_lines
from fullbloom.cli.units import size_text
from fullbloom.recipes.dedup import Load, find_new_lines, keeps_copies, new_lines, remember

if TYPE_CHECKING:
    from fullbloom.cli.dedup.job import Job


class Direct:
    """A line is added when it is looked up: one pass over the bytes."""

    def __init__(self, job: Job) -> None:
        """Process the lines of ``job``."""
        self._job = job

    def run(self) -> None:
        """Read to the end."""
        job = self._job
        load = Load(job.seen)
        for block in job.blocks:
            for part in load.parts(block):
                records, kept, new, old = new_lines(part, job.seen, dropped=job.outputs.wants_dropped)
                job.outputs.keep(new)
                job.outputs.drop(old)
                job.tally.count(records, kept, load.count_lost(kept))
            job.progress.show()


class Deferred:
    """A line is added once it is written: for a state, and for filters that keep copies."""

    def __init__(self, job: Job) -> None:
        """Process the lines of ``job``."""
        self._job = job

    def run(self) -> None:
        """Read to the end."""
        job = self._job
        # Where adding again renews a line, lines that were seen are added too.
        renew = is_forgetful(job.seen)
        load = Load(job.seen)
        for block in job.blocks:
            dropped = job.outputs.wants_dropped or renew
            records, kept, new, old = find_new_lines(block, job.seen, dropped=dropped)
            self._write(new, old)
            self._remember(new)
            if renew:
                remember(old, job.seen)
            job.tally.count(records, kept, load.count_lost(kept, deferred=True))
            job.save_in_time()
            job.progress.show()

    def _write(self, new: bytes, old: bytes) -> None:
        """Write one block's lines; lines printed before either output fails are added to the state."""
        outputs, before = self._job.outputs, self._job.outputs.bytes_written
        try:
            outputs.keep(new)
            outputs.drop(old)
        except BaseException:  # a second signal, too
            if self._job.state:
                self._remember(select_whole_lines(new, outputs.bytes_written - before))
            raise

    def _remember(self, new: bytes) -> None:
        if self._job.state and self._job.outputs.is_direct:
            remember_printed(new, self._job.seen)
        else:
            remember(new, self._job.seen)


class Verified:
    """Exact: the first pass collects candidate duplicates, the second compares their bytes."""

    def __init__(self, job: Job) -> None:
        """Process the lines of ``job``."""
        self._job = job
        self._candidates = _core.CandidateDuplicates()

    def run(self) -> None:
        """Read to the end, twice."""
        job = self._job
        once = keeps_copies(job.seen)
        for block in job.blocks:
            self._candidates.collect(job.seen, block, once=once)
            check_memory(job, self._candidates.nbytes)
            job.progress.show()
        job.rewind()
        for block in job.blocks:
            dropped = job.outputs.wants_dropped
            records, kept, new, old = self._candidates.partition(block, dropped=dropped)
            job.outputs.keep(new or b"")
            job.outputs.drop(old or b"")
            job.tally.count(records, kept, 0.0)
            job.progress.show()


def check_memory(job: Job, nbytes: int) -> None:
    """Refuse candidate duplicates of ``nbytes`` that do not fit --memory."""
    limit = job.sizing.candidates
    if limit is not None and nbytes > limit:
        option = "--verify" if job.options.exact else "--keep last"
        raise Refusal(
            f"--memory {size_text(job.options.memory or limit)} does not hold the candidate duplicates "
            f"of {option}: so many lines repeat; raise it"
        )
