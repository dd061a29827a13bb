"""Guarantee: batches of other programs' filters answer as single lookups do, with any number of threads."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from compat.foreign import rules

from fullbloom import (
    ForeignFilter,
    ForeignScalableFilter,
    ForeignStaticFilter,
    KeyTypeError,
    ParameterError,
    _core,
)

#: More than threads are started for, and no multiple of what they take at a time.
MANY = 150_001
NUMBERS = np.arange(MANY) * 0x9E3779B97F4A7C1 % 2**62 - 2**61
TEXTS = pa.array([f"key {i}" for i in range(MANY)])


def draw_numbers(count: int) -> list[int]:
    """Numbers of which the hashes are of every kind."""
    return [(i * 0x9E3779B97F4A7C15 + 3) % 2**64 - 2**63 for i in range(count)]


#: num_bits and num_hashes of Spark filters: odd factors, powers of two, the widest in 32 bits, and beyond.
SHAPES = [(64, 1), (192, 3), (4096, 7), (6400, 16), (6400, 17), (19_170_176, 7), (2**31 - 64, 5), (2**31, 5)]


@pytest.mark.parametrize(("num_bits", "num_hashes"), SHAPES)
@pytest.mark.parametrize("name", ["spark", "spark-v1"])
def test_blocks_answer_as_single_lookups(name: str, num_bits: int, num_hashes: int, force_isa: Any) -> None:
    seed = 42 if name == "spark" else 0
    bloom = ForeignFilter.with_shape(name, num_bits, num_hashes, seed=seed)
    keys = draw_numbers(1100)
    bloom.update(keys[: max(1, min(500, num_bits // num_hashes // 2))])
    wanted = [key in bloom for key in keys]
    assert any(wanted)
    for isa in {"portable", _core.isa()}:
        force_isa(isa)
        for count in [0, 1, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1024, 1100]:
            assert bloom.contains_many(np.array(keys[:count], np.int64)).tolist() == wanted[:count]
            assert bloom.contains_many(keys[:count]) == wanted[:count]
        assert bloom.contains_many(pa.array(keys)[3:900]).to_pylist() == wanted[3:900]
        with_null = pa.array([None, *keys[:300], None])
        assert bloom.contains_many(with_null).to_pylist() == [None, *wanted[:300], None]


def test_blocks_of_keys_whose_hash_is_almost_zero_are_answered() -> None:
    # h1 of these is 0, 1 and -1 with seed 0, where the sums of version 2 may change their sign.
    bloom = ForeignFilter.with_shape("spark", 640, 7)
    rare = find_rare_keys()
    hashes = [rules.murmur32_spark(struct.pack("<q", key), 0) for key in rare]
    assert hashes == [0, 1, 2**32 - 1]
    keys = draw_numbers(253) + rare
    bloom.update(rare[:2])
    assert bloom.contains_many(np.array(keys, np.int64)).tolist() == [key in bloom for key in keys]


def find_rare_keys() -> list[int]:
    """Keys with h1 of 0, 1 and -1: each step of Murmur3 has an inverse, from which the high half follows."""

    def rotate(word: int, by: int) -> int:
        return (word << by | word >> (32 - by)) & 0xFFFFFFFF

    def invert(word: int) -> int:
        word ^= word >> 16
        word = word * pow(0xC2B2AE35, -1, 2**32) & 0xFFFFFFFF
        word ^= word >> 13 ^ word >> 26
        word = word * pow(0x85EBCA6B, -1, 2**32) & 0xFFFFFFFF
        return word ^ word >> 16 ^ 8

    def step(state: int) -> int:
        return (rotate(state, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF

    def step_back(state: int) -> int:
        return rotate((state - 0xE6546B64) * pow(5, -1, 2**32) & 0xFFFFFFFF, 19)

    def scrambled_back(word: int) -> int:
        word = rotate(word * pow(0x1B873593, -1, 2**32) & 0xFFFFFFFF, 17)
        return word * pow(0xCC9E2D51, -1, 2**32) & 0xFFFFFFFF

    # The low half is 0, which scrambles to 0.
    keys = [scrambled_back(step_back(invert(hash_)) ^ step(0)) << 32 for hash_ in (0, 1, 0xFFFFFFFF)]
    return [key - 2**64 if key >= 2**63 else key for key in keys]


def make_filters() -> list[tuple[Any, Any, Any]]:
    """Filters with half of the keys of a column, that column, and whether keys can be added."""
    rows: list[tuple[Any, Any, bool]] = [
        (ForeignFilter("spark", MANY), NUMBERS, True),
        (ForeignFilter("spark-v1", MANY), pa.array(NUMBERS), True),
        (ForeignFilter("guava", MANY, key_type="long"), NUMBERS, True),
        (ForeignFilter("parquet", MANY, key_type="bytes"), TEXTS, True),
        (ForeignFilter("sha256-seeded", MANY), TEXTS, True),
        (ForeignScalableFilter(1000), TEXTS, True),
    ]
    for bloom, keys, _ in rows:
        bloom.update(keys[: MANY // 2])
    fuse = ForeignStaticFilter.build("fuse8", NUMBERS[: MANY // 2], key_type="uint64")
    return [*rows, (fuse, NUMBERS, False)]


def to_list(answers: Any) -> list[Any]:
    return list(answers.to_pylist() if isinstance(answers, pa.Array) else answers.tolist())


@pytest.mark.long
def test_any_number_of_threads_gives_the_same_answers_and_bits() -> None:
    for bloom, keys, can_add in make_filters():
        wanted = to_list(bloom.contains_many(keys))
        assert all(wanted[: MANY // 2])
        assert sum(wanted) < MANY * 3 // 4
        for threads in (2, 3, 8):
            assert to_list(bloom.contains_many(keys, threads=threads)) == wanted, bloom.format
        if can_add:
            one, two = bloom.copy(), bloom.copy()
            assert to_list(one.add_many(keys)) == to_list(two.add_many(keys, threads=2))
            bloom.update(keys, threads=2)
            assert one == two == bloom


def test_threads_skip_nulls_and_name_the_first_refused_row() -> None:
    bloom = ForeignFilter("guava", 1000, key_type="int")
    bloom.update(range(0, 1000, 2))
    numbers: list[Any] = [i % 1000 for i in range(MANY)]
    numbers[5] = numbers[100_000] = None
    wanted = bloom.contains_many(pa.array(numbers)).to_pylist()
    assert wanted[5] is wanted[100_000] is None
    assert bloom.contains_many(pa.array(numbers), threads=4).to_pylist() == wanted
    for row in (140_000, 70_001, 33):
        numbers[row] = 2**40
        for threads in (1, 2, 5):
            with pytest.raises(KeyTypeError, match=rf"\b{row}\b"):
                bloom.contains_many(pa.array(numbers), threads=threads)
    with pytest.raises(ParameterError, match="threads"):
        bloom.contains_many([1], threads=0)
