"""Cut a join of Spark: 15 million rows of 100 bytes with 100,000 customers; one row in twenty has one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.jobs.shown import Figures, Shown
from benchmarks.units import write_bytes, write_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = "docs/how-to/joins.md"
ROWS, SMALL, SPREAD, TURNS = 15_000_000, 100_000, 20, 3
OURS, NAIVE = "bloom_join", "shuffle join"


def _write_tables(session: Any, folder: Path) -> None:
    from pyspark.sql import functions

    key = functions.pmod(functions.xxhash64("id"), functions.lit(SPREAD * SMALL))
    text = functions.sha2(functions.col("id").cast("string"), 256)
    payload = functions.concat(text, functions.substring(text, 1, 28))
    session.range(ROWS, numPartitions=8).select(key.alias("customer"), payload.alias("note")).write.parquet(
        str(folder / "orders")
    )
    session.range(SMALL, numPartitions=2).select(
        functions.col("id").alias("customer"), functions.col("id").alias("segment")
    ).write.parquet(str(folder / "customers"))


def measure() -> Figures:
    """The shuffle join and ours by turns; the least time of each."""
    from benchmarks.engines.spark import consume, count_shuffled, start
    from fullbloom.engines.spark import bloom_join

    with tempfile.TemporaryDirectory(prefix="fullbloom-job-") as name:
        folder = Path(name)
        session = start(folder)
        try:
            _write_tables(session, folder)
            orders = session.read.parquet(str(folder / "orders"))
            customers = session.read.parquet(str(folder / "customers"))
            calls: dict[str, Callable[[], Any]] = {
                OURS: lambda: bloom_join(orders, customers, on="customer"),
                NAIVE: lambda: orders.join(customers, "customer"),
            }
            session.conf.set("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
            counts = {calls[one]().count() for one in calls}
            assert len(counts) == 1, counts
            samples: dict[str, list[tuple[int, float]]] = {one: [] for one in calls}
            for _ in range(TURNS):
                for one, call in calls.items():
                    _, shuffled, seconds = count_shuffled(session, lambda call=call: consume(call()) or 0)
                    samples[one].append((shuffled, seconds))
        finally:
            session.stop()
    runs = {
        one: {"shuffled": samples[one][0][0], "seconds": min(seconds for _, seconds in samples[one])}
        for one in samples
    }
    return {"rows": ROWS, "small": SMALL, "matching": counts.pop(), "runs": runs}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    ours, naive = figures["runs"][OURS], figures["runs"][NAIVE]
    return Shown(
        f"{naive['shuffled'] / ours['shuffled']:.1f} times fewer bytes shuffled",
        f"Spark with two cores on one machine, {figures['rows'] // 1_000_000} million rows of 100 bytes with "
        f"{figures['small']:,} rows, {figures['matching'] / figures['rows']:.0%} of the large rows match: "
        f"{naive['shuffled'] / ours['shuffled']:.1f} times fewer bytes shuffled. "
        "On this one machine, where a shuffle crosses no network, the join took "
        f"{write_seconds(ours['seconds'])} instead of "
        f"{write_seconds(naive['seconds'])}.",
        ["", "bytes shuffled", "time"],
        [
            [
                f"`{name}`" if name == OURS else name,
                write_bytes(one["shuffled"]),
                write_seconds(one["seconds"]),
            ]
            for name, one in figures["runs"].items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    return draw_bars(
        "Bytes that a join of Spark shuffles, with a filter and without",
        "bytes shuffled",
        [
            (name, one["shuffled"] / 1e6, write_bytes(one["shuffled"]), GREEN if name == OURS else GREY)
            for name, one in figures["runs"].items()
        ],
    )
