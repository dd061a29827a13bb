"""Requests and answers as ASGI has them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom.service.failures import STATUS

if TYPE_CHECKING:
    from fullbloom.service.access import Grant

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
PROBLEM = b"application/problem+json"
#: Bytes of an answer that are handed to the server at a time.
PIECE = 1 << 16


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    kind: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send) -> None:
        """Hand it to the server."""
        headers: Headers = [
            (b"content-type", self.kind),
            (b"content-length", str(len(self.body)).encode()),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Context(NamedTuple):
    """What the gateway knows of a request: in its scope, under "fullbloom"."""

    grant: Grant
    number: str
    #: Bytes of the service's memory that the request and its answer hold, given back at the end of both.
    held: Any


class Marked:
    """What takes an answer, with the request's number on it; and which status it had, 499 without any.

    A large body goes to the server in pieces, each once the client has taken those before it: what is on its
    way is held by the request, not by the server's buffers.
    """

    status = 499
    begun = False

    def __init__(self, send: Send, request: bytes, on_start: Callable[[], None]) -> None:
        """Put the number on what goes to ``send``; ``on_start`` is called once an answer begins."""
        self._send, self._request, self._on_start = send, request, on_start

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Hand a message on."""
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self._request)]
            self._on_start()
        elif len(body := message.get("body", b"")) > PIECE:
            for start in range(0, len(body), PIECE):
                piece = bytes(body[start : start + PIECE])
                await self._send({"type": message["type"], "body": piece, "more_body": True})
            message = {**message, "body": b""}
        await self._send(message)


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return a header's value, its name in lower case."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    for known, value in headers:
        if known == name:
            return value
    return None


def as_json(value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, JSON, json.dumps(value, separators=(",", ":")).encode(), headers)


def problem(code: str, text: str, **extra: object) -> Answer:
    """Return a refusal (RFC 9457); its ``code`` is stable, its text is for people."""
    status = STATUS.get(code, 500)
    body = {"type": "about:blank", "title": code, "status": status, "code": code, "detail": text, **extra}
    headers: list[tuple[bytes, bytes]] = []
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
    return Answer(status, PROBLEM, json.dumps(body).encode(), tuple(headers))
