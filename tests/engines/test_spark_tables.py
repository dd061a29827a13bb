"""Guarantee: joins and duplicates found with filters are exactly Spark's own."""

from __future__ import annotations

import math
import random

import pytest
from engines import spark_sessions

from fullbloom.errors import FilterMemoryError, ParameterError


@pytest.fixture(scope="module")
def session():
    with spark_sessions.run(**{"spark.sql.autoBroadcastJoinThreshold": "-1"}) as running:
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


def rows(frame):
    return sorted(repr(tuple(row)) for row in frame.collect())  # texts, because NaN is not equal to itself


def analyzed(frame):
    return frame._jdf.queryExecution().analyzed().toString()


@pytest.fixture(scope="module")
def sides(session, functions):
    big = session.range(100_000, numPartitions=4).select(
        (functions.col("id") % 10_000).alias("k"), functions.col("id").alias("value")
    )
    small = session.range(200).select((functions.col("id") * 3).alias("k"), functions.lit("x").alias("name"))
    return big, small


@pytest.mark.parametrize("how", ["inner", "left_semi", "semi", "right"])
def test_a_join_is_that_of_spark(engine, sides, how):
    big, small = sides
    joined = engine.bloom_join(big, small, on="k", how=how, use_filter=True)
    assert "bloom_join filters the large side" in analyzed(joined)
    assert rows(joined) == rows(big.join(small, ["k"], how))


def test_few_partners_make_a_filter_pay_and_the_plan_says_so(engine, sides):
    big, small = sides
    plan = engine.plan_join(big, small, on="k")
    assert plan.uses_filter, plan
    assert plan.rows == 200
    assert 0 <= plan.kept < 0.2
    text = analyzed(engine.bloom_join(big, small, on="k"))
    assert "bloom_join filters the large side: 200 keys" in text


def test_a_small_side_is_hashed_unless_it_has_a_hint(engine, sides):
    big, small = sides
    for hint, node in ((None, "ShuffledHashJoin"), ("merge", "SortMergeJoin")):
        side = small if hint is None else small.hint(hint)
        joined = engine.bloom_join(big, side, on="k")
        assert node in joined._jdf.queryExecution().executedPlan().toString()
        assert rows(joined) == rows(big.join(small, ["k"]))


@pytest.mark.parametrize("most", ["4000000", "1"])
def test_a_filter_of_hashes_keeps_its_rate_wherever_it_is_built(session, engine, most):  # noqa: ARG001
    from fullbloom.engines.spark.candidates import collect_hashes, hash_columns

    name = "spark.sql.optimizer.runtime.bloomFilter.maxNumItems"
    keys = session.range(100_000)
    hashes = [row[0] for row in keys.select(hash_columns(keys, ["id"])).collect()]
    session.conf.set(name, most)  # Spark's aggregate would make a smaller filter than the second needs
    try:
        known = collect_hashes(keys.where("id < 10000"), ["id"], 10_000, 0.01)
    finally:
        session.conf.unset(name)
    assert all(known.contains_many(hashes[:10_000]))
    # 900 of 90,000 absent keys at the rate; five deviations more are 1,050.
    assert sum(known.contains_many(hashes[10_000:])) < 1050


def test_many_partners_make_no_filter_pay(session, engine, sides):
    big, _ = sides
    every = session.range(10_000).withColumnRenamed("id", "k")
    plan = engine.plan_join(big, every, on="k")
    assert not plan.uses_filter
    assert plan.kept == 1
    joined = engine.bloom_join(big, every, on="k")
    assert "joins without a filter: a filter of 10000 keys" in analyzed(joined)
    assert "would keep 100.0% of a sample" in analyzed(joined)
    assert joined.count() == 100_000


def test_sizes_alone_can_decide(session, engine, sides):
    big, small = sides
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "10m")
    try:
        assert "Spark broadcasts the small side" in engine.plan_join(big, small, on="k").reason
    finally:
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    assert "the large side has" in engine.plan_join(small, big.select("k"), on="k").reason
    assert engine.plan_join(big, small, on="k", use_filter=False).reason == "use_filter is False"


def test_a_filter_that_does_not_fit_is_not_built(engine, sides):
    big, small = sides
    plan = engine.plan_join(big, small, on="k", max_bytes=10)
    assert not plan.uses_filter
    assert "max_bytes is 10 B" in plan.reason
    with pytest.raises(FilterMemoryError, match="max_bytes is 10 B"):
        engine.bloom_join(big, small, on="k", max_bytes=10, use_filter=True)


def test_joins_that_keep_rows_without_a_partner_are_refused(engine, sides):
    big, small = sides
    for how in ("left", "full", "left_anti", "cross"):
        with pytest.raises(ParameterError, match="how must be inner, left_semi or right"):
            engine.bloom_join(big, small, on="k", how=how)
    with pytest.raises(ParameterError, match="column 'nope' does not exist"):
        engine.bloom_join(big, small, on="nope")


def test_a_side_that_changes_between_two_reads_gets_no_filter(engine, sides, functions):
    big, small = sides
    for changing in (small.where(functions.rand() < 0.5), small.limit(10)):
        plan = engine.plan_join(big, changing, on="k", use_filter=True)
        assert (plan.uses_filter, plan.reason.endswith("persist it")) == (False, True)
    assert engine.plan_join(big, small.limit(10).persist(), on="k", use_filter=True).uses_filter


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", [0.0, -0.0, math.nan, 1.5, None]),
        ("float", [0.0, -0.0, math.nan, 1.5, None]),
        ("string", ["a", "b", "café", None]),
        ("decimal(10,2)", [1, 2, None]),
        ("date", ["2024-02-29", None]),
        ("boolean", [True, False, None]),
    ],
)
def test_values_that_spark_calls_equal_are_joined(session, engine, functions, kind, values):
    texts = [(None if value is None else str(value),) for value in values]
    frame = session.createDataFrame(texts, "t string").select(functions.col("t").cast(kind).alias("k"))
    joined = engine.bloom_join(frame, frame.distinct(), on="k", use_filter=True, is_repeatable=True)
    assert "filters the large side" in analyzed(joined)
    assert rows(joined) == rows(frame.join(frame.distinct(), ["k"]))


def test_types_whose_equal_values_differ_in_bytes_are_left_to_spark(session, engine, functions):
    numbers = session.range(10).withColumnRenamed("id", "k")
    texts = numbers.select(functions.col("k").cast("string").alias("k"))
    plan = engine.plan_join(numbers, texts, on="k", use_filter=True)
    assert (plan.uses_filter, "has the types bigint and string" in plan.reason) == (False, True)
    assert engine.bloom_join(numbers, texts, on="k").count() == 10
    assert engine.plan_join(
        numbers, numbers.select(functions.col("k").cast("int").alias("k")), on="k", use_filter=True
    )
    folded = texts.select(functions.col("k").cast("string collate UTF8_LCASE").alias("k"))
    assert not engine.plan_join(folded, folded, on="k", use_filter=True).uses_filter


def test_texts_that_spark_pads_to_one_length_are_joined(session, engine, tmp_path):
    tables = {"short": "char(5)", "long": "char(9)", "free": "string"}
    try:
        for name, kind in tables.items():
            session.sql(f"create table {name} (k {kind}) using parquet location '{tmp_path / name}'")
            session.sql(f"insert into {name} values ('ab'), ('{name}')")
        for big in tables:
            for small in tables:
                joined = engine.bloom_join(session.table(big), session.table(small), on="k", use_filter=True)
                assert rows(joined) == rows(session.table(big).join(session.table(small), ["k"])), (
                    big,
                    small,
                )
        shorter = session.table("short")
        assert engine.plan_join(shorter, shorter, on="k", use_filter=True).uses_filter
        padded = engine.plan_join(shorter, session.table("long"), on="k", use_filter=True)
        assert "has the types char(5) and char(9)" in padded.reason
    finally:
        for name in tables:
            session.sql(f"drop table if exists {name}")


def test_integers_of_other_widths_are_joined(session, engine, functions):
    wide = session.range(-5, 5).withColumnRenamed("id", "k")
    narrow = wide.select(functions.col("k").cast("tinyint").alias("k"))
    assert engine.bloom_join(wide, narrow, on="k", use_filter=True).count() == 10


@pytest.fixture(scope="module")
def repeated(session):
    """Rows with nulls, NaN and both zeros among the keys, and repeats within and across partitions."""
    draw = random.Random(7)
    pool = [(float(number), f"t{number}") for number in range(5000)]
    pool += [(None, "x"), (math.nan, "y"), (0.0, None), (-0.0, None), (None, None)]
    table = [*pool, *draw.choices(pool, k=300), *pool[-5:]]
    draw.shuffle(table)
    numbered = [(*row, number) for number, row in enumerate(table)]
    return session.createDataFrame(numbered, "a double, b string, number long").repartition(5).persist()


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("columns", ["a", ["a", "b"]])
def test_duplicates_are_those_of_a_group_by(engine, repeated, functions, columns, rounds):
    names = [columns] if isinstance(columns, str) else columns
    groups = repeated.groupBy(*names).agg(functions.count("*").alias("c")).where("c > 1")
    condition = [repeated[name].eqNullSafe(groups[name]) for name in names]
    expected = repeated.join(groups, condition, "left_semi")
    found = engine.find_duplicates(repeated, columns, rounds=rounds)
    assert found.columns == repeated.columns
    assert sorted(row["number"] for row in found.collect()) == sorted(
        row["number"] for row in expected.collect()
    )


def test_deduplication_keeps_one_row_of_each_key(engine, repeated):
    kept = engine.deduplicate(repeated, ["a", "b"])
    assert rows(kept.select("a", "b")) == rows(repeated.select("a", "b").dropDuplicates())
    assert rows(engine.deduplicate(repeated.select("b"))) == rows(repeated.select("b").distinct())


def test_tables_of_few_keys_none_and_one_row(session, engine, functions):
    few = session.range(10_000).select((functions.col("id") % 3).alias("k"))
    assert rows(engine.deduplicate(few)) == ["(0,)", "(1,)", "(2,)"]
    assert engine.find_duplicates(few, "k").count() == 10_000
    assert engine.deduplicate(few.where("k > 5")).count() == 0
    assert engine.find_duplicates(few.where("k > 5"), "k").count() == 0
    assert engine.deduplicate(few.where("k = 1").limit(1)).count() == 1
    assert engine.find_duplicates(session.range(1), "id").count() == 0


def test_texts_that_a_collation_calls_equal_are_duplicates(session, engine, functions):
    texts = session.createDataFrame([("a",), ("A",), ("b",)], "t string")
    folded = texts.select(functions.col("t").cast("string collate UTF8_LCASE").alias("t"))
    assert engine.find_duplicates(folded, "t", is_repeatable=True).count() == 2
    assert engine.deduplicate(folded, is_repeatable=True).count() == 2


def test_names_with_dots_and_quotes_are_names(session, engine):
    frame = session.createDataFrame(
        [(number % 5, number % 7, number) for number in range(50)], "a long, b long, c long"
    )
    frame = frame.toDF("a.b", "x`y", "c")
    small = session.createDataFrame([(1, 1, "x")], "a long, b long, n string").toDF("a.b", "x`y", "n")
    assert engine.build(frame, "a.b", capacity=100).contains_many([4, 5]) == [True, False]
    columns = ["a.b", "x`y"]
    for on in ("a.b", columns):
        joined = engine.bloom_join(frame, small, on=on, use_filter=True, is_repeatable=True)
        assert rows(joined) == rows(frame.join(small, [on] if isinstance(on, str) else on))
        assert joined.count() in (2, 10)
    assert engine.find_duplicates(frame, columns, is_repeatable=True).count() == 30
    assert engine.deduplicate(frame, columns, is_repeatable=True).count() == 35


@pytest.mark.parametrize("kind", ["map<int,int>", "struct<m:map<int,int>>", "array<map<int,int>>"])
def test_values_that_spark_does_not_compare_are_one_error(session, engine, kind):
    frame = session.createDataFrame([], f"k {kind}, n int")
    for call in (engine.find_duplicates, engine.deduplicate):
        with pytest.raises(ParameterError, match=r"'k' has the type .*map<int,int>.*, whose"):
            call(frame, ["n", "k"])


def test_zeros_and_nan_inside_structs_are_duplicates(session, engine, functions):
    numbers = session.createDataFrame([(0.0,), (-0.0,), (math.nan,), (math.nan,), (1.0,)], "x double")
    rows_of_structs = numbers.select(functions.struct("x").alias("s"), functions.array("x").alias("a"))
    for column in ("s", "a"):
        assert engine.find_duplicates(rows_of_structs, column, is_repeatable=True).count() == 4
        assert engine.deduplicate(rows_of_structs, column, is_repeatable=True).count() == 3


def test_parameters_of_duplicates_are_refused(session, engine):
    with pytest.raises(ParameterError, match="rounds must be from 1 to 3, got 0"):
        engine.find_duplicates(session.range(3), "id", rounds=0)
    with pytest.raises(ParameterError, match="column 'nope' does not exist"):
        engine.deduplicate(session.range(3), "nope")
    with pytest.raises(ParameterError, match="name at least one column"):
        engine.find_duplicates(session.range(3), [])


@pytest.mark.parametrize("kind", ["texts", "consecutive integers"])
def test_duplicates_shuffle_a_tenth_of_the_bytes(session, engine, functions, kind):
    keys = functions.col("id") % 396_000
    keys = functions.sha2(keys.cast("string"), 256) if kind == "texts" else keys
    frame = session.range(400_000, numPartitions=4).select(keys.alias("k"), "id")
    before = spark_sessions.read_shuffle_bytes(session)
    expected = frame.dropDuplicates(["k"]).count()
    own = spark_sessions.read_shuffle_bytes(session) - before
    assert engine.deduplicate(frame, "k").count() == expected == 396_000
    ours = spark_sessions.read_shuffle_bytes(session) - before - own
    assert ours * 10 < own, (ours, own)


@pytest.fixture
def integers(session, functions):
    """A function that returns rows of integers from a least one on, of which 200 occur twice."""

    def create(least, step, kind, *, nulls=0):
        once = session.range(20_000, numPartitions=3)
        twice = session.range(5000, 5200, numPartitions=2)
        keys = once.union(twice).select((functions.col("id") * step + least).cast(kind).alias("k"))
        return keys.union(session.range(nulls).select(functions.lit(None).cast(kind).alias("k")))

    return create


@pytest.mark.parametrize(
    ("least", "step", "kind"),
    [
        (0, 1, "long"),
        (-10_000, 1, "smallint"),
        (-(2**31), 3, "int"),
        (2**63 - 1 - 20_000 * 7, 7, "long"),
        (-(2**63), 10**14, "long"),  # a range of as many values as longs have: by hashes
    ],
)
@pytest.mark.parametrize("nulls", [0, 1, 2])
def test_duplicates_among_integers_are_exact(engine, integers, least, step, kind, nulls):
    frame = integers(least, step, kind, nulls=nulls)
    found = engine.find_duplicates(frame, "k", is_repeatable=True)
    groups = frame.groupBy("k").count().where("count > 1")
    expected = frame.join(groups, frame["k"].eqNullSafe(groups["k"]), "left_semi")
    assert rows(found) == rows(expected)
    assert found.count() == 400 + (nulls if nulls > 1 else 0)
    assert engine.deduplicate(frame, "k", is_repeatable=True).count() == 20_000 + min(nulls, 1)
