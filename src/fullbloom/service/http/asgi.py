"""Responses as ASGI sends them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from fullbloom.service.failures import STATUS

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
#: Statuses of refusals that depend on the changes of others: the filter is gone, exists, or was changed.
DEPENDENT = frozenset({404, 409, 412})
_NO_CONTENT = 204
#: Bytes of a response that are handed to the server at a time.
CHUNK = 1 << 16


class Response(NamedTuple):
    """A whole response."""

    status: int
    media_type: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send) -> None:
        """Hand it to the server."""
        headers: Headers = [*self.headers]
        if self.status != _NO_CONTENT:
            headers += [(b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Collector:
    """An ASGI ``send`` that collects a small response."""

    def __init__(self) -> None:
        """Start without a response."""
        self._start: MutableMapping[str, Any] = {"status": 500, "headers": []}
        self._parts: list[bytes] = []

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Take a message."""
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._parts.append(message.get("body", b""))

    @property
    def response(self) -> Response:
        """The response."""
        headers = dict(self._start["headers"])
        media_type = headers.pop(b"content-type", b"")
        headers.pop(b"content-length", None)
        return Response(self._start["status"], media_type, b"".join(self._parts), tuple(headers.items()))


class Sender:
    """Sends a response with its request's id in a header, and records its status: 499 if none was sent.

    A large body goes to the server in chunks, each once the client has taken the one before: the request
    accounts for the bytes on their way, not the server's buffers.
    """

    status = 499
    has_started = False
    _is_replaced = False

    def __init__(
        self,
        send: Send,
        request_id: str,
        on_start: Callable[[], None],
        settle: Callable[[], Awaitable[Response | None]] | None = None,
    ) -> None:
        """Wrap ``send``; ``on_start`` is called once a response starts.

        ``settle`` is awaited before a refusal that depends on the changes of others; if it returns a
        response, that one is sent instead.
        """
        self._send, self._request_id, self._on_start = send, request_id.encode(), on_start
        self._settle = settle

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send a message."""
        if self._is_replaced:
            return
        if message["type"] == "http.response.start":
            if self._settle is not None and message["status"] in DEPENDENT:
                settle, self._settle = self._settle, None
                instead = await settle()
                if instead is not None:
                    await instead.send(self)
                    self._is_replaced = True
                    return
            self.has_started, self.status = True, message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self._request_id)]
            self._on_start()
        elif len(body := message.get("body", b"")) > CHUNK:
            for start in range(0, len(body), CHUNK):
                chunk = bytes(body[start : start + CHUNK])
                await self._send({"type": message["type"], "body": chunk, "more_body": True})
            message = {**message, "body": b""}
        await self._send(message)


def make_json(value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """Return a response in JSON."""
    return Response(status, JSON, json.dumps(value, separators=(",", ":")).encode(), headers)


def make_problem(code: str, text: str, **extra: object) -> Response:
    """Return an error (RFC 9457); its ``code`` is stable, its text is for people."""
    status = STATUS.get(code, 500)
    body = {"type": "about:blank", "title": code, "status": status, "code": code, "detail": text, **extra}
    headers: Headers = []
    if status == STATUS["unauthenticated"]:
        headers.append((b"www-authenticate", b"Bearer"))
    if code in {"overloaded", "read-only", "unavailable"}:
        headers.append((b"retry-after", b"1"))
    if code in {"large", "timeout", "overloaded"}:
        headers.append((b"connection", b"close"))
    if code == "elsewhere" and "location" in extra:
        headers.append((b"location", str(extra["location"]).encode()))
    if code == "method" and "allow" in extra:
        headers.append((b"allow", str(extra["allow"]).encode()))
    return Response(status, PROBLEM, json.dumps(body).encode(), tuple(headers))
