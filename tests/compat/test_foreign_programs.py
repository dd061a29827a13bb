"""Spark and Guava read what we write and we read what they write, byte for byte, in both directions."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from compat.foreign import judge

import fullbloom
from fullbloom import ForeignFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = ["", "a", "b", "hello", "café", "日本語🔑", "x" * 15, "x" * 16, "x" * 17, "é" * 300, "tab\tand space"]
LONGS = [0, 1, -1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63), *range(100, 400)]
INTS = [0, 1, -1, 2**31 - 1, -(2**31), *range(100, 400)]
BLOBS = [b"", b"\x80", b"\xff\xfe\xfd", bytes(range(256))]
ABSENT = {"any": [f"no {i}" for i in range(300)], "long": list(range(10**6, 10**6 + 300))}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[judge.Judge]:
    running = judge.start(tmp_path_factory.mktemp("judge"))
    yield running
    running.close()


def keys_of(key_type: str) -> list[Any]:
    return {
        "any": [*TEXTS, *LONGS, *BLOBS],
        "long": LONGS,
        "int": INTS,
        "bytes": BLOBS,
        "utf-8": TEXTS,
        "utf-16": TEXTS,
    }[key_type]


def marks(found: list[bool]) -> str:
    return "".join("01"[mark] for mark in found)


@pytest.mark.parametrize(("version", "seed"), [(1, 0), (2, 0), (2, 42), (2, 2**31 - 1)])
@pytest.mark.parametrize("shape", [(10, 64), (1000, 16384), (333, 9984)])
def test_spark_writes_these_bytes_and_reads_ours(
    program: judge.Judge, version: int, seed: int, shape: tuple[int, int]
) -> None:
    items, num_bits = shape
    keys, absent = keys_of("any"), [*ABSENT["any"], *ABSENT["long"]]
    theirs = bytes.fromhex(program.ask("spark", version, seed, items, num_bits, *map(judge.word, keys)))
    read = ForeignFilter.from_foreign(theirs)
    assert (read.format, read.seed, read.num_bits) == (
        "spark" if version == 2 else "spark-v1",
        seed,
        num_bits,
    )
    assert read.to_foreign() == theirs
    ours = ForeignFilter.with_shape(read.format, read.num_bits, read.num_hashes, seed=seed)
    ours.update(keys)
    assert ours.to_foreign() == theirs
    assert all(read.contains_many(keys))
    asked = program.ask("ask-spark", ours.to_foreign().hex(), *map(judge.word, [*keys, *absent]))
    assert asked == marks(ours.contains_many([*keys, *absent]))


@pytest.mark.parametrize("strategy", ["MURMUR128_MITZ_64", "MURMUR128_MITZ_32"])
@pytest.mark.parametrize("funnel", ["utf-8", "utf-16", "int", "long", "bytes"])
def test_guava_writes_these_bytes_and_reads_ours(program: judge.Judge, strategy: str, funnel: str) -> None:
    keys = keys_of(funnel)
    name = "guava" if strategy.endswith("64") else "guava-32"
    for items, fpr in ((1, 0.5), (10, 0.03), (1000, 0.01), (500, 1e-6)):
        theirs = bytes.fromhex(program.ask("guava", strategy, funnel, items, fpr, *map(judge.word, keys)))
        read = ForeignFilter.from_foreign(theirs, key_type=funnel)
        assert (read.format, read.to_foreign()) == (name, theirs)
        ours = ForeignFilter(name, items, fpr, key_type=funnel)
        assert set(ours.add_many(keys)) <= {True, False}
        assert ours.to_foreign() == theirs
        asked = program.ask("ask-guava", funnel, ours.to_foreign().hex(), *map(judge.word, keys))
        assert asked == marks(ours.contains_many(keys)) == "1" * len(keys)


def test_sizes_are_those_of_the_programs(program: judge.Judge) -> None:
    draw = random.Random(7)
    sizes = [(1, 0.03), (10, 0.03), (1000, 0.01)]
    sizes += [(draw.randint(1, 30_000), 10 ** -draw.uniform(0.1, 9)) for _ in range(60)]
    for items, fpr in sizes:
        theirs = bytes.fromhex(program.ask("sized", items, fpr))
        assert ForeignFilter("spark", items, fpr).to_foreign() == theirs, (items, fpr)
        theirs = bytes.fromhex(program.ask("guava", "MURMUR128_MITZ_64", "long", items, fpr))
        assert ForeignFilter("guava", items, fpr, key_type="long").to_foreign() == theirs, (items, fpr)


def test_unions_are_those_of_one_filter_of_all_keys(program: judge.Judge) -> None:
    one, other = (ForeignFilter.with_shape("spark", 16384, 11) for _ in range(2))
    one.update(LONGS)
    other.update(TEXTS)
    both = bytes.fromhex(program.ask("spark", 2, 0, 1000, 16384, *map(judge.word, [*TEXTS, *LONGS])))
    assert (one | other).to_foreign() == both
    one |= other
    assert one.to_foreign() == both
    assert fullbloom.loads(one.to_bytes()).to_foreign() == both
