"""Guarantee: only a frame that gives the same rows is read twice, and many duplicates take bounded memory."""

from __future__ import annotations

import pytest
from engines import spark_sessions

from fullbloom.errors import FilterMemoryError


@pytest.fixture(scope="module")
def session():
    with spark_sessions.run() as running:
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


def draw_rows():
    """A function of batches that gives other rows each time: ten keys, each of them ten times."""

    def draw(batches):
        import os

        import pyarrow as pa

        for batch in batches:
            low = int.from_bytes(os.urandom(4), "little")
            keys = [low + number % 10 for number in range(len(batch))]
            yield pa.record_batch({"k": pa.array(keys, pa.int64())})

    return draw


def list_frames(session, functions):
    """Frames by whether they give the same rows each time, as far as their plans show."""
    from pyspark.sql import Window

    numbers = session.range(100, numPartitions=3).withColumnRenamed("id", "k")
    by_key = Window.partitionBy("k").orderBy(functions.col("k") % 2)
    wide = [(functions.col("k") + number).alias(f"c{number}") for number in range(40)]
    python = functions.udf(lambda k: k, "long")("k").alias("k")
    changing = numbers.mapInArrow(draw_rows(), "k long")
    kept = session.range(50).mapInArrow(draw_rows(), "k long").persist()
    return {
        "range": (numbers, True),
        "projection": (numbers.select("k", (functions.col("k") + 1).alias("n")), True),
        "union": (numbers.union(numbers), True),
        "rank": (numbers.withColumn("n", functions.rank().over(by_key)), True),
        "persisted": (numbers.where(functions.rand() < 0.5).limit(5).persist(), True),
        "persisted Python": (kept, True),
        "time": (numbers.where(functions.current_timestamp() > functions.timestamp_seconds("k")), False),
        "date": (numbers.withColumn("day", functions.current_date()), False),
        "random": (numbers.where(functions.rand() < 0.5), False),
        "identifiers": (numbers.withColumn("n", functions.monotonically_increasing_id()), False),
        "random, wide": (numbers.select(*wide, functions.rand().alias("r")), False),
        "limit": (numbers.limit(10), False),
        "sample": (numbers.sample(0.5, seed=1), False),
        "offset": (numbers.offset(5), False),
        "first": (numbers.groupBy((functions.col("k") % 3).alias("g")).agg(functions.first("k")), False),
        "row number": (numbers.withColumn("n", functions.row_number().over(by_key)), False),
        "row number, wide": (numbers.select("k", *wide, functions.row_number().over(by_key)), False),
        "Python function": (numbers.select(python), False),
        "Python function, wide": (numbers.select(*wide, python), False),
        "Python batches": (changing, False),
        "Python batches below a union": (numbers.union(changing), False),
        "Python batches beside persisted ones": (kept.union(changing), False),
    }


def check_frames(frames):
    from fullbloom.engines.spark.plans import is_repeatable

    found = {name: is_repeatable(frame) for name, (frame, _) in frames.items()}
    assert found == {name: expected for name, (_, expected) in frames.items()}


def test_a_frame_is_read_twice_only_if_its_plan_gives_the_same_rows(session, functions):
    numbers = session.range(100, numPartitions=3).withColumnRenamed("id", "k")
    wide = [(functions.col("k") + number).alias(f"c{number}") for number in range(40)]
    changing = numbers.mapInArrow(draw_rows(), "k long")
    rdd = session.sparkContext.parallelize([1, 2]).map(lambda k: (k,)).toDF("k long")
    more = {
        "projection, wide": (numbers.select(*wide), True),
        "persisted time": (numbers.withColumn("now", functions.now()).persist(), True),
        "checkpointed": (changing.localCheckpoint(), True),
        "RDD of Python": (rdd, False),
        "list": (session.createDataFrame([(1,)], "k long"), False),
        "deduplicated": (numbers.withColumn("n", functions.col("k") % 3).dropDuplicates(["n"]), False),
    }
    check_frames(list_frames(session, functions) | more)


@pytest.mark.parametrize("rounds", [1, 2])
def test_duplicates_of_rows_that_differ_each_time_are_those_of_one_read(session, engine, rounds):
    """Each read has other keys, so that candidates of one are not those of the next."""
    for _ in range(3):
        changing = session.range(200, numPartitions=2).mapInArrow(draw_rows(), "k long")
        assert engine.find_duplicates(changing, "k", rounds=rounds).count() == 200
        assert engine.deduplicate(changing, "k", rounds=rounds).count() == 20


@pytest.fixture(scope="module")
def repeated(session, functions):
    """5,000 rows, each of which occurs once, and 400 that occur twice."""
    once = session.range(5000, numPartitions=3)
    twice = session.range(10_000, 10_200, numPartitions=2)
    rows = once.union(twice).union(twice)
    return rows.select(functions.sha2(functions.col("id").cast("string"), 256).alias("k"), "id")


@pytest.mark.parametrize(("most", "groups"), [(4000, 1), (200, 2), (50, 8)])
def test_many_repeated_digits_are_looked_up_in_several_filters(engine, repeated, monkeypatch, most, groups):
    from fullbloom.engines import hash_sets
    from fullbloom.engines.spark import duplicates

    monkeypatch.setattr(duplicates, "_MOST_DIGITS", most)
    monkeypatch.setattr(hash_sets, "_ROWS_PER_OWNER", 200)  # 32 owners
    create, sizes = duplicates._create_filter, []

    def record(*arguments):
        result = create(*arguments)
        sizes.append(result[1])
        return result

    monkeypatch.setattr(duplicates, "_create_filter", record)
    found = sorted(row["id"] for row in engine.find_duplicates(repeated, "k", rounds=1).collect())
    assert found == sorted([*range(10_000, 10_200)] * 2)
    # About 240 digits are repeated, by chance or by duplicates.
    assert len(sizes) == groups
    assert 200 <= sum(sizes) < 300
    assert max(sizes) < 2 * most
    assert engine.deduplicate(repeated, "k", rounds=1).count() == 5200


def test_more_repeated_digits_than_executors_hold_are_reported_and_all_rows_compared(
    engine, repeated, monkeypatch
):
    from fullbloom.engines.spark import duplicates

    def refuse(*_):
        raise FilterMemoryError("the filter has 9 GiB")

    monkeypatch.setattr(duplicates, "_MOST_DIGITS", 50)
    monkeypatch.setattr(duplicates, "check_total_size", refuse)
    with pytest.warns(RuntimeWarning, match="all rows are compared, because the filter has 9 GiB"):
        found = engine.find_duplicates(repeated, "k")
    assert found.count() == 400


def test_a_build_and_a_query_at_the_same_time_have_their_own_settings(session, engine, monkeypatch):
    """Another query of the session keeps its limit of bytes, and a change of the limit meanwhile stays."""
    from fullbloom.engines.spark import building

    name, seen = "spark.sql.execution.arrow.maxBytesPerBatch", []
    before = session.conf.get(name)

    def ship(*arguments):
        seen.append(session.conf.get(name))
        session.conf.set(name, "1m")
        return original(*arguments)

    original = building.ship
    monkeypatch.setattr(building, "ship", ship)
    try:
        built = engine.build(session.range(1000), "id", capacity=1000)
        assert seen == [before]
        assert session.conf.get(name) == "1m"
    finally:
        session.conf.set(name, before)
    assert all(built.contains_many(range(1000)))


def test_batches_of_a_build_have_no_limit_of_bytes(session):
    """Spark computes no sizes of rows then; texts and other frames keep the limit."""
    from fullbloom.engines.spark.batches import limit_by_rows

    def read_limit(frame):
        return frame._jdf.sparkSession().conf().get("spark.sql.execution.arrow.maxBytesPerBatch")

    own = session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch")
    longs = session.range(10)
    assert read_limit(limit_by_rows(longs)) == str(2**31 - 1)
    assert limit_by_rows(longs).count() == 10
    kept = session.range(20).persist()  # in a clone, too, its rows are those that were persisted
    assert "InMemoryTableScan" in limit_by_rows(kept)._jdf.queryExecution().executedPlan().toString()
    texts = longs.selectExpr("cast(id as string) as k")
    python = longs.mapInArrow(draw_rows(), "k long")
    for frame in (texts, python):
        assert read_limit(limit_by_rows(frame)) == own
    assert session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == own
