"""A filter on a server has the answers and the bits of the one in memory.

Whatever shards, layout, keys and client.
"""

from __future__ import annotations

import subprocess
import uuid
from array import array
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
import redis
from engines.servers import needs_redis

from fullbloom import BloomFilter, IncompatibleFilters, ParameterError, ParameterTypeError, hash_many
from fullbloom.engines.redis import RedisBloomFilter

pytestmark = [needs_redis, pytest.mark.usefixtures("way")]

SHAPES = [
    ({}, 1),
    ({}, 3),
    ({"layout": "split"}, 1),
    ({"layout": "split"}, 4),
    ({"layout": "classic"}, 1),
    ({"layout": "classic", "scheme": "double", "hash": "md5"}, 1),
    ({"layout": "partitioned"}, 1),
    ({"layout": "two-block"}, 1),
]


@pytest.mark.parametrize(("shape", "shards"), SHAPES)
@pytest.mark.parametrize("secret", [None, bytes(range(16))])
def test_results_and_bits_equal_those_of_memory(client, name, shape, shards, secret):
    if secret and "hash" in shape:
        pytest.skip("a secret has a hash of its own")
    there = RedisBloomFilter(client, name, 3000, 0.02, shards=shards, seed=7, secret=secret, **shape)
    layout = {"layout": there.manifest.layout, **shape}
    here = BloomFilter(3000, 0.02, seed=7, secret=secret, **layout)
    keys = np.arange(2500) * 7919
    twice = np.concatenate([keys, keys[:500]])
    assert (there.add_many(twice) == here.add_many(twice)).all()
    asked = np.arange(0, 7919 * 5000, 7919)
    found = there.contains_many(asked)
    assert (found == here.contains_many(asked)).all()
    assert found[:2500].all()
    assert there.fpr() == here.fpr()
    assert there.approx_count() == here.approx_count()
    assert there.fill == here.fill
    dumped = there.dump()
    assert dumped == here
    assert abs(dumped.num_added - here.num_added) < 100


BATCHES = [
    ["a", b"b", 3, 4.5, ("x", 1), uuid.UUID(int=5), True],
    ("a", "b"),
    np.array([1, 5, 9], dtype=np.uint8),
    np.array(["ab", "c"]),
    pl.Series(["a", None, "b", "zz"]),
    pl.DataFrame({"x": [1, 2], "y": ["a", "b"]}),
    [],
]


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: type(batch).__name__)
def test_results_have_the_container_type_of_the_batch(client, name, batch):
    there = RedisBloomFilter(client, name, 1000, shards=2)
    here = BloomFilter(1000, layout=there.manifest.layout)
    for call in ("contains_many", "add_many", "contains_many"):
        result, wanted = getattr(there, call)(batch), getattr(here, call)(batch)
        assert type(result) is type(wanted)
        assert list(result) == list(wanted)
    for key in ["b", 3, 5, "nobody"]:
        assert (key in there) == (key in here)
        assert there.add(key) == here.add(key)


def test_iterables_of_any_length_are_accepted_and_refused_keys_named(client, name):
    there = RedisBloomFilter(client, name, 100_000)
    there.update((i for i in range(40_000)), ["x"])
    assert all(there.contains_many(iter(range(40_000))))
    assert "x" in there
    with pytest.raises(TypeError, match="item 1 of the batch"):
        there.add_many(["y", object()])
    with pytest.raises(TypeError):
        there.add(object())
    with pytest.raises(TypeError, match="one str"):
        there.update("y")


def test_clients_with_and_without_decoding_see_one_filter(server, name):
    with server.client() as one, server.client(decode_responses=True, protocol=2) as two:
        first = RedisBloomFilter(one, name, 1000)
        second = RedisBloomFilter(two, name)
        assert first.add("k")
        assert "k" in second
        assert not second.add("k")
        assert second.dump() == first.dump()
        assert second.manifest == first.manifest


@pytest.mark.parametrize(
    "options",
    [{"protocol": 2}, {"protocol": 3}, {"single_connection_client": True}, {"health_check_interval": 1}],
    ids=str,
)
def test_clients_of_every_kind_use_a_filter(server, name, options):
    with server.client(**options) as client:
        there = RedisBloomFilter(client, name, 1000)
        assert there.add_many([1, 2, 1]) == [True, True, False]
        assert client.ping()
        assert there.contains_many([1, 3]) == [True, False]


def test_a_connection_without_a_socket_of_its_own_is_read_by_its_parser(client, name, monkeypatch):
    from fullbloom.engines.redis.transport import sync_transport

    monkeypatch.setattr(sync_transport, "sync_find_reader", lambda _connection: None)
    for shape in ({}, {"layout": "classic"}):
        there = RedisBloomFilter(client, name + str(len(shape)), 1000, **shape)
        assert there.add_many([1, 2, 1]) == [True, True, False]
        assert there.contains_many([1, 3]) == [True, False]


def test_a_filter_is_dumped_and_loaded(client, name):
    here = BloomFilter(5000, 0.005, layout="blocked", seed=3)
    here.update(range(3000))
    there = RedisBloomFilter.from_filter(client, name, here, shards=3)
    assert there.dump() == here
    more = BloomFilter(5000, 0.005, layout="blocked", seed=3)
    more.update(range(3000, 4000))
    there |= more
    here |= more
    assert there.dump() == here
    # From string to string, and across numbers of shards.
    for shards in (3, 1):
        other = RedisBloomFilter(client, f"{name}-{shards}", 5000, 0.005, seed=3, shards=shards)
        other.add("only there")
        there |= other
        assert "only there" in there
        there.load(here)
        assert "only there" not in there
    there.clear()
    assert there.approx_count() == (0, 0)
    assert there.dump().num_added == 0
    assert sorted(client.scan_iter(f"*{name}*:or*")) == sorted(client.scan_iter(f"*{name}*new*")) == []


def test_differences_of_a_loaded_filter_are_named(client, name):
    there = RedisBloomFilter(client, name, 1000)
    for other in (BloomFilter(2000, layout="blocked"), BloomFilter(1000, layout="blocked", seed=1)):
        with pytest.raises(IncompatibleFilters, match=r"seed|num_bits"):
            there |= other
        with pytest.raises(IncompatibleFilters, match=r"seed|num_bits"):
            there.load(other)
    secret = BloomFilter(1000, layout="blocked", secret=bytes(16))
    with pytest.raises(IncompatibleFilters, match="secret"):
        there.load(secret)
    with pytest.raises(ParameterTypeError, match="set"):
        there |= {1}
    with pytest.raises(IncompatibleFilters, match="num_bits"):
        there |= RedisBloomFilter(client, name + "x", 2000)
    with pytest.raises(ParameterTypeError, match="client"):
        RedisBloomFilter("redis://localhost", name, 1000)
    for bad in ("", "x" * 513, "a\0", "\ud800", "a}b"):
        with pytest.raises(ParameterError, match="name"):
            RedisBloomFilter(client, bad, 1000)


def test_rates_equal_those_of_memory_with_and_without_shards(client, name):
    from fullbloom import theory  # noqa: F401 - the law that both have

    absent = np.arange(10**9, 10**9 + 50_000)
    rates = set()
    for shards in (1, 7):
        there = RedisBloomFilter(client, f"{name}{shards}", 20_000, 0.01, shards=shards)
        there.update(np.arange(20_000))
        rates.add(int(there.contains_many(absent).sum()))
    here = BloomFilter(20_000, 0.01, layout="blocked")
    here.update(np.arange(20_000))
    assert rates == {int(here.contains_many(absent).sum())}


def test_hashes_give_the_results_of_their_keys(client, name):
    there = RedisBloomFilter(client, name, 3000, 0.02, shards=2, seed=7, secret=bytes(16))
    keys = [f"key {number}" for number in range(1000)]
    hashes = hash_many(keys, seed=7, secret=bytes(16))
    assert there.add_hashed(hashes[:500]) == there.dump().contains_many(keys[:500]) == [True] * 500
    assert there.contains_hashed(hashes) == there.contains_many(keys)
    for kind in (np.array(hashes, np.uint64), array("Q", hashes)):
        assert list(there.contains_hashed(kind)) == there.contains_many(keys)
    for wrong in (["a"], [-1], np.arange(3, dtype=np.int32), b"12345678", 7):
        with pytest.raises(ParameterTypeError, match="hashes must be"):
            there.contains_hashed(wrong)


def test_threads_share_a_filter(client, name):
    """What each of them added is found, and remembered: none writes over another's part of the memory."""
    there = RedisBloomFilter(client, name, 30_000, 0.001)
    ranges = [range(start, start + 1500) for start in range(0, 12_000, 1500)]

    def add(keys):
        for start in keys[::100]:
            there.add_many(list(range(start, start + 100)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, ranges))
    assert all(there.contains_many(list(range(12_000))))
    result = there.verify()
    assert result.ok
    assert result.keys_checked == 4096


def test_tls_and_unix_sockets(tmp_path):
    from engines.servers import Server, free_port

    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    words += " -addext subjectAltName=IP:127.0.0.1"
    words += f" -keyout {tmp_path}/key.pem -out {tmp_path}/cert.pem"
    instance = subprocess.run(words.split(), capture_output=True)
    if instance.returncode:
        pytest.skip("needs openssl")
    secure = free_port()
    files = {"tls_cert_file": tmp_path / "cert.pem", "tls_key_file": tmp_path / "key.pem"}
    try:
        server = Server(tmp_path / "tls", tls_port=secure, tls_auth_clients="no", **files)
    except RuntimeError:
        pytest.skip("this redis-server was built without TLS")
    try:
        ways = [
            redis.Redis(port=secure, ssl=True, ssl_ca_certs=str(tmp_path / "cert.pem")),
            redis.Redis(unix_socket_path=str(server.folder / "redis.sock")),
        ]
        for number, client in enumerate(ways):
            with client:
                f = RedisBloomFilter(client, "f", 50_000)
                assert f.add_many(range(number * 20_000, (number + 1) * 20_000)).count(False) < 50
                assert all(f.contains_many(range((number + 1) * 20_000)))
                assert f.add(f"one{number}")
    finally:
        server.kill()
