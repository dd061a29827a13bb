"""Guarantee: compute functions and datasets of PyArrow give the filter's answers."""

from __future__ import annotations

import gc
import uuid
import weakref

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from fullbloom import BloomFilter, KeyTypeError, ParameterError, ParameterTypeError
from fullbloom.engines.arrow import contains, filter_dataset, keep_candidates, register, unregister


@pytest.fixture
def name():
    """A name of a test's own, since PyArrow keeps functions."""
    return f"contains_{uuid.uuid4().hex}"


@pytest.fixture
def known():
    made = BloomFilter(1000, fpr=1e-9)
    made.update(range(0, 1000, 2))
    return made


def test_arrays_chunks_and_scalars_give_the_answers_of_the_batch(known, name):
    register(known, name)
    array = pa.array([2, 3, None])
    assert pc.call_function(name, [array]).to_pylist() == [True, False, None]
    chunks = pa.chunked_array([array, [4]])
    assert pc.call_function(name, [chunks]).to_pylist() == [True, False, None, True]
    assert pc.call_function(name, [pa.scalar(6)]).as_py() is True
    assert pc.call_function(name, [pa.array([], pa.int64())]).to_pylist() == []


KEYS = {
    "string": ["a", "b"],
    "large_string": ["a", "b"],
    "binary": [b"a", b"b"],
    "float64": [1.5, float("nan")],
    "date32": [1, 2],
    "timestamp[us]": [1, 2],
    "bool": [True, False],
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_type_of_keys_is_looked_up(kind, name):
    keys = pa.array(KEYS[kind], pa.type_for_alias(kind))
    known = BloomFilter(100, fpr=1e-9)
    known.update(keys.slice(1))
    register(known, name, kind)
    assert pc.call_function(name, [keys]).to_pylist() == [False, True]


def test_a_name_gets_another_filter_of_its_type_only(known, name):
    register(known, name)
    register(BloomFilter(10), name)
    assert pc.call_function(name, [pa.array([2])]).to_pylist() == [False]
    with pytest.raises(ParameterError, match="takes int64, which PyArrow cannot change to string"):
        register(known, name, "string")


def test_a_released_filter_is_gone_and_its_function_says_so(name):
    class Watched:
        def contains_many(self, keys):
            return pa.array([True] * len(keys))

    watched = Watched()
    gone = weakref.ref(watched)
    register(watched, name)
    unregister(name)
    del watched
    gc.collect()
    assert gone() is None
    with pytest.raises(ParameterError, match="was released; register it again"):
        pc.call_function(name, [pa.array([2])])
    with pytest.raises(ParameterError, match="no filter is registered"):
        unregister(name)
    with pytest.raises(ParameterError, match="no filter is registered"):
        contains("x", name)


def test_a_failed_registration_leaves_no_function(known, name):
    with pytest.raises(ParameterTypeError, match="got list"):
        register([1], name)
    with pytest.raises(KeyTypeError, match="list"):
        register(known, name, pa.list_(pa.int64()))
    with pytest.raises(ParameterTypeError, match="key_type must be an Arrow type or its name, got 'integer'"):
        register(known, name, "integer")
    with pytest.raises(ParameterError, match="1 to 200 characters"):
        register(known, "")
    with pytest.raises(ParameterError, match="already has a function 'equal'"):
        register(known, "equal")
    with pytest.raises(pa.ArrowKeyError):
        pc.get_function(name)


def test_a_dataset_is_filtered_as_it_is_read(tmp_path, known, name):
    register(known, name)
    ds.write_dataset(
        pa.table({"x": pa.array([*range(2000), None], pa.int32()), "y": range(2001)}),
        tmp_path,
        format="parquet",
    )
    dataset = ds.dataset(tmp_path)
    kept = filter_dataset(dataset, "x", name)
    expected = list(range(0, 1000, 2))
    assert sorted(kept.to_table(columns=["y"])["y"].to_pylist()) == expected
    assert kept.filter(pc.field("y") > 500).count_rows() == len([y for y in expected if y > 500])


def test_a_column_that_cannot_be_cast_is_an_error(known, name):
    register(known, name)
    dataset = ds.dataset(pa.table({"x": ["a"], "large": pa.array([2**63], pa.uint64())}))
    with pytest.raises(KeyTypeError, match=r"'x' has the type string, but the function .* takes int64"):
        filter_dataset(dataset, "x", name)
    with pytest.raises(ParameterError, match="'z' does not exist; the columns are x, large"):
        filter_dataset(dataset, "z", name)
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        filter_dataset(dataset, "large", name).to_table()


def test_texts_of_other_forms_are_cast(name):
    known = BloomFilter(10, fpr=1e-9)
    known.add("a")
    register(known, name, "string")
    for column in (
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()),
        pa.array(["a", "b"]).dictionary_encode(),
    ):
        assert filter_dataset(ds.dataset(pa.table({"x": column})), "x", name).count_rows() == 1


def test_candidates_are_kept_batch_by_batch(known):
    table = pa.table({"x": [*range(2000), None], "y": range(2001)})
    expected = list(range(0, 1000, 2))
    read = []

    def batches():
        for batch in table.to_batches(max_chunksize=100):
            read.append(len(batch))
            yield batch

    sources = [
        table,
        ds.dataset(table),
        table.to_reader(),
        pa.RecordBatchReader.from_batches(table.schema, batches()),
    ]
    for source in sources:
        assert keep_candidates(source, "x", known).read_all()["y"].to_pylist() == expected
    assert len(read) == 21
    read.clear()
    reader = keep_candidates(pa.RecordBatchReader.from_batches(table.schema, batches()), "x", known)
    assert not read
    reader.read_next_batch()
    assert read == [100]


def test_candidates_of_what_holds_no_keys_are_refused(known):
    table = pa.table({"x": [[1]], "y": [1]})
    with pytest.raises(KeyTypeError, match="list"):
        keep_candidates(table, "x", known)
    with pytest.raises(ParameterError, match="'z' does not exist"):
        keep_candidates(table, "z", known)
    with pytest.raises(ParameterError, match="'y' is ambiguous"):
        keep_candidates(table.append_column("y", [[1]]), "y", known)
    with pytest.raises(ParameterTypeError, match="got int"):
        keep_candidates(5, "x", known)
    with pytest.raises(ParameterTypeError, match="got list"):
        keep_candidates(table, "y", [1])
