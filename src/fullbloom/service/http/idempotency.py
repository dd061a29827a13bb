"""Changes with an ``Idempotency-Key``: a repeated request gets the response of the first."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused
from fullbloom.service.http.response_store import ResponseStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from fullbloom.service.http.asgi import Response
    from fullbloom.service.http.request import Request
    from fullbloom.service.http.response_store import Change

#: Most bytes of an Idempotency-Key.
_MAX_KEY = 255
#: Seconds that a repeated request waits for the first one.
_PATIENCE = 30.0
#: Statuses below this one are successes. After a failure the request is executed again.
_FAILURES = 300
_HEADER = b"idempotency-key"
#: Bytes of a digest: of a body, and of a request's method, path with query, form of the response, and key.
_DIGEST = 16
#: Bytes of a response that the budget of the service's memory does not count.
_SMALL = 1 << 16


class _Body:
    """Length and digest of a request's body, computed while it is received."""

    def __init__(self, request: Request) -> None:
        """Receive the body of ``request`` from here on."""
        self._receive, self._hash = request.receive, hashlib.blake2b(digest_size=_DIGEST)
        self.length, self.is_complete = 0, False
        request.receive = self.receive

    async def receive(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        if message["type"] == "http.request":
            part = message.get("body", b"")
            self._hash.update(part)
            self.length += len(part)
            self.is_complete = not message.get("more_body")
        return message

    def digest(self) -> bytes:
        return self._hash.digest()


class IdempotencyCache:
    """Changes by (token, endpoint, idempotency key), and their responses.

    A repeated request that arrives while the first is executed waits for its response.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._store = ResponseStore()
        #: By token and digest of the key.
        self._active: dict[tuple[int, bytes], asyncio.Event] = {}

    @staticmethod
    def covers(request: Request) -> bool:
        """Return whether a request is a change of filters with an idempotency key."""
        return _HEADER in request.headers and request.is_change and request.path.startswith("/v1/filters")

    async def run(self, request: Request, execute: Callable[[], Awaitable[Response]]) -> Response:
        """Execute the first request of a key; return its response to those that repeat it."""
        key = request.grant.token, _hash_key(request)
        deadline = time.monotonic() + _PATIENCE
        while (active := self._active.get(key)) is not None:
            try:
                await asyncio.wait_for(active.wait(), deadline - time.monotonic())
            except TimeoutError:
                text = "the request with this Idempotency-Key is still being executed; try again"
                raise Refused("busy", text) from None
        body = _Body(request)
        if (change := self._store.find(*key)) is not None:
            await _check_repeated(body, change)
            return await _repeat(request, change)
        self._active[key] = asyncio.Event()
        try:
            response = await execute()
            # A response that was given before the whole body had arrived is that of no certain request.
            if response.status < _FAILURES and body.is_complete:
                await self._store.store(*key, body.length, body.digest(), response)
        finally:
            self._active.pop(key).set()
        return response


def _hash_key(request: Request) -> bytes:
    value = request.headers[_HEADER]
    if not 0 < len(value) <= _MAX_KEY:
        raise Refused("invalid", f"an Idempotency-Key has 1 to {_MAX_KEY} characters")
    accept = request.headers.get(b"accept", b"")
    query = request.scope.get("query_string", b"")
    path = request.path.encode("utf-8", "surrogatepass")
    hasher = hashlib.blake2b(digest_size=_DIGEST)
    for part in (request.method.encode(), path, query, accept, value):
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return hasher.digest()


async def _repeat(request: Request, change: Change) -> Response:
    """Return the response of a change again."""
    if change.nbytes > _SMALL:
        request.budget.grow(change.nbytes)
    response = await change.read_response()
    if response is None:
        raise Refused(
            "applied",
            "the change with this Idempotency-Key was made, and is not made again; its response is not "
            "stored, because it was too large or larger responses followed",
        )
    return response._replace(headers=(*response.headers, (b"idempotent-replayed", b"true")))


async def _check_repeated(body: _Body, change: Change) -> None:
    """Receive a body; refuse one that differs from that of the first request."""
    while not body.is_complete and body.length <= change.length:
        if (await body.receive())["type"] != "http.request":
            break
    if body.length != change.length or body.digest() != change.digest:
        raise Refused("unprocessable", "the Idempotency-Key was used with another body; draw a new one")
