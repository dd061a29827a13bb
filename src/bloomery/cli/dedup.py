"""``bloomery dedup``: drop repeated lines in bounded memory, order kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery.cli import units
from bloomery.cli.failures import Refusal, refuse_idle_options
from bloomery.cli.parser import QUIET, add_inputs, add_records, add_shape
from bloomery.cli.roles import require_different

if TYPE_CHECKING:
    import argparse

    from bloomery.cli.dedup_job import Job

__all__ = ["DETAIL", "EXAMPLE", "HELP", "QUIET", "configure", "run"]

HELP = "drop repeated lines, order kept, in bounded memory"
DETAIL = """A line that was not seen before is printed unchanged; a repeated one is dropped, and a new
one wrongly with a probability below --fpr. The filter is sized by --memory, by --expected, or
grows. The report on stderr states how many lines were probably dropped wrongly; with --verify none
are. A --kind that forgets by design prints a line again when the last one like it is long ago."""
EXAMPLE = "bloomery dedup --memory 2G urls.txt > unique.txt"
#: One wrongly dropped line in a million; a tenth of that costs 4.8 bits a line more (classic).
FPR = 1e-6


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_inputs(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where the kept lines go; appears when it is whole"
    )
    parser.add_argument("--dupes-output", metavar="FILE", help="where the dropped lines go")
    parser.add_argument("--no-output", action="store_true", help="only count, or only learn with --state")
    parser.add_argument("--verify", action="store_true", help="exact: a second pass looks at suspects only")
    parser.add_argument(
        "--state", metavar="FILE", help="go on with this filter; made if missing, saved at the end"
    )
    parser.add_argument(
        "--memory", type=units.size, metavar="SIZE", help="memory of the whole process, such as 64M"
    )
    parser.add_argument(
        "--expected", type=units.count, metavar="N", help="number of different lines to expect"
    )
    add_shape(parser, fpr=FPR)
    add_records(parser)


def run(args: argparse.Namespace) -> int:
    """Do the job and report."""
    from bloomery.cli.dedup_job import Job
    from bloomery.cli.state import held

    _check(args)
    with held(args.state):
        job = Job(args)
        with job.stops:
            job.run()
    _report(args, job)
    return 0


def _check(args: argparse.Namespace) -> None:
    refuse_idle_options(args)
    if args.verify and args.state:
        raise Refusal("--verify reads all lines twice, so it cannot go with the --state of earlier lines")
    if args.no_output and args.output:
        raise Refusal("--no-output and --output exclude each other")
    output = None if args.no_output else args.output or "-"
    written = {"--output": output, "--dupes-output": args.dupes_output, "--state": args.state}
    require_different(args.files, written, replaced="--output")
    if args.kind is not None:
        _check_kind(args, args.kind)


def _check_kind(args: argparse.Namespace, kind: str) -> None:
    from bloomery.cli import filters

    if filters.grows(kind):
        if args.memory or args.expected:
            raise Refusal(f"--kind {kind} grows: it takes neither --memory nor --expected")
        return
    if not (args.memory or args.expected or args.state):
        raise Refusal(f"--kind {kind} has a fixed size: give --memory or --expected")
    if kind != "bloom" and args.memory and args.state:
        raise Refusal(f"--kind {kind} does not go with both --memory and --state; give --expected instead")
    if args.verify and filters.row_named(kind)["false_negatives"] == "by design":
        raise Refusal(f"--kind {kind} forgets lines by design, so --verify cannot be exact")


def _report(args: argparse.Namespace, job: Job) -> None:
    from bloomery.cli import filters, memory
    from bloomery.cli.report import note, report

    tally, seconds = job.tally, max(job.progress.seconds, 1e-9)
    lost = 0.0 if args.verify else tally.wrongly_dropped
    facts: dict[str, Any] = {
        "lines_in": tally.records,
        "lines_out": tally.kept,
        "dropped": tally.records - tally.kept,
        "expected_wrongly_dropped": lost,
        "exact": bool(args.verify),
        "bytes": job.blocks.taken,
        "seconds": seconds,
        "bytes_per_second": job.blocks.taken / seconds,
        "peak_memory": memory.peak(),
        "memory": args.memory,
        "filter": {"class": type(job.seen).__name__, "nbytes": job.seen.nbytes, "capacity": job.seen.capacity,
                   "target_fpr": job.seen.target_fpr, "layout": getattr(job.seen, "layout", None),
                   "num_added": job.seen.num_added},
        "state": args.state,
    }  # fmt: skip
    if args.select:
        facts["without_key"] = job.without_key
    lines = [
        f"lines in            {tally.records:,}",
        f"lines out           {tally.kept:,}",
        f"wrongly dropped     {'0 (verified)' if args.verify else f'{units.rate_text(lost)} expected'}",
        f"speed               {units.size_text(job.blocks.taken / seconds)}/s",
        f"peak memory         {units.size_text(facts['peak_memory'])}"
        + (f" of {units.size_text(args.memory)}" if args.memory else ""),
    ]
    if job.seen.num_added > job.seen.capacity and not filters.forgets(job.seen):
        note(args, f"the filter holds {job.seen.num_added:,} lines and was sized for {job.seen.capacity:,}; "
                   "give more --memory or --expected, or --verify")  # fmt: skip
    free = bool(args.no_output or args.output) and args.output != "-" and args.json
    report(args, facts, lines, stdout_is_free=free)
