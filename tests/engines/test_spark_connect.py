"""Guarantee: over Spark Connect, what needs no JVM gives the results of a classic session."""

from __future__ import annotations

import pytest
from engines import spark_sessions

from fullbloom import BloomFilter, ForeignFilter
from fullbloom.errors import EngineUnavailable, KeyTypeError, ParameterError


@pytest.fixture(scope="module")
def session():
    with spark_sessions.run_connect() as running:
        yield running


@pytest.fixture(autouse=True)
def bound(session):  # noqa: ARG001 - the server is up before a test begins
    from engines import bounds

    with bounds.bound(spark_sessions.SECONDS):
        yield


@pytest.fixture(scope="module")
def engine(session):  # noqa: ARG001 - the engine needs one
    from fullbloom.engines import spark

    return spark


@pytest.fixture(scope="module")
def sides(session):
    big = session.range(20_000).selectExpr("id % 10000 AS k", "id AS value")
    return big, session.range(200).selectExpr("id * 3 AS k", "'x' AS name")


def test_a_build_has_the_bits_of_one_batch(session, engine):
    local = BloomFilter(10_000)
    local.update(range(10_000))
    assert engine.build(session.range(10_000), "id", capacity=10_000) == local


@pytest.mark.parametrize("kind", ["bloom", "spark"])
def test_settings_are_as_before_a_build(session, engine, kind):
    names = [f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Records", "Bytes")]
    before = [session.conf.get(name) for name in names]
    engine.build(session.range(10), "id", capacity=10, kind=kind)
    with pytest.raises(KeyTypeError, match="keys of this filter must be"):
        engine.build(session.sql("SELECT 1.5D AS k"), "k", capacity=10, kind="spark")
    assert [session.conf.get(name) for name in names] == before


@pytest.mark.parametrize("kind", ["bloom", "spark"])
def test_a_column_is_looked_up(session, engine, kind):
    known = engine.build(session.range(1000), "id", capacity=1000, fpr=1e-9, kind=kind)
    frame = session.sql("SELECT explode(array(5L, 5000L, NULL)) AS k")
    marks = [row[0] for row in frame.select(engine.contains("k", known)).collect()]
    assert marks == [True, False, None]


def test_a_join_is_that_of_spark(engine, sides):
    big, small = sides
    plan = engine.plan_join(big, small, on="k")
    assert plan.uses_filter, plan
    assert plan.rows == 200
    joined = engine.bloom_join(big, small, on="k")
    assert sorted(map(tuple, joined.collect())) == sorted(map(tuple, big.join(small, "k").collect()))


def test_duplicates_are_exact(session, engine):
    visits = session.range(10_000).selectExpr("id % 9900 AS page", "id")
    found = {row["id"] for row in engine.find_duplicates(visits, "page").collect()}
    assert found == {*range(100), *range(9900, 10_000)}
    assert engine.deduplicate(visits, "page").count() == 9900


def test_distinct_keys_of_two_days_are_counted(session, engine):
    days = [session.range(5000), session.range(2500, 7500)]
    estimate, deviation = engine.approx_count_distinct_union(days, "id", capacity=10_000)
    assert abs(estimate - 7500) < 6 * deviation


def test_what_needs_the_jvm_is_one_clear_error(session, engine):
    known = ForeignFilter("spark", 10, 0.01)
    calls = (
        lambda: engine.might_contain("id", known),
        lambda: engine.to_jvm(known),
        lambda: engine.from_jvm(None),
    )
    for call in calls:
        with pytest.raises(EngineUnavailable, match="Spark Connect gives no access to the JVM"):
            call()
    with pytest.raises(ParameterError, match="column 'nope' does not exist"):
        engine.build(session.range(10), "nope", capacity=10)


def test_a_frame_is_read_twice_only_if_its_plan_gives_the_same_rows(session):
    from engines.test_spark_plans import check_frames, list_frames
    from pyspark.sql import functions

    check_frames(list_frames(session, functions))


def test_duplicates_of_rows_that_differ_each_time_are_those_of_one_read(session, engine):
    from engines.test_spark_plans import draw_rows

    changing = session.range(200, numPartitions=2).mapInArrow(draw_rows(), "k long")
    assert engine.find_duplicates(changing, "k").count() == 200
    assert engine.deduplicate(changing, "k").count() == 20
