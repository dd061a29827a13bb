"""The key rule is pinned: the golden vectors, the plain-Python oracle and the core agree on every key."""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compat import key_oracle
from golden import make
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SECRET

import bloomery

VECTORS = json.loads((Path(make.__file__).parent / "keys.json").read_text())["vectors"]
LEAVES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=300),
    st.integers(),
    st.integers(-(2**66), 2**66),
    st.floats(),
    st.booleans(),
    st.uuids(),
)
KEYS = st.recursive(LEAVES, lambda parts: st.lists(parts, max_size=4).map(tuple), max_leaves=8)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: str(v["key"])[:40])
def test_golden_vectors(vector: dict[str, Any]) -> None:
    key = make.read(vector["key"])
    domain, data = key_oracle.canonical(key)
    assert (domain, data.hex()) == (vector["domain"], vector["canonical"])
    for seed, expected in vector["xxh3"].items():
        assert f"{bloomery.hash_key(key, seed=int(seed)):016x}" == expected
        assert f"{key_oracle.hash_key(key, int(seed)):016x}" == expected
    for seed, expected in vector["sip13"].items():
        assert f"{bloomery.hash_key(key, seed=int(seed), secret=SECRET):016x}" == expected
        assert f"{key_oracle.hash_key(key, int(seed), SECRET):016x}" == expected


def test_golden_vectors_have_no_twins() -> None:
    # True is 1 and -0.0 is 0.0: equal keys, equal bytes. All others differ.
    hashes: dict[tuple[int, str], str] = {}
    for vector in VECTORS:
        key = (vector["domain"], vector["canonical"])
        assert hashes.setdefault(key, vector["xxh3"]["0"]) == vector["xxh3"]["0"]
    assert len(set(hashes.values())) == len(hashes)
    assert len(VECTORS) - len(hashes) == 3


@settings(max_examples=300, deadline=None)
@given(key=KEYS, seed=st.integers(0, 2**64 - 1), keyed=st.booleans())
def test_any_key(key: Any, seed: int, keyed: bool) -> None:
    secret = SECRET if keyed else None
    assert bloomery.hash_key(key, seed=seed, secret=secret) == key_oracle.hash_key(key, seed, secret)
    assert bloomery.hash_many([key], seed=seed, secret=secret) == [key_oracle.hash_key(key, seed, secret)]


@pytest.mark.parametrize("secret", [None, SECRET], ids=["seeded", "keyed"])
def test_every_length(secret: bytes | None) -> None:
    rng = random.Random(1)
    for length in [*range(300), 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 10_000]:
        key = rng.randbytes(length)
        assert bloomery.hash_key(key, seed=length, secret=secret) == key_oracle.hash_key(key, length, secret)


def test_siphash_reference_values() -> None:
    # Key 00..0f, messages of 0 and 1 bytes, from the reference program.
    key = bytes(range(16))
    assert key_oracle.siphash13(b"", key) == 0xABAC0158050FC4DC
    assert key_oracle.siphash13(b"\0", key) == 0xC9F49BF37D57CA93


EQUAL: list[tuple[Any, Any]] = [
    ("é", "é".encode()),
    (b"abc", bytearray(b"abc")),
    (b"abc", memoryview(b"abc")),
    (b"ace", memoryview(b"abcde")[::2]),
    (1, True),
    (0, False),
    (1, np.int64(1)),
    (1, np.bool_(True)),
    (-5, np.int8(-5)),
    (2**64 - 1, np.uint64(2**64 - 1)),
    (1.5, np.float16(1.5)),
    (1.5, np.float32(1.5)),
    (0.0, -0.0),
    (float("nan"), -float("nan")),
    (float("nan"), np.float32("nan")),
    (uuid.UUID(int=7), uuid.UUID(int=7).bytes),
    ("a", np.str_("a")),
    (b"a", np.bytes_(b"a")),
    ((1, "a"), (np.int64(1), b"a")),
    ("a", type("Text", (str,), {})("a")),
    (3, type("Number", (int,), {})(3)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL, ids=repr)
def test_equal_keys(one: Any, other: Any) -> None:
    for secret in (None, SECRET):
        assert bloomery.hash_key(one, secret=secret) == bloomery.hash_key(other, secret=secret)
        assert bloomery.hash_many([one], secret=secret) == bloomery.hash_many([other], secret=secret)


DIFFERENT: list[tuple[Any, Any]] = [
    (1, "1"),
    (1, 1.0),
    (1, b"\1\0\0\0\0\0\0\0"),
    (0, 0.0),
    (0.0, b"\0" * 8),
    (1, (1,)),
    ("a", ("a",)),
    ((), ""),
    (("ab",), ("a", "b")),
    (("a", "b"), ("b", "a")),
    ((1, (2,)), ((1, 2),)),
    (("a", ""), ("", "a")),
    ((1,), (1.0,)),
    (2**63, -(2**63)),
    (2**64, 0),
    (2**64 - 1, -1),
    (2**63, 2**63 - 1),
    (255, -1),
    ("", "\0"),
    ("é", "e\u0301"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_different_keys(one: Any, other: Any) -> None:
    for secret in (None, SECRET):
        assert bloomery.hash_key(one, secret=secret) != bloomery.hash_key(other, secret=secret)


def test_no_two_integers_share_an_encoding() -> None:
    around = [s * (2**p + d) for p in range(60, 140) for d in range(-2, 3) for s in (1, -1)]
    values = list(dict.fromkeys([*around, *range(-500, 500)]))
    assert len({key_oracle.integer_bytes(value) for value in values}) == len(values)
    assert bloomery.hash_many(values) == [key_oracle.hash_key(value) for value in values]


def test_seeds_and_secrets_change_everything() -> None:
    hashes = {bloomery.hash_key("a", seed=seed) for seed in range(1000)}
    hashes |= {bloomery.hash_key("a", secret=bytes([i]) * 16) for i in range(256)}
    hashes |= {bloomery.hash_key("a", seed=seed, secret=SECRET) for seed in range(1, 1000)}
    assert len(hashes) == 1000 + 256 + 999


REFUSED: list[Any] = [None, [], {}, set(), 1j, object(), object, range(3), Ellipsis, NotImplemented]


@pytest.mark.parametrize("key", [*REFUSED, ("a", None), ((([],),),), "\ud800", ("\udfff",)], ids=repr)
def test_refused_keys(key: Any) -> None:
    bloom = bloomery.BloomFilter(100)
    calls = [bloomery.hash_key, bloom.add, bloom.__contains__, lambda key: bloomery.hash_many([key])]
    for call in calls:
        with pytest.raises(bloomery.KeyTypeError) as caught:
            call(key)
        assert "key" in str(caught.value)
    assert bloom.num_added == 0


def test_a_class_cannot_pass_as_a_key_by_its_name_only() -> None:
    fake = type("UUID", (), {"bytes": b"x" * 16})()
    with pytest.raises(bloomery.KeyTypeError, match="UUID"):
        bloomery.hash_key(fake)
