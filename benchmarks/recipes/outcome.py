"""What an experiment returns, and how pages and the record show it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.model import ROOT
from benchmarks.report import markdown

RECORD = ROOT / "benchmarks" / "recipes" / "record.json"
PAGES = ROOT / "docs" / "applications"


@dataclass(frozen=True)
class Table:
    """A table of a page, between the marks of its name."""

    name: str
    page: str
    columns: list[str]
    rows: list[list[str]]

    def show(self) -> str:
        return markdown(self.columns, self.rows)


@dataclass(frozen=True)
class Outcome:
    """The figures of one experiment with what they need to be repeated, and its tables."""

    parameters: dict[str, Any]
    figures: dict[str, float]
    tables: list[Table] = field(default_factory=list)


def marks(name: str) -> tuple[str, str]:
    return f"<!-- recipe {name} begin -->", f"<!-- recipe {name} end -->"


def insert(text: str, table: Table) -> str:
    """The page with this table between its marks."""
    begin, end = marks(table.name)
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        message = f"{table.page} has no place for the table {table.name}"
        raise SystemExit(message)
    return f"{head}{begin}\n{table.show()}\n{end}{tail}"


def read_record() -> dict[str, dict[str, Any]]:
    """The outcomes of the last runs by the name of the experiment."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def read_tables() -> list[Table]:
    return [Table(**table) for outcome in read_record().values() for table in outcome["tables"]]


def write(outcomes: dict[str, Outcome]) -> None:
    """Replace these experiments in the record, and their tables on the pages."""
    known = read_record() | {name: asdict(outcome) for name, outcome in outcomes.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    for outcome in outcomes.values():
        for table in outcome.tables:
            page = PAGES / table.page
            page.write_text(insert(page.read_text(), table))
