"""The six lines that README shows, taken from the tables of the newest records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.model import Result, Table

COLUMNS = ["what", "Fullbloom", "best other filter", "Python's `set`"]
OURS, EXACT = "fullbloom", "set"
Row = list[str]


def highlights(results: dict[str, Result]) -> list[Row]:
    """One row a figure: ours, the best of the other filters by name, and the exact answer."""
    rows = []
    for name, column, what, unit in (
        ("scalar", "in (hit)", "`key in filter`, 1M `str`", "ns"),
        ("scalar", "add", "`add`, 1M `str`", "ns"),
        ("list-batch", "update", "`update` of a list of 1M `str`", "ns per key"),
        ("list-batch", "contains_many (hit)", "`contains_many` of a list of 1M `str`", "ns per key"),
    ):
        if name in results:
            rows.append([what, *_of_table(results[name].tables[0], column, unit)])
    if "dedup" in results:
        rows.append(_dedup(results["dedup"].tables[0]))
    if "open" in results:
        shown = _shorten_cell(results["open"].figures["cold/ms"].text()) + " ms"
        rows.append(["open a filter of 1 GB from the disk", shown, "-", "-"])
    return rows


def _number(cell: str) -> float:
    """The number that a cell begins with."""
    found = re.match(r"~?([\d,.]+)", cell)
    return float(found[1].replace(",", "")) if found else float("nan")


def _shorten_cell(cell: str) -> str:
    return re.split(r" \(|, \d", cell.lstrip("~"))[0]


def _of_table(table: Table, column: str, unit: str) -> Row:
    at = table.columns.index(column)
    cells = {row[0]: row[at] for row in table.rows if re.match(r"~?\d", row[at]) and "loop" not in row[0]}
    others = {name: cell for name, cell in cells.items() if not name.startswith((OURS, EXACT))}
    best = min(others, key=lambda name: _number(others[name]))
    exact = next((cell for name, cell in cells.items() if name.startswith(EXACT)), "-")
    return [
        f"{_shorten_cell(cells[OURS])} {unit}",
        f"{_shorten_cell(others[best])} {unit} ({best})",
        f"{_shorten_cell(exact)} {unit}",
    ]


def _dedup(table: Table) -> Row:
    cells = {row[0]: f"{_shorten_cell(row[1])} MB/s, {row[3]} MB" for row in table.rows}
    return [
        "de-duplicate 10M lines (600 MB), order kept",
        cells["fullbloom dedup, no size given"],
        f"{cells['Python + abloom']} (abloom)",
        cells["Python set"],
    ]
