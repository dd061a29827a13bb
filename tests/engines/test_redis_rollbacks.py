"""A client notices a string in an earlier state than the one it saw, whatever else changes at that moment."""

from __future__ import annotations

import pytest
from engines.servers import needs_redis, strings_of
from engines.steps import Run

from fullbloom.engines.redis import RedisBloomFilter, RedisCountingFilter
from fullbloom.engines.redis.protocol.manifest import OWNER_BYTES, TAG_BYTES
from fullbloom.engines.redis.storage import cells, strings
from fullbloom.errors import EngineUnavailable, FilterRolledBack

pytestmark = needs_redis

KEYS = range(1000)


@pytest.fixture(autouse=True)
def _raise_epochs_always(monkeypatch):
    """Adds raise the epochs of strings each time."""
    monkeypatch.setattr(strings, "RAISED_EVERY", 0.0)


def restore(client, saved):
    """Put strings back as they were."""
    for key, data in saved.items():
        client.restore(key, 0, data, replace=True)


def save(client, *keys):
    return {key: client.dump(key) for key in keys}


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_a_string_from_before_a_clear_is_noticed_by_all_that_saw_the_new_one(server, client, name, kind):
    cleared = kind(client, name, 10_000, shards=2)
    before = save(client, strings_of(client, name)[1])
    cleared.clear()
    with server.client() as other:
        adding = kind(other, name)
        adding.update(KEYS)
        restore(client, before)
        for filter_ in (adding, cleared):
            for _ in range(2):
                with pytest.raises(FilterRolledBack):
                    filter_.contains_many(KEYS)
            assert filter_.verify().rolled_back
        cleared.clear()
        for filter_ in (adding, cleared):
            assert not any(filter_.contains_many(KEYS))
            assert filter_.verify()


def test_an_older_string_is_noticed_beside_one_with_a_new_tag(client, name):
    filter_ = RedisBloomFilter(client, name, 10_000, shards=2)
    first, second = strings_of(client, name)
    before = save(client, second)
    for _ in range(2):
        filter_.update(KEYS)
    restore(client, before)
    at = client.strlen(first) - TAG_BYTES + OWNER_BYTES
    client.setrange(first, at, (1).to_bytes(4, "little"))  # as the next state of a reshard has it
    with pytest.raises(FilterRolledBack):
        filter_.contains_many(KEYS)


def test_an_older_string_is_noticed_after_a_reshard_began(client, name):
    filter_ = RedisBloomFilter(client, name, 10_000, shards=1)
    (string,) = strings_of(client, name)
    before = save(client, string)
    for _ in range(2):
        filter_.update(KEYS)
    resharding = RedisBloomFilter(client, name)
    run = Run(client, name, cells.reshard(resharding._storage, 4))
    at = client.strlen(string) - TAG_BYTES + OWNER_BYTES
    while client.getrange(string, at, at) == b"\0":  # its generation
        run.step()
    assert all(filter_.contains_many(KEYS))
    assert filter_.manifest.other_shards == 4
    restore(client, before)
    with pytest.raises(FilterRolledBack):
        filter_.contains_many(KEYS)


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_an_interrupted_verification_hides_no_rollback(client, name, kind, monkeypatch):
    filter_ = kind(client, name, 10_000)
    before = save(client, f"{name}:fullbloom", *strings_of(client, name))
    filter_.clear()
    filter_.update(KEYS)
    restore(client, before)
    transport, answers = filter_._transport, []

    def answer(request, real=filter_._transport._answer):
        answers.append(request)
        if len(answers) > 2:  # the run id and the manifest
            raise EngineUnavailable("the connection broke")
        return real(request)

    with monkeypatch.context() as patch:
        patch.setattr(transport, "_answer", answer)
        with pytest.raises(EngineUnavailable):
            filter_.verify()
    with pytest.raises(FilterRolledBack):
        filter_.contains_many(KEYS)


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_a_verification_does_not_take_a_clear_for_a_rollback(server, client, name, kind):
    filter_ = kind(client, name, 10_000, shards=2)
    filter_.update(KEYS)
    with server.client() as other:
        run = Run(client, name, filter_._storage.verify(restarted=False))
        run.step()  # the manifest
        kind(other, name).clear()
        result = run.finish()
    assert result
    assert not result.rolled_back
    assert not any(filter_.contains_many(KEYS))


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisCountingFilter])
def test_a_clear_that_stopped_halfway_is_no_rollback(server, client, name, kind):
    filter_ = kind(client, name, 10_000, shards=2)
    filter_.update(KEYS)
    with server.client() as other:
        clearing = kind(other, name)
        steps = (
            clearing._storage.clear()
            if kind is RedisCountingFilter
            else cells.replace_cells(clearing._storage, None)
        )
        run = Run(other, name, steps)
        second = strings_of(client, name)[1].encode()
        run.run_until(lambda key, words: words[0] == b"EVAL" and key == second)
        assert 0 < sum(filter_.contains_many(KEYS)) < len(KEYS)
        for _ in range(2):
            filter_.update(KEYS)
            assert all(filter_.contains_many(KEYS))
        run.finish()
        filter_.update(KEYS)
        assert all(filter_.contains_many(KEYS))
