"""``fullbloom info``: describe a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.cli.options import Options, add_secret

if TYPE_CHECKING:
    import argparse

HELP = "describe a filter's file"
DETAIL = "The rate is computed from the present bits, so the whole file is read."
EXAMPLE = "fullbloom info --verify full words.bloom"
QUIET = "print nothing: the exit code says whether the file is sound"


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Options):
    """Options of ``fullbloom info``."""

    filter: str
    verify: Literal["header", "full"]
    secret_file: str | None


OPTIONS = InfoOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom wrote")
    parser.add_argument(
        "--verify", choices=("header", "full"), default="header", help="check the header, or every byte"
    )
    add_secret(parser)


def run(options: InfoOptions) -> int:
    """Open the file and print its description."""
    import fullbloom
    from fullbloom.cli.report import format_value, report
    from fullbloom.cli.secret import read_secret

    secret = read_secret(options.secret_file)
    seen: Any = fullbloom.open(options.filter, verify=options.verify, secret=secret)
    stats: dict[str, Any] = {"file": options.filter, **seen.info()}
    if hasattr(seen, "stage_info"):
        stats["stage_info"] = seen.stage_info()
    width = max(map(len, stats))
    lines = [
        f"{name:<{width}}  {format_value(value)}" for name, value in stats.items() if name != "stage_info"
    ]
    report(options, stats, lines, stdout_is_free=True)
    return 0
