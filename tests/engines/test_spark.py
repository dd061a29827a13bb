"""Guarantee: filters of Spark are those of this process, and what they cannot do is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import math

import pyarrow as pa
import pytest
from engines import pages, spark_sessions
from hostile.container import File

import fullbloom
from fullbloom import BloomFilter, CuckooFilter, ForeignFilter
from fullbloom.errors import (
    EngineError,
    FilterMemoryError,
    FormatError,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
    SecretError,
)

FPR = 1e-9


@pytest.fixture(scope="module")
def session():
    with spark_sessions.run(**{"spark.driver.maxResultSize": "48m"}) as running:
        yield running


@pytest.fixture(autouse=True)
def bound(session):  # noqa: ARG001 - the session has a bound of its own
    with spark_sessions.bound():
        yield


@pytest.fixture(scope="module")
def engine(session):  # noqa: ARG001 - the engine needs one
    from fullbloom.engines import spark

    return spark


@pytest.fixture(scope="module")
def functions(session):  # noqa: ARG001 - functions need one
    from pyspark.sql import functions as found

    return found


def test_a_build_has_the_bits_of_one_batch(session, engine):
    built = engine.build(session.range(50_000, numPartitions=7), "id", capacity=50_000)
    local = BloomFilter(50_000)
    local.update(range(50_000))
    assert built == local


def test_results_too_large_to_collect_many_merge_in_two_rounds(session, engine):
    built = engine.build(session.range(1000, numPartitions=5), "id", capacity=15_000_000)
    assert built.num_added == 1000
    assert all(built.contains_many(range(1000)))


def test_a_counting_filter_counts_rows_of_all_partitions(session, engine, functions):
    frame = session.range(4000, numPartitions=4).select((functions.col("id") % 1000).alias("key"))
    built = engine.build(frame, "key", capacity=4000, fpr=FPR, kind="counting")
    assert set(built.count_many(list(range(1000)))) == {4}


def test_a_cuckoo_filter_is_built(session, engine):
    built = engine.build(session.range(1000), "id", capacity=2000, kind="cuckoo")
    assert isinstance(built, CuckooFilter)
    assert all(built.contains_many(range(1000)))


VALUES = {
    "byte": [1, -1, None],
    "int": [1, 2**31 - 1, None],
    "bigint": [1, -(2**63), None],
    "float": [1.5, math.nan, None],
    "double": [0.0, math.nan, None],
    "boolean": [True, False, None],
    "string": ["a", "café", None],
    "binary": [b"a", b"\xff", None],
    "date": [dt.date(2024, 2, 29), None],
    "timestamp": [dt.datetime(2024, 2, 29, 1, 2, 3), None],
    "timestamp_ntz": [dt.datetime(2024, 2, 29, 1, 2, 3), None],
    "decimal(10,2)": [decimal.Decimal("1.50"), None],
    "interval day to second": [dt.timedelta(days=1, seconds=2), None],
    "struct<a:int,b:string>": [(1, "x"), (2, "y"), None],
}


@pytest.mark.parametrize("kind", VALUES)
def test_keys_of_every_type_are_found_and_nulls_are_none(session, engine, kind):
    frame = session.createDataFrame([(value,) for value in VALUES[kind]], f"key {kind}")
    built = engine.build(frame, "key", capacity=100, fpr=FPR)
    assert built.num_added == len(VALUES[kind]) - 1
    marks = [row[0] for row in frame.select(engine.contains("key", built)).collect()]
    assert marks == [None if value is None else True for value in VALUES[kind]]


def test_the_keys_are_those_of_python(session, engine):
    built = engine.build(session.createDataFrame([("a",), ("é",)], "key string"), "key", capacity=10, fpr=FPR)
    assert built.contains_many(["a", "é", "b"]) == [True, True, False]
    known = BloomFilter(10, fpr=FPR)
    known.update([1, 3])
    marks = session.range(4).orderBy("id").select(engine.contains("id", known)).collect()
    assert [row[0] for row in marks] == [False, True, False, True]


@pytest.mark.parametrize("kind", ["array<int>", "map<string,int>", "struct<a:array<int>>"])
def test_a_column_without_keys_is_refused_before_it_runs(session, engine, kind):
    frame = session.createDataFrame([], f"key {kind}")
    with pytest.raises(KeyTypeError, match="whose values cannot be keys"):
        engine.build(frame, "key", capacity=10)


def test_keys_of_another_type_are_an_error_of_the_query(session, engine):
    known = BloomFilter(10)
    known.update([1, 2])
    frame = session.createDataFrame([(None,), ("1",)], "key string").coalesce(1)
    for _ in range(2):  # also in a process that has warned
        with pytest.raises(Exception, match="KeyTypeError: keys of type text were looked up"):
            frame.select(engine.contains("key", known)).collect()


def test_parameters_are_refused_before_anything_runs(session, engine):
    frame = session.range(10)
    with pytest.raises(ParameterError, match="column 'nope' does not exist; the columns are id"):
        engine.build(frame, "nope", capacity=10)
    with pytest.raises(ParameterError, match=r"kind must be one of bloom, .*spark, spark-v1"):
        engine.build(frame, "id", capacity=10, kind="xor")
    with pytest.raises(ParameterError, match="kind must be"):
        engine.build(frame, "id", capacity=10, kind="stable")  # its parts cannot merge
    with pytest.raises(ParameterTypeError, match="a DataFrame of Spark is needed, got list"):
        engine.build([1], "id", capacity=10)
    with pytest.raises(ParameterTypeError, match="a filter is needed"):
        engine.contains("id", {1})
    with pytest.raises(ParameterError, match="fpr must be"):
        engine.build(frame, "id", capacity=10, fpr=2)
    twice = frame.join(frame, frame["id"] == frame["id"])
    with pytest.raises(ParameterError, match="'id' is ambiguous"):
        engine.build(twice, "id", capacity=10)


def test_secrets_stay_in_this_process(session, engine):
    with pytest.raises(ParameterError, match="plans would contain the secret"):
        engine.build(session.range(10), "id", capacity=10, secret=b"x" * 16)
    with pytest.raises(SecretError, match="cannot be sent to workers"):
        engine.contains("id", BloomFilter(10, secret=b"x" * 16))


def test_what_does_not_fit_says_so_before_it_runs(session, engine):
    frame = session.range(10)
    with pytest.raises(FilterMemoryError, match=r"spark.driver.maxResultSize = 48.0 MiB"):
        engine.build(frame, "id", capacity=60_000_000)
    with pytest.raises(FilterMemoryError, match="at most 2 GiB as one value"):
        engine.build(frame, "id", capacity=2_000_000_000)
    with pytest.raises(FilterMemoryError, match=r"max_bytes is 1\.0 KiB"):
        engine.contains("id", BloomFilter(10_000), max_bytes=1024)
    with pytest.raises(ParameterError, match="max_bytes must be 0 or more, got -1"):
        engine.contains("id", BloomFilter(10_000), max_bytes=-1)


def test_a_bare_number_of_memory_is_in_mebibytes_as_spark_reads_it(engine):  # noqa: ARG001
    from fullbloom.engines.spark import sessions

    class Settings:
        conf = {"spark.driver.memory": "2", "spark.master": "local[2]"}  # noqa: RUF012

    sessions.check_broadcast_size(Settings, 1 << 20, None)
    with pytest.raises(FilterMemoryError, match=r"half of spark.driver.memory is 1\.0 MiB"):
        sessions.check_broadcast_size(Settings, (1 << 20) + 1, None)


@pytest.mark.parametrize("version", ["spark", "spark-v1"])
def test_spark_s_own_filter_goes_in_and_out(session, engine, version):
    built = engine.build(session.range(1000, numPartitions=3), "id", capacity=1000, fpr=0.01, kind=version)
    frame = session.range(3000)
    expected = ForeignFilter(version, 1000, 0.01)
    expected.update(range(1000))
    assert built.to_foreign() == expected.to_foreign()
    theirs = engine.to_jvm(built)
    assert [theirs.mightContainLong(key) for key in (0, 999)] == [True, True]
    assert engine.from_jvm(theirs) == built
    marks = frame.select(
        "id", engine.contains("id", built).alias("ours"), engine.might_contain("id", built).alias("theirs")
    )
    assert marks.where("ours != theirs").count() == 0
    assert 1000 <= marks.where("ours").count() < 1100


def test_spark_s_aggregate_has_the_same_bits(session, engine):
    frame = session.range(20_000, numPartitions=3)
    theirs = engine.from_jvm(frame._jdf.stat().bloomFilter("id", 20_000, 0.01))
    assert theirs.format == "spark"
    assert engine.build(frame, "id", capacity=20_000, fpr=0.01, kind="spark") == theirs


@pytest.mark.parametrize("kind", ["bigint", "int", "smallint", "string"])
def test_longs_and_ints_are_looked_up_in_the_jvm(session, engine, functions, kind):
    keys = session.range(3000).select(functions.col("id").cast(kind).alias("k"))
    known = engine.build(keys.where("int(k) < 1000"), "k", capacity=1000, fpr=1e-9, kind="spark")
    found = engine.contains("k", known)
    plan = keys.where(found)._jdf.queryExecution().executedPlan().toString()
    in_jvm = kind in ("bigint", "int")
    assert ("might_contain" in plan, "ArrowEvalPython" in plan) == (in_jvm, not in_jvm)
    assert [keys.where(one).count() for one in (found, ~found)] == [1000, 2000]
    nothing = session.sql(f"SELECT CAST(NULL AS {kind}) AS k").select(found)
    assert nothing.columns == ["bloom_contains"]
    assert nothing.collect()[0][0] is None


@pytest.mark.parametrize("kind", ["bigint", "string"])
def test_a_build_on_one_machine_shuffles_nothing_and_changes_no_setting(session, engine, functions, kind):
    names = [f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Records", "Bytes")]
    frame = session.range(1000, numPartitions=7).select(functions.col("id").cast(kind).alias("k"))
    before = spark_sessions.read_shuffle_bytes(session), [session.conf.get(name) for name in names]
    built = engine.build(frame, "k", capacity=1000)
    assert all(built.contains_many([row["k"] for row in frame.collect()]))
    with pytest.raises(KeyTypeError, match="keys of this filter must be"):
        engine.build(session.sql("SELECT 1.5D AS k"), "k", capacity=10, kind="spark")
    after = spark_sessions.read_shuffle_bytes(session), [session.conf.get(name) for name in names]
    assert after == before


def test_other_filters_are_not_passed_to_the_jvm(engine):
    for call in (engine.to_jvm, lambda one: engine.might_contain("id", one)):
        with pytest.raises(ParameterTypeError, match="in Spark's format is needed"):
            call(BloomFilter(10))


def test_the_union_of_days_is_counted_without_their_rows(session, engine):
    days = [session.range(start, start + 10_000) for start in (0, 5_000, 20_000)]
    first = engine.build(days[0], "id", capacity=50_000)
    estimate, deviation = engine.approx_count_distinct_union([first, *days[1:]], "id", capacity=50_000)
    assert abs(estimate - 25_000) < 6 * deviation
    with pytest.raises(ParameterError, match="column is needed"):
        engine.approx_count_distinct_union(days, capacity=50_000)
    with pytest.raises(ParameterTypeError, match="got set"):
        engine.approx_count_distinct_union([{1}], "id", capacity=10)


def test_a_worker_process_maps_the_file_once(session, engine):
    """Tasks share the file of the executor, and a process opens it once."""
    known = BloomFilter(1000)
    known.update(range(1000))
    found = engine.contains("id", known)
    frame = session.range(20_000, numPartitions=8)
    for _ in range(2):
        assert frame.where(found).count() < 1300

    digest = hashlib.blake2b(known.to_bytes(), digest_size=16).hexdigest()

    def report(batches):
        from pathlib import Path

        from pyspark import SparkFiles

        from fullbloom.engines.spark import worker

        files = len(list(Path(SparkFiles.getRootDirectory()).glob(f"*{digest}*")))
        for _ in batches:
            pass
        opened = worker._open.get(digest)  # None in a process that ran no task of the query
        mapped = opened is None or opened.mapped
        yield pa.record_batch({"files": [files], "mapped": [mapped], "opened": [opened is not None]})

    rows = frame.mapInArrow(report, "files long, mapped boolean, opened boolean").collect()
    assert all(row["files"] == 1 and row["mapped"] for row in rows)
    assert any(row["opened"] for row in rows)


PACKAGES = {
    "is not installed there": "raise ModuleNotFoundError(\"No module named 'fullbloom'\", name='fullbloom')",
    "is 0.0.1 there": "__version__ = '0.0.1'",
}


CALLS = {
    "build": lambda engine, frame: engine.build(frame, "id", capacity=10),
    "contains": lambda engine, frame: frame.where(engine.contains("id", BloomFilter(10))).count(),
    "sample": lambda engine, frame: engine.plan_join(frame, frame, on="id", use_filter=True),
    "join": lambda engine, frame: engine.bloom_join(
        frame, frame, on="id", use_filter=True, sample=False
    ).count(),
    "duplicates": lambda engine, frame: engine.find_duplicates(frame, "id"),
    "deduplicate": lambda engine, frame: engine.deduplicate(frame, "id"),
    "count": lambda engine, frame: engine.approx_count_distinct_union([frame], "id", capacity=10),
}


@pytest.mark.parametrize("state", PACKAGES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_worker_with_another_installation_is_one_error(session, engine, tmp_path, monkeypatch, state, call):
    from fullbloom.engines.spark import candidates

    # What a classic session does in the JVM needs no package on workers.
    monkeypatch.setattr(candidates, "fits_plan", lambda _: False)
    (tmp_path / "fullbloom").mkdir()
    (tmp_path / "fullbloom" / "__init__.py").write_text(PACKAGES[state])
    environment = session.sparkContext.environment
    environment["PYTHONPATH"] = str(tmp_path)
    try:
        with (
            pytest.raises(
                EngineError, match=rf"{state}, and {fullbloom.__version__} on the driver; install it"
            ),
            engine.TranslateErrors(),
        ):
            call(engine, session.range(10))
    finally:
        del environment["PYTHONPATH"]


def test_an_error_of_a_query_is_one_of_ours_where_it_is_translated(session, engine):
    known = BloomFilter(10)
    known.update([1, 2])
    query = session.sql("SELECT '1' AS key").where(engine.contains("key", known))
    with pytest.raises(KeyTypeError, match="keys of type text were looked up"), engine.TranslateErrors():
        query.collect()
    with pytest.raises(ZeroDivisionError), engine.TranslateErrors():
        _ = 1 / 0


def test_a_filter_of_another_key_rule_is_one_error_of_the_query(session, engine):
    file = File.parse(BloomFilter(10).to_bytes())
    file.rule = 2
    data = file.build()

    class Newer:
        """A filter of a later release, whose keys have other hashes."""

        nbytes = len(data)

        def contains_many(self, keys):
            raise NotImplementedError

        def to_bytes(self):
            return data

    with pytest.raises(FormatError, match="key rule 2, this release knows 1"):
        fullbloom.loads(data)
    query = session.range(10).where(engine.contains("id", Newer()))
    with pytest.raises(FormatError, match="key rule 2, this release knows 1"), engine.TranslateErrors():
        query.count()


def test_the_files_of_filters_on_workers_and_the_driver_are_bounded(session, engine):
    """40 filters leave 16 files on the executor, and those of the last four broadcasts on the driver."""
    import gc
    from pathlib import Path

    from pyspark import SparkFiles

    context = session.sparkContext
    folders = Path(SparkFiles.getRootDirectory()), Path(context._temp_dir)
    before = {path for folder in folders for path in folder.iterdir()}
    frame, first = session.range(100), None
    for number in range(40):
        known = BloomFilter(100, fpr=FPR)
        known.update([number, number + 50])
        query = frame.where(engine.contains("id", known))
        assert query.count() == 2
        first = first or query
    assert first.count() == 2  # its file is gone, and written again
    files = {path.name for path in folders[0].glob("fullbloom-*.bloom")}
    assert len(files) <= 16
    del query, first
    for _ in range(50):
        gc.collect()
        context._jvm.System.gc()
        engine.contains("id", known)  # removes what nobody refers to
        sent = {path for path in folders[1].iterdir() if path.is_file()} - before
        if len(sent) <= 8:
            break
    assert len(sent) <= 8, sent


def test_a_filter_that_was_sent_lately_is_not_sent_again(session, engine):
    from pathlib import Path

    known = BloomFilter(100)
    folder = Path(session.sparkContext._temp_dir)
    engine.contains("id", known)
    before = {*folder.iterdir()}
    for _ in range(5):
        engine.contains("id", known)
    assert {*folder.iterdir()} == before


def test_a_file_that_another_worker_removes_is_written_again(session, engine, monkeypatch, tmp_path):  # noqa: ARG001
    from fullbloom.engines.spark import worker

    known = BloomFilter(100)

    class Sent:
        _path = "a path, as of a broadcast without encryption"
        value = known.to_bytes()

    opened, opens = fullbloom.open, []

    def open_after_removal(path):
        if not opens:
            path.unlink()
        opens.append(path)
        return opened(path)

    monkeypatch.setattr(worker.SparkFiles, "get", lambda name: str(tmp_path / name))
    monkeypatch.setattr(worker.fullbloom, "open", open_after_removal)
    assert worker._open_file("digest", Sent()) == known
    assert len(opens) == 2


@pytest.mark.parametrize(("page", "least"), [("engines/spark.md", 20), ("how-to/joins.md", 4)])
def test_the_examples_of_the_page_run(session, page, least):
    report, count = pages.run(page, {"spark": session})
    assert not report, report
    assert count > least
