"""Requests on their way to FastAPI: their bodies are read, within limits, before it parses them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fullbloom.service.http import bodies
from fullbloom.service.http.asgi import JSON
from fullbloom.service.http.conditions import check_if_match

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from fullbloom.service.http.asgi import App, Receive, Send
    from fullbloom.service.http.request import Request
    from fullbloom.service.http.waiters import Waiters
    from fullbloom.service.node import Node

#: Actions whose handlers read the body themselves, within limits of their own.
_STREAMED_ACTIONS = frozenset({"dump", "freeze"})
#: Actions that change the filter under its lock, for which they would wait in a thread.
_CHANGES = frozenset({"", "clear", "advance", "merge", "owners/clear", "owners/remove"})
#: Most bytes of any other JSON body: names, settings. FastAPI parses it on the event loop.
_MAX_JSON = 1 << 16
_FORM = b"application/x-www-form-urlencoded"


class Forwarder:
    """Hands requests to the FastAPI app."""

    def __init__(self, node: Node, app: App, waiters: Waiters) -> None:
        """Forward to ``app``."""
        self._node, self._app, self._waiters = node, app, waiters
        self._max_bytes = min(_MAX_JSON, node.settings.limits.request_bytes)

    async def forward(self, request: Request, send: Send) -> None:
        """Have FastAPI respond; the request is in its scope, under "fullbloom"."""
        scope, receive = request.scope, request.receive
        content_type = request.headers.get(b"content-type")
        if content_type is None or content_type == _FORM:
            # `curl -d` calls its body a form; no request is one, so it is parsed as JSON.
            _drop_header(scope, b"content-type")
            scope["headers"].append((b"content-type", JSON))
        if request.is_safe or request.action not in _STREAMED_ACTIONS:
            # In a safe request the encoding means nothing.
            body = await bodies.read(request, self._max_bytes, is_packed=not request.is_safe)
            _drop_header(scope, b"content-encoding")
            receive = _replay(body, receive)
        if request.name is not None and not request.is_safe and b"if-match" in request.headers:
            await asyncio.to_thread(self._check_condition, request.name, request)
        scope["fullbloom"] = request
        try:
            if request.name is None or (request.action in _STREAMED_ACTIONS and not request.is_safe):
                await self._app(scope, receive, send)
            else:
                await self._forward_in_turn(request.name, request, receive, send)
        finally:  # `receive` refers to the scope: the cycle would wait for the garbage collector
            del scope["fullbloom"]

    async def _forward_in_turn(self, name: str, request: Request, receive: Receive, send: Send) -> None:
        """Have FastAPI respond, but have few requests to one filter in its threads at a time."""
        give_back = await self._waiters.take(name, reads=request.is_safe)

        async def release_and_send(message: MutableMapping[str, Any]) -> None:
            give_back()  # the work is done: the client may take its time to read the response
            await send(message)

        try:
            if request.action in _CHANGES and not request.is_safe:
                await self._waiters.wait_for(name)
            await self._app(request.scope, receive, release_and_send)
        finally:
            give_back()

    def _check_condition(self, name: str, request: Request) -> None:
        check_if_match(self._node.find_backend(name), request)


def _drop_header(scope: MutableMapping[str, Any], name: bytes) -> None:
    scope["headers"] = [pair for pair in scope["headers"] if pair[0] != name]


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` whose first message is the whole body."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await receive()

    return replay
