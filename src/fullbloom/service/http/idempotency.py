"""Requests with an ``Idempotency-Key``: a repeated request gets the response of the first."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fullbloom.service.http.asgi import Response

#: Most responses in the cache, their TTL in seconds, and most bytes of one and of all bodies.
_MAX_ENTRIES, _TTL, _MAX_BODY, _MAX_BYTES = 10_000, 600.0, 1 << 16, 16 << 20
#: Most bytes of an Idempotency-Key.
_MAX_KEY = 255
#: Bytes of a body above which its digest is computed in a thread.
_SMALL = 1 << 16
#: Token, path and form of the response, and idempotency key.
Key = tuple[int, str, bytes]


async def _digest(body: bytes) -> bytes:
    if len(body) > _SMALL:
        return await asyncio.to_thread(_digest_now, body)
    return _digest_now(body)


def _digest_now(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


class IdempotencyCache:
    """Responses keyed by (token, endpoint, idempotency key)."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: OrderedDict[Key, tuple[float, bytes, Response | None]] = OrderedDict()
        self._nbytes = 0

    async def run(self, key: Key, body: bytes, execute: Callable[[], Awaitable[Response]]) -> Response:
        """Execute the first request of a key; return its response to those that repeat it."""
        known = self._begin(key, await _digest(body))
        if known is not None:
            return known._replace(headers=(*known.headers, (b"idempotent-replayed", b"true")))
        try:
            response = await execute()
        except BaseException:
            self._remove(key)
            raise
        self._store(key, response)
        return response

    def _begin(self, key: Key, digest: bytes) -> Response | None:
        """Return the response of the first request; None to the first one itself."""
        if not 0 < len(key[2]) <= _MAX_KEY:
            raise Refused("invalid", f"an Idempotency-Key has 1 to {_MAX_KEY} characters")
        now = time.monotonic()
        while self._entries and next(iter(self._entries.values()))[0] < now - _TTL:
            self._drop_oldest()
        found = self._entries.get(key)
        if found is None:
            self._entries[key] = (now, digest, None)
            if len(self._entries) > _MAX_ENTRIES:
                self._drop_oldest()
            return None
        if found[1] != digest:
            raise Refused("unprocessable", "the Idempotency-Key was used with another body; draw a new one")
        if found[2] is None:
            raise Refused("busy", "the request with this Idempotency-Key is still at work; ask again")
        return found[2]

    def _store(self, key: Key, response: Response) -> None:
        found = self._entries.get(key)
        if found is None or found[2] is not None or len(response.body) > _MAX_BODY:
            self._remove(key)
            return
        self._entries[key] = (found[0], found[1], response)
        self._nbytes += len(response.body)
        while self._nbytes > _MAX_BYTES:
            self._drop_oldest()

    def _remove(self, key: Key) -> None:
        self._release(self._entries.pop(key, None))

    def _drop_oldest(self) -> None:
        self._release(self._entries.popitem(last=False)[1])

    def _release(self, entry: tuple[float, bytes, Response | None] | None) -> None:
        if entry is not None and entry[2] is not None:
            self._nbytes -= len(entry[2].body)
