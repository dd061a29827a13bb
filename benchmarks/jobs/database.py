"""Check before a query: 100,000 lookups in a table of PostgreSQL, 90 % for names that are not there."""

from __future__ import annotations

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.jobs.shown import Figures, Shown
from benchmarks.units import write_seconds

PAGE = "docs/how-to/database.md"
OURS, NAIVE = "pre-check", "query"


def measure() -> Figures:
    """Both ways by turns, on a server that this starts."""
    from benchmarks.engines import sqlalchemy

    return {key: value for key, value in sqlalchemy.measure().items() if key != "stats"}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    ours, naive = figures["runs"][OURS], figures["runs"][NAIVE]
    return Shown(
        f"{naive['queries'] / ours['queries']:.1f} times fewer queries",
        f"PostgreSQL on the same machine, {figures['lookups']:,} lookups of which {figures['absent']:.0%} "
        f"are for absent names: {naive['queries'] / ours['queries']:.1f} times fewer queries, and "
        f"{figures['ratio']:.1f} times less time.",
        ["", "queries", "time", "per lookup"],
        [
            [
                "`PreCheck.exists`" if name == OURS else "a query each",
                f"{one['queries']:,}",
                write_seconds(one["seconds"]),
                write_seconds(one["seconds"] / figures["lookups"]),
            ]
            for name, one in ((OURS, ours), (NAIVE, naive))
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    ours, naive = figures["runs"][OURS], figures["runs"][NAIVE]
    return draw_bars(
        "Queries of 100,000 lookups, with a filter in front of the database and without",
        "queries of 100,000 lookups",
        [
            ("with a filter", ours["queries"], f"{ours['queries']:,} queries", GREEN),
            ("a query each", naive["queries"], f"{naive['queries']:,} queries", GREY),
        ],
    )
