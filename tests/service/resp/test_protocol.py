"""Whatever comes in on the port, and however slowly: answered, refused or closed, and nobody else notices."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import subprocess
import threading
import time

import pytest
import redis
from service.resp.data_plane import Raw, Service, tool
from support import eventually

PING = b"*1\r\n$4\r\nPING\r\n"


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$99999999999\r\n", "invalid bulk length"),
        (b"*99999999\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b'ECHO "a\r\n', "unbalanced quotes in request"),
        (b"x" * 70_000, "too big inline request"),
    ],
)
def test_invalid_commands_get_an_error_and_close_the_connection(service: Service, sent, text):
    raw = service.socket()
    raw.send(PING + sent)
    assert raw.rest() == b"+PONG\r\n" + f"-ERR Protocol error: {text}\r\n".encode()


@pytest.mark.parametrize("sent", [b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_http_requests_close_the_connection(service: Service, sent):
    raw = service.socket()
    raw.send(sent + PING)
    assert b"PONG" not in raw.rest()


def test_inline_commands_are_accepted(service: Service):
    raw = service.socket()
    raw.ask(b"PING\r\n\r\n", b"+PONG\r\n")
    raw.ask(b'ECHO "a\\x41\\n"\n', b"$3\r\naA\n\r\n")


def test_a_command_may_arrive_byte_by_byte(service: Service):
    raw = service.socket()
    raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in PING * 3:
        raw.send(bytes([byte]))
        time.sleep(0.001)
    assert raw.take(21) == b"+PONG\r\n" * 3


def test_replies_keep_the_order_of_pipelined_commands(service: Service):
    raw = service.socket()
    count = 400_000
    sent = b"".join(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(count))
    threading.Thread(target=raw.send, args=(sent,)).start()
    expected = b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(count))
    assert raw.take(len(expected)) == expected


def count_received_segments(connection: socket.socket) -> int:
    """Segments with data that this side has received; Linux counts them."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    return int.from_bytes(info[152:156], "little")


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux counts the segments of a connection")
def test_pipelines_that_end_within_a_command_are_read_and_answered_at_once(service: Service):
    raw = service.socket()
    commands = PING * 4000  # 56 kB, which one read of 64 KiB takes
    raw.send(PING[:5])
    for _ in range(10):
        time.sleep(0.02)  # the service waits for the rest of a command
        before = count_received_segments(raw.socket)
        raw.send(PING[5:] + commands + PING[:5])
        assert raw.take(7 * 4001) == b"+PONG\r\n" * 4001
        # In pieces of 4 KiB there are 14 replies.
        assert count_received_segments(raw.socket) - before < 8


@pytest.mark.parametrize("length", [7, 65_536, 1_000_003])
def test_a_client_that_never_stops_sending_does_not_block_others(service: Service, length):
    """Whatever ends of commands its reads end in."""
    raw, ended, taken = service.socket(), threading.Event(), [0]
    sent = (b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % length + bytes(length) + b"\r\n") * max(1, 100_000 // length)

    def send() -> None:
        while not ended.is_set():
            raw.send(sent)

    def take() -> None:
        with contextlib.suppress(OSError):
            while more := len(raw.socket.recv(1 << 20)):
                taken[0] += more

    threads = [threading.Thread(target=send), threading.Thread(target=take)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert service.client().ping()
            time.sleep(0.02)
        eventually(lambda: taken[0] > 1_000_000)
    finally:
        ended.set()
        threads[0].join(60)
        raw.socket.shutdown(socket.SHUT_RDWR)
        threads[1].join(60)


def test_random_bytes_do_not_stop_the_service(service: Service):
    draw = random.Random(14)
    parts = [
        b"*",
        b"$",
        b"\r\n",
        b"1",
        b"3",
        b"-1",
        b"BF.ADD",
        b"\x00",
        b"EXEC",
        b"MULTI",
        b'"',
        PING,
        b"99999",
    ]
    for _ in range(150):
        raw = Raw(service.port)
        raw.send(b"".join(draw.choice(parts) for _ in range(draw.randrange(60))))
        raw.socket.shutdown(socket.SHUT_WR)
        raw.rest()
        raw.close()
    assert service.client().ping()


def test_slow_clients_are_disconnected_and_others_continue(start):
    service = start(receive=400)
    client = service.client()
    client.bf().reserve("slow", 0.01, 1000)
    dripping = [service.socket() for _ in range(50)]
    for raw in dripping:
        raw.send(b"*2\r\n$4\r\nEC")
    deaf = Raw(service.port)
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.socket.settimeout(60)
    try:
        while True:  # until nothing more fits anywhere, and the service has waited for that to change
            deaf.send(b"*2\r\n$4\r\nECHO\r\n$8000\r\n" + bytes(8000) + b"\r\n")
    except (ConnectionResetError, BrokenPipeError):
        pass
    for i in range(100):
        client.bf().add("slow", i)
    for raw in dripping:
        raw.socket.settimeout(60)
        assert raw.rest() == b""
    deadline = time.monotonic() + 60
    while client.info("clients")["connected_clients"] > 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_stated_lengths_allocate_no_memory(start):
    service = start()
    before = service.memory()
    held = [service.socket() for _ in range(200)]
    for raw in held:
        raw.send(b"*1000000\r\n$60000000\r\nabc")
    assert service.client().ping()
    assert service.memory() - before < 200 * (200 << 10)


def test_memory_for_all_incoming_bytes_is_limited(start):
    """Commands that never end, each below the cap of one, together above that of all."""
    service = start(request_bytes=2_000_000, memory_bytes=32_000_000)
    assert service.client().ping()
    before = service.memory()
    held = [service.socket() for _ in range(40)]
    for raw in held:
        with contextlib.suppress(OSError):
            raw.send(b"*2\r\n$4\r\nECHO\r\n$1900000\r\n" + bytes(1_800_000))
    assert service.client().ping()
    assert service.memory() - before < 60_000_000
    refused = 0
    assert select.select([raw.socket for raw in held], [], [], 60)[0]
    service.settle()
    for raw in held:
        raw.socket.settimeout(0.05)
        with contextlib.suppress(OSError):
            refused += raw.socket.recv(100).startswith(b"-OOM the memory for clients")
    assert 0 < refused < 40
    for raw in held:
        raw.close()
    service.socket().ask(PING, b"+PONG\r\n")


def test_idle_connections_cost_little(start):
    service = start()
    assert service.client().ping()
    before = service.memory()
    held = [service.socket() for _ in range(500)]
    for raw in held:
        raw.ask(PING, b"+PONG\r\n")
    assert (service.memory() - before) / 500 < 12_000


def test_a_connection_beyond_the_limit_takes_the_place_of_the_longest_idle_one(start):
    service = start(connections=2)
    held = [service.socket(), service.socket()]
    for raw in held:
        raw.ask(PING, b"+PONG\r\n")
        service.settle()  # a connection is idle from when the service waits for it, which is after the reply
    third = service.socket()
    third.ask(PING, b"+PONG\r\n")
    assert held[0].rest() == b""
    for raw in (held[1], third):
        raw.ask(PING, b"+PONG\r\n")


@pytest.mark.parametrize(
    ("setting", "sent", "text"),
    [
        ({"batch_keys": 10}, ["BF.MADD", "caps", *range(11)], "at most 10 keys"),
        ({"key_bytes": 10}, ["BF.ADD", "caps", "x" * 11], "at most 10 bytes"),
        ({"filter_bytes": 10_000}, ["BF.RESERVE", "caps", 0.01, 100_000], "Insufficient memory"),
    ],
)
def test_limits_are_reported_in_errors(start, setting, sent, text):
    client = start(**setting).client()
    with pytest.raises(redis.ResponseError, match=text):
        client.execute_command(*sent)
    assert client.ping()


def test_growth_ends_at_the_limit(start):
    client = start(filter_bytes=50_000).client()
    client.bf().reserve("grown", 0.01, 100)
    with pytest.raises(redis.ResponseError, match="problem inserting"):
        for first in range(0, 100_000, 1000):
            answers = client.bf().madd("grown", *range(first, first + 1000))
            if isinstance(answers[-1], Exception):
                raise answers[-1]
    assert client.bf().info("grown").size <= 50_000


def test_a_stopping_service_replies_to_received_commands(start, tmp_path):
    service = start(tmp_path, "always")
    raw = service.socket()
    raw.ask(PING, b"+PONG\r\n")
    raw.ask(b"*3\r\n$6\r\nBF.ADD\r\n$1\r\nb\r\n$1\r\nx\r\n", b":1\r\n")
    service.stop()
    assert raw.rest() == b""
    again = start(tmp_path, "always")
    assert again.client().bf().exists("b", "x")


def test_acknowledged_changes_survive_a_kill(start, tmp_path):
    service = start(tmp_path, "always")
    client = service.client()
    client.bf().reserve("kept", 0.001, 100_000)
    added = []

    def add(number: int) -> None:
        mine = service.client()
        try:
            for i in range(100_000):
                mine.bf().add("kept", f"{number}:{i}")
                added.append(f"{number}:{i}")
        except redis.RedisError:
            pass

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(added) > 10)
    time.sleep(0.5)
    service.kill()
    for thread in threads:
        thread.join()
    client = start(tmp_path, "always").client()
    assert all(client.bf().mexists("kept", *added))


def test_transactions_are_atomic(service: Service):
    """Two keys that are always added together are never seen apart from within a transaction."""
    setup = service.client()
    setup.bf().reserve("one", 1e-9, 100_000)
    setup.bf().reserve("two", 1e-9, 100_000)
    ended = threading.Event()
    count = [0]

    def write() -> None:
        client = service.client()
        while not ended.is_set():
            with client.pipeline(transaction=True) as pipe:
                pipe.bf().add("one", count[0])
                pipe.bf().add("two", count[0])
                pipe.execute()
            count[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    apart = 0
    try:
        deadline, rounds = time.monotonic() + 60, 0
        while rounds < 500 or (count[0] <= 50 and time.monotonic() < deadline):
            with setup.pipeline(transaction=True) as pipe:
                pipe.bf().card("one")
                pipe.bf().card("two")
                one, two = pipe.execute()
            apart += one != two
            rounds += 1
    finally:
        ended.set()
        writer.join()
    assert count[0] > 50
    assert apart == 0


@pytest.mark.long
def test_changes_are_refused_and_lookups_served_while_the_disk_is_full(start, tmp_path):
    service = start(tmp_path, "always", file_blocks=128)
    client = service.client()
    client.bf().reserve("full", 1e-6, 100_000)
    added = []
    with pytest.raises(redis.ResponseError, match="MISCONF"):
        for i in range(100_000):
            client.bf().add("full", i)
            added.append(i)
    assert len(added) > 1000
    # Answers to look-ups in the same pipeline stay, those to changes do not.
    pipe = client.pipeline(transaction=False)
    pipe.bf().exists("full", 0)
    pipe.bf().add("full", "more")
    pipe.execute_command("PING")
    found, refused, pong = pipe.execute(raise_on_error=False)
    assert found == 1
    assert pong
    assert isinstance(refused, redis.ResponseError)
    service.kill()
    again = start(tmp_path, "always").client()
    assert all(again.bf().mexists("full", *added))
    again.bf().add("full", "more")


def test_the_port_supports_tls(start, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = [
        tool("openssl"),
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    words += ["-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    service = start(tls=f"{certificate},{key}")
    # What is said together with the last word of the handshake is heard.
    for _ in range(20):
        client = service.client(ssl=True, ssl_ca_certs=str(certificate))
        assert client.ping()
    client.bf().reserve("tls", 0.001, 100_000)
    keys = [f"key {i}" for i in range(20_000)]
    assert sum(client.bf().madd("tls", *keys)) > 19_900
    assert all(client.bf().mexists("tls", *keys))
    assert len(client.execute_command("BLOOM.DUMP", "tls")) > 100_000
    with pytest.raises(redis.ConnectionError):
        service.client().ping()  # not encrypted
    with pytest.raises(redis.ConnectionError):
        service.client(ssl=True).ping()  # signed by nobody who is known
    halves = [service.socket() for _ in range(20)]  # that never say hello
    assert client.ping()
    assert len(halves) == 20


def test_a_refused_key_is_absent_after_a_kill(start, tmp_path):
    service = start(tmp_path, "always")
    client = service.client()
    client.bf().reserve("full", 1e-6, 10, noScale=True)
    client.bf().madd("full", *range(10))
    for words in (["BLOOM.ADD", "full", "refused"], ["BF.ADD", "full", "refused"]):
        with pytest.raises(redis.ResponseError, match="full"):
            client.execute_command(*words)
    client.bf().add("later", "x")  # is on disk, so whatever was logged before is
    service.kill()
    again = start(tmp_path, "always").client()
    assert not again.bf().exists("full", "refused")
    assert again.bf().card("full") == 10
    assert all(again.bf().mexists("full", *range(10)))
