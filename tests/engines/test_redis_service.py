"""The package's own service as a server of filters: what it keeps, what it lacks, whom it lets in."""

from __future__ import annotations

import shutil

import pytest
from engines.modules import SERVICES, Service

from fullbloom import BloomFilter
from fullbloom.engines.redis import (
    RedisBloomFilter,
    RedisCountingFilter,
    RedisRollingFilter,
)
from fullbloom.errors import EngineError, EngineRefused, FilterLost, FilterRolledBack


@pytest.fixture
def service(tmp_path):
    """A function that starts a service for one test."""
    pytest.importorskip("fullbloom_server", reason="needs the wheel fullbloom-server")
    started = []

    def start(*options):
        started.append(Service(tmp_path / f"service{len(started)}", *options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.mark.parametrize("options", SERVICES.values(), ids=SERVICES)
def test_a_durable_service_reports_no_loss_after_a_kill(service, options):
    running = service("--durability", "always", *options)
    f = RedisBloomFilter(running.client(), "f", 10_000, backend="auto")
    f.update(range(5000))
    f.clear()
    f.update(range(5000))
    running.kill()
    running.start()
    again = RedisBloomFilter(running.client(), "f")
    assert again.manifest == f.manifest
    assert again.contains_many(range(5000)) == [True] * 5000
    f._transport.client = running.client()  # the port is another one
    result = f.verify()
    assert result
    assert result.restarted
    assert result.keys_checked == 4096


@pytest.mark.long
@pytest.mark.parametrize("options", SERVICES.values(), ids=SERVICES)
def test_a_service_restored_from_an_old_copy_reports_the_lost_keys(service, options):
    running = service(*options)
    f = RedisBloomFilter(running.client(), "f", 10_000, backend="auto")
    f.update(range(3000))
    running.client().save()
    data, copy = running.folder / "data", running.folder / "copy"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock"))
    f.update(range(10**6, 10**6 + 500))
    late = RedisBloomFilter(running.client(), "late", 1000, backend="auto")
    late.update(["a", "b", "c"])
    running.kill()
    shutil.rmtree(data)
    copy.rename(data)
    running.start()
    f._transport.client = late._transport.client = running.client()
    result = f.verify()
    assert not result
    assert result.restarted
    assert result.shards_lost == ()
    assert result.rolled_back
    assert 480 <= result.keys_lost <= 500  # at most 1 %, and six deviations of 500 trials
    with pytest.raises(FilterRolledBack):
        f.contains_many(range(3000))
    again = RedisBloomFilter(running.client(), "f")
    assert again.contains_many(range(3000)) == [True] * 3000
    assert not late.verify()
    assert late.verify().replaced
    with pytest.raises(FilterLost):
        late.add("d")
    running.kill()
    shutil.rmtree(data)  # nothing was kept
    running.start()
    f._transport.client = running.client()
    result = f.verify()
    assert result.replaced
    assert result.keys_lost == result.keys_checked == 3500
    with pytest.raises(FilterLost):
        f.add("d")


@pytest.mark.parametrize("options", SERVICES.values(), ids=SERVICES)
def test_a_service_refuses_string_filters_and_names_the_backend(service, options):
    client = service(*options).client()
    for backend, asked in (
        (None, {}),
        ("strings", {}),
        ("auto", {"shards": 2}),
        ("auto", {"layout": "classic"}),
    ):
        with pytest.raises(EngineError, match=r"no strings that hold cells .* take backend='module'"):
            RedisBloomFilter(client, "f", 1000, backend=backend, **asked)
    for kind, asked in ((RedisCountingFilter, {}), (RedisRollingFilter, {"window": 60})):
        with pytest.raises(EngineError, match=r"no strings that hold cells .* take a Redis or Valkey server"):
            kind(client, "f", 1000, **asked)
    with pytest.raises(EngineError, match=r"no strings that hold cells .* take a Redis or Valkey server"):
        RedisBloomFilter.from_filter(client, "f", BloomFilter(1000))
    assert client.dbsize() == 0
    with pytest.raises(EngineError, match="1 to 128"):
        RedisBloomFilter(client, "a/b", 1000, backend="module")
    assert client.dbsize() == 0


def test_a_service_authenticates_clients_and_enforces_scopes(service):
    running = service()
    instance = running.http.post(
        "/v1/tokens", json={"name": "all", "scopes": ["read", "write", "admin"]}
    ).json()
    bearer = {"authorization": f"Bearer {instance['token']}"}
    tokens = {
        name: running.http.post("/v1/tokens", headers=bearer, json={"name": name, **rights}).json()["token"]
        for name, rights in {
            "reader": {"scopes": ["read"]},
            "tenant": {"scopes": ["read", "write"], "patterns": ["mine:*", "{mine:*"]},
        }.items()
    }
    with pytest.raises(EngineRefused, match="password"):
        RedisBloomFilter(running.client(), "mine:f", 1000, backend="module")
    with pytest.raises(EngineRefused, match="does not know this user") as result:
        RedisBloomFilter(running.client(password="not-this-one"), "mine:f", 1000, backend="module")
    assert "not-this-one" not in str(result.value)
    reader = running.client(password=tokens["reader"])
    with pytest.raises(EngineRefused, match="does not allow"):
        RedisBloomFilter(reader, "mine:f", 1000, backend="module")
    tenant = running.client(password=tokens["tenant"])
    with pytest.raises(EngineRefused, match="does not allow"):
        RedisBloomFilter(tenant, "theirs:f", 1000, backend="module")
    f = RedisBloomFilter(tenant, "mine:f", 1000, backend="module")
    assert f.add("a")
    f.clear()
    assert f.add("a")
    looked = RedisBloomFilter(reader, "mine:f")
    assert "a" in looked
    with pytest.raises(EngineRefused, match="does not allow"):
        looked.add("b")
    assert looked.verify()
    with running.client(password=instance["token"]) as admin:
        assert {key.decode() for key in admin.scan_iter("theirs*")} == set()


def test_names_on_a_service_leave_space_for_derived_keys(service):
    client = service().client()
    f = RedisBloomFilter(client, "n" * 83, 1000, backend="module")
    f.add("a")
    f.clear()
    assert f.add("a")
    f = RedisBloomFilter(client, "n" * 84, 1000, backend="module")
    f.add("a")
    with pytest.raises(EngineError, match="a name is 1 to 128"):
        f.clear()
    assert "a" in f
    assert f.verify()
    tagged = RedisBloomFilter(client, "{tenant}:seen", 1000, backend="module")
    tagged.clear()
    assert tagged.add("a")
