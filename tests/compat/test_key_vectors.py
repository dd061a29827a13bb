"""The key rule is pinned: the golden vectors, the plain-Python oracle and the core agree on every key."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import importlib
import ipaddress
import json
import random
import uuid
import zoneinfo
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from compat import key_oracle
from golden import make
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SECRET, show

import fullbloom

# Not every interpreter has them.
pd: Any = importlib.import_module("pandas") if find_spec("pandas") else None
pa: Any = importlib.import_module("pyarrow") if find_spec("pyarrow") else None

FILES = {
    name: json.loads((Path(make.__file__).parent / f"{name}.json").read_text())["vectors"]
    for name in ("keys", "keys_of_columns")
}
VECTORS = [vector for vectors in FILES.values() for vector in vectors]
LEAVES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=300),
    st.integers(),
    st.integers(-(2**66), 2**66),
    st.floats(),
    st.booleans(),
    st.uuids(),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.timedeltas(),
    st.decimals(allow_nan=False, allow_infinity=False),
)
KEYS = st.recursive(LEAVES, lambda parts: st.lists(parts, max_size=4).map(tuple), max_leaves=8)


@for_each("vector", VECTORS, ids=lambda v: str(v["key"])[:40])
def test_the_core_hashes_every_golden_vector(vector: dict[str, Any]) -> None:
    key = make.read(vector["key"])
    domain, data = key_oracle.canonical(key)
    assert (domain, data.hex()) == (vector["domain"], vector["canonical"])
    for seed, expected in vector["xxh3"].items():
        assert f"{fullbloom.hash_key(key, seed=int(seed)):016x}" == expected
        assert f"{key_oracle.hash_key(key, int(seed)):016x}" == expected
    for seed, expected in vector["sip13"].items():
        assert f"{fullbloom.hash_key(key, seed=int(seed), secret=SECRET):016x}" == expected
        assert f"{key_oracle.hash_key(key, int(seed), SECRET):016x}" == expected


def test_golden_vectors_are_distinct() -> None:
    # True is 1 and -0.0 is 0.0: equal keys, equal bytes; so are one moment in two units or zones, and a
    # decimal number with more zeros or fewer. All others differ.
    hashes: dict[tuple[int, str], str] = {}
    for vector in VECTORS:
        key = (vector["domain"], vector["canonical"])
        assert hashes.setdefault(key, vector["xxh3"]["0"]) == vector["xxh3"]["0"]
    assert len(set(hashes.values())) == len(hashes)
    twins = {
        name: len(rows) - len({(v["domain"], v["canonical"]) for v in rows}) for name, rows in FILES.items()
    }
    assert twins["keys"] == 3
    assert len(VECTORS) - len(hashes) == sum(twins.values())


@settings(max_examples=300, deadline=None)
@given(key=KEYS, seed=st.integers(0, 2**64 - 1), keyed=st.booleans())
def test_any_key_hashes_as_the_oracle_says(key: Any, seed: int, keyed: bool) -> None:
    secret = SECRET if keyed else None
    assert fullbloom.hash_key(key, seed=seed, secret=secret) == key_oracle.hash_key(key, seed, secret)
    assert fullbloom.hash_many([key], seed=seed, secret=secret) == [key_oracle.hash_key(key, seed, secret)]


@pytest.mark.parametrize("secret", [None, SECRET], ids=["seeded", "keyed"])
def test_text_of_every_length_hashes_as_the_oracle_says(secret: bytes | None) -> None:
    rng = random.Random(1)
    for length in [*range(300), 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 10_000]:
        key = rng.randbytes(length)
        assert fullbloom.hash_key(key, seed=length, secret=secret) == key_oracle.hash_key(key, length, secret)


def test_siphash_matches_its_reference_values() -> None:
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


@for_each(("one", "other"), EQUAL, ids=show)
def test_equal_keys_have_equal_hashes(one: Any, other: Any) -> None:
    for secret in (None, SECRET):
        assert fullbloom.hash_key(one, secret=secret) == fullbloom.hash_key(other, secret=secret)
        assert fullbloom.hash_many([one], secret=secret) == fullbloom.hash_many([other], secret=secret)


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


@for_each(("one", "other"), DIFFERENT, ids=show)
def test_different_keys_have_different_hashes(one: Any, other: Any) -> None:
    for secret in (None, SECRET):
        assert fullbloom.hash_key(one, secret=secret) != fullbloom.hash_key(other, secret=secret)


def test_no_two_integers_share_an_encoding() -> None:
    around = [s * (2**p + d) for p in range(60, 140) for d in range(-2, 3) for s in (1, -1)]
    values = list(dict.fromkeys([*around, *range(-500, 500)]))
    assert len({key_oracle.integer_bytes(value) for value in values}) == len(values)
    assert fullbloom.hash_many(values) == [key_oracle.hash_key(value) for value in values]


def test_seeds_and_secrets_change_every_hash() -> None:
    hashes = {fullbloom.hash_key("a", seed=seed) for seed in range(1000)}
    hashes |= {fullbloom.hash_key("a", secret=bytes([i]) * 16) for i in range(256)}
    hashes |= {fullbloom.hash_key("a", seed=seed, secret=SECRET) for seed in range(1, 1000)}
    assert len(hashes) == 1000 + 256 + 999


ZONE = dt.timezone(dt.timedelta(hours=2))
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DAY = dt.datetime(2024, 2, 29, 12, 30, 0, 250_000)
#: Keys that are one: rows of one moment, one span or one number, however it is written.
ONE_KEY: dict[str, list[Any]] = {
    "date": [dt.date(2024, 2, 29), np.datetime64("2024-02-29"), np.datetime64("2024-02-29", "D")],
    "week": [dt.date(2024, 2, 29), np.datetime64("2024-02-29", "W")],
    "month": [dt.date(2024, 2, 1), np.datetime64("2024-02", "M")],
    "year": [dt.date(2024, 1, 1), np.datetime64("2024", "Y")],
    "local timestamp": [
        DAY,
        DAY.replace(fold=1),
        *(np.datetime64(DAY, unit) for unit in ("ms", "us", "ns", "10ms")),
    ],
    "midnight": [
        dt.datetime(2024, 2, 29),
        *(np.datetime64("2024-02-29T00", unit) for unit in ("h", "m", "s", "ms", "us", "ns")),
    ],
    "instant": [
        DAY.replace(tzinfo=dt.UTC),
        (DAY + dt.timedelta(hours=2)).replace(tzinfo=ZONE),
        (DAY + dt.timedelta(hours=1)).replace(tzinfo=BERLIN),
    ],
    "hour that comes twice": [
        dt.datetime(2024, 10, 27, 1, 30, tzinfo=dt.UTC),
        dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    ],
    "year 20000": [np.datetime64("20000-01-01T00", unit) for unit in ("h", "s", "ms", "us")],
    "duration": [
        dt.timedelta(days=-1, microseconds=250_000),
        *(np.timedelta64(-86_399_750, "ms").astype(f"m8[{unit}]") for unit in ("ms", "us", "ns")),
    ],
    "week's duration": [
        dt.timedelta(7),
        np.timedelta64(1, "W"),
        np.timedelta64(7, "D"),
        np.timedelta64(168, "h"),
    ],
    "decimal": [decimal.Decimal(text) for text in ("1", "1.0", "1.000", "10E-1", "0.1E+1", "001")],
    "decimal 100": [decimal.Decimal(text) for text in ("100", "1E+2", "100.0")],
    "decimal zero": [decimal.Decimal(text) for text in ("0", "-0", "0.000", "0E+7")],
    "record": [
        np.array([(1, "2024-02-29T12:30:00.25")], [("a", "i4"), ("b", "M8[ns]")])[0],
        (1, DAY),
        (1, np.datetime64(DAY, "us")),
    ],
    "void": [np.void(b"abc\0"), b"abc\0"],
}


if pd is not None:
    stamp = pd.Timestamp(DAY)
    ONE_KEY["local timestamp"] += [stamp, stamp.as_unit("ms"), stamp.as_unit("ns")]
    stamp = pd.Timestamp(DAY, tz="UTC")
    ONE_KEY["instant"] += [stamp, stamp.tz_convert("Asia/Tokyo").as_unit("ns")]
    ONE_KEY["duration"] += [pd.Timedelta(dt.timedelta(days=-1, microseconds=250_000))]


@pytest.mark.skipif(pd is None or pa is None, reason="pandas or pyarrow is not there for this interpreter")
def test_scalars_of_pandas_and_arrow_are_among_the_keys() -> None:
    assert pd.Timedelta in map(type, ONE_KEY["duration"])
    assert pa.StringScalar in (type(key) for key, _ in NO_MOMENTS.values())


@for_each("name", ONE_KEY)
def test_one_moment_is_one_key_in_every_unit_and_zone(name: str) -> None:
    keys = ONE_KEY[name]
    for secret in (None, SECRET):
        hashes = [fullbloom.hash_key(key, secret=secret) for key in keys]
        assert hashes == [hashes[0]] * len(keys)
        assert fullbloom.hash_many(keys, secret=secret) == hashes
        assert fullbloom.hash_key((keys[0], "x"), secret=secret) == fullbloom.hash_key(
            (keys[-1], "x"), secret=secret
        )


def test_moments_of_different_kinds_are_different_keys() -> None:
    """A nanosecond, a zone, or the kind itself keep two keys apart."""
    utc = dt.UTC
    keys: list[Any] = [
        0,
        0.0,
        b"\0" * 8,
        decimal.Decimal(0),
        dt.date(1970, 1, 1),
        dt.time(),
        dt.datetime(1970, 1, 1),
        dt.datetime(1970, 1, 1, tzinfo=utc),
        dt.timedelta(),
        np.datetime64(1, "ns"),
        np.timedelta64(1, "ns"),
        dt.datetime(1970, 1, 1, 1),
        dt.datetime(1970, 1, 1, 1, tzinfo=utc),
        decimal.Decimal(1),
        decimal.Decimal("0.1"),
        decimal.Decimal(-1),
        decimal.Decimal(10),
        1,
        "1e0",
        0.1,
    ]
    if pd is not None:
        keys.append(pd.Timestamp(1, tz="UTC"))
    assert len(set(fullbloom.hash_many(keys))) == len(keys)


NO_MOMENTS: dict[str, tuple[Any, str]] = {
    "NaT": (np.datetime64("NaT", "s"), "NaT"),
    "NaT of days": (np.datetime64("NaT", "D"), "NaT"),
    "NaT of a duration": (np.timedelta64("NaT", "ns"), "NaT"),
    "a duration in months": (np.timedelta64(1, "M"), "varies"),
    "a duration in years": (np.timedelta64(1, "Y"), "varies"),
    "no unit": (np.timedelta64(1), "unit"),
    "picoseconds": (np.datetime64(1, "ps"), "finer"),
    "attoseconds": (np.timedelta64(1, "as"), "finer"),
    "time with a zone": (dt.time(1, tzinfo=dt.UTC), "tzinfo=None"),
    "decimal NaN": (decimal.Decimal("NaN"), "finite"),
    "decimal sNaN": (decimal.Decimal("-sNaN12"), "finite"),
    "decimal infinity": (decimal.Decimal("-Infinity"), "finite"),
    "fraction": (fractions.Fraction(1, 3), "numerator"),
    "path": (Path("a"), "fspath"),
    "enum": (enum.Enum("Colour", ["RED"]).RED, "value"),  # type: ignore[attr-defined]
    "set": ({1}, "sorted"),
    "dict": ({}, "items"),
    "list": ([1], r"tuple\(key\)"),
    "None": (None, "leave out"),
    "complex": (1j, "imag"),
    "address": (ipaddress.ip_address("::1"), "str"),
}


if pd is not None:
    NO_MOMENTS["NaT of pandas"] = (pd.NaT, "leave out")
    NO_MOMENTS["NA"] = (pd.NA, "leave out")
    NO_MOMENTS["period"] = (pd.Period("2024-01"), "start_time")
if pa is not None:
    NO_MOMENTS["arrow scalar"] = (pa.scalar("a"), "as_py")


@for_each("name", NO_MOMENTS)
def test_an_unsupported_key_is_refused_with_what_to_pass(name: str) -> None:
    key, remedy = NO_MOMENTS[name]
    for call in (fullbloom.hash_key, fullbloom.BloomFilter(9).add, lambda key: fullbloom.hash_key((1, key))):
        with pytest.raises(fullbloom.KeyTypeError, match=remedy):
            call(key)


REFUSED: list[Any] = [None, [], {}, set(), 1j, object(), object, range(3), Ellipsis, NotImplemented]


@for_each("key", [*REFUSED, ("a", None), ((([],),),), "\ud800", ("\udfff",)], ids=show)
def test_keys_of_unsupported_types_are_refused(key: Any) -> None:
    bloom = fullbloom.BloomFilter(100)
    calls = [fullbloom.hash_key, bloom.add, bloom.__contains__, lambda key: fullbloom.hash_many([key])]
    for call in calls:
        with pytest.raises(fullbloom.KeyTypeError) as caught:
            call(key)
        assert "key" in str(caught.value)
    assert bloom.num_added == 0


def test_a_class_cannot_pass_as_a_key_by_its_name_only() -> None:
    fake = type("UUID", (), {"bytes": b"x" * 16})()
    with pytest.raises(fullbloom.KeyTypeError, match="UUID"):
        fullbloom.hash_key(fake)
