"""`fullbloom.Client` and `AsyncClient` against a real service."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
from functools import partial

import httpx
import pytest
from tests.support import eventually

import fullbloom
from fullbloom import viz
from fullbloom.client import ServiceError

KEYS = ["ada", "grace", 5, 1.5, True, ("a", 1), "with\nline", "é"]


def test_a_remote_filter_has_the_methods_of_a_set(service):
    with fullbloom.Client(service.url) as client:
        seen = client.create("client:seen", 1000, fpr=0.001, kind="counting")
        assert seen.add("ada") is True
        assert seen.add("ada") is False
        assert "ada" in seen
        assert "alan" not in seen
        assert seen.add_many(KEYS)[1:] == [True] * (len(KEYS) - 1)
        assert seen.contains_many([*KEYS, "alan"]) == [True] * len(KEYS) + [False]
        assert seen.contains_many([f"absent-{i}" for i in range(50)]) == [False] * 50
        assert seen.count("grace") == 1
        assert seen.remove("grace") is True
        assert "grace" not in seen
        assert seen.info()["num_added"] >= len(KEYS)
        assert "client:seen" in client
        assert "client:none" not in client
        assert list(client.names("client:")) == ["client:seen"]
        client.delete("client:seen")
        with pytest.raises(ServiceError) as refused:
            seen.add("x")
        assert (refused.value.status, refused.value.code) == (404, "missing")


def test_the_history_of_a_filter_is_returned_and_drawn(start):
    service = start(FULLBLOOM_HISTORY__EVERY="0.2")
    with fullbloom.Client(service.url) as client:
        seen = client.create("client:history", 1000)
        for half in (range(250), range(250, 500)):  # one sample each, as only changes are recorded
            before = len(seen.history())
            seen.update(half)
            eventually(lambda known=before: len(seen.history()) > known)
        history = seen.history()
        assert history[0]["fill"] > history[-1]["fill"]
        assert len(seen.history(limit=1)) == 1
        times = [sample["sampled_at"] for sample in history]
        assert times == sorted(times, reverse=True)
        pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
        [drawn, _] = viz.fill_history(history).get_lines()
        filled = [sample["fill"] for sample in reversed(history) if sample["fill"] is not None]
        assert list(drawn.get_ydata()) == filled


def test_remote_keys_match_those_of_a_local_filter(service):
    with fullbloom.Client(service.url) as client:
        remote = client.create("client:keys", 1000, keyed=False, seed=7)
        remote.update(KEYS)
        local = fullbloom.loads(remote.dump())
        assert all(key in local for key in KEYS)
        assert "alan" not in local
        local.update(["alan"])
        copy = client.filter("client:copy")
        copy.restore(local.to_bytes())
        assert "alan" in copy
        remote.merge("client:copy")
        assert "alan" in remote


def test_the_async_client_works_in_an_event_loop(service):
    async def work():
        async with fullbloom.AsyncClient(service.url) as client:
            seen = await client.create("client:async", 1000)
            assert await seen.add("ada")
            assert await seen.contains("ada")
            assert await seen.add_many(KEYS[1:]) == [True] * (len(KEYS) - 1)
            assert await asyncio.gather(*(seen.contains(key) for key in KEYS)) == [True] * len(KEYS)
            return [name async for name in client.names("client:async")]

    assert asyncio.run(work()) == ["client:async"]


def test_overloaded_responses_are_retried():
    asked = []

    class Busy(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.headers["idempotency-key"])
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"new": true}' if len(asked) > 2 else b'{"code": "overloaded"}'
            self.send_response(200 if len(asked) > 2 else 503)
            self.send_header("retry-after", "0")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with fullbloom.Client(f"http://127.0.0.1:{server.server_port}") as client:
        assert client.filter("x").add("ada") is True
        assert len(asked) == 3
        assert len(set(asked)) == 1
        assert asked[0]
    with fullbloom.Client(f"http://127.0.0.1:{server.server_port}", retries=0) as client:
        asked.clear()
        with pytest.raises(ServiceError):
            client.filter("x").add("ada")
    server.shutdown()


def test_a_connection_error_names_the_address():
    with socket.socket() as free:  # bound and not listening: nobody else gets the port
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        url = f"http://name:password@{address}"
        with fullbloom.Client(url, retries=1) as client, pytest.raises(httpx.ConnectError) as failed:
            client.filter("x").add("ada")
        assert f"http://{address} " in str(failed.value)
        assert "2 attempts" in str(failed.value)
        assert "password" not in str(failed.value)

        async def work():
            async with fullbloom.AsyncClient(url, retries=0) as client:
                await client.filter("x").info()

        with pytest.raises(httpx.ConnectError, match=f"http://{address} .* 1 attempt:") as failed:
            asyncio.run(work())
        assert "password" not in str(failed.value)


def test_a_refusal_names_the_filter_that_is_missing(service):
    with fullbloom.Client(service.url) as client:
        away = client.filter("client:away")
        for ask in (away.info, away.dump, lambda: away.add("k"), lambda: away.contains_many(["k"])):
            with pytest.raises(ServiceError, match="client:away"):
                ask()

    async def work():
        async with fullbloom.AsyncClient(service.url) as client:
            await client.filter("client:away").contains("k")

    with pytest.raises(ServiceError, match="client:away"):
        asyncio.run(work())


#: Bodies of successes that no service sends.
FALSE_BODIES = [
    b"",
    b"<html>sign in</html>",
    b"\xff\xfe",
    b"[" * 100_000,
    b"null",
    b"[]",
    b"{}",
    b'{"new": "yes", "found": 1, "count": "3", "value": "x", "values": [1], "filters": 7, "owners": [{}]}',
    b'{"values": [1, "2"], "filters": [{"name": 5}], "next": "x", "owners": [], "samples": null}',
]
ONE_KEY = ["add", "contains", "remove", "count", "value", "owner_info", "clear_owner", "remove_owner"]
MANY_KEYS = ["add_many", "contains_many", "remove_many", "value_many"]


@pytest.fixture
def false_service():
    """A server that responds with the body that was set last, and its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        body = b""

        def respond(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-length", str(len(Handler.body)))
            self.end_headers()
            self.wfile.write(Handler.body)

        def log_message(self, *_args):
            pass

    for method in ("GET", "POST", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.respond)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Handler, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("body", FALSE_BODIES, ids=range(len(FALSE_BODIES)))
def test_a_response_that_no_service_sends_is_a_service_error(false_service, body):
    handler, url = false_service
    handler.body = body
    is_object = body.startswith(b"{")  # as the info of a filter or an owner is

    def refuses(call):
        with pytest.raises(ServiceError, match="check the address") as error:
            call()
        assert error.value.code == "response"

    with fullbloom.Client(url) as client:
        filter_ = client.filter("x")
        for name in (*ONE_KEY, *MANY_KEYS):
            if name != "contains" and not (name == "owner_info" and is_object):
                refuses(partial(getattr(filter_, name), "k" if name in ONE_KEY else ["a", "b"]))
        refuses(lambda: "k" in filter_)
        refuses(filter_.history)
        refuses(lambda: list(client.names()))
        refuses(lambda: list(filter_.owners()))
        if not is_object:
            refuses(filter_.info)

    async def work():
        async with fullbloom.AsyncClient(url) as client:
            filter_ = client.filter("x")
            for name in (*ONE_KEY, *MANY_KEYS):
                if name == "owner_info" and is_object:
                    continue
                with pytest.raises(ServiceError, match="check the address"):
                    await getattr(filter_, name)("k" if name in ONE_KEY else ["a", "b"])

    asyncio.run(work())


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 16, 17])
def test_flags_of_too_few_or_too_many_keys_are_a_service_error(false_service, number):
    handler, url = false_service
    keys = [f"key-{at}" for at in range(number)]
    with fullbloom.Client(url) as client:
        filter_ = client.filter("x")
        for nbytes in range(5):
            handler.body = b"\x05" * nbytes
            if nbytes == -(-number // 8):
                assert filter_.contains_many(keys) == [at % 8 in {0, 2} for at in range(number)]
            else:
                with pytest.raises(ServiceError, match=f"{nbytes} bytes for {number} keys"):
                    filter_.contains_many(keys)


def test_a_change_whose_response_is_lost_is_made_once(service):
    """A proxy passes each request on, and closes the connection instead of the first response."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    lost = []

    def serve(listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer, socket.create_connection((host, int(port))) as there:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += peer.recv(65536)
                first, _, body = head.partition(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in first.split(b"\r\n")[1:])
                length = int(fields.get(b"content-length", 0))
                while len(body) < length:
                    body += peer.recv(65536)
                there.sendall(first + b"\r\nConnection: close\r\n\r\n" + body)
                response = b""
                while part := there.recv(65536):
                    response += part
                key = fields.get(b"idempotency-key")
                if key is not None and key not in lost:
                    lost.append(key)
                else:
                    peer.sendall(response)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        limits = httpx.Limits(max_keepalive_connections=0)
        with fullbloom.Client(url) as client:
            client._http = httpx.Client(base_url=url, limits=limits, timeout=60)
            counts = client.create("lost", 1000, kind="counting")
            assert counts.add("a") is True
            assert counts.add_many(["a", "b"]) == [False, True]
            assert counts.remove("b") is True
            assert (counts.count("a"), counts.count("b")) == (2, 0)
            client.create("lost:other", 1000, kind="counting")
            data = counts.dump()
            client.filter("lost:copy").restore(data)
            counts.clear()
            assert counts.count("a") == 0
            client.delete("lost")
            assert "lost" not in client
            assert client.filter("lost:copy").count("a") == 2
        assert len(lost) == 8
        listener.shutdown(socket.SHUT_RDWR)
