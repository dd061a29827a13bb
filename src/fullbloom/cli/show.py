"""``fullbloom show``: draw the cells of a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.cli.options import Options, add_secret

if TYPE_CHECKING:
    import argparse

    from fullbloom.cells import Cells
    from fullbloom.cli.cell_map import CellMap

HELP = "draw the cells of a filter's file"
DETAIL = """A small filter shows every cell, a large one the fill of each region. With --key, the cells of
that key are marked. Blocks and colours appear on a terminal only; NO_COLOR=1 turns them off there, too. The
whole file is read once."""
EXAMPLE = "fullbloom show --key cat words.bloom"
QUIET = "print nothing: the exit code says whether the file can be read"
#: Regions of a section in the JSON report.
_REGIONS = 64
#: Sections that are drawn; those of further stages are counted only.
_DRAWN = 8


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Options):
    """Options of ``fullbloom show``."""

    filter: str
    key_type: str
    verify: Literal["header", "full"]
    secret_file: str | None


OPTIONS = ShowOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom wrote")
    parser.add_argument("--key", metavar="KEY", help="mark the cells of this key, and look it up")
    parser.add_argument(
        "--key-type",
        choices=("str", "int", "float", "bool", "uuid"),
        default="str",
        metavar="TYPE",
        help="type of --key in Python and in data frames: str, int, float, bool or uuid (default str)",
    )
    parser.add_argument(
        "--verify", choices=("header", "full"), default="header", help="check the header, or every byte"
    )
    add_secret(parser)


def run(options: ShowOptions) -> int:
    """Open the file, count its cells and draw them."""
    import fullbloom
    from fullbloom.card import describe, describe_rate, format_bytes
    from fullbloom.cells import map_cells
    from fullbloom.cli.cell_map import CellMap
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.report import report
    from fullbloom.cli.secret import read_secret

    if options.key is None and options.key_type != "str":
        raise Refusal("--key-type is of use with --key only: add --key KEY, or drop --key-type")
    key = None if options.key is None else read_key(options.key, options.key_type)
    seen: Any = fullbloom.open(options.filter, verify=options.verify, secret=read_secret(options.secret_file))
    if not hasattr(seen, "num_added"):
        name = type(seen).__name__
        raise Refusal(f"a {name} has no cells to draw here: fullbloom info {options.filter} describes it")
    found = None if key is None else look_up(seen, key)
    positions = [] if key is None or not hasattr(seen, "positions") else seen.positions(key)
    facts, sections = describe(seen), map_cells(options.filter)
    if options.json:
        stats = {
            "file": options.filter,
            "class": facts.name,
            "num_added": facts.num_added,
            "capacity": facts.capacity,
            "nbytes": facts.nbytes,
            "target_fpr": facts.target_fpr,
            "fpr": facts.fpr,
            "sections": [_list_regions(cells) for cells in sections],
            "key": None if key is None else {"found": found, "positions": positions},
        }
        report(options, stats, [], stdout_is_free=True)
        return 0
    if options.quiet:
        return 0
    drawing = CellMap.for_terminal()
    drawing.write_text(f"{options.filter}: a {facts.name}, {format_bytes(facts.nbytes)} of cells")
    drawing.write_text(f"{facts.num_added:,} keys added, sized for {facts.capacity:,}")
    drawing.write_text(f"rate now: {describe_rate(facts)}")
    _draw(drawing, sections, positions)
    if key is not None:
        drawing.write_text(_describe_key(facts.name, positions, found=bool(found)))
    drawing.print()
    return 0


def read_key(text: str, kind: str) -> Any:
    """Return the key that ``text`` is, of a type that --key-type names.

    >>> read_key("7", "int"), read_key("true", "bool")
    (7, True)
    """
    import os
    import uuid

    from fullbloom.cli.failures import Refusal

    try:
        match kind:
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "bool":
                return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
            case "uuid":
                return uuid.UUID(text)
    except (KeyError, ValueError):
        wanted = {"bool": "true or false", "uuid": "a UUID"}.get(
            kind, f"a number, as --key-type {kind} needs"
        )
        raise Refusal(f"--key is not {wanted}") from None
    return os.fsencode(text)  # equal to the text's key, and there is one for names that are not UTF-8


def look_up(seen: Any, key: Any) -> bool:
    """Return whether a filter finds a key, or includes it if it separates two sets."""
    from fullbloom import registry
    from fullbloom.cli.filters.kinds import get_row

    if registry.is_built(get_row(seen), "included", "excluded"):
        return bool(seen.includes(key))
    return key in seen


def _describe_key(name: str, positions: list[int], *, found: bool) -> str:
    answer = "the key is probably in the filter" if found else "the key is certainly absent"
    if not positions:
        return f"{answer}; a {name} does not name the cells of a key"
    return f"{answer}; its cells: {', '.join(map(str, positions))}"


def _draw(drawing: CellMap, sections: list[Cells], positions: list[int]) -> None:
    """Draw the first sections, and the key's cells in the first of them."""
    stages = max((cells.stage for cells in sections), default=0) + 1
    rows = drawing.rows // min(len(sections), _DRAWN) if sections else 0
    for number, cells in enumerate(sections[:_DRAWN]):
        title = f"stage {cells.stage + 1} of {stages}, {cells.section}" if stages > 1 else cells.section
        drawing.draw(title, cells, set(positions) if number == 0 else set(), max(rows, 2))
    if len(sections) > _DRAWN:
        drawing.write_text("")
        drawing.write_text(f"{len(sections) - _DRAWN} more sections are in the report of --json")


def _list_regions(cells: Cells) -> dict[str, Any]:
    """Return a section for the JSON report."""
    from fullbloom.cells import split_regions

    regions = list(split_regions(cells, _REGIONS))
    total = sum(region.set for region in regions)
    return {
        "section": cells.section,
        "stage": cells.stage,
        "cells": cells.count,
        "cell_bits": cells.width,
        "set": total,
        "fill": total / cells.count,
        "region_cells": regions[0].last,
        "region_set": [region.set for region in regions],
    }
