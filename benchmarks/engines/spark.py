"""Builds, lookups, joins and duplicates of Spark with two cores, beside Spark's own, all by turns.

Each part has a session of its own. Each call runs twice before it counts, which compiles the JVM's code and
starts the Python workers, and then by turns with the others. Shown are the median, the least, the median of
the ratios of each turn, and the ratio of the least. Both sides read the same input: a range, or columns of
the same Parquet files. They use filters of the same n, m and k, and complete: a filter is in the driver, and
rows go to Spark's "noop" sink. Needs pyspark and Java.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import SparkSession, functions

import fullbloom.engines.spark as ours
from benchmarks.engines.record import (
    BLOCKED,
    BLOOM_JOIN,
    DEDUPLICATE,
    DROP,
    OWN,
    PLAIN,
    RUNTIME_FILTER,
    SAME,
)
from benchmarks.isolation import isolated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUILT, ROWS, SMALL = 10_000_000, 20_000_000, 100_000
WARM, TURNS = 2, 5
RUNTIME = "spark.sql.optimizer.runtime.bloomFilter."
Figures = dict[str, Any]


def start(folder: Path) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    builder = SparkSession.builder.master("local[2]").appName("fullbloom benchmark")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "8",
        # Every join is one of shuffled sides, and Spark's runtime filter is used wherever it can be.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        RUNTIME + "applicationSideScanSizeThreshold": "0",
        RUNTIME + "creationSideThreshold": "1g",
        # Spark's aggregate makes no filter beyond these, which are 4M keys and 8 MiB by default.
        RUNTIME + "maxNumItems": str(BUILT),
        RUNTIME + "maxNumBits": str(1 << 30),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def write_sides(session: Any, folder: Path) -> None:
    """A large table whose keys are 20 times those of the small one, or exactly those, and the small one."""
    key = functions.pmod(functions.xxhash64("id"), functions.lit(20 * SMALL))
    big = session.range(ROWS, numPartitions=8).select(
        key.alias("k"), (key % SMALL).alias("every"), functions.col("id").alias("value")
    )
    big.write.parquet(str(folder / "big"))
    small = session.range(SMALL, numPartitions=2).select(
        functions.col("id").alias("k"), functions.col("id").alias("every"), functions.col("id").alias("name")
    )
    small.write.parquet(str(folder / "small"))


def write_keys(session: Any, folder: Path) -> None:
    """Tables of consecutive and random longs and texts, of which one in a hundred repeats an earlier one."""
    unique = ROWS * 99 // 100
    keys = session.range(ROWS, numPartitions=8).select((functions.col("id") % unique).alias("k"))
    keys.write.parquet(str(folder / "longs"))
    keys.select(functions.xxhash64("k").alias("k")).write.parquet(str(folder / "random"))
    texts = keys.select(functions.md5(functions.col("k").cast("string")).alias("k"))
    texts.write.parquet(str(folder / "texts"))


def compare(calls: dict[str, Callable[[], Any]], base: str) -> Figures:
    """Run all by turns, after ``WARM`` runs of each that do not count."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-WARM, TURNS):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            if turn >= 0:
                taken[name].append(time.perf_counter() - begun)
    return {
        name: {
            "seconds": statistics.median(seconds),
            "least": min(seconds),
            "ratio": statistics.median(one / other for one, other in zip(seconds, taken[base], strict=True)),
            "least_ratio": min(seconds) / min(taken[base]),
        }
        for name, seconds in taken.items()
    }


def consume(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def build(session: Any, _folder: Path) -> Figures:
    """Filters of 10M longs."""
    frame = session.range(BUILT, numPartitions=2)

    def build_own() -> Any:
        return frame._jdf.stat().bloomFilter("id", BUILT, 0.01)  # noqa: SLF001 - not in PySpark

    def build_ours(kind: str) -> Any:
        return ours.build(frame, "id", capacity=BUILT, fpr=0.01, kind=kind)

    theirs, mine = ours.from_jvm(build_own()), build_ours("spark")
    assert theirs == mine, (theirs, mine)
    calls = {OWN: build_own, SAME: lambda: build_ours("spark"), BLOCKED: lambda: build_ours("bloom")}
    return {"rows": BUILT, "runs": compare(calls, OWN)}


def contains(session: Any, folder: Path) -> Figures:
    """Lookups of 20M longs."""
    write_sides(session, folder)
    frame = session.read.parquet(str(folder / "big"))
    small = session.read.parquet(str(folder / "small"))
    known = ours.build(small, "k", capacity=SMALL, kind="spark")
    blocked = ours.build(small, "k", capacity=SMALL)
    conditions = {
        OWN: ours.might_contain("k", known),
        SAME: ours.contains("k", known),
        BLOCKED: ours.contains("k", blocked),
    }
    calls = {name: lambda one=one: consume(frame.where(one)) for name, one in conditions.items()}
    return {"rows": ROWS, "runs": compare(calls, OWN)}


def joins(session: Any, folder: Path) -> Figures:
    """Joins of 20M with 100,000 rows, of which 5 % or all of the large rows find a partner."""
    write_sides(session, folder)
    big = session.read.parquet(str(folder / "big"))
    # A predicate, because Spark's runtime filter is for small sides that have one.
    small = session.read.parquet(str(folder / "small")).where("name >= 0")

    def join_own(column: str, *, runtime: bool) -> None:
        session.conf.set(RUNTIME + "enabled", str(runtime).lower())
        joined = big.select(column, "value").join(small.select(column, "name"), column)
        plan = joined._jdf.queryExecution().optimizedPlan().toString()  # noqa: SLF001
        assert ("might_contain" in plan) == runtime, plan
        consume(joined)

    def join_ours(column: str) -> None:
        session.conf.set(RUNTIME + "enabled", "false")
        sides = big.select(column, "value"), small.select(column, "name")
        consume(ours.bloom_join(*sides, on=column))

    shares = {}
    for column, share in (("k", "5 %"), ("every", "100 %")):
        shares[share] = compare(
            {
                PLAIN: lambda column=column: join_own(column, runtime=False),
                RUNTIME_FILTER: lambda column=column: join_own(column, runtime=True),
                BLOOM_JOIN: lambda column=column: join_ours(column),
            },
            PLAIN,
        )
    return {"rows": ROWS, "small": SMALL, "shares": shares}


def count_shuffled(session: Any, call: Callable[[], int]) -> tuple[int, int, float]:
    """What a call returns, the bytes that its stages shuffled, and its seconds."""
    context = session.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"

    def read() -> int:
        with urllib.request.urlopen(url, timeout=60) as response:
            return sum(stage["shuffleWriteBytes"] for stage in json.load(response))

    before, begun = read(), time.perf_counter()
    found = call()
    taken = time.perf_counter() - begun
    time.sleep(1)
    return found, read() - before, taken


def duplicates(session: Any, folder: Path) -> Figures:
    """Rows without the duplicates among 20M, of which 1 % repeat another."""
    write_keys(session, folder)
    tables = {}
    for name in ("longs", "random", "texts"):
        frame = session.read.parquet(str(folder / name))
        # The first turn compiles the JVM's code and does not count.
        for _ in range(2):
            own = count_shuffled(session, frame.dropDuplicates(["k"]).count)
            mine = count_shuffled(session, lambda frame=frame: ours.deduplicate(frame, "k").count())
        assert own[0] == mine[0] == ROWS * 99 // 100
        tables[name] = {
            what: {"seconds": seconds, "shuffled": nbytes}
            for what, (_, nbytes, seconds) in ((DROP, own), (DEDUPLICATE, mine))
        }
    return {"rows": ROWS, "tables": tables}


PARTS = {"build": build, "contains": contains, "joins": joins, "duplicates": duplicates}


def measure(part: str) -> Figures:
    """The figures of one part, in a session of its own."""
    with tempfile.TemporaryDirectory(prefix="fullbloom-bench-") as name:
        folder = Path(name)
        session = start(folder)
        try:
            return PARTS[part](session, folder)
        finally:
            session.stop()


def _format_runs(runs: Figures) -> Iterator[str]:
    for name, one in runs.items():
        shown = f"{one['seconds']:7.2f} s  least {one['least']:6.2f} s"
        yield f"  {name:40} {shown}  {one['ratio']:5.2f}x ({one['least_ratio']:.2f}x)"


def describe(part: str, figures: Figures) -> Iterator[str]:
    """The lines of a part for the terminal."""
    yield f" {part}, {figures['rows']:,} rows"
    if part == "joins":
        for share, runs in figures["shares"].items():
            yield f"  {share} match"
            yield from _format_runs(runs)
    elif part == "duplicates":
        for name, runs in figures["tables"].items():
            for what, one in runs.items():
                ratio = one["shuffled"] / runs[DROP]["shuffled"]
                shown = f"{one['seconds']:7.2f} s  {one['shuffled'] / 1e6:8.1f} MB shuffled"
                yield f"  {f'{what}, {name}':40} {shown}  {ratio:5.3f}x"
    else:
        yield from _format_runs(figures["runs"])


def run(_folder: Path, wanted: str = "") -> Iterator[str]:
    """The lines of the table, or of one part."""
    for part in PARTS:
        if wanted in ("", part):
            yield from describe(part, isolated("benchmarks.engines.spark:measure", {"part": part}))
