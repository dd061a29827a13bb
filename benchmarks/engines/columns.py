"""Lookups of 10 million integers in DuckDB, Polars and PyArrow, beside one batch of NumPy, all by turns.

DuckDB's ``bloom_contains`` gets 2,048 rows a call, which DuckDB converts to Arrow and back; a reader of its
batches gets 262,144. The median of the ratios of each turn is shown.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

import fullbloom.engines.arrow as in_arrow
import fullbloom.engines.duckdb as in_duckdb
import fullbloom.engines.polars as in_polars
from fullbloom import BloomFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS, CAPACITY, FPR, TURNS = 10_000_000, 1_000_000, 0.01, 7
SMALL = 100_000
RAW = "NumPy batch"


def _time(calls: dict[str, Callable[[], Any]], base: str) -> Iterator[str]:
    """Run all by turns; the results must be equal."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    results = {name: call() for name, call in calls.items()}
    assert len(set(results.values())) == 1, results
    for _ in range(TURNS):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - begun)
    for name, seconds in taken.items():
        ratio = statistics.median(one / other for one, other in zip(seconds, taken[base], strict=True))
        yield f"  {name:44} {statistics.median(seconds) * 1e3:8.1f} ms  {ratio:5.2f}x"


def _connect(name: str, table: Any) -> Any:
    """A database in memory with a table."""
    connection = duckdb.connect()
    connection.register("source", table)
    connection.execute(f"create table {name} as select * from source")
    connection.unregister("source")
    return connection


def contains(keys: Any, known: BloomFilter) -> Iterator[str]:
    """Count the keys that a filter may contain."""
    table = pa.table({"x": keys})
    connection = _connect("rows", table)
    in_duckdb.register(connection, known=known)
    frame = pl.DataFrame({"x": keys})
    expression = pl.col("x").bloom.contains(known).sum()  # type: ignore[attr-defined]
    in_arrow.register(known, "bench_contains")
    column, dataset = table["x"], pa.dataset.dataset(table)
    candidates = "select count(*) from rows where bloom_contains('known', x)"

    def read_batches() -> int:
        reader = connection.sql("select x from rows").to_arrow_reader(1 << 18)
        return sum(len(batch) for batch in in_arrow.keep_candidates(reader, "x", known))

    def look_up_query() -> int:
        found = known.contains_many(connection.sql("select x from rows"))
        return sum(pa.array(part).true_count for part in (found if isinstance(found, list) else [found]))

    yield from _time(
        {
            RAW: lambda: int(known.contains_many(keys).sum()),
            "Polars, in memory": lambda: frame.lazy().select(expression).collect(engine="in-memory").item(),
            "Polars, streaming": lambda: frame.lazy().select(expression).collect(engine="streaming").item(),
            "PyArrow, compute function": lambda: (
                pc.call_function("bench_contains", [column]).combine_chunks().true_count
            ),
            "PyArrow, dataset": lambda: in_arrow.filter_dataset(dataset, "x", "bench_contains").count_rows(),
            "DuckDB, bloom_contains in SQL": lambda: connection.sql(candidates).fetchall()[0][0],
            "DuckDB, a query as a batch": look_up_query,
            "DuckDB, keep_candidates of its batches": read_batches,
        },
        RAW,
    )
    in_arrow.unregister("bench_contains")


def joins(keys: Any) -> Iterator[str]:
    """A semi-join with 100,000 rows, beside DuckDB's own."""
    connection = _connect("big", pa.table({"x": keys}))
    connection.execute(f"create table small as select range as x from range({SMALL})")
    big, small = connection.table("big"), connection.table("small")
    own = "select count(*) from big semi join small using (x)"
    yield from _time(
        {
            "DuckDB's semi join": lambda: connection.sql(own).fetchall()[0][0],
            "semi_join": lambda: (
                in_duckdb.semi_join(connection, big, small, on="x").aggregate("count(*)").fetchall()[0][0]
            ),
        },
        "DuckDB's semi join",
    )


def builds(keys: Any) -> Iterator[str]:
    """Filters of a column."""
    connection = _connect("rows", pa.table({"x": keys}))
    frame = pl.LazyFrame({"x": keys})

    def build_batch() -> int:
        made = BloomFilter(ROWS, FPR)
        made.update(keys)
        return made.num_added

    rows = connection.table("rows")
    yield from _time(
        {
            "NumPy batch, update": build_batch,
            "Polars, build": lambda: in_polars.build(frame, "x", capacity=ROWS, fpr=FPR).num_added,
            "DuckDB, build": lambda: in_duckdb.build(rows, "x", capacity=ROWS, fpr=FPR).num_added,
        },
        "NumPy batch, update",
    )


def run(_folder: Path) -> Iterator[str]:
    """The lines of the table."""
    known = BloomFilter(CAPACITY, FPR)
    known.update(np.arange(CAPACITY))
    keys = np.random.default_rng(1).integers(0, 20 * CAPACITY, ROWS)
    yield from contains(keys, known)
    yield from joins(keys)
    yield from builds(keys)
