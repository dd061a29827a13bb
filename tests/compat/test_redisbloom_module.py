"""Guarantee: dumps go to RedisBloom's own module and come back, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fullbloom import ForeignCuckooFilter, ForeignScalableFilter

MANY = [f"key {i}" for i in range(12_000)]
OTHERS = [f"other {i}" for i in range(3000)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("redis", reason="needs redis-py")
    from engines import servers

    module = servers.find_redisbloom()
    if servers.REDIS is None or module is None:
        pytest.skip(servers.NEEDS_REDISBLOOM)
    running = servers.start_with_module(tmp_path_factory.mktemp("redisbloom"), module)
    with running.client() as connected:
        yield connected
    running.stop()


def dump(client: Any, prefix: str, name: str) -> list[tuple[int, bytes]]:
    pieces: list[tuple[int, bytes]] = []
    number = 0
    while (answer := client.execute_command(f"{prefix}.SCANDUMP", name, number))[0] != 0:
        number = answer[0]
        pieces.append((number, answer[1]))
    return pieces


def load(client: Any, prefix: str, name: str, made: Any) -> None:
    for number, piece in made.chunks():
        assert client.execute_command(f"{prefix}.LOADCHUNK", name, number, piece)


@pytest.mark.parametrize("options", [(), ("EXPANSION", 1), ("EXPANSION", 4), ("NONSCALING",)])
def test_bloom_filters_are_equal_bit_for_bit(client: Any, options: tuple[Any, ...]) -> None:
    name = f"bloom {options}"
    keys = MANY[:90] if "NONSCALING" in options else MANY[:1500]
    client.execute_command("BF.RESERVE", name, 0.01, 100, *options)
    theirs = [int(new) for new in client.execute_command("BF.MADD", name, *keys)]
    made = ForeignScalableFilter(
        100, 0.01, **({"scaling": False} if "NONSCALING" in options else {"expansion": (2, *options)[-1]})
    )
    assert [int(new) for new in made.add_many(keys)] == theirs
    assert list(made.chunks()) == dump(client, "BF", name)
    read = ForeignScalableFilter.from_chunks(dump(client, "BF", name))
    assert read == made
    load(client, "BF", name + " loaded", read)
    asked = [*keys, *OTHERS]
    found = [bool(found) for found in client.execute_command("BF.MEXISTS", name + " loaded", *asked)]
    assert read.contains_many(asked) == found
    assert client.execute_command("BF.CARD", name + " loaded") == made.num_added


def test_a_dump_of_several_pieces_is_read_and_loaded(client: Any) -> None:
    made = ForeignScalableFilter(30_000_000, 0.01)
    made.update(MANY)
    assert len(list(made.chunks())) == 4  # the header, and pieces of at most 16 MiB
    load(client, "BF", "large", made)
    assert ForeignScalableFilter.from_chunks(dump(client, "BF", "large")) == made
    assert sum(client.execute_command("BF.MEXISTS", "large", *MANY)) == len(MANY)
    client.delete("large")


@pytest.mark.parametrize("options", [{}, {"bucket_size": 4}, {"expansion": 2, "iterations": 5}])
def test_cuckoo_filters_answer_as_the_module(client: Any, options: dict[str, int]) -> None:
    name = f"cuckoo {options}"
    words = {"bucket_size": "BUCKETSIZE", "expansion": "EXPANSION", "iterations": "MAXITERATIONS"}
    given = [item for key, value in options.items() for item in (words[key], value)]
    client.execute_command("CF.RESERVE", name, 4096, *given)
    for key in MANY[:2000]:
        assert client.execute_command("CF.ADD", name, key) == 1
    read = ForeignCuckooFilter.from_chunks(dump(client, "CF", name))
    assert list(read.chunks()) == dump(client, "CF", name)
    asked = [*MANY[:2000], *OTHERS]
    found = [bool(found) for found in client.execute_command("CF.MEXISTS", name, *asked)]
    assert read.contains_many(asked) == found
    assert all(found[:2000])
    made = ForeignCuckooFilter(4096, **options)
    made.update(MANY[:2000])
    load(client, "CF", name + " loaded", made)
    found = [bool(found) for found in client.execute_command("CF.MEXISTS", name + " loaded", *asked)]
    assert made.contains_many(asked) == found
    assert client.execute_command("CF.ADD", name + " loaded", "one more") == 1
