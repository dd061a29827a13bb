"""An object that knows the types of keys in a filter on a server warns once of lookups of another type."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
import warnings

import numpy as np
import pyarrow as pa
import pytest
import redis.asyncio
from engines.servers import needs_redis

from fullbloom import BloomFilter, KeyDomainWarning, hash_many
from fullbloom.engines import redis as engine

pytestmark = needs_redis

NUMBERS = list(range(100))
TEXTS = [str(number) for number in NUMBERS]
KINDS = {
    engine.RedisBloomFilter: (engine.AsyncRedisBloomFilter, {}),
    engine.RedisCountingFilter: (engine.AsyncRedisCountingFilter, {}),
    engine.RedisRollingFilter: (engine.AsyncRedisRollingFilter, {"window": 3600}),
}
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "range or set": lambda keys: range(len(keys)) if isinstance(keys[0], int) else set(keys),
    "NumPy": np.array,
    "Arrow": pa.array,
}


@pytest.fixture
def make(client):
    """Creates or opens a filter of a kind; one name is one filter."""

    def open_filter(kind, name=None, **options):
        more = {"capacity": 1000, "fpr": 1e-6, **KINDS[kind][1]}
        return kind(client, name or f"f{uuid.uuid4().hex}", **more, **options)

    return open_filter


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("container", CONTAINERS)
def test_texts_looked_up_in_a_filter_of_integers_warn_once(make, kind, container):
    there = make(kind)
    there.update(CONTAINERS[container](NUMBERS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there.contains_many(CONTAINERS[container](NUMBERS))
        there.contains_many(range(5000, 5100))  # absent, of the same type
    with pytest.warns(KeyDomainWarning, match=r"of type text .* of type integer only") as caught:
        assert not any(there.contains_many(TEXTS))
    (warning,) = (one for one in caught if one.category is KeyDomainWarning)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there.contains_many(TEXTS)
        assert "5" not in there


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_key_of_another_type_warns(make, kind):
    for key in ("a", b"a", 5.5, (5, "a"), dt.date(2024, 1, 1)):
        there = make(kind)
        there.add(5)
        with pytest.warns(KeyDomainWarning, match="type integer only") as caught:
            assert key not in there
        assert __file__ in {one.filename for one in caught if one.category is KeyDomainWarning}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_client_that_found_keys_knows_their_type(make, kind):
    there = make(kind)
    there.update(TEXTS)
    for find in (lambda one: one.contains_many(TEXTS), lambda one: "5" in one):
        again = make(kind, there.name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again.contains_many(NUMBERS)  # it knows nothing yet
            find(again)
        with pytest.warns(KeyDomainWarning, match="type text only"):
            again.contains_many(NUMBERS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_asyncio_warns_alike(make, server, kind):
    there = make(kind)

    async def main():
        async with redis.asyncio.Redis(port=server.port) as own:
            one = await KINDS[kind][0].open(own, there.name)
            await one.add("a")
            with pytest.warns(KeyDomainWarning) as caught:
                assert not await one.contains(5)
            assert __file__ in {one.filename for one in caught if one.category is KeyDomainWarning}
            other = await KINDS[kind][0].open(own, there.name)
            await other.update(TEXTS)
            with pytest.warns(KeyDomainWarning):
                await other.contains_many(np.arange(10))

    asyncio.run(main())


def test_hashes_clears_and_loads_are_taken_into_account(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = make(engine.RedisBloomFilter)
        there.add_hashed(hash_many(NUMBERS))
        there.contains_many(TEXTS)
        there = make(engine.RedisBloomFilter)
        there.update(NUMBERS)
        there.contains_hashed(hash_many(TEXTS))
        there.contains_many([])
        there.contains_many(iter(TEXTS))  # which cannot be looked at twice
        there.clear()
        there.contains_many(TEXTS)
    local = BloomFilter(1000, 1e-6, layout="blocked")
    local.update(NUMBERS)
    there.load(local)
    with pytest.warns(KeyDomainWarning, match="type integer only"):
        there.contains_many(TEXTS)
    there = make(engine.RedisBloomFilter)
    there.update(TEXTS)
    there |= local
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there.contains_many([7000])
        there.contains_many(["x"])
