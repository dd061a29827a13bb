"""``fullbloom redis-save``: save a filter of a Redis or Valkey server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fullbloom.cli.options import add_secret
from fullbloom.cli.redis_server import ServerOptions, add_server, find_filter
from fullbloom.cli.report import report

if TYPE_CHECKING:
    import argparse

HELP = "save a filter of a Redis or Valkey server to a file"
DETAIL = """The file contains all earlier keys, and may contain keys that clients add meanwhile."""
EXAMPLE = "fullbloom redis-save redis://localhost:6379/0 words words.bloom"
QUIET = "print nothing"


@dataclass(frozen=True, kw_only=True)
class SaveOptions(ServerOptions):
    """Options of ``fullbloom redis-save``."""

    file: str


OPTIONS = SaveOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_server(parser)
    parser.add_argument("file", metavar="FILE", help="filter to write; replaced if it exists")
    add_secret(parser)


def run(options: SaveOptions) -> int:
    """Fetch the cells and write the file atomically."""
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.io.output import save_filter

    with lock_output(options.file, "FILE"):
        copy = find_filter(options).dump()
        save_filter(copy, options.file)
    stats = {"file": options.file, **copy.info()}
    line = f"{options.file}: {stats['nbytes']:,} bytes, about {stats['num_added']:,} keys"
    report(options, stats, [line], stdout_is_free=True)
    return 0
