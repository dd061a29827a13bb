"""``fullbloom parquet``: the filters of Parquet files, and the row groups that may hold keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import Options

if TYPE_CHECKING:
    import argparse

    from fullbloom.formats.parquet import FilterPlace

HELP = "list the filters of Parquet files, or find the row groups that may hold keys"
DETAIL = """"list" prints one line for each column of a row group that has a filter: file, row group, column,
type and bytes. "probe" prints one line for each key that a row group may hold: file, row group and key; a row
group without a filter may hold every key. Only footers and filters are read."""
EXAMPLE = "fullbloom parquet probe --column user_id --keys keys.txt 'data/**/*.parquet'"
QUIET = "print no progress"


@dataclass(frozen=True, kw_only=True)
class ParquetOptions(Options):
    """Options of ``fullbloom parquet``."""

    action: str
    files: list[str]
    column: str | None
    keys: str | None
    arrow: str | None
    row_groups: list[int] | None
    threads: int


OPTIONS = ParquetOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", metavar="ACTION", choices=("list", "probe"), help="list or probe")
    parser.add_argument("files", nargs="+", metavar="FILE", help="files, patterns, or URLs (with fsspec)")
    parser.add_argument("--column", metavar="NAME", help="the column, a.b for a field; required by probe")
    parser.add_argument("--keys", metavar="FILE", help='keys to probe, one per line; "-" is standard input')
    parser.add_argument("--arrow", metavar="FILE", help="write the matches to an Arrow IPC file instead")
    parser.add_argument(
        "--row-group",
        type=units.row_group,
        action="append",
        dest="row_groups",
        metavar="N",
        help="only this row group of each file, counted from 0; may be given more than once",
    )
    parser.add_argument(
        "--threads",
        type=units.count,
        default=1,
        metavar="N",
        help="files that are read at a time (default 1)",
    )


def run(options: ParquetOptions) -> int:
    """List, or probe; exit code 1 if no row group may hold a key."""
    if options.action == "list":
        return _list(options)
    if options.column is None or options.keys is None:
        raise Refusal("probe needs --column NAME and --keys FILE")
    return _probe(options) if options.arrow is None else _write_arrow(options, options.arrow)


def _list(options: ParquetOptions) -> int:
    from fullbloom.formats.parquet import list_filters

    if options.keys is not None or options.arrow is not None:
        raise Refusal("--keys and --arrow are for probe")
    listed = list_filters(
        options.files, options.column, row_groups=options.row_groups, threads=options.threads
    )
    places = [place for place in listed if place.offset is not None]
    lines: list[list[Any]] = [
        [place.file, place.row_group, place.column, place.physical_type, _length(place)] for place in places
    ]
    stats = {
        "filters": [
            {
                "file": place.file,
                "row_group": place.row_group,
                "column": place.column,
                "physical_type": place.physical_type,
                "offset": place.offset,
                "length": place.length,
            }
            for place in places
        ]
    }
    _print(options, stats, lines)
    return 0


def _print(options: ParquetOptions, stats: dict[str, Any], lines: list[list[Any]]) -> None:
    """Print one JSON object, or lines of fields with tabs between them."""
    from fullbloom.cli.printable import printable
    from fullbloom.cli.report import report
    from fullbloom.cli.standard import flush

    if options.json:
        report(options, stats, [], stdout_is_free=True)
    else:
        flush("".join("\t".join(printable(str(field)) for field in line) + "\n" for line in lines))


def _length(place: FilterPlace) -> str:
    return "unstated" if place.length is None else str(place.length)


def _probe(options: ParquetOptions) -> int:
    from fullbloom.cli.progress import Progress
    from fullbloom.formats.parquet import list_matches, probe_filters
    from fullbloom.formats.sources import expand

    files = list(expand(options.files))
    keys = _read_keys(options, files)
    progress = Progress(None, quiet=options.quiet)
    matches: list[dict[str, Any]] = []
    lines: list[list[Any]] = []
    probes = probe_filters(
        files, options.column or "", keys, row_groups=options.row_groups, threads=options.threads
    )
    begun, last = 0, None
    for probe in probes:
        file, group = probe.place.file, probe.place.row_group
        begun, last = begun + (file != last), file
        progress.show(f"{begun:,} of {len(files):,} files, {len(lines):,} matches")
        found = list_matches(probe, keys)
        if found:
            has_filter = probe.found is not None
            matches.append({"file": file, "row_group": group, "has_filter": has_filter, "keys": found})
            lines += [[file, group, key] for key in found]
    progress.clear()
    stats = {"files": len(files), "keys": len(keys), "matches": matches}
    _print(options, stats, lines)
    return 0 if matches else 1


def _write_arrow(options: ParquetOptions, target: str) -> int:
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.io.output import require_writable

    require_writable(target)
    with lock_output(target, "--arrow"):
        return _write_locked(options, target)


def _write_locked(options: ParquetOptions, target: str) -> int:
    from fullbloom.cli.io.arrow import import_arrow
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.report import report
    from fullbloom.formats.parquet import probe_table
    from fullbloom.formats.sources import expand

    pa = import_arrow()
    files = list(expand(options.files))
    keys = _read_keys(options, files)
    table = probe_table(
        files, options.column or "", keys, row_groups=options.row_groups, threads=options.threads
    )
    named = table.append_column("value", pa.array(keys).take(table["key"]))
    encoded = pa.BufferOutputStream()
    with pa.ipc.new_file(encoded, named.schema) as out:
        out.write_table(named)
    output = Output(target)
    try:
        output.write(memoryview(encoded.getvalue()))
        output.commit(durable=True)
    finally:
        output.discard()
    stats = {"file": target, "files": len(files), "keys": len(keys), "matches": len(named)}
    report(options, stats, [f"{target}: {len(named):,} matches"], stdout_is_free=target != "-")
    return 0 if len(named) else 1


def _read_keys(options: ParquetOptions, files: list[str]) -> list[Any]:
    """Return the keys as values of the column's type; no message shows a key."""
    from fullbloom.cli.filters.foreign import find_line_type, read_keys
    from fullbloom.formats.parquet import list_filters

    place = next(list_filters(files, options.column), None)
    return read_keys(options.keys or "-", find_line_type("bytes" if place is None else place.key_type))
