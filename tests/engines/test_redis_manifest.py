"""Every client checks that it means the filter that is there, and nothing half-built is left under a name."""

from __future__ import annotations

import json
import threading

import pytest
from engines.servers import needs_redis, strings_of

from fullbloom import FormatError, IncompatibleFilters, ParameterError, ScalableBloomFilter
from fullbloom.engines.redis import RedisBloomFilter, RedisCountingFilter, RedisRollingFilter
from fullbloom.errors import EngineNameTaken, EngineTimeout, FilterLost, ParameterTypeError

pytestmark = needs_redis


@pytest.fixture(autouse=True)
def _empty(client):
    client.flushall()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"capacity": 2000}, "capacity .server: 1000, requested: 2000"),
        ({"capacity": 1000, "fpr": 0.5}, "fpr .server: 0.02, requested: 0.5"),
        ({"shards": 3}, "shards .server: 2, requested: 3"),
        ({"layout": "split"}, "layout .server: 'blocked', requested: 'split'"),
        ({"hash": "md5"}, "hash"),
        ({"seed": 2}, "seed .server: 1, requested: 2"),
        ({"secret": bytes(16)}, "secret .server: none, requested: fingerprint [0-9a-f]{16}"),
    ],
)
def test_parameters_that_disagree_are_named(client, given, named):
    RedisBloomFilter(client, "f", 1000, 0.02, shards=2, seed=1)
    with pytest.raises(IncompatibleFilters, match=named):
        RedisBloomFilter(client, "f", **given)
    again = RedisBloomFilter(client, "f", 1000, 0.02, shards=2, seed=1)
    assert again.manifest == RedisBloomFilter(client, "f").manifest


def test_a_secret_is_not_stored_on_the_server_and_must_match(client):
    secret = b"sixteen secrets!"
    RedisBloomFilter(client, "f", 1000, secret=secret)
    stored = b"".join(client.get(key) for key in client.scan_iter())
    assert secret not in stored
    assert secret.hex().encode() not in stored
    for other in (None, bytes(16)):
        with pytest.raises(IncompatibleFilters, match="secret") as caught:
            RedisBloomFilter(client, "f", secret=other)
        assert "sixteen" not in str(caught.value)
    assert RedisBloomFilter(client, "f", secret=secret).manifest.secret


def test_without_a_capacity_only_an_existing_filter_is_opened(client):
    with pytest.raises(FilterLost, match="capacity"):
        RedisBloomFilter(client, "f")
    assert client.keys() == []


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"\xff\xfe",
        json.dumps({"version": 3, "key_rule": 1}).encode(),
        json.dumps({"version": 1, "key_rule": 9}).encode(),
    ],
    ids=lambda stored: repr(stored[:20]),
)
def test_manifests_of_unknown_versions_are_refused(client, stored):
    client.set("f:fullbloom", stored)
    with pytest.raises(FormatError, match=r"release|does not hold a Fullbloom filter"):
        RedisBloomFilter(client, "f", 1000)
    assert client.keys() == [b"f:fullbloom"]


def test_a_manifest_of_an_earlier_release_is_read_and_kept(client):
    """Fields are added, with a value for what has none, and never edited."""
    written = (
        b'{"backend": "strings", "capacity": 1000, "counter_bits": 0, "cut": 0, "fpr": 0.02, '
        b'"generation": 0, "generations": 0, "hash": "xxh3", "id": "6500686a4149b989d852589610a80c46", '
        b'"key_rule": 1, "layout": "blocked", "num_bits": 8704, "num_hashes": 4, '
        b'"other_cut": 0, "other_shards": 0, "scheme": "columns", "secret": "", "seed": 1, "shards": 1, '
        b'"state": "ready", "version": 1, "window": 0.0}'
    )
    client.set("f:fullbloom", written)
    client.set("f:bits", bytes(8704 // 8) + bytes.fromhex("6500686a4149b989") + bytes(8))
    f = RedisBloomFilter(client, "f", 1000, 0.02, seed=1)
    assert f.manifest.to_bytes() == written
    assert (f.manifest.ttl, f.manifest.expires) == (0.0, 0)
    assert f.add("k")
    assert f.verify()


@pytest.mark.parametrize("field", ["num_bits", "shards", "id", "generation", "layout", "state", "num_hashes"])
@pytest.mark.parametrize("value", [None, -1, 1 << 70, "x", [], 1.5, True])
def test_manifests_with_wild_values_are_errors_of_the_package(client, field, value):
    from fullbloom import FullbloomError

    instance = RedisBloomFilter(client, "f", 1000)
    stored = json.loads(instance.manifest.to_bytes())
    client.set("f:fullbloom", json.dumps(stored | {field: value}))
    with pytest.raises(FullbloomError):
        RedisBloomFilter(client, "f")


def test_a_name_used_by_another_key_is_refused(client):
    client.lpush("f:fullbloom", b"x")
    with pytest.raises(EngineNameTaken, match="something other"):
        RedisBloomFilter(client, "f", 1000)
    assert client.keys() == [b"f:fullbloom"]


def test_two_clients_that_create_different_filters_at_once_get_one_error(server):
    for turn in range(10):
        outcomes = []
        barrier = threading.Barrier(2)

        def make(capacity, turn=turn, barrier=barrier, outcomes=outcomes):
            with server.client() as client:
                barrier.wait(60)
                try:
                    outcomes.append(RedisBloomFilter(client, f"race{turn}", capacity).capacity)
                except IncompatibleFilters as error:
                    outcomes.append(str(error))

        threads = [threading.Thread(target=make, args=(capacity,)) for capacity in (1000, 2000)]
        [thread.start() for thread in threads]
        [thread.join(60) for thread in threads]
        assert sorted(isinstance(outcome, int) for outcome in outcomes) == [False, True], outcomes
        result = next(outcome for outcome in outcomes if isinstance(outcome, str))
        assert "1000" in result
        assert "2000" in result


def test_clients_that_create_the_same_filter_at_once_all_open_it(server):
    instance, barrier = [], threading.Barrier(6)

    def make():
        with server.client() as client:
            barrier.wait(60)
            instance.append(RedisBloomFilter(client, "same", 50_000, shards=5).manifest.id)

    threads = [threading.Thread(target=make) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert len(instance) == 6
    assert len(set(instance)) == 1


def test_a_client_that_dies_during_creation_leaves_only_expiring_keys(client, monkeypatch):
    from fullbloom.engines.redis import protocol
    from fullbloom.engines.redis.protocol import create

    class Died(BaseException):
        pass

    sent, real = [], protocol.call

    def call(key, *words):
        sent.append(words[0])
        if len(sent) > limit:
            raise Died  # as a process that is killed: nothing more is sent
        return (yield from real(key, *words))

    monkeypatch.setattr(create, "call", call)
    monkeypatch.setattr(protocol, "call", call)
    steps = 0
    for allowed in range(100):
        limit = allowed
        sent.clear()
        client.flushall()
        try:
            RedisBloomFilter(client, "f", 1000, shards=2)
        except Died:
            steps += 1
        else:
            break
        closing = b"closing" in (client.get("f:fullbloom") or b"")
        ages = {key: client.pttl(key) for key in client.scan_iter()}
        assert closing or all(age > 0 for age in ages.values()), (limit, ages)
        # Another client comes at once, or when all times have come to their end.
        for later in (False, True):
            if later:
                client.delete(*[key for key, age in ages.items() if age > 0], "nothing")
            limit = 10**6
            if later or closing:
                f = RedisBloomFilter(client, "f", 1000, shards=2)
                assert f.add(1)
                assert f.verify()
                assert all(client.pttl(key) == -1 for key in client.scan_iter())
                if not later:
                    break
    assert steps > 12


def test_opening_waits_for_a_filter_in_creation(client, monkeypatch):
    from fullbloom.engines.redis import protocol

    instance = RedisBloomFilter(client, "f", 1000)
    stored = json.loads(instance.manifest.to_bytes())
    client.set("f:fullbloom", json.dumps(stored | {"state": "building"}))
    monkeypatch.setattr(protocol, "_MAX_WAIT_FOR_OTHERS", 0.15)
    with pytest.raises(EngineTimeout, match="not done"):
        RedisBloomFilter(client, "f", 1000)
    timer = threading.Timer(0.3, client.set, ["f:fullbloom", instance.manifest.to_bytes()])
    monkeypatch.setattr(protocol, "_MAX_WAIT_FOR_OTHERS", 60)
    timer.start()
    assert RedisBloomFilter(client, "f", 1000).manifest == instance.manifest
    timer.join()


def test_delete_removes_every_key(client):
    instance = RedisBloomFilter(client, "f", 1000, shards=3)
    assert instance.delete()
    assert not instance.delete()
    assert client.keys() == []


def test_plans_match_the_created_filter_and_refuse_impossible_ones(client):
    plan = RedisBloomFilter.plan(client, 1_000_000, 0.01, shards=4, batch=100)
    assert client.keys() == []
    instance = RedisBloomFilter(client, "f", 1_000_000, 0.01, shards=4)
    strings = [client.strlen(key) for key in strings_of(client, "f")]
    assert (plan.nbytes, plan.shard_bytes) == (sum(strings), max(strings))
    assert plan.num_bits == instance.manifest.num_bits
    assert plan.round_trips == 1
    assert 50 * 100 < plan.bytes_to_check < 70 * 100 < 300 * 100 < plan.bytes_to_add
    with pytest.raises(ParameterError, match="shards=3 or more"):
        RedisBloomFilter(client, "g", 1_000_000_000, 0.01, shards=2)
    assert RedisBloomFilter.plan(client, 1_000_000_000, 0.01).shards == 3
    with pytest.raises(ParameterError, match="blocked"):
        RedisBloomFilter(client, "g", 1_000_000_000, 0.01, layout="classic")


def test_a_filter_of_another_kind_is_refused_with_its_class(client):
    makes = {
        RedisBloomFilter: {"capacity": 100},
        RedisRollingFilter: {"capacity": 100, "window": 60},
        RedisCountingFilter: {"capacity": 100},
    }
    for instance, options in makes.items():
        instance(client, instance.__name__, **options)
        for other in makes.keys() - {instance}:
            with pytest.raises(
                IncompatibleFilters, match=f"is a {instance.__name__}; open it with that class"
            ):
                other(client, instance.__name__)


@pytest.mark.parametrize("given", [5, "file.bloom", None, ScalableBloomFilter(10)])
def test_load_refuses_other_types_by_name(client, given):
    f = RedisBloomFilter(client, "f", 1000)
    for take in (f.load, lambda given: RedisBloomFilter.from_filter(client, "g", given)):
        with pytest.raises(ParameterTypeError, match=f"BloomFilter in memory .* got {type(given).__name__}"):
            take(given)
    assert not client.exists("g:fullbloom")


@pytest.mark.parametrize("batch", [0, -1, 1.5, "x"])
def test_a_plan_of_no_batch_is_refused(client, batch):
    with pytest.raises(ParameterError, match=r"batch must be a whole number"):
        RedisBloomFilter.plan(client, 1000, batch=batch)
