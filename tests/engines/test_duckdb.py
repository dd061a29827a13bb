"""Guarantee: DuckDB's queries give the filter's answers, and a semi-join is exact."""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import math
import sys
import uuid
import weakref

import duckdb
import pyarrow as pa
import pytest
from hostile.container import File

import fullbloom
from fullbloom import BloomFilter, KeyTypeError, ParameterError, ParameterTypeError, _core
from fullbloom.engines import duckdb as engine
from fullbloom.engines.duckdb import build, build_groups, keep_candidates, register, semi_join, unregister
from fullbloom.errors import EngineUnavailable

#: Forms of the function that a database was seen to have.
CHECKED = set()


@pytest.fixture(params=["compiled", "python"], autouse=True)
def function(request):
    """Both forms of the function: databases that are opened in a test get the one or the other."""
    if request.param == "compiled" and sys.platform not in {"linux", "darwin"}:
        pytest.skip("the compiled function needs Linux or macOS")
    before = _core.enable_duckdb(request.param == "compiled")
    yield request.param
    _core.enable_duckdb(before)


@pytest.fixture
def connection(function):
    with duckdb.connect() as made:
        if function not in CHECKED:  # the list of functions takes 20 ms: once for each form
            names = "select count(*) from duckdb_functions() where function_name = 'fullbloom_database'"
            assert made.sql(names).fetchall() == [(function == "compiled",)]
            CHECKED.add(function)
        yield made


def query(connection, sql):
    return connection.sql(sql).fetchall()


VALUES = {
    "1::tinyint": 1,
    "1::ubigint": 1,
    "-5::bigint": -5,
    "true": True,
    "1.5::double": 1.5,
    "1.5::float": 1.5,
    "'nan'::double": float("nan"),
    "1.50::decimal(10, 2)": decimal.Decimal("1.50"),
    "'ädä'": "ädä",
    "'\\xAA'::blob": b"\xaa",
    "date '2020-01-01'": dt.date(2020, 1, 1),
    "time '10:00:00'": dt.time(10),
    "timestamp '2020-01-01 01:02:03'": dt.datetime(2020, 1, 1, 1, 2, 3),
    "timestamptz '2020-01-01 01:02:03+00'": dt.datetime(2020, 1, 1, 1, 2, 3, tzinfo=dt.UTC),
    "'a'::enum('a', 'b')": "a",
    "row(1, 'x')": (1, "x"),
    "{'a': 1, 'b': 2.5::double}": (1, 2.5),
}


@pytest.mark.parametrize("sql", VALUES)
def test_a_key_of_sql_is_the_key_of_python(connection, sql):
    known, empty = BloomFilter(100, fpr=1e-9), BloomFilter(100)
    known.add(VALUES[sql])
    empty.add(VALUES[sql])
    empty.clear()
    register(connection, known=known, empty=empty)
    assert query(connection, f"select bloom_contains('known', {sql}), bloom_contains('empty', {sql})") == [
        (True, False)
    ]


def test_a_uuid_is_a_key_if_duckdb_exports_it_as_one(connection):
    token = uuid.uuid4()
    known = BloomFilter(100, fpr=1e-9)
    known.add(token)
    register(connection, known=known)
    connection.execute("set arrow_lossless_conversion = true")
    assert query(connection, f"select bloom_contains('known', '{token}'::uuid)") == [(True,)]


def test_nulls_stay_null(connection):
    known = build(connection.sql("select range as x from range(10)"), "x", capacity=10, fpr=1e-9)
    register(connection, known=known)
    found = query(connection, "select bloom_contains('known', x) from (values (1), (null), (99)) rows(x)")
    assert found == [(True,), (None,), (False,)]
    assert query(connection, "select bloom_contains('known', null), bloom_contains(null, 1)") == [
        (None, None)
    ]
    assert query(connection, "select bloom_contains('known', row(1, null))") == [(None,)]


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 300_000])
def test_results_are_those_of_the_batch(connection, rows):
    known = BloomFilter(1000, fpr=0.1)
    known.update(range(0, 3000, 3))
    register(connection, known=known)
    connection.execute(f"create table numbers as select range as x from range({rows})")
    found = query(connection, "select bloom_contains('known', x) from numbers order by x")
    assert [one for (one,) in found] == known.contains_many(list(range(rows)))


def test_the_name_may_be_a_column(connection):
    odd, even = BloomFilter(100, fpr=1e-9), BloomFilter(100, fpr=1e-9)
    odd.update([1, 3, 5])
    even.update([0, 2, 4])
    register(connection, odd=odd, even=even)
    found = query(
        connection,
        "select x, bloom_contains(if(x < 3, 'odd', if(x < 6, 'even', null)), x) from range(8) t(x)",
    )
    assert dict(found) == {0: False, 1: True, 2: False, 3: False, 4: True, 5: False, 6: None, 7: None}


def test_a_name_gets_another_filter_and_cursors_share_it(connection):
    one, two = BloomFilter(100), BloomFilter(100)
    two.add(1)
    register(connection, known=one)
    assert query(connection.cursor(), "select bloom_contains('known', 1)") == [(False,)]
    register(connection, known=two)
    assert query(connection.cursor(), "select bloom_contains('known', 1)") == [(True,)]


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(connection):
    register(connection, orders=BloomFilter(10), customers=BloomFilter(10))
    with pytest.raises(
        duckdb.InvalidInputException, match=r"no filter is registered as 'x'.*customers, orders"
    ):
        query(connection, "select bloom_contains('x', 1)")
    unregister(connection, "orders")
    with pytest.raises(duckdb.InvalidInputException, match="'orders'; the names are: customers"):
        query(connection, "select bloom_contains('orders', 1)")
    with pytest.raises(ParameterError, match="no filter is registered as 'orders'"):
        unregister(connection, "customers", "orders")
    assert query(connection, "select bloom_contains('customers', 1)") == [(False,)]


@pytest.mark.parametrize("key", ["[1, 2]", "interval 1 day", "map {'a': 1}"])
def test_a_type_that_holds_no_keys_is_an_error(connection, key):
    register(connection, known=BloomFilter(10))
    with pytest.raises(duckdb.InvalidInputException, match="KeyTypeError"):
        query(connection, f"select bloom_contains('known', {key})")


def test_a_read_only_database_will_do(tmp_path):
    path = str(tmp_path / "rows.db")
    with duckdb.connect(path) as writing:
        writing.execute("create table numbers as select range as x from range(1000)")
    with duckdb.connect(path, read_only=True) as reading:
        known = build(reading.table("numbers").filter("x < 10"), "x", capacity=10, fpr=1e-9)
        register(reading, known=known)
        assert query(reading, "select count(*) from numbers where bloom_contains('known', x)") == [(10,)]
        few = reading.sql("select range as x from range(5)")
        assert len(semi_join(reading, reading.table("numbers"), few, on="x").fetchall()) == 5


def test_a_closed_connection_is_an_error(connection):
    relation = connection.sql("select 1 as x")
    register(connection, known=BloomFilter(10))
    connection.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        register(connection, other=BloomFilter(10))
    with pytest.raises(EngineUnavailable, match="closed"):
        build(relation, "x", capacity=10)
    fresh = duckdb.connect()
    fresh.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        register(fresh, known=BloomFilter(10))


def test_a_cursor_cannot_register_beside_its_connection(connection):
    register(connection, known=BloomFilter(10))
    with pytest.raises(ParameterError, match="already has a function bloom_contains"):
        register(connection.cursor(), other=BloomFilter(10))


def test_what_is_no_filter_or_connection_is_refused(connection):
    with pytest.raises(ParameterTypeError, match="got list"):
        register(connection, good=BloomFilter(10), known=[1])
    with pytest.raises(ParameterTypeError, match="got type"):
        register(connection, known=BloomFilter)
    with pytest.raises(ParameterTypeError, match="got str"):
        register("rows.db", known=BloomFilter(10))
    with pytest.raises(ParameterTypeError, match="got list"):
        build([1], "x", capacity=10)


def test_filters_are_released_with_their_connection():
    class Watched:
        def contains_many(self, keys):
            return keys

    known = Watched()
    gone = weakref.ref(known)
    made = duckdb.connect()
    register(made, known=known)
    del known
    made.close()
    del made
    gc.collect()
    assert gone() is None
    assert not engine._registered


def test_a_filter_of_a_query_has_the_bits_of_a_batch(connection):
    connection.execute("create table numbers as select if(range % 7 = 0, null, range) as x from range(50000)")
    expected = BloomFilter(50_000, fpr=0.001, seed=5)
    expected.update([number for number in range(50_000) if number % 7])
    whole = build(connection.table("numbers"), "x", capacity=50_000, fpr=0.001, seed=5)
    assert whole == expected
    executed = connection.execute("select x from numbers where x >= ?", [0])
    assert build(executed, "x", capacity=50_000, fpr=0.001, seed=5) == expected


@pytest.mark.parametrize("kind", ["cuckoo", "counting", "quotient", "prefix", "rolling"])
def test_other_kinds_are_built(connection, kind):
    rows = connection.sql("select range as x from range(1000)")
    made = build(rows, "x", capacity=1000, kind=kind, **({"window": 60} if kind == "rolling" else {}))
    assert all(made.contains_many(list(range(1000))))


def test_a_build_that_cannot_be_is_refused(connection):
    rows = connection.sql("select 1 as x, [1] as list")
    with pytest.raises(ParameterError, match="'y' does not exist; the columns are x, list"):
        build(rows, "y", capacity=10)
    with pytest.raises(ParameterError, match="'y' does not exist"):
        build(connection.execute("select 1 as x"), "y", capacity=10)
    with pytest.raises(ParameterError, match=r"kind must be one of bloom, .*got 'xor'"):
        build(rows, "x", capacity=10, kind="xor")
    with pytest.raises(KeyTypeError, match="list"):
        build(rows, "list", capacity=10)
    with pytest.raises(ParameterError, match="fpr must be between"):
        build(rows, "x", capacity=10, fpr=2)


@pytest.mark.parametrize("rows", [1000, 600_000])
def test_groups_have_the_bits_of_their_batches(connection, rows):
    group = "if(range % 5 = 0, null, range % 3)"
    connection.execute(f"create table t as select range as x, {group} as g from range({rows})")
    groups = build_groups(connection.table("t"), "g", "x", capacity=rows, seed=7)
    assert groups.keys() == {0, 1, 2, None}
    for number, found in groups.items():
        expected = BloomFilter(rows, seed=7)
        expected.update([x for x in range(rows) if (None if x % 5 == 0 else x % 3) == number])
        assert found == expected
    executed = connection.execute("select x, g from t where x < ?", [10])
    assert build_groups(executed, "g", "x", capacity=10).keys() == {0, 1, 2, None}


GROUPS = {
    "floats": ("if(range % 2 = 0, 'nan'::double, 1.5)", {math.nan, 1.5}),
    "texts": ("if(range % 2 = 0, 'a', null)", {"a", None}),
    "enumeration": ("if(range % 2 = 0, 'a', null)::enum('a', 'b')", {"a", None}),
    "dates": ("date '2020-01-01' + (range % 2)::int", {dt.date(2020, 1, 1), dt.date(2020, 1, 2)}),
    "itself": ("range % 2", {0, 1}),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_every_type_are_found_in_all_batches(connection, name):
    sql, expected = GROUPS[name]
    rows = connection.sql(f"select {sql} as g, range as x from range(600000)")
    groups = build_groups(rows, "g", "x", capacity=300_000, fpr=1e-9)
    assert groups.keys() == expected
    # A false positive among 300,000 keys at 1e-9 would be one too few.
    assert sum(one.num_added for one in groups.values()) == pytest.approx(600_000, abs=1)
    if name == "itself":
        assert all(number in one for number, one in build_groups(rows, "g", "g", capacity=300_000).items())


def test_groups_that_cannot_be_are_refused(connection):
    rows = connection.sql("select 1 as x, [1] as list, {'a': 1} as row")
    for group in ("list", "row"):
        with pytest.raises(ParameterTypeError, match="group by a column of numbers, text or times"):
            build_groups(rows, group, "x", capacity=10)
    for names in (("y", "x"), ("x", "y")):
        with pytest.raises(ParameterError, match="'y' does not exist"):
            build_groups(rows, *names, capacity=10)
    with pytest.raises(ParameterError, match="capacity must be"):
        build_groups(rows, "x", "x", capacity=0)


def test_candidates_are_those_of_the_function_and_read_again_with_each_query(connection):
    group = "if(range % 7 = 0, null, range)"
    connection.execute(f"create table t as select {group} as x, range as n from range(600000)")
    known = BloomFilter(1000, fpr=0.01)
    known.update(range(1000))
    register(connection, known=known)
    expected = query(connection, "select * from t where bloom_contains('known', x) order by n")
    kept = keep_candidates(connection, connection.table("t"), "x", known)
    assert kept.columns == ["x", "n"]
    for _ in range(2):
        assert kept.order("n").fetchall() == expected
    assert kept.query("kept", "select count(*) from kept join t using (n)").fetchall() == [(len(expected),)]
    connection.execute("delete from t where n >= 500")
    assert kept.aggregate("count(*)").fetchall() == [(len([row for row in expected if row[1] < 500]),)]


READ_TWICE = {
    "join": lambda kept: kept.set_alias("a").join(kept.set_alias("b"), "a.x = b.x"),
    "union": lambda kept: kept.union(kept),
    "merged": lambda kept: kept.order("x").set_alias("a").join(kept.set_alias("b"), "a.x < b.x - 599990"),
}


@pytest.mark.parametrize("name", READ_TWICE)
def test_candidates_that_one_query_reads_twice_are_complete_or_an_error(connection, name):
    connection.execute("create table t as select range as x from range(600000)")
    known = BloomFilter(600_000, fpr=1e-9)
    known.update(range(600_000))
    kept = keep_candidates(connection, connection.table("t"), "x", known)
    try:
        found = READ_TWICE[name](kept).aggregate("count(*)").fetchall()
    except duckdb.Error as error:
        # Which of the two depends on how far the other read is.
        assert "open result" in str(error) or "busy with another call" in str(error)
    else:
        assert found == [({"join": 600_000, "union": 1_200_000, "merged": 45}[name],)]


def test_candidates_that_cannot_be_are_refused(connection):
    rows = connection.sql("select 1 as x, [1] as list")
    with pytest.raises(ParameterError, match="'y' does not exist"):
        keep_candidates(connection, rows, "y", BloomFilter(10))
    with pytest.raises(KeyTypeError, match="list"):
        keep_candidates(connection, rows, "list", BloomFilter(10))
    with pytest.raises(ParameterTypeError, match="a filter is needed"):
        keep_candidates(connection, rows, "x", {1})
    with pytest.raises(ParameterTypeError, match="got DuckDBPyConnection and str"):
        keep_candidates(connection, "rows", "x", BloomFilter(10))
    connection.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        keep_candidates(connection, rows, "x", BloomFilter(10))


def test_a_semi_join_that_cannot_be_planned_leaves_no_filter(connection):
    rows = connection.sql("select range as x from range(10)")

    class Broken:
        """A relation whose plan fails after the filter was built."""

        columns, types = rows.columns, rows.types

        def __getattr__(self, name):
            return getattr(rows, name)

        def set_alias(self, _name):
            raise duckdb.BinderException("cannot be planned")

    with pytest.raises(duckdb.BinderException, match="cannot be planned"):
        semi_join(connection, rows, Broken(), on="x")
    assert not engine._registered[connection]


def test_a_semi_join_is_exact_and_its_plan_filters_first(connection):
    connection.execute("create table big as select range % 5000 as x, range as n from range(100000)")
    connection.execute("create table small as select range * 50 as x from range(20) union all select null")
    big, small = connection.table("big"), connection.table("small")
    joined = semi_join(connection, big, small, on="x", fpr=0.5)
    expected = query(connection, "select * from big where x in (select x from small) order by n")
    assert joined.order("n").fetchall() == expected
    assert len(expected) == 400
    plan = joined.explain()
    assert plan.index("Join") < plan.index("bloom_contains")


def test_a_semi_join_on_several_columns_takes_both(connection):
    connection.execute(
        'create table big as select range % 10 as "a b", range % 3 as c, range as n from range(90)'
    )
    connection.execute('create table small as select 1 as "a b", 2 as c union all select 4, null')
    joined = semi_join(connection, connection.table("big"), connection.table("small"), on=["a b", "c"])
    expected = query(connection, 'select * from big where "a b" = 1 and c = 2 order by n')
    assert joined.order("n").fetchall() == expected
    assert len(expected) == 3


def test_a_semi_join_releases_its_filter(connection):
    rows = connection.sql("select range as x from range(10)")
    joined = semi_join(connection, rows, rows, on="x")
    assert len(engine._registered[connection]) == 1
    assert len(joined.fetchall()) == 10
    del joined
    gc.collect()
    assert not engine._registered[connection]


def test_a_semi_join_of_types_whose_keys_differ_is_refused(connection):
    numbers = connection.sql("select range as x from range(10)")
    for other in ("'1'", "1.0::double", "1::hugeint"):
        with pytest.raises(ParameterError, match="cast one"):
            semi_join(connection, numbers, connection.sql(f"select {other} as x"), on="x")
    small = connection.sql("select 1::tinyint as x")
    assert semi_join(connection, numbers, small, on="x").fetchall() == [(1,)]
    with pytest.raises(ParameterError, match="'y' does not exist"):
        semi_join(connection, numbers, small, on="y")
    with pytest.raises(ParameterError, match="at least one column"):
        semi_join(connection, numbers, small, on=[])


@pytest.mark.parametrize("collation", ["nocase", "noaccent", "nfc", "de", "nocase.noaccent"])
@pytest.mark.parametrize("collated", ["big", "small"])
def test_texts_that_a_collation_calls_equal_are_not_lost(connection, collation, collated):
    clause = {"big": "", "small": ""} | {collated: f"collate {collation}"}
    connection.execute(f"create table big (x varchar {clause['big']})")
    connection.execute(f"create table small (x varchar {clause['small']})")
    connection.execute("insert into big values ('A'), ('e\u0301')")
    connection.execute("insert into small values ('a'), ('\u00e9')")
    assert query(connection, "select x from big where x in (select x from small)")
    with pytest.raises(ParameterError, match="'x' has a collation"):
        semi_join(connection, connection.table("big"), connection.table("small"), on="x")


@pytest.mark.parametrize("value", ["'\"%s\"'::json", "{'a': '%s', 'b': 1}"], ids=["json", "struct"])
def test_the_default_collation_counts_in_other_types_with_text(connection, value):
    connection.execute("pragma default_collation = 'nocase'")
    big, small = (connection.sql(f"select {value % one} as x") for one in "Aa")
    with pytest.raises(ParameterError, match="collation"):
        semi_join(connection, big, small, on="x")


@pytest.mark.parametrize("others", [[], ["y"]])
def test_a_struct_with_a_null_field_has_its_partner(connection, others):
    rows = "(values ({'a': 1, 'b': null::int}, 1), ({'a': 2, 'b': 2}, 1), (null, 1)) rows(x, y)"
    big, small = (connection.sql(f"select * from {rows}") for _ in range(2))
    found = semi_join(connection, big, small, on=["x", *others])
    assert found.aggregate("count(*)").fetchall() == [(2,)]


def test_the_default_collation_counts_and_a_binary_one_does_no_harm(connection):
    connection.execute("create table t (x varchar collate c); insert into t values ('A')")
    assert semi_join(connection, connection.table("t"), connection.table("t"), on="x").fetchall() == [("A",)]
    connection.execute("create table u as select 'A' as x; pragma default_collation = 'nocase'")
    with pytest.raises(ParameterError, match="collation"):
        semi_join(connection, connection.table("u"), connection.sql("select 'a' as x"), on="x")


def test_a_large_side_that_can_be_read_once_is_read_with_the_result(connection):
    read = []

    def batches():
        for number in range(3):
            read.append(number)
            yield pa.record_batch({"x": pa.array([f"t{number}", "other"])})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.string())]), batches())
    joined = semi_join(connection, connection.from_arrow(reader), connection.sql("select 't1' as x"), on="x")
    assert read == []
    assert joined.fetchall() == [("t1",)]
    assert read == [0, 1, 2]


def test_an_empty_small_side_has_no_partners(connection):
    numbers = connection.sql("select range as x from range(10)")
    assert semi_join(connection, numbers, numbers.filter("x > 99"), on="x").fetchall() == []


def test_a_file_of_another_key_rule_is_refused_before_it_is_registered(connection):
    file = File.parse(BloomFilter(10).to_bytes())
    file.rule = 2
    with pytest.raises(fullbloom.FormatError, match="key rule 2, this release knows 1"):
        register(connection, known=fullbloom.loads(file.build()))
    with pytest.raises(duckdb.Error, match=r"bloom_contains|no filter is registered as 'known'.*none"):
        query(connection, "select bloom_contains('known', 1)")
