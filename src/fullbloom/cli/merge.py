"""``fullbloom merge``: merge filters into one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli.foreign_options import ForeignOptions, add_format
from fullbloom.cli.options import QUIET, add_secret

if TYPE_CHECKING:
    import argparse

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "unite filters of one shape into a file"
DETAIL = """The result answers as if all keys had been added to one filter. It holds more keys than each,
so build the parts with the capacity of the whole; a result above it is reported on stderr. Any kind that
merges will do; the filters must be of one kind, shape, seed and secret. Filters in the format of another
program become one in that format."""
EXAMPLE = "fullbloom merge week.bloom monday.bloom tuesday.bloom"


@dataclass(frozen=True, kw_only=True)
class MergeOptions(ForeignOptions):
    """Options of ``fullbloom merge``."""

    out: str
    filters: list[str]
    secret_file: str | None


OPTIONS = MergeOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="OUT", help="the file to write; may be one of the filters")
    parser.add_argument(
        "filters", nargs="+", metavar="FILTER", help="files that fullbloom or another program wrote"
    )
    add_format(parser)
    add_secret(parser)


def run(options: MergeOptions) -> int:
    """Unite and save."""
    from fullbloom.cli.filters.foreign import save_back
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.io.output import require_writable
    from fullbloom.cli.report import note, report

    require_writable(options.out)
    # OUT may be one of the filters: a run that adds to it between the two would be undone.
    with lock_output(options.out):
        merged, as_container = _merge(options)
        save_back(merged, options.out, as_container=as_container)
    estimates = hasattr(merged, "approx_count")
    keys, deviation = merged.approx_count() if estimates else (merged.num_added, 0.0)
    # A filter of another program has no capacity of its own.
    if hasattr(merged, "capacity") and keys > merged.capacity + 2 * deviation:
        text = f"about {keys:,.0f} keys, capacity {merged.capacity:,}; its rate is {merged.fpr():.3g}"
        target = f"{merged.target_fpr:.3g}"
        above = merged.fpr() > merged.target_fpr
        note(
            options,
            f"{options.out} exceeds its capacity: {text}, "
            + (f"not {target}" if above else f"still within {target}"),
        )
    stats = {"file": options.out, "merged": len(options.filters), **merged.info()}
    report(options, stats, [f"{options.out}: {merged!r}"], stdout_is_free=True)
    return 0


def _merge(options: MergeOptions) -> tuple[Any, bool]:
    """Return the first filter with all others merged into it in memory, and whether it becomes a container.

    Filters of another program are written in its format unless the first of them is in a container.
    """
    import warnings

    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.foreign import is_foreign, open_any, require_written
    from fullbloom.cli.filters.kinds import get_row, list_built_at_once

    merged: Any = None
    as_container = True
    for path in options.filters:
        part: Any = open_any(options.description, path, options.secret_file, verify="full")
        if not hasattr(part, "merge"):
            is_static = is_foreign(part) or get_row(part) in list_built_at_once()
            remedy = "build one from all lines" if is_static else "build it with a --capacity"
            raise Refusal(f"{path}: a {type(part).__name__} cannot be merged; {remedy}")
        if merged is None:
            if is_foreign(part):
                require_written(part, path)
                as_container = part.path is not None
            merged = part.copy()
            continue
        if type(part) is not type(merged):
            raise Refusal(
                f"{path}: holds a {type(part).__name__}, and {options.filters[0]} a {type(merged).__name__}"
            )
        try:
            with warnings.catch_warnings():  # the note warns of it, with the rate
                warnings.simplefilter("ignore", fullbloom.CapacityWarning)
                merged.merge(part)
        except (fullbloom.IncompatibleFilters, fullbloom.FilterFull) as error:
            raise Refusal(f"{path}: {error}") from None
    return merged, as_container
