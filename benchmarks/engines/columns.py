"""Lookups of 10 million integers in DuckDB, Polars and PyArrow, beside one batch of NumPy, all by turns.

DuckDB's ``bloom_contains`` gets 2,048 rows per call. As a Python function, in a database that was opened
without the compiled one, it gets them as Arrow, while it waits for the GIL; a reader of DuckDB's batches gets
131,072. Functions that do nothing show the cost of such a call alone. The median of the ratios of each turn
is shown.
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
from duckdb.func import FunctionNullHandling, PythonUDFType

import fullbloom.engines.arrow as in_arrow
import fullbloom.engines.duckdb as in_duckdb
import fullbloom.engines.polars as in_polars
from fullbloom import BloomFilter, _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS, CAPACITY, FPR, TURNS = 10_000_000, 1_000_000, 0.01, 7
SMALL = 100_000
#: Keys of a list: the rows that DuckDB stores together.
LISTED = 122_880
RAW = "NumPy batch"


def measure_by_turns(calls: dict[str, Callable[[], Any]], base: str) -> dict[str, dict[str, float]]:
    """Run all by turns; the results must be equal, except of those that return None."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    results = {name: result for name, call in calls.items() if (result := call()) is not None}
    assert len(set(results.values())) == 1, results
    for _ in range(TURNS):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - begun)
    return {
        name: {
            "seconds": statistics.median(seconds),
            "ratio": statistics.median(one / other for one, other in zip(seconds, taken[base], strict=True)),
        }
        for name, seconds in taken.items()
    }


def _format(measured: dict[str, dict[str, float]]) -> Iterator[str]:
    for name, one in measured.items():
        yield f"  {name:44} {one['seconds'] * 1e3:8.1f} ms  {one['ratio']:5.2f}x"


def _connect(name: str, table: Any, *, compiled: bool = True) -> Any:
    """A database in memory with a table, and the compiled function or none."""
    before = _core.enable_duckdb(compiled)
    connection = duckdb.connect()
    _core.enable_duckdb(before)
    connection.register("source", table)
    connection.execute(f"create table {name} as select * from source")
    connection.unregister("source")
    return connection


def _create_nothing(connection: Any) -> None:
    """Functions of one and two arguments that answer null without a look at their keys."""
    nulls = pa.chunked_array([pa.nulls(2048, pa.bool_())])

    def nothing(keys):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - DuckDB reads the annotations
        return nulls.slice(0, len(keys))

    def nothing_named(_name, keys):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return nulls.slice(0, len(keys))

    options = {"type": PythonUDFType.ARROW, "null_handling": FunctionNullHandling.SPECIAL}
    connection.create_function("nothing", nothing, ["BIGINT"], "BOOLEAN", **options)
    connection.create_function("nothing_named", nothing_named, ["VARCHAR", "BIGINT"], "BOOLEAN", **options)


def _create_list_lookup(connection: Any, known: BloomFilter) -> None:
    """A function of lists of keys, so that a call has as many keys as a query puts into a list."""

    def look_up(lists):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return pa.chunked_array(
            [
                pa.ListArray.from_arrays(chunk.offsets, pa.array(known.contains_many(chunk.values)))
                for chunk in lists.chunks
            ]
        )

    options = {"type": PythonUDFType.ARROW, "null_handling": FunctionNullHandling.SPECIAL}
    connection.create_function("contains_lists", look_up, ["BIGINT[]"], "BOOLEAN[]", **options)


def measure_contains() -> dict[str, dict[str, float]]:
    """Count the keys that a filter may contain."""
    keys, known = create_keys(), create_filter()
    table = pa.table({"x": keys})
    connection = _connect("rows", table)
    in_duckdb.register(connection, known=known)
    uncompiled = _connect("rows", table, compiled=False)
    in_duckdb.register(uncompiled, known=known)
    _create_nothing(connection)
    _create_list_lookup(connection, known)
    frame = pl.DataFrame({"x": keys})
    expression = pl.col("x").bloom.contains(known).sum()  # type: ignore[attr-defined]
    in_arrow.register(known, "bench_contains")
    column, dataset = table["x"], pa.dataset.dataset(table)
    rows = connection.table("rows")
    (threads,) = connection.sql("select current_setting('threads')").fetchall()[0]

    def count(condition: str, most_threads: int = threads, database: Any = connection) -> int:
        database.execute(f"set threads = {most_threads}")
        found = database.sql(f"select count(*) from rows where {condition}").fetchall()[0][0]
        database.execute(f"set threads = {threads}")
        return int(found)

    candidates = in_duckdb.keep_candidates(connection, rows, "x", known)

    def count_candidates() -> int:
        return int(candidates.aggregate("count(*)").fetchall()[0][0])

    def look_up_query() -> int:
        found = known.contains_many(rows.select(duckdb.ColumnExpression("x")))
        return sum(pa.array(part).true_count for part in (found if isinstance(found, list) else [found]))

    def count_in_lists() -> int:
        lists = f"select list(x) as keys from rows group by rowid // {LISTED}"
        query = (
            f"select count(*) from (select unnest(contains_lists(keys)) as found from ({lists})) where found"
        )
        return int(connection.sql(query).fetchall()[0][0])

    def do_nothing(condition: str, most_threads: int = threads) -> None:
        count(condition, most_threads)

    contains = "bloom_contains('known', x)"
    measured = measure_by_turns(
        {
            RAW: lambda: int(known.contains_many(keys).sum()),
            "Polars, in memory": lambda: frame.lazy().select(expression).collect(engine="in-memory").item(),
            "Polars, streaming": lambda: frame.lazy().select(expression).collect(engine="streaming").item(),
            "PyArrow, compute function": lambda: (
                pc.call_function("bench_contains", [column]).combine_chunks().true_count
            ),
            "PyArrow, dataset": lambda: in_arrow.filter_dataset(dataset, "x", "bench_contains").count_rows(),
            "DuckDB, a query as a batch": look_up_query,
            "DuckDB, keep_candidates": count_candidates,
            "DuckDB, bloom_contains in SQL": lambda: count(contains),
            "DuckDB, bloom_contains, one thread": lambda: count(contains, 1),
            "DuckDB, bloom_contains as a Python function": lambda: count(contains, database=uncompiled),
            "DuckDB, the Python function, one thread": lambda: count(contains, 1, uncompiled),
            "DuckDB, lists of 122,880 keys": count_in_lists,
            "DuckDB, nothing, one argument, one thread": lambda: do_nothing("nothing(x)", 1),
            "DuckDB, nothing, two arguments, one thread": lambda: do_nothing("nothing_named('known', x)", 1),
            "DuckDB, nothing, two arguments": lambda: do_nothing("nothing_named('known', x)"),
        },
        RAW,
    )
    in_arrow.unregister("bench_contains")
    return measured


def joins(keys: Any) -> Iterator[str]:
    """A semi-join with 100,000 rows, beside DuckDB's own."""
    connection = _connect("big", pa.table({"x": keys}))
    connection.execute(f"create table small as select range as x from range({SMALL})")
    big, small = connection.table("big"), connection.table("small")
    own = "select count(*) from big semi join small using (x)"
    yield from _format(
        measure_by_turns(
            {
                "DuckDB's semi join": lambda: connection.sql(own).fetchall()[0][0],
                "semi_join": lambda: (
                    in_duckdb.semi_join(connection, big, small, on="x").aggregate("count(*)").fetchall()[0][0]
                ),
            },
            "DuckDB's semi join",
        )
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
    yield from _format(
        measure_by_turns(
            {
                "NumPy batch, update": build_batch,
                "Polars, build": lambda: in_polars.build(frame, "x", capacity=ROWS, fpr=FPR).num_added,
                "DuckDB, build": lambda: in_duckdb.build(rows, "x", capacity=ROWS, fpr=FPR).num_added,
            },
            "NumPy batch, update",
        )
    )


def create_filter() -> BloomFilter:
    """A filter of the first million integers."""
    known = BloomFilter(CAPACITY, FPR)
    known.update(np.arange(CAPACITY))
    return known


def create_keys() -> Any:
    """Ten million integers, a twentieth of them in the filter."""
    return np.random.default_rng(1).integers(0, 20 * CAPACITY, ROWS)


def run(_folder: Path) -> Iterator[str]:
    """The lines of the table."""
    yield from _format(measure_contains())
    keys = create_keys()
    yield from joins(keys)
    yield from builds(keys)
