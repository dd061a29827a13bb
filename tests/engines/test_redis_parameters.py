"""Invalid parameters are errors before anything is written; integers of other libraries are valid."""

from __future__ import annotations

import numpy as np
import pytest
from engines.servers import needs_redis

from fullbloom.engines.redis import (
    RedisBitmapFilter,
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import FilterMemoryError, FullbloomError, ParameterError, ParameterTypeError

pytestmark = needs_redis

KINDS = {
    RedisBloomFilter: {"capacity": 1000},
    RedisCountingFilter: {"capacity": 1000},
    RedisRollingFilter: {"capacity": 1000, "window": 60},
}
INVALID = [
    *(("capacity", value) for value in (True, "x", 1000.0, 0, -1, 5 * 10**13, 1 << 70)),
    *(("fpr", value) for value in ("x", True, 0, 1, float("nan"), [])),
    *(("seed", value) for value in (-1, 1 << 70, True, "x", 0.5)),
    *(("shards", value) for value in (True, 1.5, "x", 0, -1, 10**9)),
    *(("secret", value) for value in ("x", b"short", True, 7)),
]
OWN = [
    *((RedisRollingFilter, "window", value) for value in (0, -1, 1e13, float("inf"), float("nan"), "60", [])),
    *((RedisRollingFilter, "generations", value) for value in (1, 17, 2.0, True, "x")),
    *((RedisCountingFilter, "counter_bits", value) for value in (0, 3, 16, 4.0, "4", [])),
    *((RedisBloomFilter, "backend", value) for value in ("else", [], 7)),
    *((RedisBloomFilter, "ttl", value) for value in (0, 1e10, float("nan"), "x", True, 10**400)),
    *((RedisBloomFilter, "layout", value) for value in ("else", "auto", [])),
    *((RedisBloomFilter, "scheme", value) for value in ("else", 7)),
    *((RedisBloomFilter, "hash", value) for value in ("else", 7)),
]


@pytest.mark.parametrize(
    ("kind", "name_of", "value"),
    [*((kind, *one) for one in INVALID for kind in KINDS), *OWN],
    ids=lambda value: getattr(value, "__name__", repr(value)[:20]),
)
def test_an_invalid_parameter_is_named_and_writes_nothing(client, name, kind, name_of, value):
    with pytest.raises((ParameterError, ParameterTypeError, FilterMemoryError)) as result:
        kind(client, name, **KINDS[kind] | {name_of: value})
    assert name_of in str(result.value) or value == 5 * 10**13  # too many strings
    assert client.keys(f"*{name}*") == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_integers_of_numpy_are_the_same_parameters(client, name, kind):
    options = {key: np.int64(value) for key, value in KINDS[kind].items()} | {
        "seed": np.uint64(1 << 63),
        "shards": np.int8(2),
    }
    if kind is RedisCountingFilter:
        options["counter_bits"] = np.int64(4)
    filter_ = kind(client, name, **options)
    filter_.update(range(100))
    assert all(kind(client, name, **options).contains_many(range(100)))
    assert (
        kind(client, name, **{key: int(value) for key, value in options.items()}).manifest == filter_.manifest
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_name_with_an_ineffective_hash_tag_is_refused(client, kind):
    """Redis ignores an empty hash tag, so derived keys would be on other nodes."""
    for name in ("a{}b", "}{", "a}b"):
        with pytest.raises(FullbloomError, match="brace"):
            kind(client, name, **KINDS[kind])
    for name in ("{a}b", "a{b", "a{b}c{}d", "{", "{a}{}"):
        kind(client, name, **KINDS[kind]).delete()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"order": "up"}, {"order": []}, {"rule": "else"}, {"rule": []}, {"name": ""}, {"name": b"bytes"}),
        *({"num_bits": 0}, {"num_bits": (1 << 32) + 1}, {"num_bits": "x"}, {"num_hashes": True}),
    ],
    ids=str,
)
def test_an_invalid_parameter_of_a_bitmap_is_an_error(client, name, wrong):
    client.setbit(name, 999, 0)
    valid = {"name": name, "rule": "md5-double", "num_bits": 1000, "num_hashes": 3}
    RedisBitmapFilter(client, **valid)
    with pytest.raises((ParameterError, ParameterTypeError)):
        RedisBitmapFilter(client, **valid | wrong)
