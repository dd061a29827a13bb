"""What comes between two steps of a client: a thread of its own, another client, or the end of a string."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from engines.servers import needs_redis
from engines.steps import Run

from fullbloom import BloomFilter
from fullbloom.engines.redis import RedisBloomFilter, RedisRollingFilter, storage
from fullbloom.engines.redis.protocol import create
from fullbloom.engines.redis.protocol.manifest import Names, make_colocated_key
from fullbloom.engines.redis.protocol.open import OpenOptions
from fullbloom.engines.redis.storage import Snapshot, cells, verification
from fullbloom.engines.redis.storage.foreign import open_strings
from fullbloom.errors import EngineTimeout, FilterLost

pytestmark = needs_redis
KEYS = range(500)


def answer(run):
    """Let the server answer the next requests; the client takes the replies later."""
    return [run.transport._answer(one) for one in run.requests]


def delete_temporary(client, name):
    """The end of strings that expire within a minute, and that a volatile policy may evict."""
    found = [key for key in client.scan_iter(f"*{name}*or:*") if client.pttl(key) > 0]
    assert found
    client.delete(*found)


def refuse_scripts(monkeypatch):
    def try_nothing(*_):
        yield from ()

    monkeypatch.setattr(storage, "try_script", try_nothing)


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("ttl", [None, 3600])
@pytest.mark.parametrize("at", ["before the cells", "before the merge"])
def test_no_merge_succeeds_without_the_cells_it_merges(client, name, monkeypatch, at, ttl, scripts):
    filter_ = RedisBloomFilter(client, name, 5000, ttl=ttl)
    other = BloomFilter(5000, layout="blocked")
    other.update(KEYS)
    if not scripts:
        refuse_scripts(monkeypatch)
    run = Run(client, name, cells.merge(filter_._storage, memoryview(other).cast("B")))
    run.run_until(lambda _, words: words[0] == b"SETRANGE" and words[2] == 0)
    if at == "before the merge":
        run.step()
    delete_temporary(client, name)
    with pytest.raises(EngineTimeout, match="interrupted"):
        run.finish()
    assert not client.keys(f"*{name}*or:*")


def test_a_reshard_loses_no_key_with_the_copy_of_its_cells(client, name):
    filter_ = RedisBloomFilter(client, name, 5000)
    filter_.update(KEYS)
    run = Run(client, name, cells.reshard(filter_._storage, 2))
    run.run_until(lambda key, words: words[0] == b"SETRANGE" and words[2] == 0 and b"or:" in key)
    run.step()
    delete_temporary(client, name)
    with pytest.raises(EngineTimeout, match="interrupted"):
        run.finish()
    assert all(filter_.contains_many(KEYS))
    filter_.reshard(2)
    assert all(RedisBloomFilter(client, name).contains_many(KEYS))


def test_no_merge_on_the_server_succeeds_without_its_copy(client, name):
    filter_, other = RedisBloomFilter(client, name, 5000), RedisBloomFilter(client, f"{name}2", 5000)
    other.update(KEYS)
    run = Run(client, name, cells.merge_on_server(filter_._storage, other._storage))
    run.run_until(lambda key, words: words[0] == b"SETRANGE" and b"or:" in key)
    delete_temporary(client, name)
    with pytest.raises(EngineTimeout, match="interrupted"):
        run.finish()


def test_a_merge_sent_again_after_a_clear_keeps_the_generation(client, name):
    """The first time, the merged string has taken the cells of the filter as they were."""
    filter_ = RedisBloomFilter(client, name, 5000, ttl=3600)
    other = BloomFilter(5000, layout="blocked")
    other.update(KEYS)
    run = Run(client, name, cells.merge(filter_._storage, memoryview(other).cast("B")))
    run.run_until(lambda _, words: words[0] == b"EVAL" and b"BITOP" in words[1])
    for _ in range(2):
        RedisBloomFilter(client, name).clear()
        answer(run)
    run.finish()
    manifest = RedisBloomFilter(client, name).manifest
    (key,) = Names.from_manifest(name, manifest).bits
    tag = client.getrange(key, filter_._storage.snapshot.nbytes(0), -1)
    assert tag.startswith(manifest.make_stable_tag(0))


@pytest.mark.parametrize("kind", [RedisBloomFilter, RedisRollingFilter])
def test_bits_on_their_way_during_a_verification_count_once(client, name, kind):
    """The server has set them when it counts, and the client takes the reply after the count."""
    window = {"window": 3600} if kind is RedisRollingFilter else {}
    filter_ = kind(client, name, 5000, **window)
    filter_.update(range(500))
    hashes = b"".join(filter_._storage.hash_key(key) for key in range(500, 1000))
    run = Run(client, name, filter_._storage.run_hashes(hashes, adding=True))
    while not any(hasattr(one, "batch") for one in run.requests):
        run.step()
    replies = answer(run)
    assert filter_.verify()
    try:
        run.requests = run.steps.send(replies)
        run.finish()
    except StopIteration:
        pass
    found = filter_.verify()
    assert found, found


def test_a_moment_of_expiry_that_another_thread_forgets_is_no_error(client, name, monkeypatch):
    filter_ = RedisBloomFilter(client, name, 1000, ttl=3600)
    filter_.add("ada")
    stored, real = filter_._storage, time.monotonic

    def forget():
        stored.ends = None
        return real()

    monkeypatch.setattr(storage.time, "monotonic", forget)
    assert stored.ends is not None
    assert list(storage.check_expiry(stored)) == []


def test_a_thread_that_finds_a_later_generation_takes_no_progress_for_it(client, name, monkeypatch):
    """Another client has taken the generation, and has not replaced its strings yet."""
    filter_ = RedisBloomFilter(client, name, 1000)
    stored, threads = filter_._storage, []
    real = stored.adopt

    def adopt_later():
        with stored._lock:
            later = stored.manifest.with_next_generation()
            stored._adopt_snapshot(Snapshot.from_manifest(name, later, None))

    def adopt(manifest):
        real(manifest)
        threads.append(threading.Thread(target=adopt_later))
        threads[0].start()
        threads[0].join(0.2)

    monkeypatch.setattr(stored, "adopt", adopt)
    filter_.clear()
    threads[0].join()
    assert stored.snapshot.progress[0] >> 32 < stored.manifest.generation


def test_a_loss_after_a_clear_is_no_expiry(client, name):
    """The client knows the filter with an earlier end, which is over; another one has cleared it before."""
    filter_ = RedisBloomFilter(client, name, 5000, shards=2, ttl=3600)
    filter_.update(KEYS)
    manifest, (lost, left) = filter_.manifest, filter_._storage.names.bits
    client.delete(lost)
    for use in (filter_.contains_many, filter_.update):
        filter_._storage.adopt(replace(manifest, expires=1))
        with pytest.raises(FilterLost):
            use(KEYS)
    assert client.exists(left)


def test_no_string_of_a_filter_that_a_clear_has_prolonged_is_deleted(client, name):
    filter_ = RedisBloomFilter(client, name, 1000, ttl=3600)
    before = replace(filter_.manifest, expires=filter_.manifest.expires - 1)
    assert list(storage.recreate(filter_._storage, before)) == []


def test_a_window_forgets_a_generation_while_its_tags_are_on_their_way(client, name):
    window = RedisRollingFilter(client, name, 1000, window=3600)
    window.add("ada")
    state = window._storage.state
    (generation,) = state.recorded
    tags = list(state.tags[generation])
    state.recorded = {}  # by another thread, when the generation has ended
    assert not state.adopt_tags(generation, tags)


def test_a_verification_forgets_no_rollback_that_another_thread_finds(client, name):
    """It finds none, and must not set back what the thread has set between reading and writing."""
    filter_ = RedisBloomFilter(client, name, 1000)
    filter_.add("ada")
    stored, written = filter_._storage, []

    class Watched(type(stored)):
        @property
        def rolled_back(self):
            return False

        @rolled_back.setter
        def rolled_back(self, value):
            written.append(value)

    stored.__dict__.pop("rolled_back")
    stored.__class__ = Watched
    Run(client, name, verification.verify_cells(stored, restarted=False)).finish()
    assert written == []


def test_a_filter_of_the_server_is_not_cleared_by_one_that_has_expired(name):
    """Without a tag, the old filter looks like the new one under its final key."""

    class Manifested:
        ttl, expires = 0.0, 0

    one = create.NewString(make_colocated_key(b"f", b"new"), b"f", 0, b"")
    steps = create._replace_string(name, one, Manifested)
    (request,) = next(steps)
    assert request.words[:2] == (b"PEXPIRE", one.temporary)
    with pytest.raises(EngineTimeout, match="interrupted"):
        steps.send([0])


@pytest.mark.parametrize("step", ["creation", "reshard"])
def test_a_client_that_was_paused_ends_no_later_ttl(client, name, step):
    """Another client has finished what it began, and cleared the filter, by which a new ttl begins."""
    if step == "creation":
        paused = Run(client, name, open_strings(OpenOptions(name, 5000, ttl=3600)))
    else:
        first = RedisBloomFilter(client, name, 5000, ttl=3600)
        paused = Run(client, name, cells.reshard(first._storage, 2))
    paused.run_until(lambda _, words: b"PEXPIREAT" in words and b"SET" not in words)
    time.sleep(0.01)
    other = RedisBloomFilter(client, name)
    if step == "reshard":
        other.reshard(2)
    other.clear()
    other.update(KEYS)
    paused.finish()
    names = other._storage.names
    assert {client.pexpiretime(key) for key in (names.manifest, *names.bits)} == {other.manifest.expires}
