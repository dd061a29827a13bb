"""Lookups of longs in Spark's format beside Spark itself: by its class, and by its expression in a query.

``python -m benchmarks.formats.spark``: needs Java and pyspark. Both sides look up the same random keys in a
filter of the same bits, at rate 0.01, on one thread, by turns. The class is called in a warmed-up loop over a
``long[]``; times are processor time of the thread. The query filters a cached column by ``might_contain``,
and one that only compares the key says what the rest of the query takes; times are elapsed. Prints medians
and minima, for filters of several sizes and shares of present keys, and the ratios of each round.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.formats.__main__ import HERE, ROUNDS, clock, list_jars
from fullbloom import BloomFilter, ForeignFilter

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (100_000, 2_000_000, 20_000_000)
SHARES = (0, 50, 100)
KEYS = 4_000_000
#: Rows of the query, and the keys of its filter: Spark puts at most 8 MiB of filter into a plan by itself.
ROWS, MEMBERS = 20_000_000, 2_000_000


def choose_keys(members: int, count: int, share: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return random keys, ``share`` percent of them below ``members``; `SparkLookups.java` has the same."""
    with np.errstate(over="ignore"):
        mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    is_present = (mixed & np.uint64(0xFFFF)) % np.uint64(100) < share
    present = ((mixed >> np.uint64(16)) % np.uint64(members)).astype(np.int64)
    return np.where(is_present, present, np.arange(count) + members)


class SparkClass:
    """A process of `SparkLookups.java` over a filter."""

    def __init__(self, folder: Path, filter_: ForeignFilter, members: int) -> None:
        """Write the filter, compile and start."""
        (folder / "filter").write_bytes(filter_.to_foreign())
        jars = list_jars()
        subprocess.run(["javac", "-cp", jars, "-d", folder, HERE / "SparkLookups.java"], check=True)
        path = os.pathsep.join([jars, str(folder)])
        words = ["java", "-Xmx2g", "-cp", path, "SparkLookups", folder / "filter", members, KEYS]
        self._process = subprocess.Popen(
            [*map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, share: int) -> tuple[float, int]:
        """Return nanoseconds a key of one round, and the number found."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{share}\n")
        self._process.stdin.flush()
        nanoseconds, found = self._process.stdout.readline().split()
        return float(nanoseconds), int(found)

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def compare_class(folder: Path, members: int) -> None:
    """Print lookups in a filter of ``members`` keys, each share of present keys in turn."""
    ours = ForeignFilter("spark", members, 0.01)
    classic = BloomFilter(members, 0.01, layout="classic")
    for bloom in (ours, classic):
        bloom.update(np.arange(members))
    theirs = SparkClass(folder, ours, members)
    print(f"{members:,} keys, {ours.nbytes:,} bytes, {ours.num_hashes} hashes")
    for share in SHARES:
        keys = pa.array(choose_keys(members, KEYS, share))
        rows: dict[str, Callable[[], tuple[float, int]]] = {
            "Spark's class in the JVM": lambda share=share: theirs.run(share),
            "ours": lambda keys=keys: clock(ours.contains_many, keys),
            "our classic layout": lambda keys=keys: clock(classic.contains_many, keys),
        }
        counts = {name: run()[1] for name, run in rows.items()}
        assert counts["ours"] == counts["Spark's class in the JVM"], counts
        report(f"{share:3} % present", by_turns(rows), "ns per key")
    theirs.stop()


def by_turns(rows: dict[str, Callable[[], tuple[float, int]]]) -> dict[str, list[float]]:
    """Return the times of all rounds."""
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(ROUNDS):
        for name, run in rows.items():
            times[name].append(run()[0])
    return times


def report(title: str, times: dict[str, list[float]], unit: str) -> None:
    """Print medians, minima, and the ratios to the times of "ours"."""
    for name, took in times.items():
        ratio = statistics.median(one / own for one, own in zip(took, times["ours"], strict=True))
        of_least = min(took) / min(times["ours"])
        print(
            f"  {title}  {name:28} median {statistics.median(took):7.2f}  least {min(took):7.2f} {unit},"
            f" ratio {ratio:5.2f} ({of_least:.2f})"
        )


def compare_query(folder: Path) -> None:
    """Print lookups by Spark's expression in a query of one core, over a column in memory."""
    from pyspark.sql import SparkSession, functions

    from fullbloom.engines.spark import might_contain

    os.environ["PYSPARK_PYTHON"] = sys.executable
    keys = choose_keys(MEMBERS, ROWS, 50)
    pq.write_table(pa.table({"k": keys}), folder / "keys.parquet")
    ours = ForeignFilter("spark", MEMBERS, 0.01)
    ours.update(np.arange(MEMBERS))
    column = pa.array(keys)
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    frame = session.read.parquet(str(folder / "keys.parquet")).cache()
    wanted = sum(ours.contains_many(column).to_numpy(zero_copy_only=False))

    def count(condition: Any) -> tuple[float, int]:
        start = time.perf_counter()
        found = frame.where(condition).count()
        return (time.perf_counter() - start) * 1e9 / ROWS, int(found)

    def run_ours() -> tuple[float, int]:
        start = time.perf_counter()
        found = ours.contains_many(column).true_count
        return (time.perf_counter() - start) * 1e9 / ROWS, int(found)

    rows: dict[str, Callable[[], tuple[float, int]]] = {
        "might_contain in a query": lambda: count(might_contain("k", ours)),
        "a comparison in that query": lambda: count(functions.col("k") < MEMBERS),
        "ours": run_ours,
    }
    for _ in range(3):
        counts = {name: run()[1] for name, run in rows.items()}
    assert counts["ours"] == counts["might_contain in a query"] == wanted, (counts, wanted)
    times = by_turns(rows)
    print(f"a query over {ROWS:,} rows, {MEMBERS:,} keys in the filter")
    report(" 50 % present", times, "ns per row")
    session.stop()


def main() -> None:
    """Run all comparisons."""
    for members in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            compare_class(Path(folder), members)
    with tempfile.TemporaryDirectory() as folder:
        compare_query(Path(folder))
    print("load", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
