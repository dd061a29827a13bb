"""A pre-check in front of a table of 100,000 rows in PostgreSQL: 100,000 lookups, 90 % absent, by turns.

A turn has 1,000 lookups. The plain lookups are the same query through the same session, without the filter.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event, orm

from benchmarks.engines.postgresql import run_postgresql
from fullbloom import BloomFilter
from fullbloom.engines.sqlalchemy import PreCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS, LOOKUPS, TURN, ABSENT, FPR = 100_000, 100_000, 1000, 0.9, 0.01


def _time(ask: Callable[[str], bool], names: list[str]) -> float:
    begun = time.perf_counter()
    for name in names:
        assert ask(name) == (name[0] == "p")
    return time.perf_counter() - begun


def measure() -> dict[str, Any]:
    """Queries and seconds of both ways, the median of the ratios of each turn, and the counters."""
    table = sa.Table("users", sa.MetaData(), sa.Column("name", sa.String, primary_key=True))
    with run_postgresql() as url:
        engine = sa.create_engine(url)
        table.metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(sa.insert(table), [{"name": f"present {number}"} for number in range(ROWS)])
        check = PreCheck(BloomFilter(ROWS, FPR), table.c.name)
        check.load(engine)
        sent = 0

        def count(*_: Any) -> None:
            nonlocal sent
            sent += 1

        event.listen(engine, "before_cursor_execute", count)
        query = sa.select(sa.literal(1)).where(table.c.name == sa.bindparam("name")).limit(1)
        random_ = random.Random(1)
        present, absent = round(TURN * (1 - ABSENT)), round(TURN * ABSENT)
        seconds: dict[str, list[float]] = {"query": [], "pre-check": []}
        queries = dict.fromkeys(seconds, 0)
        with orm.Session(engine) as session:
            asks = {
                "query": lambda name: session.execute(query, {"name": name}).first() is not None,
                "pre-check": lambda name: check.exists(session, name),
            }
            for turn in range(LOOKUPS // TURN):
                names = [f"present {random_.randrange(ROWS)}" for _ in range(present)]
                names += [f"absent {turn} {number}" for number in range(absent)]
                random_.shuffle(names)
                for name, ask in asks.items():
                    before = sent
                    seconds[name].append(_time(ask, names))
                    queries[name] += sent - before
        ratio = statistics.median(
            one / other for one, other in zip(seconds["query"], seconds["pre-check"], strict=True)
        )
        engine.dispose()
    runs = {name: {"queries": queries[name], "seconds": sum(taken)} for name, taken in seconds.items()}
    return {"lookups": LOOKUPS, "absent": ABSENT, "runs": runs, "ratio": ratio, "stats": str(check.stats())}


def run(_folder: Path) -> Iterator[str]:
    """The lines of the table."""
    figures = measure()
    runs = figures["runs"]
    for name, one in runs.items():
        yield f"  {name:12} {LOOKUPS:,} lookups  {one['queries']:8,} queries  {one['seconds']:7.2f} s"
    fewer = runs["query"]["queries"] / runs["pre-check"]["queries"]
    yield f"  {fewer:.1f}x fewer queries, {figures['ratio']:.1f}x less time"
    yield f"  {figures['stats']}"
