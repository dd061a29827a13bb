"""Changes with an ``Idempotency-Key``: a repeated request gets the response of the first."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from fullbloom.service.http.asgi import Response
    from fullbloom.service.http.request import Request

#: Most responses in the cache, their TTL in seconds, and most bytes of one and of all bodies.
_MAX_ENTRIES, _TTL, _MAX_BODY, _MAX_BYTES = 10_000, 600.0, 1 << 16, 16 << 20
#: Most bytes of an Idempotency-Key.
_MAX_KEY = 255
#: Seconds that a repeated request waits for the first one.
_PATIENCE = 30.0
#: Statuses below this one are successes. After a failure the request is executed again.
_FAILURES = 300
_HEADER = b"idempotency-key"
#: Token, method, path with query, form of the response, and idempotency key.
Key = tuple[int, str, str, bytes, bytes, bytes]


class _Body:
    """Length and digest of a request's body, computed while it is received."""

    def __init__(self, request: Request) -> None:
        """Receive the body of ``request`` from here on."""
        self._receive, self._hash = request.receive, hashlib.blake2b()
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


class _Done(NamedTuple):
    """The response of the first request of a key, and its body's length and digest."""

    at: float
    length: int
    digest: bytes
    response: Response


class IdempotencyCache:
    """Responses keyed by (token, endpoint, idempotency key).

    A repeated request that arrives while the first is executed waits for its response.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._done: OrderedDict[Key, _Done] = OrderedDict()
        self._active: dict[Key, asyncio.Event] = {}
        self._nbytes = 0

    @staticmethod
    def covers(request: Request) -> bool:
        """Return whether a request is a change of filters with an idempotency key."""
        return _HEADER in request.headers and request.is_change and request.path.startswith("/v1/filters")

    async def run(self, request: Request, execute: Callable[[], Awaitable[Response]]) -> Response:
        """Execute the first request of a key; return its response to those that repeat it."""
        key = _make_key(request)
        deadline = time.monotonic() + _PATIENCE
        while (active := self._active.get(key)) is not None:
            try:
                await asyncio.wait_for(active.wait(), deadline - time.monotonic())
            except TimeoutError:
                text = "the request with this Idempotency-Key is still being executed; try again"
                raise Refused("busy", text) from None
        self._drop_expired()
        body = _Body(request)
        if (known := self._done.get(key)) is not None:
            await _check_repeated(body, known)
            return known.response._replace(
                headers=(*known.response.headers, (b"idempotent-replayed", b"true"))
            )
        self._active[key] = asyncio.Event()
        try:
            response = await execute()
            # A response that was given before the whole body had arrived is that of no certain request.
            if response.status < _FAILURES and body.is_complete:
                self._store(key, body, response)
        finally:
            self._active.pop(key).set()
        return response

    def _store(self, key: Key, body: _Body, response: Response) -> None:
        if len(response.body) > _MAX_BODY:
            return
        self._done[key] = _Done(time.monotonic(), body.length, body.digest(), response)
        self._nbytes += len(response.body)
        while self._nbytes > _MAX_BYTES or len(self._done) > _MAX_ENTRIES:
            self._drop_oldest()

    def _drop_expired(self) -> None:
        oldest = time.monotonic() - _TTL
        while self._done and next(iter(self._done.values())).at < oldest:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, done = self._done.popitem(last=False)
        self._nbytes -= len(done.response.body)


def _make_key(request: Request) -> Key:
    value = request.headers[_HEADER]
    if not 0 < len(value) <= _MAX_KEY:
        raise Refused("invalid", f"an Idempotency-Key has 1 to {_MAX_KEY} characters")
    accept = request.headers.get(b"accept", b"")
    query = request.scope.get("query_string", b"")
    return request.grant.token, request.method, request.path, query, accept, value


async def _check_repeated(body: _Body, known: _Done) -> None:
    """Receive a body; refuse one that differs from that of the first request."""
    while not body.is_complete and body.length <= known.length:
        if (await body.receive())["type"] != "http.request":
            break
    if body.length != known.length or body.digest() != known.digest:
        raise Refused("unprocessable", "the Idempotency-Key was used with another body; draw a new one")
