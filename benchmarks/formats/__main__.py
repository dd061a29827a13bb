"""Lookups in filters of other programs, beside those programs, interleaved in one run.

``python -m benchmarks.formats``: needs Java, and the jars of Spark and Guava, from an installed pyspark or
from the folder FULLBLOOM_SPARK_JARS. Times a key are processor time of the thread that works, in each
program, so that other processes of the machine disturb them little. Prints median and least of nine rounds,
the ratios of each round, and the load of the machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fullbloom import BloomFilter, ForeignFilter, ForeignStaticFilter
from fullbloom.formats.parquet import probe_filters
from fullbloom.formats.sources import RangedFile

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
ROUNDS, KEYS, LONGS, TEXTS, FILES = 9, 2_000_000, 4_000_000, 1_000_000, 1_000
#: Keys that are looked up in the filters of one file, and its row groups of a million rows.
PROBED, GROUPS = 10_000_000, 2
#: Ratios to report: the slower, the faster, and the bar.
RATIOS = [
    ("spark, Arrow longs", "our classic layout, Arrow longs", "at most 2"),
    ("Spark in the JVM, longs", "spark, Arrow longs", "at least 3"),
    ("Guava in the JVM, Strings", "guava utf-8, list of str", "at least 1.5"),
]


def list_jars() -> str:
    """Return the class path of Spark's and Guava's classes."""
    folder = os.environ.get("FULLBLOOM_SPARK_JARS")
    if folder is None:
        spec = find_spec("pyspark")
        if spec is None or spec.origin is None:
            sys.exit("needs pyspark, for its jars: pip install -r requirements/formats.txt")
        folder = str(Path(spec.origin).parent / "jars")
    names = ("spark-sketch_*.jar", "guava-*.jar", "failureaccess-*.jar")
    return os.pathsep.join(str(jar) for name in names for jar in Path(folder).glob(name))


class Jvm:
    """A warmed-up process of `Jvm.java` over two filters."""

    def __init__(self, folder: Path, spark: ForeignFilter, guava: ForeignFilter) -> None:
        """Write the filters, compile and start."""
        (folder / "spark").write_bytes(spark.to_foreign())
        (folder / "guava").write_bytes(guava.to_foreign())
        jars = list_jars()
        subprocess.run(["javac", "-cp", jars, "-d", folder, HERE / "Jvm.java"], check=True)
        words = [
            os.pathsep.join([jars, str(folder)]),
            "Jvm",
            folder / "spark",
            folder / "guava",
            LONGS,
            TEXTS,
        ]
        self._process = subprocess.Popen(
            ["java", "-Xmx2g", "-cp", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == "ready"

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def run(self, name: str) -> tuple[float, int]:
        """Return nanoseconds a key of one round, and the number found."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        nanoseconds, found = self._read().split()
        return float(nanoseconds), int(found)


def clock(ask: Callable[[Any], Any], keys: Any) -> tuple[float, int]:
    """Return nanoseconds of processor time a key, and the number found."""
    start = time.thread_time()
    found = ask(keys)
    took = (time.thread_time() - start) * 1e9 / len(keys)
    return took, int(found.true_count) if isinstance(found, pa.BooleanArray) else sum(found)


def compare_lookups(folder: Path) -> None:
    """Print the rounds of lookups; every program finds the same number of keys."""
    spark = ForeignFilter("spark", KEYS, 0.01)
    classic = BloomFilter(KEYS, 0.01, layout="classic")
    parquet = ForeignFilter("parquet", KEYS, 0.01, key_type="long")
    spark_1 = ForeignFilter("spark-v1", KEYS, 0.01)
    guava_long = ForeignFilter("guava", KEYS, 0.01, key_type="long")
    for bloom in (spark, spark_1, guava_long, classic, parquet):
        bloom.update(np.arange(KEYS))
    fuse = ForeignStaticFilter.build("fuse8", np.arange(KEYS), key_type="uint64")
    guava = ForeignFilter("guava", TEXTS, 0.01, key_type="utf-8")
    guava.update([f"user-{i}@example.com" for i in range(TEXTS)])
    longs = pa.array(np.arange(LONGS) * 2)
    texts = [f"user-{i * 2}@example.com" for i in range(TEXTS)]
    jvm = Jvm(folder, spark, guava)
    rows: dict[str, Callable[[], tuple[float, int]]] = {
        "spark, Arrow longs": lambda: clock(spark.contains_many, longs),
        "our classic layout, Arrow longs": lambda: clock(classic.contains_many, longs),
        "Spark in the JVM, longs": lambda: jvm.run("spark"),
        "guava utf-8, list of str": lambda: clock(guava.contains_many, texts),
        "Guava in the JVM, Strings": lambda: jvm.run("guava"),
        "spark-v1, Arrow longs": lambda: clock(spark_1.contains_many, longs),
        "guava, Arrow longs": lambda: clock(guava_long.contains_many, longs),
        "fuse8, Arrow longs": lambda: clock(fuse.contains_many, longs),
        "parquet, Arrow longs": lambda: clock(parquet.contains_many, longs),
    }
    times: dict[str, list[float]] = {name: [] for name in rows}
    counts = dict.fromkeys(rows, 0)
    for _ in range(ROUNDS):
        for name, run in rows.items():
            took, counts[name] = run()
            times[name].append(took)
    assert counts["spark, Arrow longs"] == counts["Spark in the JVM, longs"]
    assert counts["guava utf-8, list of str"] == counts["Guava in the JVM, Strings"]
    for name, took in times.items():
        print(f"{name:34} median {statistics.median(took):7.1f}  least {min(took):7.1f} ns per key")
    for slower, faster, bar in RATIOS:
        ratios = [a / b for a, b in zip(times[slower], times[faster], strict=True)]
        of_least = min(times[slower]) / min(times[faster])
        print(f"{slower} / {faster}: median {statistics.median(ratios):.2f}, of least {of_least:.2f} ({bar})")


def probe_file(folder: Path) -> None:
    """Print the time of probing the filters of a Parquet file for many keys."""
    path = folder / "one.parquet"
    rows = 1_000_000
    table = pa.table({"user_id": np.random.default_rng(1).permutation(rows * GROUPS)})
    options = {"user_id": {"ndv": rows, "fpp": 0.01}}
    pq.write_table(table, path, row_group_size=rows, bloom_filter_options=options)
    keys = np.arange(PROBED)
    times = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        found = [probe.found.sum() for probe in probe_filters(str(path), "user_id", keys)]
        times.append((time.thread_time() - start) * 1e9 / PROBED / GROUPS)
        assert len(found) == GROUPS
        assert all(rows <= count < rows * 1.2 for count in found)
    name = f"{PROBED // 10**6}M keys, filters of a file"
    middle, least = statistics.median(times), min(times)
    print(f"{name:34} median {middle:7.1f}  least {least:7.1f} ns per key and filter (at most 25)")


def compare_files(folder: Path) -> None:
    """Print the time of probing many files, of reading the column instead, and the bytes that were read."""
    for number in range(FILES):
        ids = np.arange(20_000) + number * 20_000
        table = pa.table({"user_id": ids, "other": ids * 0.1})
        options = {"user_id": {"ndv": 20_000, "fpp": 0.01}}
        pq.write_table(table, folder / f"{number:04}.parquet", bloom_filter_options=options)
    keys = [number * 200_003 for number in range(100)]
    read, footers = 0, 0
    plain = RangedFile.read

    def count_read(file: RangedFile, offset: int, length: int) -> bytes:
        nonlocal read
        read += length
        return plain(file, offset, length)

    RangedFile.read = count_read  # type: ignore[method-assign]
    start = time.perf_counter()
    probes = list(probe_filters(str(folder / "*.parquet"), "user_id", keys))
    ours = time.perf_counter() - start
    RangedFile.read = plain  # type: ignore[method-assign]
    wanted = sum(probe.place.length or 0 for probe in probes)
    start = time.perf_counter()
    found = 0
    for path in sorted(folder.glob("*.parquet")):
        footers += 8 + int.from_bytes(path.read_bytes()[-8:-4], "little")
        column = pq.read_table(path, columns=["user_id"])["user_id"]
        found += pa.compute.sum(pa.compute.is_in(column, pa.array(keys))).as_py() or 0
    theirs = time.perf_counter() - start
    matches = sum(sum(probe.found) for probe in probes)
    print(f"{FILES} files x {len(keys)} keys: {ours:.3f} s ({matches} matches)")
    print(f"reading the column: {theirs:.3f} s ({found} matches), {theirs / ours:.1f} times")
    print(f"bytes read: {read / (footers + wanted):.4f} of footers and filters")


def main() -> None:
    """Run all comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        compare_lookups(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        probe_file(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        compare_files(Path(folder))
    print("load", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
