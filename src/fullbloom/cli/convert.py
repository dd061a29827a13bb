"""``fullbloom convert``: write a filter in the format of another program, or read one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli.foreign_options import ForeignOptions, add_format
from fullbloom.cli.options import add_secret

if TYPE_CHECKING:
    import argparse

HELP = "write a filter in the format of another program, or read one"
DETAIL = """Filters keep their bits and their keys where both formats place a key alike; otherwise the error
says which bits and which hash differ. The format of the input is found by its lengths. "--to fullbloom"
writes a file that opens without a copy, "--to split" one with a plain filter of Parquet's layout."""
EXAMPLE = "fullbloom convert seen.spark seen.bloom --to fullbloom"
QUIET = "print nothing"


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(ForeignOptions):
    """Options of ``fullbloom convert``."""

    filter: str
    out: str
    to: str
    secret_file: str | None


OPTIONS = ConvertOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from fullbloom.formats.conversion import list_targets

    parser.add_argument("filter", metavar="IN", help="a filter's file")
    parser.add_argument("out", metavar="OUT", help='the file to write, "-" for standard output')
    parser.add_argument("--to", required=True, metavar="FORMAT", help=f"{', '.join(list_targets())}")
    add_format(parser)
    add_secret(parser)


def run(options: ConvertOptions) -> int:
    """Open, convert, and write."""
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.report import report

    # OUT may be IN: a run that adds to it between the two would be undone.
    with lock_output(options.out):
        nbytes = _convert(options)
    stats = {"file": options.out, "format": options.to, "bytes": nbytes}
    line = f"{options.out}: {nbytes:,} bytes in format {options.to}"
    report(options, stats, [line], stdout_is_free=options.out != "-")
    return 0


def _convert(options: ConvertOptions) -> int:
    """Write the converted filter; return its bytes."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.foreign import open_any
    from fullbloom.cli.io.output import Output
    from fullbloom.errors import IncompatibleFilters
    from fullbloom.formats.conversion import convert

    found: Any = open_any(options.description, options.filter, options.secret_file, verify="full")
    try:
        data = convert(found, options.to)
    except IncompatibleFilters as error:
        raise Refusal(f"{options.filter}: {error}") from None
    output = Output(options.out)
    try:
        output.write(data)
        output.commit(durable=True)
    finally:
        output.discard()
    return len(data)
