"""`fullbloom.Client` and `AsyncClient` against a real service."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading

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
