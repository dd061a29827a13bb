"""Guarantee: a Bloom join has the rows of PyArrow's join, whatever the tables hold, and keeps few others."""

from __future__ import annotations

import random

import pytest

from fullbloom import BloomFilter, ParameterError, ParameterTypeError
from fullbloom.recipes.join import join, keep_matches, make_key_filter

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'fullbloom[arrow]'")
SEED = 1970
TYPES = ["inner", "left outer", "right outer", "left semi", "right semi", "left anti", "right anti"]


def rows(table):
    return sorted(map(repr, table.to_pylist()))


def draw_column(draw, kind, count):
    values = {
        "int32": lambda: draw.randrange(60),
        "string": lambda: f"key {draw.randrange(60)}",
        "double": lambda: draw.choice([0.0, -0.0, float("nan"), draw.randrange(60) / 4]),
        "date32": lambda: draw.randrange(60),
        "binary": lambda: bytes([draw.randrange(60)]),
    }[kind]
    return pa.array([None if draw.random() < 0.1 else values() for _ in range(count)], kind)


@pytest.mark.parametrize("join_type", TYPES)
def test_the_rows_are_those_of_a_join_without_a_filter(join_type):
    draw = random.Random(f"{SEED} {join_type}")
    for _ in range(15):
        kinds = [
            draw.choice(["int32", "string", "double", "date32", "binary"]) for _ in range(draw.randint(1, 2))
        ]
        counts = draw.randint(0, 80), draw.randint(0, 80)
        left, right = (
            pa.table(
                {f"{side}{at}": draw_column(draw, kind, count) for at, kind in enumerate(kinds)}
                | {f"{side} row": pa.array(range(count), "int64")}
            )
            for side, count in zip(("left", "right"), counts, strict=True)
        )
        left_keys, right_keys = ([f"{side}{at}" for at in range(len(kinds))] for side in ("left", "right"))
        expected = left.join(right, left_keys, right_keys, join_type=join_type)
        found = join(left, right, left_keys, right_keys, join_type=join_type, fpr=draw.choice([0.5, 0.01]))
        assert rows(found.table) == rows(expected), (SEED, kinds)
        assert found.kept <= found.filtered


def test_tables_of_several_chunks_are_joined():
    left = pa.concat_tables([pa.table({"a": [1, 2]}), pa.table({"a": [3, 4]})])
    right = pa.concat_tables([pa.table({"a": [4]}), pa.table({"a": [1, 9]})])
    assert rows(join(left, right, "a").table) == rows(pa.table({"a": [1, 4]}))


def test_rows_without_a_match_are_kept_at_the_rate_of_the_filter():
    draw = random.Random(SEED)
    rate = draw.choice([0.1, 0.03, 0.01])
    known = make_key_filter(pa.table({"key": draw.sample(range(10**6), 5000)}), "key", fpr=rate)
    others = pa.table({"key": range(10**6, 10**6 + 200_000)})
    kept = keep_matches(others, "key", BloomFilter.from_bytes(known.to_bytes())).num_rows
    expected = 200_000 * known.fpr()
    assert kept <= 200_000 * rate + 5 * (200_000 * rate) ** 0.5
    assert abs(kept - expected) < 5 * expected**0.5 + 0.2 * expected, (SEED, rate)


@pytest.mark.parametrize(
    ("error", "left", "right", "options"),
    [
        (ParameterError, pa.table({"a": [1]}), pa.table({"a": [1]}), {"join_type": "full outer"}),
        (ParameterError, pa.table({"a": [1]}), pa.table({"a": ["1"]}), {}),
        (ParameterError, pa.table({"a": [1]}), pa.table({"a": pa.array([1], "int32")}), {}),
        (ParameterError, pa.table({"a": [1]}), pa.table({"a": [1]}), {"keys": []}),
        (KeyError, pa.table({"a": [1]}), pa.table({"b": [1]}), {}),
        (ParameterTypeError, {"a": [1]}, pa.table({"a": [1]}), {}),
        (ParameterError, pa.table({"a": [1]}), pa.table({"a": [1]}), {"fpr": 0.0}),
    ],
)
def test_joins_that_cannot_be_are_refused(error, left, right, options):
    with pytest.raises(error):
        join(left, right, options.pop("keys", "a"), **options)
