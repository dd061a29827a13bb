"""``bloomery merge``: one filter of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomery.cli.parser import QUIET, add_secret

if TYPE_CHECKING:
    import argparse

__all__ = ["DETAIL", "EXAMPLE", "HELP", "QUIET", "configure", "run"]

HELP = "unite filters of one shape into a file"
DETAIL = """The union answers as if all keys had been added to one filter. It holds more keys than each,
so build the parts with the capacity of the whole; a union above it is reported on stderr."""
EXAMPLE = "bloomery merge week.bloom monday.bloom tuesday.bloom"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="OUT", help="the file to write; may be one of the filters")
    parser.add_argument("filters", nargs="+", metavar="FILTER", help="files that bloomery wrote")
    add_secret(parser)


def run(args: argparse.Namespace) -> int:
    """Unite and save."""
    from bloomery import BloomFilter
    from bloomery.cli import filters
    from bloomery.cli.failures import Refusal
    from bloomery.cli.report import note, report
    from bloomery.errors import IncompatibleFilters

    merged: BloomFilter | None = None
    for path in args.filters:
        part = filters.load(path, args)
        if not isinstance(part, BloomFilter):
            raise Refusal(f"{path}: a {type(part).__name__} cannot be merged; build it with a --capacity")
        try:
            merged = part.copy() if merged is None else merged.union(part)
        except IncompatibleFilters as error:
            raise Refusal(f"{path}: {error}") from None
    if merged is None:
        raise Refusal("merge needs at least one filter")
    merged.save(args.out)
    keys, deviation = merged.approx_count()
    if keys > merged.capacity + 2 * deviation:
        text = f"about {keys:,.0f} keys, capacity {merged.capacity:,}; its rate is {merged.fpr():.3g}"
        note(args, f"{args.out} is fuller than it was made for: {text}, not {merged.target_fpr:.3g}")
    facts = {"file": args.out, "merged": len(args.filters), **merged.info()}
    report(args, facts, [f"{args.out}: {merged!r}"], stdout_is_free=True)
    return 0
