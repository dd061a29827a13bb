"""``fullbloom dedup``: drop repeated lines in bounded memory, order kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli.dedup.options import DedupOptions, check, configure
from fullbloom.cli.options import QUIET

if TYPE_CHECKING:
    from fullbloom.cli.dedup.job import Job, Pass

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "drop repeated lines, order kept, in bounded memory"
DETAIL = """A line that was not seen before is printed unchanged; a repeated one is dropped, and a new
one wrongly with a probability below --fpr. The filter is sized by --memory, by --expected, or
grows. The report on stderr states how many lines were probably dropped wrongly; with --verify none
are. A --kind that forgets by design prints a line again when the last one like it is long ago."""
EXAMPLE = "fullbloom dedup --memory 2G urls.txt > unique.txt"

OPTIONS = DedupOptions


def run(options: DedupOptions) -> int:
    """Do the job and report."""
    from fullbloom.cli.dedup.job import Job
    from fullbloom.cli.dedup.report import print_report
    from fullbloom.cli.filters.state import lock_output, open_state

    check(options)
    with (
        lock_output(options.output or "-", "--output"),
        lock_output(options.dupes_output or "-", "--dupes-output"),
        open_state(options) as state,
    ):
        job = Job(options, state)
        with job.stops:
            job.run(_choose_pass(job))
    return 0 if print_report(job) else 1


def _choose_pass(job: Job) -> Pass:
    """Return the pass over lines, or over records with a chosen key."""
    from fullbloom.recipes.dedup import keeps_copies

    options = job.options
    if options.has_records:
        from fullbloom.cli.dedup import selected

        if options.keep == "last":
            return selected.Last(job)
        if options.exact:
            return selected.Verified(job)
        return selected.Deferred(job) if job.state else selected.Direct(job)
    from fullbloom.cli.dedup import passes

    if options.exact:
        return passes.Verified(job)
    return passes.Deferred(job) if job.state or keeps_copies(job.seen) else passes.Direct(job)
