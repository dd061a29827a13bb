"""``fullbloom show``: draw the cells of a filter's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.cli.foreign_options import FOREIGN_TYPES, ForeignOptions, add_shape_of_bits
from fullbloom.cli.options import add_secret

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
#: The types of --key for a filter of fullbloom's.
_TYPES = ("str", "int", "float", "bool", "uuid")


@dataclass(frozen=True, kw_only=True)
class ShowOptions(ForeignOptions):
    """Options of ``fullbloom show``."""

    filter: str
    verify: Literal["header", "full"]
    secret_file: str | None


OPTIONS = ShowOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("filter", metavar="FILTER", help="a file that fullbloom or another program wrote")
    parser.add_argument("--key", metavar="KEY", help="mark the cells of this key, and look it up")
    parser.add_argument(
        "--key-type",
        choices=(*_TYPES, *FOREIGN_TYPES),
        metavar="TYPE",
        help="type of --key in Python and in data frames: str, int, float, bool or uuid (default str); of a "
        "filter of another program, the type of its keys: utf-8, long, ...",
    )
    parser.add_argument(
        "--format", metavar="NAME", help="format of the file, if its lengths do not say: see docs/formats.md"
    )
    add_shape_of_bits(parser.add_argument_group("files of other programs"))
    parser.add_argument(
        "--verify", choices=("header", "full"), default="header", help="check the header, or every byte"
    )
    add_secret(parser)


def run(options: ShowOptions) -> int:
    """Open the file, count its cells and draw them."""
    from fullbloom.cells import map_cells, read_cells
    from fullbloom.cli.cell_map import CellMap
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.foreign import is_foreign
    from fullbloom.cli.report import report

    if options.key is None and options.key_type in _TYPES:
        raise Refusal("--key-type is of use with --key only: add --key KEY, or drop --key-type")
    seen = _open(options)
    key = None if options.key is None else _read_key(options, seen)
    if not is_foreign(seen) and not hasattr(seen, "num_added"):
        name = type(seen).__name__
        raise Refusal(f"a {name} has no cells to draw here: fullbloom info {options.filter} describes it")
    found = None if key is None else look_up(seen, key)
    positions = [] if key is None or not hasattr(seen, "positions") else seen.positions(key)
    facts, lines = _describe(options.filter, seen)
    sections = map_cells(options.filter) if seen.path is not None else read_cells(seen.to_bytes())
    if options.json:
        stats = {
            "file": options.filter,
            **facts,
            "sections": [_list_regions(cells) for cells in sections],
            "key": None if key is None else {"found": found, "positions": positions},
        }
        report(options, stats, [], stdout_is_free=True)
        return 0
    if options.quiet:
        return 0
    drawing = CellMap.for_terminal()
    for line in lines:
        drawing.write_text(line)
    _draw(drawing, sections, positions)
    if key is not None:
        drawing.write_text(_describe_key(facts["class"], positions, found=bool(found)))
    drawing.print()
    return 0


def _open(options: ShowOptions) -> Any:
    """Open the file; the type of keys, where it is not recorded, does not change what is drawn."""
    from dataclasses import replace

    from fullbloom.cli.filters.foreign import open_any
    from fullbloom.formats import detect, find_row

    description = options.description
    name = description.format or detect(options.filter)
    if name is None:
        # A filter of fullbloom's: the type is that of --key.
        description = replace(description, key_type=None)
    elif options.key is None and options.members is None and options.key_type is None:
        description = replace(description, key_type=find_row(name)["key_types"][0])
    return open_any(description, options.filter, options.secret_file, verify=options.verify)


def _read_key(options: ShowOptions, seen: Any) -> Any:
    """Return the key that --key is."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.foreign import find_line_type, is_foreign, parse_key

    text, kind = options.key or "", options.key_type or "str"
    if not is_foreign(seen):
        if kind not in _TYPES:
            raise Refusal(f"--key-type {kind} is for filters of other programs; drop it")
        return read_key(text, kind)
    line_type = find_line_type(options.key_type or seen.key_type)
    try:
        return parse_key(text, line_type)
    except ValueError:
        raise Refusal(f"--key is not a valid {line_type}") from None


def _describe(path: str, seen: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what the report says of the whole filter, None where nothing is recorded; and as text."""
    from fullbloom.card import describe, describe_rate, format_bytes, format_rate

    name = type(seen).__name__
    head = f"{path}: a {name}, {format_bytes(seen.nbytes)} of cells"
    if hasattr(seen, "num_added") and hasattr(seen, "capacity"):
        facts = describe(seen)
        report = {
            "class": name,
            "num_added": facts.num_added,
            "capacity": facts.capacity,
            "nbytes": facts.nbytes,
            "target_fpr": facts.target_fpr,
            "fpr": facts.fpr,
        }
        keys = f"{facts.num_added:,} keys added, sized for {facts.capacity:,}"
        return report, [head, keys, f"rate now: {describe_rate(facts)}"]
    count, rate = round(seen.approx_count()[0]), seen.fpr()
    report = {
        "class": name,
        "num_added": count,
        "capacity": None,
        "nbytes": seen.nbytes,
        "target_fpr": None,
        "fpr": rate,
    }
    return report, [head, f"about {count:,} keys", f"rate now: {format_rate(rate)}"]


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
    from fullbloom.cli.filters.foreign import is_foreign
    from fullbloom.cli.filters.kinds import get_row

    if not is_foreign(seen) and registry.is_built(get_row(seen), "included", "excluded"):
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
