"""The ASGI application: assigns an id to each request, authorizes it, measures it, and responds."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http.asgi import JSON, Collector, Response, Sender, make_problem
from fullbloom.service.http.authorization import authorize
from fullbloom.service.http.bodies import Disconnected
from fullbloom.service.http.bulk import BulkHandler, is_bulk
from fullbloom.service.http.forwarding import Forwarder
from fullbloom.service.http.idempotency import IdempotencyCache
from fullbloom.service.http.pages import Pages
from fullbloom.service.http.request import SAFE_METHODS, Request
from fullbloom.service.http.waiters import Waiters

if TYPE_CHECKING:
    from fullbloom.service.http.asgi import App, Receive, Scope, Send
    from fullbloom.service.metrics import Metrics
    from fullbloom.service.node import Node

_LOG = logging.getLogger("fullbloom.http")


class Gateway:
    """The ASGI application."""

    def __init__(self, node: Node, app: App, metrics: Metrics) -> None:
        """Wrap the FastAPI app."""
        self._node, self._service, self._metrics = node, node.service, metrics
        self._pages = Pages()
        self._max_requests = node.settings.limits.requests
        waiters = Waiters(node.service, self._max_requests)
        self._bulk, self._forwarder = BulkHandler(node, waiters), Forwarder(node, app, waiters)
        self._cache = IdempotencyCache()
        self._waits_for_disk = node.service.durability == "always"
        self._numbers, self._run = count(), secrets.token_hex(4)
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return
        if scope["path"] == "/healthz" and scope["method"] in SAFE_METHODS:
            # Here, not in a thread: it shows that the event loop runs, however many requests are active.
            await _ALIVE.send(send)
            return
        start = time.perf_counter()
        request = Request(scope, receive, f"{self._run}-{next(self._numbers):x}")
        self._active += 1
        depends = self._waits_for_disk and request.is_change
        sender = Sender(send, request.id, self._end_work, partial(self._settle, request) if depends else None)
        try:
            self._check_load()
            with self._service.hold(0) as request.budget:
                await self._respond(request, sender)
        except Disconnected:
            pass
        except Refused as error:
            await _refuse(sender, request, error)
        except Fault as fault:
            await _refuse(sender, request, await asyncio.to_thread(self._node.explain, fault, request.path))
        except Exception as error:  # noqa: BLE001 - the one place that turns any error into a response
            _LOG.exception("request failed", extra={"request": request.id, "error": type(error).__name__})
            await _refuse(sender, request, Refused("internal", "the service failed; its log says more"))
        finally:
            if not sender.has_started:
                self._end_work()
            seconds = time.perf_counter() - start
            self._metrics.observe(request.action or "api", request.method, sender.status, seconds)

    async def _respond(self, request: Request, sender: Sender) -> None:
        is_page = request.path in self._pages
        authorize(self._service, request, is_open=is_page)
        request.admit_connection(needs_token=self._service.needs_token())
        if is_page:
            response = await self._pages.respond(request)
            await response.send(sender)
        elif self._cache.covers(request):
            response = await self._cache.run(request, partial(self._execute, request))
            await response.send(sender)
        elif is_bulk(request):
            response = await self._bulk.respond(request)
            await response.send(sender)
        else:
            await self._forwarder.forward(request, sender)

    async def _execute(self, request: Request) -> Response:
        """Execute a change and return its response."""
        if is_bulk(request):
            return await self._bulk.respond(request)
        collector = Collector()
        await self._forwarder.forward(request, collector)
        return collector.response

    async def _settle(self, request: Request) -> Response | None:
        """Wait until the disk has the changes that a refusal depends on; return an error if that fails."""
        try:
            await asyncio.to_thread(self._service.settle)
        except Fault as fault:
            return make_problem(fault.code, str(fault), request=request.id)
        return None

    def _check_load(self) -> None:
        if self._active > self._max_requests:
            raise Refused("overloaded", "too many requests are at work; try again")

    def _end_work(self) -> None:
        """Count a request as done once its response starts; the server bounds how long sending may take."""
        self._active -= 1


_ALIVE = Response(200, JSON, b'{"status":"ok"}')


async def _refuse(sender: Sender, request: Request, error: Refused) -> None:
    if not sender.has_started:
        await make_problem(error.code, str(error), request=request.id, **error.extra).send(sender)
