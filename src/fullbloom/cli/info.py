"""``fullbloom info``: describe a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.cli.foreign_options import ForeignOptions, add_format
from fullbloom.cli.options import add_secret

if TYPE_CHECKING:
    import argparse

HELP = "describe a filter's file"
DETAIL = "The rate is computed from the present bits, so the whole file is read."
EXAMPLE = "fullbloom info --verify full words.bloom"
QUIET = "print nothing: the exit code says whether the file is sound"


@dataclass(frozen=True, kw_only=True)
class InfoOptions(ForeignOptions):
    """Options of ``fullbloom info``."""

    filter: str
    verify: Literal["header", "full"]
    secret_file: str | None


OPTIONS = InfoOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom or another program wrote")
    parser.add_argument(
        "--verify", choices=("header", "full"), default="header", help="check the header, or every byte"
    )
    add_format(parser)
    add_secret(parser)


def _open(options: InfoOptions) -> Any:
    """Open the file; the type of keys, where it is not recorded, does not change what is described."""
    from dataclasses import replace

    from fullbloom.cli.filters.foreign import open_any
    from fullbloom.formats import detect

    types = _list_key_types(options.format or detect(options.filter))
    description = options.description
    if options.key_type is None and options.members is None and len(types) > 1:
        description = replace(description, key_type=types[0])
    return open_any(description, options.filter, options.secret_file, verify=options.verify)


def _list_key_types(name: str | None) -> list[str]:
    """Return the types that keys of a format can have; empty for a file of fullbloom's."""
    from fullbloom.formats import find_row

    types: list[str] = find_row(name)["key_types"] if name is not None else []
    return types


def run(options: InfoOptions) -> int:
    """Open the file and print its description."""
    from fullbloom.cli.report import format_value, report

    stats: dict[str, Any] = {"file": options.filter}
    seen = _open(options)
    stats |= seen.info()
    if "key_type" in stats and options.key_type is None and seen.path is None:
        stats["key_type"] = ", ".join(_list_key_types(stats["format"]))
    if hasattr(seen, "stage_info"):
        stats["stage_info"] = seen.stage_info()
    width = max(map(len, stats))
    lines = [
        f"{name:<{width}}  {format_value(value)}" for name, value in stats.items() if name != "stage_info"
    ]
    report(options, stats, lines, stdout_is_free=True)
    return 0
