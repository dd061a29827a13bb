"""Unauthenticated connections keep no client from either port: the longest idle one is closed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import time

import httpx
import pytest
import redis
from service.forks import create_token

LONG = bool(int(os.environ.get("FULLBLOOM_LONG", "0") or "0"))
#: Connections of strangers, and seconds in which a new client is answered: a busy machine may hold one up.
STRANGERS, BOUND = 2_000, 0.25 if LONG else 1.0
#: Descriptors of the service: 384 connections to each port.
DESCRIPTORS = 1024
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LOOKUP = b"POST /v1/filters/f/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n"
LOOKUP += b'{"key":"a"}'
#: What strangers send before they fall silent, by port. Without tokens, a whole request makes them clients.
SILENCE = {
    "nothing": (b"", b""),
    "half a request": (GET[:-20], b"*2\r\n$4\r\nECHO\r\n$9"),
    "a request": (LOOKUP, b"PING\r\n"),
    "half of the second": (LOOKUP + LOOKUP[:-20], b"PING\r\n*2\r\n$4\r\nECHO\r\n$9"),
}


class Limited:
    """A service that has few descriptors."""

    def __init__(self, folder):
        ready = folder / "ready.json"
        words = [sys.executable, "-m", "fullbloom", "serve", "--data", folder / "data"]
        words += ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--ready-file", ready]
        limited = ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *map(str, words)]
        self.process = subprocess.Popen(limited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        said = json.loads(ready.read_text())
        self.url = said["http"]
        self.http = _address(said["http"].removeprefix("http://"))
        self.resp = _address(said["resp"])
        new = {"name": "f", "capacity": 10}
        assert httpx.post(f"{self.url}/v1/filters", json=new, timeout=60).status_code == 201

    def kill(self):
        self.process.kill()
        self.process.wait(60)


def _address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


@pytest.fixture
def many_descriptors():
    """The strangers' own limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * STRANGERS + 100:
        pytest.skip(f"this process may open {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def limited(tmp_path, many_descriptors):  # noqa: ARG001 - the strangers need them
    service = Limited(tmp_path)
    yield service
    service.kill()


def _come(targets, come, end):
    """Connect to the targets in turn, and hold all connections until the end."""
    held = []
    for number in range(STRANGERS):
        address, words = targets[number % len(targets)]
        with contextlib.suppress(OSError):
            held.append(one := socket.create_connection(address, timeout=5))
            one.sendall(words)
        time.sleep(0.001)  # a thousand a second, not a burst that fills the queue of the port
    come.set()
    end.wait()


class Strangers:
    """Strangers come to both ports, from a process of their own, and stay until the end of the block."""

    def __init__(self, service, silence):
        fork = multiprocessing.get_context("fork")
        self._come, self._end = fork.Event(), fork.Event()
        targets = list(zip((service.http, service.resp), silence, strict=True))
        self._process = fork.Process(target=_come, args=(targets, self._come, self._end))

    @property
    def come(self):
        return self._come.is_set()

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *_error):
        self._end.set()
        self._process.join()


def ask(address, question, answer):
    """Seconds until a new client is answered."""
    begun = time.monotonic()
    with socket.create_connection(address, timeout=60) as one:
        one.sendall(question)
        assert one.recv(4096).startswith(answer)
    return time.monotonic() - begun


@pytest.mark.long
@pytest.mark.parametrize("silence", SILENCE)
@pytest.mark.timed
def test_new_clients_are_answered_while_strangers_hold_connections(limited, silence):
    longest = {"http": 0.0, "resp": 0.0}
    with Strangers(limited, SILENCE[silence]) as strangers:
        for after in (False, True):
            until = time.monotonic() + 1
            while not (strangers.come if not after else time.monotonic() > until):
                longest["http"] = max(longest["http"], ask(limited.http, GET, b"HTTP/1.1 200"))
                longest["resp"] = max(longest["resp"], ask(limited.resp, b"PING\r\n", b"+PONG"))
        # The service's own files have descriptors, too.
        assert httpx.post(f"{limited.url}/v1/checkpoint", timeout=60).status_code == 200
    print(silence, {port: f"{seconds * 1000:.0f} ms" for port, seconds in longest.items()})
    assert max(longest.values()) < BOUND, longest


@pytest.mark.long
def test_clients_with_a_token_keep_their_connections(limited, tmp_path):
    token = create_token(tmp_path / "data")
    deadline = time.monotonic() + 60
    while httpx.get(f"{limited.url}/v1/filters", timeout=60).status_code != 401:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    own = {"authorization": f"Bearer {token}"}
    with contextlib.ExitStack() as stack:
        forever = httpx.Limits(keepalive_expiry=None)  # otherwise the client itself drops an idle connection
        options = {"base_url": limited.url, "headers": own, "limits": forever, "timeout": 60}
        clients = [httpx.Client(**options) for _ in range(10)]
        for client in clients:
            stack.enter_context(client)
        resp = [redis.Redis(*limited.resp, password=token, socket_timeout=60) for _ in range(10)]
        sockets = []
        for client in clients:
            assert client.get("/v1/filters").status_code == 200
            sockets.append(_only_socket(client))
        numbers = [client.client_id() for client in resp]
        for words in SILENCE.values():
            with Strangers(limited, words) as strangers:
                while not strangers.come:
                    time.sleep(0.01)
        for client, before in zip(clients, sockets, strict=True):
            assert client.get("/v1/filters").status_code == 200
            assert _only_socket(client) == before
        assert [client.client_id() for client in resp] == numbers
        for client in resp:
            client.close()


def _only_socket(client):
    """The local address of a client's one connection."""
    (one,) = client._transport._pool.connections
    return one._connection._network_stream.get_extra_info("client_addr")


@pytest.mark.long
@pytest.mark.timed  # one that other work keeps from asking for as long as a port's worth of strangers is idle
def test_an_active_client_without_a_token_keeps_its_connection(limited):
    with (
        redis.Redis(*limited.resp, socket_timeout=60) as client,
        httpx.Client(base_url=limited.url, timeout=60) as http,
    ):
        number, before = client.client_id(), None
        with Strangers(limited, SILENCE["a request"]) as strangers:
            while not strangers.come:
                assert client.client_id() == number
                assert http.get("/v1/filters").status_code == 200
                before = before or _only_socket(http)
                assert _only_socket(http) == before


@pytest.mark.long
@pytest.mark.timed
def test_a_connection_without_a_command_ends_at_the_deadline(start):
    receive = 1.0
    service = start(FULLBLOOM_LIMITS__RECEIVE=str(receive))
    for address in (service.url.removeprefix("http://"), service.resp):
        with socket.create_connection(_address(address), timeout=60) as one:
            begun = time.monotonic()
            assert one.recv(100) == b""
            assert receive / 2 < time.monotonic() - begun < receive + 4
    # A client may be silent for longer.
    with socket.create_connection(_address(service.resp), timeout=60) as one:
        for _ in range(2):
            one.sendall(b"PING\r\n")
            assert one.recv(100) == b"+PONG\r\n"
            time.sleep(1.5 * receive)
