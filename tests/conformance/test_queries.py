"""A query in the place of keys is run, or its refusal names how.

Polars has lazy frames and expressions, DuckDB has relations.
DuckDB is an extra of nobody here: without it, classes that export as its relations do stand in for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from cases import for_each

import fullbloom
from fullbloom import (
    BloomFilter,
    BloomierMap,
    CountingBloomFilter,
    FilterCascade,
    LayeredBloomFilter,
    XorFilter,
    _core,
)

if TYPE_CHECKING:
    from collections.abc import Callable


#: Everything that takes many keys, by the batch reader that it goes through.
ENTRANCES: dict[str, Callable[[Any], Any]] = {
    "contains_many": lambda keys: BloomFilter(100).contains_many(keys),
    "add_many": lambda keys: BloomFilter(100).add_many(keys),
    "update": lambda keys: BloomFilter(100).update(keys),
    "update, second": lambda keys: BloomFilter(100).update([1], keys),
    "hash_many": fullbloom.hash_many,
    "remove_many": lambda keys: CountingBloomFilter(100).discard_many(keys),
    "build": XorFilter.build,
    "values": lambda keys: BloomierMap.build(keys, 1),
    "labels": lambda keys: LayeredBloomFilter(100).update(keys),
    "world": lambda keys: FilterCascade.build([-1], keys),
    "includes_many": lambda keys: FilterCascade.build([1], [2]).includes_many(keys),
    "a server": _core.WireCells(1024, 8).keys,
    "differences": _core.RatelessEncoder,
}
HASHED: dict[str, Callable[[Any], Any]] = {
    "contains_hashed": lambda keys: BloomFilter(100).contains_hashed(keys),
    "add_hashed": lambda keys: BloomFilter(100).add_hashed(keys),
    "build_hashed": XorFilter.build_hashed,
}
SINGLE: dict[str, Callable[[Any], Any]] = {
    "in": lambda key: key in BloomFilter(100),
    "add": lambda key: BloomFilter(100).add(key),
    "hash_key": fullbloom.hash_key,
}
EVERY = {**ENTRANCES, **HASHED, **SINGLE}


@for_each("entrance", EVERY)
def test_a_lazy_frame_is_refused_with_a_hint_to_collect(entrance: str) -> None:
    frame = pl.LazyFrame({"name": [1, 2, 3]})
    with pytest.raises(fullbloom.KeyTypeError, match=r"\.collect\(\)"):
        EVERY[entrance](frame)
    with pytest.raises(TypeError, match=r"\.collect\(\)"):
        EVERY[entrance](frame.select(pl.col("name") + 1))


@for_each("entrance", EVERY)
@for_each(
    "expression",
    [
        pl.col("name"),
        pl.col("name") + 1,
        pl.lit(3),
        pl.when(pl.col("name") > 1).then(1),
        pl.all(),
        pl.element(),
    ],
    ids=str,
)
def test_an_expression_is_refused_with_a_hint_to_map_batches(entrance: str, expression: Any) -> None:
    with pytest.raises(fullbloom.KeyTypeError, match="map_batches"):
        EVERY[entrance](expression)


def test_the_suggested_calls_work() -> None:
    f = BloomFilter(100)
    f.update([1, 2, 3])
    frame = pl.LazyFrame({"name": [1, 2, 9_999]})
    assert f.contains_many(frame.collect()["name"]).to_list() == [True, True, False]
    asked = frame.select(pl.col("name").map_batches(f.contains_many, return_dtype=pl.Boolean)).collect()
    assert asked["name"].to_list() == [True, True, False]


class Relation:
    """A query that runs when it is read, as DuckDB's export theirs."""

    def __init__(self, table: pa.Table, rows: int = 2):
        self.table, self.rows, self.runs = table, rows, 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.runs += 1
        batches = self.table.to_batches(max_chunksize=self.rows)
        return pa.RecordBatchReader.from_batches(self.table.schema, batches).__arrow_c_stream__()

    def __len__(self) -> int:
        raise AssertionError("counting the rows runs the query once more")

    def __getitem__(self, name: str) -> object:
        raise AssertionError("a relation is no sequence")


class OlderRelation:
    """One of a release that exports nothing itself."""

    def __init__(self, table: pa.Table):
        self.table = table

    def fetch_arrow_table(self) -> pa.Table:
        return self.table

    def __getitem__(self, name: str) -> object:
        raise AssertionError("a relation is no sequence")


for _class in (Relation, OlderRelation):
    _class.__module__ = "duckdb"

COLUMNS = {
    "integers": pa.chunked_array([[1, 2, 3], [4, 5]]),
    "texts": pa.chunked_array([["a", "bb", "ccc", "dddd", ""]]),
    "nulls": pa.chunked_array([[1, None, 3, None, 5]]),
    "words": pa.chunked_array([pa.array(["a", "b", "a", None, "b"]).dictionary_encode()]),
    "structs": pa.chunked_array([pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])]),
    "none": pa.chunked_array([], pa.int64()),
}


def to_list(answer: Any) -> list[Any]:
    """The answers of a column, in whatever pieces."""
    pieces = answer if isinstance(answer, list) else [answer]
    return [value for piece in pieces for value in pa.array(piece).to_pylist()]


@for_each("column", COLUMNS)
@for_each("kind", [Relation, OlderRelation])
def test_the_column_of_a_relation_is_read_as_that_column(kind: type, column: str) -> None:
    values = COLUMNS[column]
    relation: Any = kind(pa.table({"name": values}))
    f, expected = BloomFilter(100), BloomFilter(100)
    added = expected.add_many(values).to_pylist()
    answer = f.add_many(relation)
    assert (answer.to_pylist() if isinstance(answer, pa.ChunkedArray) else to_list(answer)) == added
    assert f == expected
    f.update(relation)
    assert f.num_added == expected.num_added
    answer = f.contains_many(relation)
    assert (answer.to_pylist() if isinstance(answer, pa.ChunkedArray) else to_list(answer)) == [
        None if value is None else True for value in values.to_pylist()
    ]
    if kind is Relation:
        assert relation.runs == 3


@for_each("entrance", ENTRANCES)
def test_every_method_accepts_a_relation(entrance: str) -> None:
    values = [7, 8, 9]
    for make in (Relation, OlderRelation):
        ENTRANCES[entrance](make(pa.table({"name": values})))
    assert to_list(fullbloom.hash_many(Relation(pa.table({"name": values})))) == fullbloom.hash_many(values)


@pytest.mark.parametrize("entrance", HASHED)
def test_hashes_are_read_from_relations(entrance: str) -> None:
    hashes = pa.array(fullbloom.hash_many([1, 2, 3]), pa.uint64())
    for make in (Relation, OlderRelation):
        HASHED[entrance](make(pa.table({"name": hashes})))
        with pytest.raises(fullbloom.KeyTypeError):
            HASHED[entrance](make(pa.table({"name": ["a"]})))


def test_rows_of_several_columns_are_tuples() -> None:
    f = BloomFilter(100)
    f.update(Relation(pa.table({"a": [1, 2], "b": ["x", "y"]})))
    assert f.contains_many([(1, "x"), (2, "y"), (1, "y"), (1,)]) == [True, True, False, False]


def test_a_relation_with_invalid_metadata_is_refused() -> None:
    class Sliced(Relation):
        """Its rows begin behind the first of its column."""

        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["name"]).slice(1).__arrow_c_array__()

    class Null(Relation):
        """Rows that are null themselves."""

        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return pa.array([{"name": 1}, None]).__arrow_c_array__()

    for lying in (Sliced, Null):
        lying.__module__ = "duckdb"
        with pytest.raises(fullbloom.KeyTypeError, match="rows of a query"):
            BloomFilter(100).update(lying(pa.table({"name": [1]})))


def test_a_frame_of_one_column_is_refused_as_before() -> None:
    with pytest.raises(fullbloom.KeyTypeError, match="one column"):
        BloomFilter(100).update(pa.table({"name": [1, 2]}))
    with pytest.raises(fullbloom.KeyTypeError, match="one column"):
        BloomFilter(100).update(pl.DataFrame({"name": [1, 2]}))


QUERIES = [
    ("select range as k from range(5)", list(range(5))),
    ("select (range * 3)::varchar as k from range(1_200_000)", [str(n * 3) for n in range(1_200_000)]),
    ("select 'x' || range as k from range(3000)", [f"x{n}" for n in range(3000)]),
    ("select case when range % 2 = 0 then range end as k from range(6)", [0, None, 2, None, 4, None]),
    (
        "select (case when range % 2 = 0 then 'a' else 'b' end)::enum('a', 'b') as k from range(4)",
        ["a", "b"] * 2,
    ),
    ("select range as k from range(0)", []),
    ("select range as k, 'v' as v from range(3)", [(n, "v") for n in range(3)]),
]


@pytest.mark.long
@for_each(("query", "expected"), QUERIES, ids=[query for query, _ in QUERIES])
def test_relations_of_duckdb_are_read(query: str, expected: list[Any]) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB (pip install duckdb)")
    f, plain = BloomFilter(3_000_000), BloomFilter(3_000_000)
    keys = [key for key in expected if key is not None]
    plain.update(keys)
    with duckdb.connect() as base:
        f.update(base.sql(query))
        assert f == plain
        assert to_list(f.contains_many(base.sql(query))) == [
            None if key is None else True for key in expected
        ]
        assert sum(filter(None, to_list(BloomFilter(3_000_000).add_many(base.sql(query))))) == plain.num_added
        assert XorFilter.build(base.sql(query)).contains_many(keys) == [True] * len(keys)
