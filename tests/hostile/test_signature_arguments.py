"""Whatever is wrong with a call of a signature index is a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import for_each

import fullbloom
from fullbloom import SignatureIndex


@for_each(
    ("num_bits", "bits_per_term", "options", "match"),
    [
        (0, 1, {}, "num_bits"),
        (2**20 + 1, 1, {}, "num_bits"),
        (2**70, 1, {}, "num_bits"),
        (10, 11, {}, "bits_per_term"),
        (1000, 65, {}, "bits_per_term"),
        ((10, 10), (1,), {}, "ranks"),
        ((10,) * 8, (1,) * 8, {}, "ranks"),
        ((10, 0), (1, 1), {}, "num_bits"),
        ((), (), {}, "num_bits"),
        (10, 1, {"columns": []}, "columns"),
        (10, 1, {"columns": ["a", "a"]}, "'?\"?a"),
        (10, 1, {"columns": ["a\0b"]}, "zero byte"),
        (10, 1, {"columns": ["x" * 257]}, "256"),
        (10, 1, {"columns": {"a": 11}}, "column"),
        (10, 1, {"columns": [f"c{i}" for i in range(1025)]}, "1024"),
        ((10, 10), (1, 1), {"columns": ["a"]}, "rank 0"),
        (10, 1, {"capacity": 0}, "capacity"),
    ],
)
def test_impossible_shapes_are_refused(num_bits: Any, bits_per_term: Any, options: Any, match: str) -> None:
    with pytest.raises(fullbloom.FullbloomError, match=match):
        SignatureIndex(num_bits, bits_per_term, **options)


@for_each(
    ("terms", "options", "match"),
    [
        (0, {}, "terms"),
        (10, {"fpr": 0.0}, "fpr"),
        (10, {"fill": 1.0}, "fill"),
        (10, {"fill": float("nan")}, "fill"),
        (10, {"rank": 7}, "rank"),
        (10, {"snr": 0.0}, "snr"),
        (10, {"frequencies": {"a": 1.5}}, "frequencies"),
        (10, {"frequencies": [("a", 0.5)]}, "frequencies"),
        (10**7, {}, "terms"),
        (2**63, {"rank": 6}, "terms"),
    ],
)
def test_impossible_sizes_are_refused(terms: int, options: Any, match: str) -> None:
    with pytest.raises(fullbloom.FullbloomError, match=match):
        SignatureIndex.for_terms(terms, **options)


def test_documents_and_tables_are_not_mistaken_for_each_other() -> None:
    documents, rows = SignatureIndex(64, 3), SignatureIndex(64, 3, columns=["a", "b"])
    with pytest.raises(fullbloom.KeyTypeError, match="add_table"):
        rows.add(["a"])
    with pytest.raises(fullbloom.KeyTypeError, match="add_table"):
        rows.add_many([["a"]])
    with pytest.raises(fullbloom.KeyTypeError, match="no columns"):
        documents.add_table({"a": [1]})
    with pytest.raises(fullbloom.KeyTypeError, match="columns"):
        documents.candidates({"a": 1})
    with pytest.raises(fullbloom.ParameterTypeError, match="query"):
        rows.candidates(["a"])
    with pytest.raises(fullbloom.ParameterError, match="'c'"):
        rows.candidates({"c": 1})
    with pytest.raises(fullbloom.KeyTypeError, match="null"):
        rows.candidates({"a": None})
    with pytest.raises(fullbloom.KeyTypeError):
        documents.candidates("one string")
    with pytest.raises(TypeError):
        documents.add(5)  # type: ignore[arg-type]


def test_broken_tables_are_refused_and_leave_no_row() -> None:
    index = SignatureIndex(64, 3, columns=["a", "b"])
    for table, match in [
        ({"a": [1, 2], "b": [1]}, "equally long"),
        ({"a": [1]}, "'?\"?b"),
        (pa.table({"a": [1]}), "b"),
        (pa.table([[1], [2], [3]], names=["a", "b", "b"]), "several"),
        (pa.table({"a": [[1]], "b": [1]}), "list"),
        (pa.array([1, 2]), "named columns"),
        ([(1, 2)], "table"),
        (5, "table"),
        ({"a": "x", "b": "y"}, "."),
    ]:
        with pytest.raises(fullbloom.FullbloomError, match=match):
            index.add_table(table)
    assert len(index) == 0


def test_broken_documents_are_refused() -> None:
    index = SignatureIndex(64, 3)
    for documents in (pa.array([1, 2]), pa.array([[[1]], [[2]]]), 5, np.array([1, 2])):
        with pytest.raises((fullbloom.FullbloomError, TypeError)):
            index.add_many(documents)
    assert len(index) == 0


def test_a_recheck_of_the_wrong_length_or_kind_is_refused() -> None:
    index = SignatureIndex(64, 3)
    index.add_many([["a"], ["a"]])
    for wrong in ([True], [True] * 3):
        with pytest.raises(fullbloom.ParameterError, match="recheck"):
            index.search(["a"], lambda _: wrong, batch=True)  # noqa: B023
    with pytest.raises(fullbloom.ParameterTypeError, match="recheck"):
        index.search(["a"], 5)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        index.search(["a"], lambda row: 1 // row)
    with pytest.raises(fullbloom.ParameterError, match="kind"):
        index.candidates(["a"], kind="tuple")


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [0, -1, 2, 3]])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_lists_with_lying_offsets_are_refused(offsets: list[int], width: Any) -> None:
    kind = pa.list_(pa.int64()) if width is np.int32 else pa.large_list(pa.int64())
    buffer = pa.py_buffer(np.array(offsets, dtype=width).tobytes())
    lists = pa.Array.from_buffers(kind, 3, [None, buffer], children=[pa.array([1, 2, 3])])
    index = SignatureIndex(64, 3)
    with pytest.raises(fullbloom.KeyTypeError, match="states"):
        index.add_many(lists)
    assert len(index) == 0
