"""``fullbloom insert``: add lines to a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.cli.foreign_options import KnownFilterOptions, add_known_records
from fullbloom.cli.io.output import require_different
from fullbloom.cli.options import QUIET, add_hashes, add_inputs, add_secret

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.stops import Stops

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "add lines to a filter's file"
DETAIL = """The file is replaced once all lines are added, so it is either the old one or the new one;
this takes memory for the whole filter. With --in-place the lines are written into the file itself: Ctrl-C
leaves it valid with the lines so far; after a kill or a crash, open it with another run with --in-place,
and some of the lines may be missing. A FILTER of another program reads lines as keys of its type, and is
written back in its format."""
EXAMPLE = "fullbloom insert words.bloom typed.txt"


@dataclass(frozen=True, kw_only=True)
class InsertOptions(KnownFilterOptions):
    """Options of ``fullbloom insert``."""

    in_place: bool


OPTIONS = InsertOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom or another program wrote")
    add_inputs(parser)
    parser.add_argument(
        "--in-place", action="store_true", help="write into the file, for filters larger than memory"
    )
    add_secret(parser)
    add_known_records(parser)
    add_hashes(parser)


def run(options: InsertOptions) -> int:
    """Add and save."""
    from fullbloom.cli.filters.foreign import is_foreign
    from fullbloom.cli.filters.state import lock_file
    from fullbloom.cli.stops import Stops

    options.check_formats()
    require_different(options.files, {"FILTER": options.filter})
    stops = Stops()
    with lock_file(options.filter, "FILTER"):
        seen = _open(options)
        if is_foreign(seen):
            return _add_to_foreign(options.for_foreign(seen), seen, stops)
        return _add(options.for_own(), seen, stops)


def _add(options: InsertOptions, opened: Any, stops: Stops) -> int:
    """Add to a filter of fullbloom's."""
    from fullbloom.cli.filters.files import warn_of_types
    from fullbloom.cli.filters.kinds import get_row
    from fullbloom.cli.io.hashes import record_digests
    from fullbloom.cli.io.reader import Reader, Target
    from fullbloom.cli.report import report

    reader = Reader(options, stops)
    with stops:
        seen = _make_writable(options, opened)
        before, types = seen.num_added, seen.key_domains
        try:
            lines = reader.fill([Target.of_filter(seen, get_row(seen))])
            reader.progress.clear()
            record_digests(options, seen)
            warn_of_types(types, seen)
            stats: dict[str, Any] = {"file": options.filter, "lines": lines, "new": seen.num_added - before}
            stats |= seen.info()
            shown = repr(seen)
            if not options.in_place:
                seen.save(options.filter)
        finally:
            if options.in_place:
                seen.close()  # the file contains every line that was added
    text = f"{lines:,} lines read, {stats['new']:,} new"
    report(options, stats, [f"{options.filter}: {shown}", text], stdout_is_free=True)
    return 0


def _add_to_foreign(options: InsertOptions, opened: Any, stops: Stops) -> int:
    """Add to a filter of another program, and write it back as it was: in its format, or in a container."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.foreign import require_written, save_back
    from fullbloom.cli.io.reader import Reader, Target
    from fullbloom.cli.report import report

    if options.in_place:
        raise Refusal(f"{options.filter}: a {type(opened).__name__} is not written in place; drop --in-place")
    if not hasattr(opened, "add"):
        raise Refusal(
            f"{options.filter}: holds a {type(opened).__name__}, which takes no lines after it is built"
        )
    require_written(opened, options.filter)
    reader = Reader(options, stops)
    with stops:
        seen = opened.copy()
        target = Target.of_foreign(seen)
        lines = reader.fill([target])
        reader.progress.clear()
        stats: dict[str, Any] = {"file": options.filter, "lines": lines, "new": target.count_new()}
        stats |= seen.info()
        save_back(seen, options.filter, as_container=opened.path is not None)
    text = f"{lines:,} lines read, {stats['new']:,} new"
    report(options, stats, [f"{options.filter}: {seen!r}", text], stdout_is_free=True)
    return 0


def _open(options: InsertOptions) -> Any:
    """Return the filter of the file, fully checked."""
    from fullbloom.cli.filters.files import require_lines
    from fullbloom.cli.filters.foreign import is_foreign, open_any

    verify: Literal["header", "full"] = "header" if options.in_place else "full"
    found: Any = open_any(options.description, options.filter, options.secret_file, verify=verify)
    if not is_foreign(found):
        require_lines(found, options.filter, adds=True)
    return found


def _make_writable(options: InsertOptions, found: Any) -> Filter:
    """Return a filter of fullbloom's, open for adding."""
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.kinds import get_row, is_forgetful
    from fullbloom.cli.secret import read_secret

    row = get_row(found)
    if is_forgetful(found):
        raise Refusal(
            f"{options.filter}: a {type(found).__name__} forgets lines by design; "
            "add to it with fullbloom seen --state"
        )
    if not options.in_place:
        return found.copy()
    if "write-in-place" not in row["capabilities"]:
        raise Refusal(f"{options.filter}: a {type(found).__name__} is not written in place; drop --in-place")
    found.close()
    return fullbloom.open(options.filter, mode="r+", secret=read_secret(options.secret_file))
