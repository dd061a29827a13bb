"""The report of ``fullbloom dedup``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.dedup.sizing import peak_memory
from fullbloom.cli.filters.overfull import is_overfull, most_lost
from fullbloom.cli.report import complain, note, report

if TYPE_CHECKING:
    from fullbloom.cli.dedup.job import Job
    from fullbloom.cli.dedup.options import DedupOptions


def print_report(job: Job) -> bool:
    """Print the report; return False if an overfull filter dropped more lines than --fpr allows.

    That warning is printed with ``--quiet``, too: the output lacks lines.
    """
    options, seen, stats = job.options, job.seen, _collect_stats(job)
    lines = _format_stats(options, stats)
    lost = stats["expected_wrongly_dropped"]
    exact = options.reads_twice
    most = 0.0 if exact else most_lost(seen, job.tally.kept, lost, stats["dropped"])
    if is_overfull(seen):
        text = f"the filter holds {seen.num_added:,} lines and was sized for {seen.capacity:,}"
        if most:
            share = f"{seen.fpr():.0%} of new lines"
            text += f": it treats {share} as duplicates, and dropped up to {most:,.0f} of them"
        warn = complain if most else partial(note, options)
        warn(f"{text}; give more --memory or --expected, or --verify")
    if job.faults:
        s = "" if job.faults == 1 else "s"
        note(options, f"{job.faults:,} record{s} left out; the first: {job.first_fault}")
    free = bool(options.no_output or options.output) and options.output != "-" and options.json
    report(options, stats, lines, stdout_is_free=free)
    return not most


def _collect_stats(job: Job) -> dict[str, Any]:
    options, tally, seen, seconds = job.options, job.tally, job.seen, max(job.progress.seconds, 1e-9)
    stats = {
        "lines_in": tally.records,
        "lines_out": tally.kept,
        "dropped": tally.records - tally.kept,
        "expected_wrongly_dropped": 0.0 if options.exact else tally.wrongly_dropped,
        "exact": bool(options.exact),
        "bytes": job.blocks.bytes_read,
        "seconds": seconds,
        "bytes_per_second": job.blocks.bytes_read / seconds,
        "peak_memory": peak_memory(),
        "memory": options.memory,
        "filter": {
            "class": type(seen).__name__,
            "nbytes": seen.nbytes,
            "capacity": seen.capacity,
            "target_fpr": seen.target_fpr,
            "layout": getattr(seen, "layout", None),
            "num_added": seen.num_added,
            "seed": seen.seed,
            "keyed": seen.keyed,
        },
        "state": options.state,
    }
    return stats | ({"without_key": job.without_key, "bad": job.faults} if options.select else {})


def _format_stats(options: DedupOptions, stats: dict[str, Any]) -> list[str]:
    lost = units.rate_text(stats["expected_wrongly_dropped"])
    peak = stats["peak_memory"]
    return [
        f"lines in            {stats['lines_in']:,}",
        f"lines out           {stats['lines_out']:,}",
        f"wrongly dropped     {'0 (verified)' if options.exact else f'{lost} expected'}",
        f"speed               {units.size_text(stats['bytes_per_second'])}/s",
        f"peak memory         {'unavailable on this system' if peak is None else units.size_text(peak)}"
        + (f" of {units.size_text(options.memory)}" if options.memory else ""),
    ]
