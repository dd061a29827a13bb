"""Requests that add, look up, remove or count keys: they do not pass through FastAPI."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused
from fullbloom.service.http import bodies, keys, results
from fullbloom.service.http.conditions import check_if_match

if TYPE_CHECKING:
    from fullbloom.service.http.asgi import Response
    from fullbloom.service.http.conditions import Versions
    from fullbloom.service.http.request import Request
    from fullbloom.service.http.waiters import Waiters
    from fullbloom.service.node import Node

#: A lookup of fewer bytes runs on the event loop: it takes less time than a hand-over to a thread.
_SMALL = 1 << 16
_CHANGES = frozenset({"add", "remove"})
_ACTIONS = frozenset({*results.WORDS, *results.NUMBERS})


def is_bulk(request: Request) -> bool:
    """Return whether a request is about keys of a filter."""
    return request.name is not None and request.action in _ACTIONS


class BulkHandler:
    """Responds to requests about keys."""

    def __init__(self, node: Node, waiters: Waiters) -> None:
        """Serve the filters of a node."""
        self._node, self._limits, self._waiters = node, node.settings.limits, waiters

    async def respond(self, request: Request) -> Response:
        """Execute the request's action with the keys of its body."""
        if request.method != "POST":
            raise Refused("method", f"{request.action} needs POST", allow="POST")
        name = str(request.name)
        store = self._node.find_known_backend(name)
        if store is None:
            store = await asyncio.to_thread(self._node.find_backend, name)
        body = await bodies.read(request, self._limits.request_bytes)
        if request.action not in _CHANGES:
            return await self._execute(request, store, body)
        return await self._execute(request, store, body, check_if_match(store, request))

    async def _execute(
        self, request: Request, store: Any, body: bytes, versions: Versions = None
    ) -> Response:
        """Execute the action; it changes the filter only in one of the versions, None: in any."""
        batch = await keys.parse(request, store, body, self._limits)
        format_ = results.choose_format(request, batch)
        work = partial(getattr(store, request.action), request.name, batch.form, batch.body, of=batch.of)
        if request.action in results.NUMBERS:
            return results.encode_numbers(request.action, format_, await asyncio.to_thread(work))
        work = partial(work, pack=format_ in results.PACKED)
        if versions is not None:
            work = partial(work, versions=versions)
        found: Any = None
        if request.action == "check":
            found = work(wait=False) if len(batch.body) < _SMALL else None
        elif store is self._node.service:
            found = await self._waiters.change(str(request.name), partial(work, wait=False))
        if found is None:
            found = await asyncio.to_thread(work)
        return results.encode_flags(request.action, format_, found)
