"""A window whose client is paused longer than a generation lives, and one whose manifest lists too much."""

from __future__ import annotations

import math

import pytest
from engines.servers import needs_redis
from engines.steps import Run

from fullbloom.engines.redis import RedisRollingFilter
from fullbloom.engines.redis.protocol import SendBatch, generations
from fullbloom.engines.redis.protocol.generations import RecordedGeneration, format_record
from fullbloom.errors import FormatError

pytestmark = needs_redis


@pytest.fixture
def clock(monkeypatch):
    """Seconds by which the server's clock is ahead, as clients read it each time."""
    ahead, real = [0], generations.parse_time
    monkeypatch.setattr(generations, "parse_time", lambda reply: real(reply) + ahead[0])
    monkeypatch.setattr(generations, "_TIME_INTERVAL", -math.inf)
    return ahead


@pytest.mark.parametrize("others_went_on", [False, True])
def test_an_add_that_arrives_after_its_generation_expired_is_repeated(client, name, clock, others_went_on):
    paused = RedisRollingFilter(client, name, 1000, window=3600)
    paused.add("first")
    storage = paused._storage
    run = Run(client, name, storage.run_hashes(storage.hash_key("key"), adding=True))
    while not any(isinstance(one, SendBatch) for one in run.requests):
        run.step()
    for string in client.scan_iter(f"{name}:bits*"):  # they expire
        client.delete(string)
    clock[0] = 1_000_000
    assert RedisRollingFilter(client, name).add("key")
    if others_went_on:  # other threads of this client
        assert paused.add("second")
    while not run.over:
        replies = [run.transport._answer_all([one])[0] for one in run.requests]
        try:
            run.requests = run.steps.send(replies)
        except StopIteration as stop:
            run.value, run.over = stop.value, True
    assert run.value == b"\0"  # the add of the other client reported it as new
    assert "key" in paused
    assert all(client.pttl(string) >= 0 for string in client.scan_iter(f"{name}:bits*"))


@pytest.mark.parametrize(
    "recorded",
    [
        {10**12 + number: RecordedGeneration(1 << 45, "ab" * 8) for number in range(1000)},
        {-5: RecordedGeneration(1 << 45, "ab" * 8)},
        {5: RecordedGeneration(-1, "ab" * 8)},
        {5: RecordedGeneration(1 << 70, "ab" * 8)},
        {1 << 70: RecordedGeneration(1 << 45, "ab" * 8)},
        {5: RecordedGeneration(1 << 45, "ab")},
        {5: RecordedGeneration(1 << 45, "xy" * 8)},
    ],
)
def test_a_record_of_generations_that_no_window_has_is_refused(client, name, recorded):
    """With a valid checksum, which anybody can compute."""
    seen = RedisRollingFilter(client, name, 1000, window=3600)
    manifest = generations.with_record(seen.manifest, recorded)
    client.set(f"{name}:fullbloom", manifest.to_bytes())
    with pytest.raises(FormatError, match="record of its generations"):
        RedisRollingFilter(client, name)
    seen._storage.state.read_at = -math.inf
    with pytest.raises(FormatError, match="record of its generations"):
        seen.contains_many(["a"])


@pytest.mark.parametrize("spelling", ["+5:1000:", "05:1000:", "5:1_000:"])
def test_a_record_in_another_spelling_is_refused(spelling):
    text = format_record({5: RecordedGeneration(1000, "ab" * 8)}, "the id")
    part = spelling + "ab" * 8
    assert generations.parse_record(text, "the id")
    with pytest.raises(ValueError, match="no window has"):
        generations.parse_record(
            f"{part} {generations._compute_checksum('the id', part.split(' '))}", "the id"
        )
