"""What goes wrong is a correct retry or one clear error, and nothing half-built is left under the name."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import redis
import redis.asyncio
import redis.sentinel
from engines.clusters import Sentinel, failover_retry
from engines.servers import needs_redis
from redis.crc import key_slot

from fullbloom.engines.redis import AsyncRedisBloomFilter, RedisBloomFilter
from fullbloom.engines.redis.protocol import Call, Sleep, read_value
from fullbloom.engines.redis.protocol.open import OpenOptions
from fullbloom.engines.redis.storage.foreign import open_strings
from fullbloom.engines.redis.transport.sync_transport import Transport
from fullbloom.errors import EngineTimeout, EngineUnavailable, FilterLost, FormatError, IncompatibleFilters

pytestmark = needs_redis


def test_a_replica_takes_over_under_sentinel(own_server, tmp_path):
    master = own_server()
    replica = own_server(replicaof=["127.0.0.1", master.port])
    watching = Sentinel(tmp_path / "sentinel", master)
    try:
        sentinel = redis.sentinel.Sentinel([("127.0.0.1", watching.port)], socket_timeout=5)
        client = sentinel.master_for("main", retry=failover_retry(), socket_timeout=5)
        f = RedisBloomFilter(client, "f", 200_000, shards=3)
        f.update(np.arange(50_000))
        client.wait(1, 60_000)
        assert f.verify()
        watching.hasten()
        master.kill()
        # The batch is sent again and again until there is a master: the retries are those of the client.
        f.update(np.arange(50_000, 60_000))
        result = f.verify()
        assert result.restarted
        assert result.ok
        assert f.contains_many(np.arange(60_000)).all()
        with replica.client() as direct:
            assert direct.info("replication")["role"] == "master"
    finally:
        watching.stop()


def test_keys_missing_on_a_promoted_replica_are_reported(own_server):
    master = own_server()
    replica = own_server(replicaof=["127.0.0.1", master.port])
    client = master.client()
    f = RedisBloomFilter(client, "f", 200_000)
    f.update(np.arange(50_000))
    client.wait(1, 60_000)
    with replica.client() as behind:
        behind.execute_command("REPLICAOF", "NO", "ONE")  # cut off, and made the master by somebody
        f.update(np.arange(50_000, 51_000))
        master.kill()
        f._transport.client = replica.client()
        result = f.verify()
    assert not result
    assert result.restarted
    assert result.keys_checked == 4096
    assert 990 <= result.keys_lost <= 1000
    assert result.bits_found < result.bits_expected


def _run_interleaved(transport, wanted, draw):
    """Runs generators against a real server, one question of one of them at a time, in a drawn order."""
    running = {number: open_strings(one) for number, one in enumerate(wanted)}
    asks = {number: next(steps) for number, steps in running.items()}
    outcomes = {}
    while running:
        number = draw.choice(sorted(running))
        try:
            answers = [None if isinstance(ask, Sleep) else transport._answer(ask) for ask in asks[number]]
            asks[number] = running[number].send(answers)
        except StopIteration as stop:
            outcomes[number] = stop.value
            del running[number]
        except IncompatibleFilters as error:
            outcomes[number] = error
            del running[number]
    return [outcomes[number] for number in range(len(wanted))]


def test_a_manifest_that_appears_and_disappears_is_not_read_as_empty(client):
    """It is created or deleted by another client after each command of the reader."""
    key, transport = b"f:fullbloom", Transport(client, "f")
    steps = read_value(key)
    asks = next(steps)
    with pytest.raises(StopIteration) as end:
        for _ in range(100):
            answer = transport._answer(asks[0])
            if client.delete(key) == 0:
                client.set(key, b"{}")
            asks = steps.send([answer])
    assert end.value.value in (None, b"{}")


def test_an_empty_manifest_is_refused_and_a_missing_one_created(client):
    client.set("f:fullbloom", b"")
    with pytest.raises(FormatError, match="does not hold a Fullbloom filter"):
        RedisBloomFilter(client, "f", 100)
    client.delete("f:fullbloom")
    assert RedisBloomFilter(client, "f", 100).verify()


@pytest.mark.long
def test_a_thousand_interleavings_of_two_different_creations_leave_one_filter(client):
    draw, transport, won = random.Random(15), Transport(client, "f"), [0, 0]
    for turn in range(1000):
        client.flushall()
        wanted = [OpenOptions("f", 100 + turn, shards=2), OpenOptions("f", 5000 + turn, shards=1 + turn % 2)]
        outcomes = _run_interleaved(transport, wanted, draw)
        failed = [isinstance(outcome, IncompatibleFilters) for outcome in outcomes]
        assert sorted(failed) == [False, True], outcomes
        winner = failed.index(False)
        won[winner] += 1
        assert str(100 + turn) in str(outcomes[1 - winner])
        assert str(5000 + turn) in str(outcomes[1 - winner])
        strings = outcomes[winner]
        assert strings.manifest.capacity == wanted[winner].capacity
        assert sorted(client.keys()) == sorted([strings.names.manifest, *strings.names.bits])
        assert all(client.pttl(key) == -1 for key in client.scan_iter())
    assert min(won) > 300


@pytest.mark.long
def test_interleavings_of_equal_creations_leave_one_filter(client):
    draw, transport = random.Random(16), Transport(client, "f")
    for _ in range(200):
        client.flushall()
        outcomes = _run_interleaved(transport, [OpenOptions("f", 1000, shards=2)] * 3, draw)
        assert len({strings.manifest.id for strings in outcomes}) == 1
        assert len(client.keys()) == 3


class StallingProxy:
    """A proxy that passes so many bytes of answers on, and then nothing."""

    def __init__(self, port: int):
        self.left = None
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.target, self.open = port, []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self.listening.accept()
                there = socket.create_connection(("127.0.0.1", self.target))
                self.open += [here, there]
                threading.Thread(target=self._pass, args=(here, there, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(there, here, True), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if answers and self.left is not None:
                    data, self.left = data[: self.left], max(0, self.left - len(data))
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for one in [self.listening, *self.open]:
            one.close()


@pytest.mark.long
@pytest.mark.parametrize("passed", [0, 40, 30_000])
@pytest.mark.timed
def test_a_stalled_reply_times_out_and_no_later_reply_is_mismatched(server, passed):
    proxy = StallingProxy(server.port)
    try:
        client = redis.Redis(port=proxy.port, socket_timeout=0.7, retry=None)
        f = RedisBloomFilter(client, f"stall{passed}", 100_000)
        f.update(range(1000))
        for ask in (lambda: f.contains_many(range(2000)), lambda: f.add_many(range(1000, 2000))):
            proxy.left = passed
            with pytest.raises(EngineTimeout, match="timeout"):
                ask()
            proxy.left = None
            assert sum(f.contains_many(range(1000))) == 1000
            assert not f.add(5)

        async def main():
            async with redis.asyncio.Redis(port=proxy.port, socket_timeout=0.7, retry=None) as own:
                g = await AsyncRedisBloomFilter.open(own, f.name)
                proxy.left = passed
                result = await asyncio.gather(
                    g.contains_many(range(2000)), g.add_many(range(2000)), return_exceptions=True
                )
                # The two share the bytes that pass: one may just be through.
                assert any(isinstance(error, EngineTimeout) for error in result), result
                assert all(isinstance(error, (EngineTimeout, list)) for error in result), result
                proxy.left = None
                assert sum(await g.contains_many(range(1000))) == 1000
                assert not await g.add(5)

        asyncio.run(main())
    finally:
        proxy.close()


@pytest.mark.long
def test_a_server_that_is_loading_is_reported_or_awaited(own_server):
    server = own_server()
    client = server.client()
    f = RedisBloomFilter(client, "f", 10_000)
    f.update(range(1000))
    for number in range(2000):
        client.set(f"other {number}", number)
    client.save()
    server.kill()
    # 10 ms a key, and events between: it answers LOADING until a client has read that.
    server.options |= {"key_load_delay": 10_000, "loading_process_events_interval_bytes": 1024}
    starting = threading.Thread(target=server.start)
    starting.start()
    hasty = server.client(retry=None)
    g, said = None, set()
    deadline = time.monotonic() + 60
    while g is None:
        assert time.monotonic() < deadline
        try:
            g = RedisBloomFilter(hasty, "f")
        except EngineUnavailable as error:
            said.add(str(error).split(": ")[1][:28])
            if "the server is loading its da" in said:
                hasty.config_set("key-load-delay", 0)
        time.sleep(0.02)
    starting.join()
    assert "the server is loading its da" in said
    assert all(g.contains_many(range(1000)))
    server.kill()
    server.options["key_load_delay"] = 1000
    starting = threading.Thread(target=server.start)
    starting.start()
    waiting = server.client(retry=failover_retry(), retry_on_error=[redis.exceptions.BusyLoadingError])
    f._transport.client = waiting
    assert all(f.contains_many(range(1000)))
    assert f.add("later")
    starting.join()


def test_a_server_that_restarts_empty_during_a_batch_is_a_loss(own_server):
    server = own_server()
    f = RedisBloomFilter(server.client(retry=failover_retry()), "f", 1_000_000, shards=4)
    f.update(np.arange(10_000))

    def restart():
        server.kill()
        server.start()

    keeper = threading.Timer(0.2, restart)
    keeper.start()
    with pytest.raises(FilterLost):
        for batch in range(10_000):
            f.update(np.arange(batch * 5000, (batch + 1) * 5000))
    keeper.join()
    result = f.verify()
    assert result.replaced
    assert result.restarted


def test_opening_sends_no_key_of_another_node(client):
    """All questions have keys, so that a cluster knows whom to ask; only INFO and COMMAND go to any node."""
    draw = random.Random(1)
    asked = []
    transport = Transport(client, "f")
    real = transport._call
    transport._call = lambda ask: (asked.append(ask), real(ask))[1]
    client.flushall()
    _run_interleaved(transport, [OpenOptions("f", 1000, shards=3)], draw)
    assert asked
    for ask in asked:
        assert isinstance(ask, Call)
        if ask.words[0] not in (b"INFO", b"COMMAND"):
            assert ask.key is not None
            keys = ask.words[3 : 3 + ask.words[2]] if ask.words[0] == b"EVAL" else ask.words[1:2]
            assert {key_slot(key) for key in keys} == {key_slot(ask.key)}
