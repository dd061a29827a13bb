"""Guarantee: DuckDB's compiled function gives the Python function's answers, also while filters change."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from fullbloom import BloomFilter, ForeignFilter, XorFilter, _core
from fullbloom.engines.duckdb import register, unregister
from fullbloom.errors import KeyDomainWarning, ParameterError

pytestmark = pytest.mark.skipif(
    sys.platform not in {"linux", "darwin"}, reason="the compiled function needs Linux or macOS"
)


def connect(path=":memory:", **config):
    connection = duckdb.connect(path, config=config)
    assert is_compiled(connection)
    return connection


def is_compiled(connection):
    found = connection.sql(
        "select count(*) from duckdb_functions() where function_name = 'fullbloom_database'"
    )
    return found.fetchall() == [(1,)]


def list_overloads(connection):
    sql = "select parameter_types[2] from duckdb_functions() where function_name = 'bloom_contains'"
    return {one for (one,) in connection.sql(sql).fetchall()}


ROWS = 100_000
#: Random keys of each type, by SQL of the number ``i`` of a row, and those at the limits.
KEYS = {
    "boolean": ("hash(i) % 2 = 0", ["true", "false"]),
    "tinyint": ("(hash(i) % 256)::int - 128", ["-128", "127", "0"]),
    "smallint": ("(hash(i) % 65536)::int - 32768", ["-32768", "32767"]),
    "integer": ("(hash(i) % 4294967296)::bigint - 2147483648", ["-2147483648", "2147483647"]),
    "bigint": ("hash(i)::hugeint - 9223372036854775808", ["-9223372036854775808", "9223372036854775807"]),
    "utinyint": ("hash(i) % 256", ["255"]),
    "usmallint": ("hash(i) % 65536", ["65535"]),
    "uinteger": ("hash(i) % 4294967296", ["4294967295"]),
    "ubigint": ("hash(i)", ["18446744073709551615", "9223372036854775808"]),
    "float": (
        "(hash(i) % 1000000)::double / 7 - 70000",
        ["'nan'", "'inf'", "'-inf'", "-0.0", "0.0", "1e-45", "3.4e38"],
    ),
    "double": (
        "(hash(i) % 1000000)::double / 7 - 70000",
        ["'nan'", "'inf'", "'-inf'", "'-0.0'", "0.0", "5e-324", "1.7976931348623157e308"],
    ),
    "varchar": (
        "left(repeat(md5(i::varchar), 3), (hash(i) % 60)::int)",
        ["''", "'ä'", "chr(0)", "repeat('x', 12)", "repeat('x', 13)", "repeat('ö', 100000)"],
    ),
    "blob": (
        "unhex(left(repeat(md5(i::varchar), 3), 2 * (hash(i) % 40)::int))",
        ["''", "'\\x00'", "repeat('x', 13)"],
    ),
    "date": (
        "date '1970-01-01' + ((hash(i) % 20000)::int - 10000)",
        ["'infinity'", "'-infinity'", "'0044-03-15 (BC)'"],
    ),
    "time": (
        "time '00:00:00' + to_microseconds((hash(i) % 86400000000)::bigint)",
        ["'24:00:00'", "'00:00:00'"],
    ),
    "timestamp": (
        "make_timestamp((hash(i) % 4000000000000000)::bigint - 2000000000000000)",
        ["'infinity'", "'-infinity'"],
    ),
    "timestamp_s": (
        "make_timestamp((hash(i) % 4000000000)::bigint * 1000000)",
        ["'infinity'", "'1969-12-31 23:59:59'"],
    ),
    "timestamp_ms": (
        "make_timestamp((hash(i) % 4000000000000)::bigint * 1000)",
        ["'1969-12-31 23:59:59.999'"],
    ),
    "timestamp_ns": (
        "make_timestamp_ns((hash(i) % 4000000000000000000)::bigint)",
        ["'1969-12-31 23:59:59.999999999'"],
    ),
    "timestamptz": ("to_timestamp((hash(i) % 4000000000)::double / 7)", ["'infinity'", "'-infinity'"]),
}


@pytest.mark.parametrize("key_type", KEYS)
def test_keys_of_every_type_are_those_of_the_python_function(key_type):
    expression, limits = KEYS[key_type]
    connection = connect()
    limits_sql = " union all ".join(f"select ({limit})::{key_type}" for limit in limits)
    connection.execute(
        f"create table t as select if(i % 7 = 0, null, ({expression})::{key_type}) as x "
        f"from range({ROWS}) r(i) union all {limits_sql}"
    )
    keys = connection.sql("select x from t").to_arrow_table()["x"]
    known = BloomFilter(ROWS, fpr=0.2)
    known.update(keys.slice(0, ROWS // 2))
    known.update(keys.slice(ROWS))
    register(connection, known=known)
    assert {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(
        key_type.upper(), key_type.upper()
    ) in list_overloads(connection)
    expected = pa.array(known.contains_many(keys)).to_pylist()
    found = [one for (one,) in connection.sql("select bloom_contains('known', x) from t").fetchall()]
    assert found == expected
    assert {None, True} <= set(found)
    assert all(found[ROWS:])
    # The rows of a selection, of a join and of lists are vectors of other forms.
    some = connection.sql("select bloom_contains('known', x) from t where hash(rowid) % 3 = 0").fetchall()
    chosen = connection.sql("select rowid from t where hash(rowid) % 3 = 0").fetchall()
    assert [one for (one,) in some] == [expected[row] for (row,) in chosen]
    counted = "select count(*) filter (bloom_contains('known', {0})), count({0}) from {1}"
    (whole,) = connection.sql(counted.format("x", "t")).fetchall()
    joined = "t join range(3) on rowid >= 0"
    (thrice,) = connection.sql(counted.format("x", joined)).fetchall()
    assert thrice == tuple(3 * number for number in whole)
    (listed,) = connection.sql(counted.format("y", "(select unnest(list(x)) as y from t)")).fetchall()
    assert listed == whole
    constant = f"(select x from t where rowid = {ROWS})"
    assert connection.sql(
        f"select distinct bloom_contains('known', {constant}) from range(5000)"
    ).fetchall() == [(True,)]


def test_compressed_columns_of_a_file_are_those_of_memory(tmp_path):
    known = BloomFilter(1000, fpr=1e-9)
    known.update([f"customer number {number}" for number in range(0, 1000, 2)])
    known.update(range(0, 1000, 2))
    with connect(str(tmp_path / "rows.db")) as connection:
        connection.execute(
            "create table t as select range % 1000 as x, 'customer number ' || range % 1000 as text, "
            "'few' || range % 3 as few from range(300000); checkpoint"
        )
        register(connection, known=known)
        counted = "select count(*) from t where bloom_contains('known', {})"
        assert connection.sql(counted.format("x")).fetchall() == [(150_000,)]
        assert connection.sql(counted.format("text")).fetchall() == [(150_000,)]
        assert connection.sql(counted.format("few")).fetchall() == [(0,)]


@pytest.mark.parametrize(
    "key", ["1.5::decimal(10, 2)", "row(1, 2)", "'a'::enum('a')", "uuid()", "1::hugeint", "1::uhugeint"]
)
def test_other_types_take_the_python_function(key):
    class Watched:
        def contains_many(self, keys):
            assert isinstance(keys, pa.ChunkedArray)
            return pa.chunked_array([pa.array([True] * len(keys))])

    connection = connect()
    register(connection, known=Watched())
    assert connection.sql(f"select bloom_contains('known', {key})").fetchall() == [(True,)]


@pytest.mark.parametrize("key_type", KEYS)
def test_a_filter_in_python_gets_the_column_of_keys(key_type):
    expression, limits = KEYS[key_type]
    connection = connect()
    connection.execute(
        f"create table t as select if(i % 5 = 0, null, ({expression})::{key_type}) as x from range(5000) r(i)"
    )
    connection.execute(f"insert into t values {', '.join(f'({limit})' for limit in limits)}")
    expected = connection.sql("select x from t").to_arrow_table()["x"].combine_chunks()
    seen = []

    class Watched:
        def contains_many(self, keys):
            seen.extend(chunk.cast(expected.type) for chunk in keys.chunks)
            return pa.array(
                [
                    index % 2 == 0 if is_valid else None
                    for index, is_valid in enumerate(keys.is_valid().to_pylist())
                ]
            )

    register(connection, known=Watched())
    found = [one for (one,) in connection.sql("select bloom_contains('known', x) from t").fetchall()]
    keys = pa.concat_arrays(seen)
    if pa.types.is_floating(expected.type):
        assert repr(keys.to_pylist()) == repr(expected.to_pylist())
    else:
        assert keys.equals(expected)
    assert [one is None for one in found] == expected.is_null().to_pylist()
    assert 0.35 < found.count(True) / len(found) < 0.45


def test_kinds_without_a_compiled_lookup_are_called():
    spark = ForeignFilter("spark", 1000)
    spark.update(range(10))
    connection = connect()
    register(connection, spark=spark)
    found = connection.sql("select bloom_contains('spark', range) from range(12)").fetchall()
    assert [one for (one,) in found] == list(spark.contains_many(list(range(12))))


def test_static_filters_are_looked_up():
    known = XorFilter.build(range(1000))
    connection = connect()
    register(connection, known=known)
    assert connection.sql("select bool_and(bloom_contains('known', range)) from range(1000)").fetchall() == [
        (True,)
    ]


def test_keys_added_later_are_found_while_the_query_is_open():
    known = BloomFilter(10_000, fpr=1e-9)
    connection = connect()
    register(connection, known=known)
    connection.execute("set threads = 1")
    reader = connection.sql(
        "select bloom_contains('known', range) as found from range(20000000)"
    ).to_arrow_reader(2048)
    assert not any(reader.read_next_batch().column(0).to_pylist())
    known.update(range(19_990_000, 20_000_000))
    *_, last = iter(reader)
    assert all(last.column(0).to_pylist())


def test_a_filter_released_in_a_query_is_an_error_in_its_next_rows():
    known = BloomFilter(10)
    connection = connect()
    register(connection, known=known, other=BloomFilter(10))
    connection.execute("set threads = 1")
    reader = connection.sql("select bloom_contains('known', range) from range(20000000)").to_arrow_reader(
        2048
    )
    reader.read_next_batch()
    unregister(connection, "known")
    with pytest.raises(Exception, match="no filter is registered as 'known'; the names are: other"):
        reader.read_all()


def test_filters_change_while_queries_of_several_threads_run():
    connection = connect()
    connection.execute("create table t as select range as x from range(300000)")
    filters = [BloomFilter(1000, fpr=0.01) for _ in range(2)]
    register(connection, known=filters[0])
    stop, failed = threading.Event(), []

    def query():
        cursor = connection.cursor()
        try:
            while not stop.is_set():
                (found,) = cursor.sql("select count(*) from t where bloom_contains('known', x)").fetchall()[0]
                assert found <= 300_000
        except (duckdb.Error, AssertionError) as error:
            failed.append(error)

    threads = [threading.Thread(target=query) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(200):
        register(connection, known=filters[number % 2], **{f"other{number}": BloomFilter(10)})
        filters[number % 2].add(number)
        assert number in filters[number % 2]
        filters[number % 2].update(np.arange(number, number + 1000))
        unregister(connection, f"other{number}")
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_lookup_of_keys_that_were_never_added_warns_once_as_in_python():
    connection = connect()
    known = BloomFilter(100)
    known.update(["1", "2"])
    register(connection, known=known)
    with pytest.warns(KeyDomainWarning, match="none of them is found") as seen:
        found = connection.sql("select bloom_contains('known', range) from range(10000)").fetchall()
    assert [one.category for one in seen if one.category is not ResourceWarning] == [KeyDomainWarning]
    assert {one for (one,) in found} <= {True, False}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connection.sql("select bloom_contains('known', range) from range(10000)").fetchall()
    other = BloomFilter(100)
    other.update(["1"])
    register(connection, other=other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            connection.sql("select bloom_contains('other', null::bigint) from range(3)").fetchall()
            == [(None,)] * 3
        )
        with pytest.raises(duckdb.InvalidInputException, match="KeyDomainWarning: "):
            connection.sql("select bloom_contains('other', range) from range(10)").fetchall()


def test_an_exception_of_a_filter_is_the_error_of_the_query():
    class Broken:
        def contains_many(self, keys):
            raise ValueError(f"broken for {len(keys)} keys\0")

    connection = connect()
    register(connection, broken=Broken())
    with pytest.raises(duckdb.InvalidInputException, match="ValueError: broken for 3 keys"):
        connection.sql("select bloom_contains('broken', range) from range(3)").fetchall()

    class Short:
        def contains_many(self, _keys):
            return [True]

    register(connection, short=Short())
    with pytest.raises(duckdb.InvalidInputException, match="1 results for 3 keys"):
        connection.sql("select bloom_contains('short', range) from range(3)").fetchall()


def test_names_of_any_length_and_in_any_order_are_found():
    connection = connect()
    names = ["a", "b" * 12, "c" * 13, "d" * 1000, "ä"]
    connection.execute("create table names (id integer, name varchar)")
    for number, name in enumerate(names):
        one = BloomFilter(100, fpr=1e-9)
        one.update([number])
        register(connection, **{name: one})
        connection.execute("insert into names values (?, ?)", [number, name])
    sql = (
        "select name, x % 5, bloom_contains(name, x % 5) from range(20000) t(x) join names on id = x // 7 % 5"
    )
    assert all(found == (names[number] == name) for name, number, found in connection.sql(sql).fetchall())
    with pytest.raises(duckdb.InvalidInputException, match="no filter is registered as 'x'"):
        connection.sql("select bloom_contains(if(x = 5000, 'x', 'a'), x) from range(10000) t(x)").fetchall()


def test_a_database_without_filters_says_so():
    with pytest.raises(
        duckdb.InvalidInputException, match="no filter is registered as 'known'; the names are: none"
    ):
        connect().sql("select bloom_contains('known', 1)").fetchall()


def test_databases_do_not_share_filters(tmp_path):
    one, two = connect(), connect(str(tmp_path / "two.db"))
    full, empty = BloomFilter(10), BloomFilter(10)
    full.add(1)
    register(one, known=full)
    register(two, known=empty)
    assert one.sql("select bloom_contains('known', 1)").fetchall() == [(True,)]
    assert two.sql("select bloom_contains('known', 1)").fetchall() == [(False,)]
    again = duckdb.connect(str(tmp_path / "two.db"))
    assert again.sql("select bloom_contains('known', 1)").fetchall() == [(False,)]
    with pytest.raises(ParameterError, match="already has a function"):
        register(again, known=full)


@pytest.mark.parametrize("config", [{"enable_external_access": "false"}, {"lock_configuration": "true"}])
def test_restricted_databases_have_the_function(config):
    connection = connect(**config)
    register(connection, known=BloomFilter(10))
    assert connection.sql("select bloom_contains('known', 1)").fetchall() == [(False,)]


def test_a_query_holds_its_filter_no_longer_than_it_runs():
    known = BloomFilter(10)
    references = sys.getrefcount(known)
    connection = connect()
    register(connection, known=known)
    connection.sql("select bloom_contains('known', range) from range(500000)").fetchall()
    unregister(connection, "known")
    assert sys.getrefcount(known) == references


BEFORE = """
import duckdb
connection = duckdb.connect()
from fullbloom import BloomFilter
from fullbloom.engines.duckdb import register
known = BloomFilter(10)
known.add(1)
register(connection, known=known)
print(connection.sql("select bloom_contains('known', 1), bloom_contains('known', 2)").fetchall())
later = duckdb.connect()
count = "select count(*) from duckdb_functions() where function_name = 'fullbloom_database'"
print(connection.sql(count).fetchall(), later.sql(count).fetchall())
"""


def test_a_database_opened_before_the_import_takes_the_python_function():
    run = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True, check=True)
    assert run.stdout == "[(True, False)]\n[(0,)] [(1,)]\n"


EXIT = """
import duckdb
from fullbloom import BloomFilter
from fullbloom.engines.duckdb import register
connection = duckdb.connect()
register(connection, known=BloomFilter(10))
reader = connection.sql("select bloom_contains('known', range) from range(100000000)").to_arrow_reader(2048)
reader.read_next_batch()
print("done")
"""


def test_the_interpreter_exits_while_a_query_is_open():
    run = subprocess.run(
        [sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_of_a_fork_can_read_the_filter_of_an_open_query():
    script = """
import os, duckdb
from fullbloom import BloomFilter
from fullbloom.engines.duckdb import register
known = BloomFilter(1000)
known.update(range(100))
connection = duckdb.connect(config={"threads": "1"})
register(connection, known=known)
reader = connection.sql("select bloom_contains('known', range) from range(10000000)").to_arrow_reader(2048)
reader.read_next_batch()
child = os.fork()
if not child:
    os._exit(0 if 5 in known and known.add(100000) is not None else 1)
print(os.waitpid(child, 0)[1], sum(batch.num_rows for batch in reader), 5 in known)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout == f"0 {10_000_000 - 2048} True\n"


def test_a_second_import_registers_nothing_twice():
    assert _core.load_duckdb("no such library", print, print)
    with connect() as connection:
        assert connection.sql(
            "select count(*) from duckdb_functions() where function_name = 'bloom_contains'"
        ).fetchall() == [(20,)]
