"""What an experiment returns, and how pages and a record show it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.report import markdown

if TYPE_CHECKING:
    from pathlib import Path


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
    """The figures of one experiment with what they need to be repeated, and its tables.

    bars: the least and the most that a figure may be.
    """

    parameters: dict[str, Any]
    figures: dict[str, float]
    tables: list[Table] = field(default_factory=list)
    bars: dict[str, tuple[float, float]] = field(default_factory=dict)

    def list_failures(self) -> list[str]:
        """Return the figures that do not reach their bars."""
        return [
            f"{name}: {self.figures[name]:.6g}, wanted from {least} to {most}"
            for name, (least, most) in self.bars.items()
            if not least <= self.figures[name] <= most
        ]


@dataclass(frozen=True)
class Record:
    """A file of outcomes, by the names of their experiments, and the folder of the pages that show them."""

    path: Path
    pages: Path

    def read(self) -> dict[str, Outcome]:
        """The outcomes of the last runs."""
        if not self.path.exists():
            return {}
        found = json.loads(self.path.read_text(encoding="utf-8"))
        return {
            name: Outcome(
                each["parameters"],
                each["figures"],
                [Table(**table) for table in each["tables"]],
                {bar: (least, most) for bar, (least, most) in each.get("bars", {}).items()},
            )
            for name, each in found.items()
        }

    def write(self, outcomes: dict[str, Outcome]) -> None:
        """Replace these experiments in the record, and their tables on the pages."""
        known = self.read() | outcomes
        lines = [f"{json.dumps(name)}: {json.dumps(asdict(known[name]))}" for name in sorted(known)]
        self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        for table in self.list_tables(outcomes):
            page = self.pages / table.page
            page.write_text(insert(page.read_text(encoding="utf-8"), table), encoding="utf-8")

    def list_tables(self, outcomes: dict[str, Outcome] | None = None) -> list[Table]:
        """The tables of these outcomes, by default of the whole record."""
        chosen = self.read() if outcomes is None else outcomes
        return [table for outcome in chosen.values() for table in outcome.tables]


def marks(name: str) -> tuple[str, str]:
    return f"<!-- measured {name} begin -->", f"<!-- measured {name} end -->"


def insert(text: str, table: Table) -> str:
    """The page with this table between its marks."""
    begin, end = marks(table.name)
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        message = f"{table.page} has no place for the table {table.name}"
        raise SystemExit(message)
    return f"{head}{begin}\n{table.show()}\n{end}{tail}"
