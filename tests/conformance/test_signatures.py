"""An index of signatures: it loses no true match, and rechecked answers are exact."""

from __future__ import annotations

import copy
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each

import fullbloom
from fullbloom import SignatureIndex

SHAPES: list[tuple[Any, Any]] = [(40, 4), (64, 1), ((48, 24), (2, 1)), ((64, 0, 0, 256), (2, 0, 0, 3))]


def draw_documents(rng: random.Random, count: int) -> list[list[str]]:
    """Documents of up to nine of sixty terms."""
    return [rng.sample([f"t{i}" for i in range(60)], rng.randrange(10)) for _ in range(count)]


def exact(documents: list[list[Any]], query: list[Any]) -> list[int]:
    return [row for row, terms in enumerate(documents) if set(query) <= set(terms)]


@for_each(("num_bits", "bits_per_term"), SHAPES)
@for_each("seed", [1, 2, 3])
def test_no_true_match_is_lost_and_a_recheck_makes_answers_exact(
    num_bits: Any, bits_per_term: Any, seed: int
) -> None:
    rng = random.Random(seed)
    documents = draw_documents(rng, rng.randrange(1, 2500))
    index = SignatureIndex(num_bits, bits_per_term, capacity=rng.choice([1, 700, 100_000]), seed=seed)
    half = len(documents) // 2
    assert [index.add(terms) for terms in documents[:half]] == list(range(half))
    assert index.add_many(documents[half:]) == len(documents) - half
    for _ in range(60):
        query = rng.sample([f"t{i}" for i in range(60)], rng.randrange(4))
        found = index.candidates(query)
        assert found == sorted(found)
        assert index.count_candidates(query) == len(found)
        wanted = exact(documents, query)
        assert set(wanted) <= set(found)
        assert index.search(query, lambda row: set(query) <= set(documents[row])) == wanted  # noqa: B023
        assert index.search(query, lambda rows: [row in wanted for row in rows], batch=True) == wanted  # noqa: B023


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_listed_terms_keep_their_matches(rank: int) -> None:
    rng = random.Random(rank)
    shares = {i: min(1.0, 3 / (i + 1)) for i in range(200)}
    index = SignatureIndex.for_terms(20, 1e-3, fill=0.2, rank=rank, frequencies=shares, seed=rank)
    assert index.num_private > 0
    documents = [[i for i in range(400) if rng.random() < min(1.0, 3 / (i + 1))] for _ in range(1500)]
    index.add_many(documents)
    for _ in range(100):
        query = [rng.randrange(400) for _ in range(rng.randrange(1, 4))]
        assert set(exact(documents, query)) <= set(index.candidates(query))
    for term in range(3):  # a private row has no false drops
        assert index.candidates([term]) == exact(documents, [term])


@pytest.mark.parametrize("seed", [11, 12])
def test_any_subset_of_columns_finds_its_rows(seed: int) -> None:
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]
    table: dict[str, list[Any]] = {
        "a": [rng.randrange(30) for _ in range(3000)],
        "b": [f"x{rng.randrange(30)}" for _ in range(3000)],
        "c": [rng.random() < 0.5 for _ in range(3000)],
        "d": [rng.choice([None, 1.5, 2.5, 1e9]) for _ in range(3000)],
    }
    index = SignatureIndex(80, 2, columns={"a": 2, "b": 3, "c": 1, "d": 2}, seed=seed)
    assert index.add_table(pa.table(table)) == 3000
    for _ in range(60):
        row = rng.randrange(3000)
        chosen = [name for name in rng.sample(names, rng.randrange(5)) if table[name][row] is not None]
        query = {name: table[name][row] for name in chosen}
        wanted = [i for i in range(3000) if all(table[name][i] == value for name, value in query.items())]
        assert index.search(query, lambda i: all(table[n][i] == v for n, v in query.items())) == wanted  # noqa: B023
        assert set(wanted) <= set(index.candidates(query))


def test_a_value_counts_in_its_own_column_only() -> None:
    index = SignatureIndex(4096, 4, columns=["a", "b"])
    index.add_table({"a": [5, 6], "b": [6, 5]})
    assert (index.candidates({"a": 5}), index.candidates({"b": 5})) == ([0], [1])


def test_every_kind_of_table_gives_the_same_index() -> None:
    rows = {"city": ["Ulm", "Bonn", "Ulm"], "year": [1879, 1770, 2000], "more": [1, 2, 3]}
    batch = pa.record_batch(rows)
    tables = [
        rows,
        pa.table(rows),
        batch,
        pa.table(rows).slice(0, 3),
        pa.Table.from_batches([batch.slice(0, 1), batch.slice(1, 2)]),
        pa.RecordBatchReader.from_batches(batch.schema, [batch]),
        pl.DataFrame(rows),
        pd.DataFrame(rows, index=[7, 8, 9]),
        {"city": np.array(rows["city"]), "year": np.array(rows["year"])},
        {"city": pa.array(rows["city"]).dictionary_encode(), "year": pl.Series(rows["year"])},
    ]
    indexes = []
    for table in tables:
        index = SignatureIndex(128, 3, columns=["year", "city"])
        assert index.add_table(table) == 3
        indexes.append(index)
    assert all(index == indexes[0] for index in indexes)
    shifted = SignatureIndex(128, 3, columns=["year", "city"])
    shifted.add_table(pa.table(rows).slice(1, 2))
    assert shifted.candidates({"city": "Ulm"}) == [1]


def test_every_kind_of_documents_gives_the_same_index() -> None:
    documents = [["a", "b"], [], ["c"], ["a"], ["d", "a", "b"]]
    column = pa.array(documents)
    kinds = [
        documents,
        iter(documents),
        [set(terms) for terms in documents],
        [np.array(terms, dtype="U1") for terms in documents],
        column,
        column.cast(pa.large_list(pa.string())),
        pa.chunked_array([column.slice(0, 2), column.slice(2)]),
        pl.Series(documents, dtype=pl.List(pl.String)),
        pa.array([["z"], *documents]).slice(1),
        pa.array([["a", None, "b"], None, ["c"], ["a"], ["d", "a", "b"]]),
        pa.array(list(documents), pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    ]
    indexes = []
    for kind in kinds:
        index = SignatureIndex(64, 3)
        assert index.add_many(kind) == 5
        indexes.append(index)
    assert all(index == indexes[0] for index in indexes)


def test_row_numbers_come_in_the_container_of_the_query_or_the_one_named() -> None:
    index = SignatureIndex(64, 3)
    index.add_many([[1, 2], [2]])
    assert index.candidates([2]) == [0, 1]
    assert index.candidates((2,)) == [0, 1]
    array = index.candidates(np.array([2]))
    assert isinstance(array, np.ndarray)
    assert (array.dtype, array.tolist()) == (np.uint64, [0, 1])
    assert index.candidates(pa.array([2])) == pa.array([0, 1], pa.uint64())
    assert index.candidates(pl.Series("q", [2])).to_list() == [0, 1]
    assert index.candidates(pd.Series([2], index=[5])).tolist() == [0, 1]
    assert index.candidates([2], kind="numpy").tolist() == [0, 1]
    assert pa.array(index.candidates([2], kind="arrow")).to_pylist() == [0, 1]
    assert index.candidates(np.array([9]), kind="list") == []
    kept = index.search(np.array([2]), lambda rows: rows > 0, batch=True)
    assert isinstance(kept, np.ndarray)
    assert kept.tolist() == [1]


def test_notched_cards_have_exactly_four_notches_a_descriptor() -> None:
    cards = SignatureIndex(40, 4)
    for descriptor in range(300):
        notches = cards.positions([descriptor])
        assert len(set(notches)) == 4
        assert all(rank == 0 and 0 <= notch < 40 for rank, notch in notches)


def test_copies_pickles_and_files_are_equal_and_independent(tmp_path: Any) -> None:
    index = SignatureIndex.for_terms(8, 0.01, rank=1, frequencies={"a": 0.9, "b": 0.05})
    index.add_many([["a", "c"], ["b"], ["a"]])
    index.save(tmp_path / "i.bloom")
    mapped = SignatureIndex.open(tmp_path / "i.bloom")
    others = [copy.copy(index), copy.deepcopy(index), index.copy(), pickle.loads(pickle.dumps(index)), mapped]
    others += [fullbloom.open(tmp_path / "i.bloom", verify="full"), fullbloom.loads(index.to_bytes())]
    assert all(other == index for other in others)
    assert mapped.path == str(tmp_path / "i.bloom")
    with pytest.raises(fullbloom.ReadOnlyFilter):
        mapped.add(["d"])
    assert mapped.candidates(["a"]) == [0, 2]
    grown = mapped.copy()
    assert grown.add(["a"]) == 3
    assert grown.candidates(["a"]) == [0, 2, 3]
    assert (len(mapped), len(index), grown == index) == (3, 3, False)


def test_a_secret_is_needed_to_open_a_keyed_index(tmp_path: Any) -> None:
    index = SignatureIndex(64, 3, secret=b"sixteen secrets!")
    index.add(["a"])
    index.save(tmp_path / "k.bloom")
    assert SignatureIndex.open(tmp_path / "k.bloom", secret=b"sixteen secrets!").candidates(["a"]) == [0]
    for secret in (None, b"other   secrets!"):
        with pytest.raises(fullbloom.ParameterError, match="secret"):
            SignatureIndex.open(tmp_path / "k.bloom", secret=secret)
    with pytest.raises(TypeError, match="a pickle must not contain the secret"):
        pickle.dumps(index)


def test_documents_before_a_refused_one_are_added() -> None:
    index = SignatureIndex(64, 3)
    with pytest.raises(fullbloom.KeyTypeError, match="item 2"):
        index.add_many([["a"], ["b"], [object()], ["c"]])
    assert len(index) == 2


def test_expected_share_is_the_product_of_the_densities_read() -> None:
    rng = random.Random(5)
    documents = draw_documents(rng, 700)
    index = SignatureIndex(30, 2)
    index.add_many(documents)
    for term in ("t1", "t2", "t59"):
        share = 1.0
        for _, row in index.positions([term]):
            share *= sum((0, row) in index.positions(terms) for terms in documents) / 700
        assert index.expected_share([term]) == pytest.approx(share)
    assert index.expected_share([]) == 1.0


def test_threads_that_add_and_query_lose_no_row() -> None:
    index = SignatureIndex(256, 4, capacity=1)

    def work(number: int) -> list[int]:
        rows = [index.add([("thread", number), i]) for i in range(150)]
        index.add_many([[("thread", number), i] for i in range(150)])
        assert set(rows) <= set(index.candidates([("thread", number)]))
        return rows

    with ThreadPoolExecutor(6) as pool:
        rows = [row for part in pool.map(work, range(6)) for row in part]
    assert len(set(rows)) == 900
    assert len(index) == 1800
    assert all(len(index.candidates([("thread", number)])) >= 300 for number in range(6))
