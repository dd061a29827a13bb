"""Every request passes here: numbered, held against what its sender may do, counted, answered."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from itertools import count
from typing import TYPE_CHECKING, Any

from fullbloom.service import access
from fullbloom.service.engine import Fault
from fullbloom.service.failures import Refused
from fullbloom.service.http import bodies, bulk
from fullbloom.service.http.repeats import Repeats, digest
from fullbloom.service.http.wire import JSON, Answer, Context, Marked, header, problem

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from fullbloom.service.http.wire import App, Receive, Scope, Send
    from fullbloom.service.metrics import Metrics
    from fullbloom.service.node import Node

_LOG = logging.getLogger("fullbloom.http")
#: What needs no token: whether it lives, and what it can do.
_OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json", "/"})
#: What a request of each method and first word asks for; the rest of admin's is below.
_ADMIN = ("/v1/tokens", "/v1/backup", "/v1/checkpoint", "/v1/nodes")
_ADMIN_ACTIONS = frozenset({"secret"})
_READ_ACTIONS = frozenset({"check", "count", "values"})
_FILTERS = "/v1/filters/"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: What a browser says of a request that no other site caused.
_OWN_SITE = frozenset({b"same-origin", b"none"})
#: Routes that read their body themselves, to caps of their own.
_READERS = frozenset({"dump", "freeze"})
#: Most bytes of any other JSON body: names, settings. It is parsed on the event loop.
_MOST_JSON = 1 << 16


class Gateway:
    """The ASGI application."""

    def __init__(self, node: Node, api: App, metrics: Metrics) -> None:
        """Put it in front of the JSON surface."""
        self._node, self._service, self._api = node, node.engine.service, api
        self._limits, self._metrics = node.settings.limits, metrics
        self._repeats = Repeats()
        self._numbers, self._run = count(), secrets.token_hex(4)
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        if scope["path"] == "/healthz" and scope["method"] in _SAFE:
            # Here, not in a thread: it says that the event loop goes round, however much is at work.
            await _ALIVE.send(send)
            return
        begun = time.perf_counter()
        name, action = _taken_apart(scope["path"])
        request = f"{self._run}-{next(self._numbers):x}"
        self._at_work += 1
        marked = Marked(send, request.encode(), self._worked)
        try:
            self._admit()
            with self._service.hold(0) as held:
                answer = await self._answered(scope, receive, marked, (name, action), (request, held))
                if answer is not None:
                    await answer.send(marked)
        except bodies.Disconnected:
            pass
        except Refused as error:
            await _refuse(marked, request, error.code, str(error), error.extra)
        except Fault as fault:
            refused = await asyncio.to_thread(self._node.explained, fault, scope["path"])
            await _refuse(marked, request, refused.code, str(refused), refused.extra)
        except Exception as error:  # noqa: BLE001 - the one place where what nobody foresaw becomes an answer
            _LOG.exception("request failed", extra={"request": request, "error": type(error).__name__})
            await _refuse(marked, request, "internal", "the service failed; its log says more", {})
        finally:
            if not marked.begun:
                self._worked()
            seconds = time.perf_counter() - begun
            self._metrics.request(action or "api", scope["method"], marked.status, seconds)

    def _worked(self) -> None:
        """Note that a request is answered; its client may take its time, which is bounded elsewhere."""
        self._at_work -= 1

    def _admit(self) -> None:
        if self._at_work > self._limits.requests:
            raise Refused("overloaded", "too many requests are at work; try again")

    async def _answered(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        asked: tuple[str | None, str],
        request: tuple[str, Any],
    ) -> Answer | None:
        path: str = scope["path"]
        method: str = scope["method"]
        name, action = asked
        number, held = request
        self._check_origin(scope)
        grant = access.EVERYTHING
        if path not in _OPEN:
            grant = access.grant_of(self._service, header(scope, b"authorization"))
            grant.check(_scope_of(method, path, action), name)
        context = scope["fullbloom"] = Context(grant, number, held)
        if name is not None and action in bulk.ACTIONS:
            if method != "POST":
                raise Refused("method", f"{action} is asked for with POST", allow="POST")
            store = self._node.at_hand(name)
            if store is None:
                store = await asyncio.to_thread(self._node.store, name)
            return await self._bulk(scope, receive, (store, name), action, context)
        _take_for_json(scope)
        if action not in _READERS or method in _SAFE:
            receive = await _received(scope, receive, min(_MOST_JSON, self._limits.request_bytes), held)
        if name is not None and method not in _SAFE:
            await asyncio.to_thread(self._check_condition, name, scope)
        await self._api(scope, receive, send)
        return None

    async def _bulk(
        self, scope: Scope, receive: Receive, filter_: tuple[Any, str], action: str, context: Context
    ) -> Answer:
        store, name = filter_
        body = await bodies.read(scope, receive, self._limits.request_bytes, context.held)
        request = (scope, body, context.held)
        if action not in bulk.CHANGES:
            return await bulk.answer(store, name, action, request, self._limits)
        bulk.check_condition(store, name, scope)
        key = header(scope, b"idempotency-key")
        if key is None:
            return await bulk.answer(store, name, action, request, self._limits)
        place = (context.grant.token, f"{scope['path']} {header(scope, b'accept')!r}", key)
        known = self._repeats.begin(*place, await digest(body))
        if known is not None:
            return known._replace(headers=(*known.headers, (b"idempotent-replayed", b"true")))
        try:
            answer = await bulk.answer(store, name, action, request, self._limits)
        except BaseException:
            self._repeats.failed(*place)
            raise
        self._repeats.done(*place, answer)
        return answer

    def _check_condition(self, name: str, scope: Scope) -> None:
        if header(scope, b"if-match") is not None:
            bulk.check_condition(self._node.store(name), name, scope)

    def _check_origin(self, scope: Scope) -> None:
        """Refuse what pages of other sites ask for, which a browser lets speak to any port of its machine.

        They name themselves in ``Origin`` where they change something or read the answer, and in
        ``Sec-Fetch-Site`` also where they only have something loaded, a picture or a download.
        """
        origin = header(scope, b"origin")
        if origin is not None and origin.partition(b"://")[2] != header(scope, b"host"):
            raise Refused("denied", "pages of other origins are not answered")
        site = header(scope, b"sec-fetch-site")
        if site is not None and site not in _OWN_SITE and scope["path"] not in _OPEN:
            raise Refused("denied", "requests that pages of other sites cause are not answered")
        if not self._service.needs_token() and not self._node.is_own_host(header(scope, b"host")):
            raise Refused("denied", "without tokens only requests to localhost are answered")


_ALIVE = Answer(200, JSON, b'{"status":"ok"}')


async def _received(scope: Scope, receive: Receive, most: int, held: Any) -> Receive:
    """Read the body, up to its cap, before anybody parses it: what hands it on."""
    plain = [pair for pair in scope["headers"] if pair[0] != b"content-encoding"]
    if scope["method"] in _SAFE:  # it means nothing there, however it is packed
        scope["headers"] = plain
    body = await bodies.read(scope, receive, most, held)
    scope["headers"] = plain
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def handed() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return handed


async def _refuse(send: Marked, request: str, code: str, text: str, extra: dict[str, object]) -> None:
    if not send.begun:
        await problem(code, text, request=request, **extra).send(send)


def _take_for_json(scope: Scope) -> None:
    """Read what `curl -d` calls a form, and what has no type, as JSON: no request is a form."""
    form, named = b"application/x-www-form-urlencoded", header(scope, b"content-type")
    if named is None or named == form:
        others = [pair for pair in scope["headers"] if pair[0] != b"content-type"]
        scope["headers"] = [*others, (b"content-type", JSON)]


def _taken_apart(path: str) -> tuple[str | None, str]:
    """Return the filter's name and the word after it.

    >>> _taken_apart("/v1/filters/a:b/add"), _taken_apart("/v1/filters"), _taken_apart("/v1/filters/a/b/c")
    (('a:b', 'add'), (None, ''), ('a', 'b/c'))
    """
    if not path.startswith(_FILTERS):
        return None, ""
    name, _, action = path[len(_FILTERS) :].partition("/")
    return name or None, action


def _scope_of(method: str, path: str, action: str) -> int:
    if path.startswith(_ADMIN) or action in _ADMIN_ACTIONS:
        return access.ADMIN
    return access.READ if method in _SAFE or action in _READ_ACTIONS else access.WRITE
