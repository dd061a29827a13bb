"""The table of attacks in docs/security.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.model import ROOT
from benchmarks.report import markdown

if TYPE_CHECKING:
    from benchmarks.attacks.rows import Row

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- attacks:begin -->", "<!-- attacks:end -->"
COLUMNS = ["attack", "measured", "random keys", "public hash", "`secret=`", "chosen keys, hashes computed"]


def table(rows: list[Row]) -> str:
    """One line an attack."""
    return markdown(COLUMNS, [list(row) for row in rows])


def insert_table(text: str, shown: str) -> str:
    """The page with this table."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{shown}\n{END}{rest.partition(END)[2]}"


def shown_in(text: str) -> list[list[str]]:
    """The cells of the page's table, without its head."""
    lines = text.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
