"""Guarantee: a filter that another program keeps by SETBIT is taken over in place, under a named rule."""

from __future__ import annotations

import asyncio

import pytest
import redis
import redis.asyncio
from commands import REDIS, run_command
from compat.foreign import rules
from engines.servers import needs_redis
from engines.steps import Run

import fullbloom
from fullbloom.engines.redis import AsyncRedisBitmapFilter, BitmapVerification, RedisBitmapFilter
from fullbloom.errors import (
    EngineError,
    FilterLost,
    FormatError,
    IncompatibleFilters,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
)

pytestmark = needs_redis

BITS, HASHES = 9973, 5
KEYS = [f"key {i}" for i in range(400)]
MOST = {"md5-slices": 4}


def positions(rule: str, key: str) -> list[int]:
    return list(rules.BARE[rule](key.encode(), BITS, MOST.get(rule, HASHES)))


def set_bits(client: redis.Redis, name: str, rule: str, keys: list[str]) -> None:
    """What such a program does: SETBIT, pipelined."""
    pipe = client.pipeline()
    for key in keys:
        for position in positions(rule, key):
            pipe.setbit(name, position, 1)
    pipe.execute()


def get_bits(client: redis.Redis, name: str, rule: str, key: str) -> bool:
    return all(client.getbit(name, position) for position in positions(rule, key))


@pytest.mark.parametrize("rule", rules.BARE)
def test_both_programs_continue_to_use_one_string(client, name, rule):
    k = MOST.get(rule, HASHES)
    set_bits(client, name, rule, KEYS)
    seen = RedisBitmapFilter(client, name, rule, BITS, k, verify=KEYS[:50])
    assert seen.verification == BitmapVerification(50, 50, seen.verification.by_chance)
    assert seen.contains_many(KEYS) == [True] * len(KEYS)
    asked = [f"other {i}" for i in range(300)]
    assert seen.contains_many(asked) == [get_bits(client, name, rule, key) for key in asked]
    new = next(key for key in asked if key not in seen)
    assert (seen.add(new), seen.add(new), new in seen) == (True, False, True)
    assert get_bits(client, name, rule, new)
    answers = seen.add_many([*asked, *asked])
    assert not any(answers[300:])
    set_bits(client, f"{name}:program", rule, [*KEYS, *asked])
    assert client.get(name) == client.get(f"{name}:program")


def test_a_batch_of_many_round_trips_keeps_its_order(client, name):
    client.set(name, b"")
    client.setbit(name, 10**6 - 1, 0)
    seen = RedisBitmapFilter(client, name, "sha256-double", 10**6, 7)
    keys = [f"many {i}" for i in range(5000)]
    new = seen.add_many(iter(keys))
    local = fullbloom.ForeignFilter.with_shape("sha256-double", 10**6, 7)
    assert new == local.add_many(keys)
    assert seen.dump() == local.convert("sha256-double-msb")
    asked = [f"asked {i}" for i in range(5000)]
    assert seen.contains_many(asked) == local.contains_many(asked)
    assert abs(seen.fill - local.fill) < 1e-12
    assert abs(seen.fpr() - local.fpr()) < 1e-9
    seen.update(["x"], [b"y"], [])
    assert seen.contains_many(["x", "y"]) == [True, True]


def test_a_copy_in_memory_is_converted_by_the_command_line(client, name, tmp_path):
    set_bits(client, name, "sha256-seeded", KEYS)
    seen = RedisBitmapFilter(client, name, "sha256-seeded", BITS, HASHES)
    copied = seen.dump()
    assert copied.format == "sha256-seeded-msb"
    assert all(copied.contains_many(KEYS))
    assert copied.to_foreign() == client.get(name).ljust(-(-BITS // 8), b"\0")
    copied.save(tmp_path / "taken.bloom")
    words = ("convert", "taken.bloom", "lsb", "--to", "sha256-seeded")
    assert run_command(*words, imports=REDIS, cwd=tmp_path).returncode == 0
    theirs = rules.bits("sha256-seeded", "bytes", KEYS, BITS, HASHES)
    assert (tmp_path / "lsb").read_bytes() == theirs


def test_the_order_of_bits_is_a_parameter(client, name):
    client.set(name, bytes(rules.bits("md5-double", "bytes", KEYS, BITS, HASHES)))
    with pytest.raises(IncompatibleFilters, match="order 'msb'"):
        RedisBitmapFilter(client, name, "md5-double", BITS, HASHES, verify=KEYS)
    seen = RedisBitmapFilter(client, name, "md5-double", BITS, HASHES, order="lsb", verify=KEYS)
    seen.add("one more")
    wanted = rules.bits("md5-double", "bytes", [*KEYS, "one more"], BITS, HASHES)
    assert client.get(name) == bytes(wanted)
    assert seen.dump().to_foreign() == bytes(wanted)


def test_a_wrong_rule_is_noticed_before_anything_is_written(client, name):
    set_bits(client, name, "md5-double", KEYS)
    before = client.get(name)
    for wrong in ({"rule": "sha1-double"}, {"num_bits": BITS + 3}, {"rule": "md5-seeded"}):
        options = {"rule": "md5-double", "num_bits": BITS, "num_hashes": HASHES} | wrong
        with pytest.raises(IncompatibleFilters, match=r"has \d+ of 400 known members .* chance finds"):
            RedisBitmapFilter(client, name, **options, verify=KEYS)
        verified = RedisBitmapFilter(client, name, **options).verify(KEYS)
        assert not verified
        assert verified.asked == 400
        # A wrong rule finds what chance finds.
        assert verified.found < 4 * verified.by_chance + 10
    assert client.get(name) == before
    # Fewer hashes find every member: no lookup shows it, and `by_chance` says how little that proves.
    fewer = RedisBitmapFilter(client, name, "md5-double", BITS, 1).verify(KEYS)
    assert fewer
    assert fewer.by_chance > 40
    with pytest.raises(ParameterError, match="verify must have keys"):
        RedisBitmapFilter(client, name, "md5-double", BITS, HASHES, verify=[])


def test_missing_keys_and_other_values_are_refused(client, name):
    def take(**options):
        given = {"rule": "md5-double", "num_bits": 80, "num_hashes": 3} | options
        return RedisBitmapFilter(client, name, **given)

    with pytest.raises(FilterLost, match="no key"):
        take()
    client.lpush(name, "x")
    with pytest.raises(FormatError, match="holds a list"):
        take()
    client.delete(name)
    client.set(name, bytes(11))
    with pytest.raises(FormatError, match="has 11 bytes, and num_bits 80 takes 10"):
        take()
    client.set(name, bytes(10))
    seen = take()
    for options, match in (
        ({"rule": "md5"}, "rule must be one of"),
        ({"rule": "md5-double-msb"}, "rule must be one of"),
        ({"rule": "spark"}, "rule must be one of"),
        ({"num_bits": 0}, "num_bits"),
        ({"num_bits": 2**33}, "longest string"),
        ({"num_hashes": 65}, "num_hashes"),
        ({"order": "big"}, "order must be"),
    ):
        with pytest.raises(ParameterError, match=match):
            take(**options)
    with pytest.raises(ParameterTypeError):
        take(num_bits="80")
    with pytest.raises(ParameterTypeError):
        RedisBitmapFilter(client, 5, "md5-double", 80, 3)
    with pytest.raises(KeyTypeError):
        seen.add(5)
    with pytest.raises(ParameterTypeError, match="many keys"):
        seen.update("text")
    with pytest.raises(KeyTypeError, match="keys of this filter"):
        seen.contains_many(["a", 1.5])
    assert client.get(name) == bytes(10)
    client.set(name, bytes(9) + b"\1")
    with pytest.raises(FormatError, match="behind the last of 79"):
        take(num_bits=79).dump()
    client.delete(name)
    assert "a" not in seen
    with pytest.raises(FilterLost):
        seen.dump()


def test_a_bitmap_that_is_deleted_while_it_is_read_is_lost(client, name):
    client.set(name, bytes(9) + b"\1")
    seen = RedisBitmapFilter(client, name, "md5-double", 80, 3)
    assert seen.dump().num_bits == 80
    run = Run(client, name, seen._bitmap.dump())
    run.run_until(lambda _, words: words[0] == b"GETRANGE")
    client.delete(name)
    with pytest.raises(FilterLost, match="while it was read"):
        run.finish()


def test_refusals_of_the_server_are_named(own_server):
    server = own_server()
    with server.client() as client:
        client.set("b", bytes(10))
        seen = RedisBitmapFilter(client, "b", "md5-double", 80, 3)
        client.config_set("maxmemory", 1)
        with pytest.raises(EngineError, match="maxmemory"):
            seen.add("secret")
        client.config_set("maxmemory", 0)
        assert seen.add("secret")


def test_tasks_and_threads_get_the_same_answers(server, client, name):
    set_bits(client, name, "md5-double", KEYS)

    async def take():
        async with redis.asyncio.Redis(port=server.port) as waiting:
            seen = await AsyncRedisBitmapFilter.open(waiting, name, "md5-double", BITS, HASHES, verify=KEYS)
            added = await asyncio.gather(*(seen.add(f"task {i % 20}") for i in range(60)))
            assert sum(added) <= 20
            assert await seen.contains("task 3")
            found = await seen.contains_many(KEYS)
            return found, await seen.fill(), await seen.verify(KEYS), await seen.dump()

    found, fill, verified, copied = asyncio.run(take())
    own = RedisBitmapFilter(client, name, "md5-double", BITS, HASHES)
    assert (found, fill, verified) == (own.contains_many(KEYS), own.fill, own.verify(KEYS))
    assert copied == own.dump()


def test_of_clients_that_add_a_key_one_adds_it(server, client, name):
    from concurrent.futures import ThreadPoolExecutor

    client.set(name, bytes(1250))

    def add(_number):
        with server.client() as own:
            seen = RedisBitmapFilter(own, name, "fnv1a-go", 10_000, 7)
            return [seen.add(f"k{i}") for i in range(100)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(add, range(4)))
    local = fullbloom.ForeignFilter.with_shape("fnv1a-go", 10_000, 7)
    local.update(f"k{i}" for i in range(100))
    assert RedisBitmapFilter(client, name, "fnv1a-go", 10_000, 7).dump() == local.convert("fnv1a-go-msb")
    assert all(sum(each) <= 1 for each in zip(*answers, strict=True))
