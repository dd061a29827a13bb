"""A change with an Idempotency-Key is made once, however large its response and however busy other tokens."""

from __future__ import annotations

import asyncio
import random
import sys
import tracemalloc
from types import SimpleNamespace

import httpx
import pytest

import fullbloom
from fullbloom.service.failures import Refused
from fullbloom.service.http import response_store, results
from fullbloom.service.http.asgi import Response, make_problem
from fullbloom.service.http.idempotency import IdempotencyCache

SMALL = Response(200, b"application/json", b'{"new":true}')


class Endpoint:
    """Changes of a cache: `send` makes one as a token; `made` counts how often each was executed."""

    def __init__(self):
        self.cache, self.made = IdempotencyCache(), {}

    async def send(self, token, key, response=SMALL, grow=lambda _nbytes: None):
        async def receive():
            return {"type": "http.request", "body": b"body"}

        request = SimpleNamespace(
            headers={b"idempotency-key": key}, grant=SimpleNamespace(token=token), method="POST",
            path="/v1/filters/c/add", scope={}, receive=receive, budget=SimpleNamespace(grow=grow),
        )  # fmt: skip

        async def execute():
            await request.receive()
            self.made[token, key] = self.made.get((token, key), 0) + 1
            return response

        return await self.cache.run(request, execute)


def draw_bits(nbytes, seed=0):
    return Response(200, b"application/octet-stream", random.Random(seed).randbytes(nbytes), ((b"a", b"b"),))


def test_changes_with_large_responses_are_made_once(service):
    keys = [f"key-{number}" for number in range(20_000)]
    service.create("large", kind="counting", capacity=100_000, fpr=1e-9)
    for name, accept in enumerate(("application/json", "application/octet-stream", "application/x-ndjson")):
        headers = {"idempotency-key": f"large-{name}", "accept": accept}
        first, again = (
            service.http.post("/v1/filters/large/add", json={"keys": keys}, headers=headers) for _ in range(2)
        )
        assert (first.status_code, again.status_code) == (200, 200)
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
        for field in ("content-type", "x-fullbloom-keys", "x-fullbloom-yes"):
            assert again.headers[field] == first.headers[field]
        counted = service.http.post("/v1/filters/large/count", json={"key": keys[1]}).json()
        assert counted == {"count": name + 1}


def test_a_client_that_loses_a_large_response_makes_the_change_once(service):
    number = 530_000
    with fullbloom.Client(service.url) as client:
        # At 1 %, the key would count as twice there in every hundredth run.
        counts = client.create("lost:large", number, kind="counting", fpr=1e-9)
        sent, request = [], client._http.request

        def lose_first(**parts):
            response = request(**parts)
            sent.append(len(response.content))
            if len(sent) == 1:
                raise httpx.ReadTimeout("lost")
            return response

        client._http.request = lose_first
        new = counts.add_many([f"key-{at}" for at in range(number)])
        assert sent == [66_250, 66_250]
        assert sum(new) > number * 0.95, "keys that were not there before are new"
        assert counts.count("key-1") == 1


def test_a_change_whose_response_is_too_large_to_store_is_refused_when_repeated():
    async def run():
        endpoint, large = Endpoint(), draw_bits(response_store.MAX_RESPONSE + 1)
        assert await endpoint.send(1, b"key", large) is large
        with pytest.raises(Refused, match="was made") as error:
            await endpoint.send(1, b"key", large)
        assert make_problem(error.value.code, str(error.value)).status == 409
        assert error.value.code == "applied", "a code that clients do not send again for"
        assert endpoint.made == {(1, b"key"): 1}

    asyncio.run(run())


def test_a_change_is_stored_even_if_its_request_is_cancelled_meanwhile(monkeypatch):
    async def run():
        endpoint, compresses = Endpoint(), asyncio.Event()

        async def hang(*_arguments):
            compresses.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(asyncio, "to_thread", hang)
        task = asyncio.create_task(endpoint.send(1, b"key", draw_bits(1 << 17)))
        await compresses.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(Refused, match="was made"):
            await endpoint.send(1, b"key")
        assert endpoint.made == {(1, b"key"): 1}

    asyncio.run(run())


@pytest.mark.parametrize("body", [b"", b"x", b"\n\0" * 90, b"a" * 5000, draw_bits(125_000).body])
@pytest.mark.parametrize("headers", [(), ((b"etag", b'"1-2"'), (b"empty", b""))])
def test_a_repeated_request_gets_the_same_response(body, headers):
    async def run():
        endpoint, grown = Endpoint(), []
        first = Response(204 if not body else 200, b"" if not body else b"text/plain", body, headers)
        assert await endpoint.send(1, b"key", first) == first
        again = await endpoint.send(1, b"key", grow=grown.append)
        assert again == first._replace(headers=(*headers, (b"idempotent-replayed", b"true")))
        assert grown == ([len(body)] if len(body) > 1 << 16 else []), "a large copy takes bytes of the budget"

    asyncio.run(run())


def test_the_changes_of_a_token_are_not_dropped_for_those_of_others():
    async def run():
        endpoint, share = Endpoint(), response_store.CHANGES // 2
        for number in range(100):
            await endpoint.send(1, b"%d" % number)
        for number in range(response_store.MAX_CHANGES + 20_000):
            await endpoint.send(2, b"%d" % number)
        for number in range(100):
            await endpoint.send(1, b"%d" % number)
        for number in range(response_store.MAX_CHANGES + 20_000 - share, response_store.MAX_CHANGES + 20_000):
            await endpoint.send(2, b"%d" % number)
        assert set(endpoint.made.values()) == {1}
        await endpoint.send(2, b"0")
        assert endpoint.made[2, b"0"] == 2, "the bound drops the oldest change of the token with the most"

    asyncio.run(run())


def test_large_responses_are_dropped_from_the_token_with_the_most_before_its_changes():
    async def run():
        endpoint, large = Endpoint(), draw_bits(66_250)
        for number in range(50):
            await endpoint.send(1, b"%d" % number, large)
        await endpoint.send(2, b"small")
        for number in range(600):
            await endpoint.send(2, b"%d" % number, large)
        for number in range(50):
            assert (await endpoint.send(1, b"%d" % number)).body == large.body
        for number in (0, 100):
            with pytest.raises(Refused, match="was made"):
                await endpoint.send(2, b"%d" % number)
        stored = response_store.BYTES // 2 // (len(large.body) + 300)
        for number in range(600 - stored, 600):
            assert (await endpoint.send(2, b"%d" % number)).body == large.body
        assert (await endpoint.send(2, b"small")).body == SMALL.body
        assert set(endpoint.made.values()) == {1}

    asyncio.run(run())


def test_tokens_beyond_the_number_of_changes_lose_the_oldest():
    async def run():
        endpoint = Endpoint()
        tokens = response_store.MAX_CHANGES + 1
        for token in range(tokens):
            await endpoint.send(token, b"key")
        await endpoint.send(tokens - 1, b"key")
        await endpoint.send(tokens - response_store.CHANGES, b"key")
        assert set(endpoint.made.values()) == {1}
        await endpoint.send(0, b"key")
        assert endpoint.made[0, b"key"] == 2

    asyncio.run(run())


def test_changes_are_forgotten_after_ten_minutes(monkeypatch):
    async def run():
        endpoint, now = Endpoint(), [0.0]
        monkeypatch.setattr(response_store.time, "monotonic", lambda: now[0])
        await endpoint.send(1, b"key")
        now[0] = 599.0
        await endpoint.send(1, b"key")
        assert endpoint.made == {(1, b"key"): 1}
        now[0] = 601.0
        await endpoint.send(1, b"key")
        assert endpoint.made == {(1, b"key"): 2}

    asyncio.run(run())


@pytest.mark.long
@pytest.mark.parametrize(("nbytes", "most"), [(0, 24 << 20), (150, 24 << 20), (600, 36 << 20)])
def test_stored_responses_take_bounded_memory(nbytes, most):
    async def run():
        store = response_store.ResponseStore()
        draw = random.Random(1)
        for number in range(response_store.MAX_CHANGES + 3000):
            key, digest = number.to_bytes(16, "big"), draw.randbytes(16)
            response = Response(200, b"application/json", draw.randbytes(nbytes))
            await store.store(number % 3, key, 1000 + number, digest, response)
        return store

    tracemalloc.start()
    try:
        store = asyncio.run(run())
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert store.find(0, (0).to_bytes(16, "big")) is None
    assert held < most


def test_a_change_is_refused_before_it_is_made_if_the_service_cannot_write_its_response(monkeypatch):
    arrow = "fullbloom.service.http.arrow"
    monkeypatch.delitem(sys.modules, arrow, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    request = SimpleNamespace(headers={b"accept": b"application/vnd.apache.arrow.stream"}, action="add")
    with pytest.raises(Refused, match="needs the extra arrow"):
        results.choose_format(request, SimpleNamespace(form="lines", body=b"key"))
