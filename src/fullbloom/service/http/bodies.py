"""Bodies of requests: received and unpacked within a limit and within the service's memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fullbloom.service.http.unpacking import join, too_large, unpack

if TYPE_CHECKING:
    from fullbloom.service.http.request import Request

#: A body up to this size takes no bytes of the budget: as many requests as may be active hold little.
SMALL = 1 << 16
#: A gzip body up to this size is unpacked on the event loop: it becomes 4 MiB at most, which takes some ms.
_SMALL_GZIP = 1 << 12


class Disconnected(Exception):
    """The client closed the connection."""


async def read(request: Request, max_bytes: int, *, is_packed: bool = True) -> bytes:
    """Return the body, unpacked; ``Refused`` beyond ``max_bytes``, whether packed or not.

    The request's budget grows by what the body takes; beyond the service's memory that is a ``Fault``,
    answered with 503.
    """
    length = request.headers.get(b"content-length")
    if length is not None and int(length) > max_bytes:
        raise too_large(max_bytes)
    body = await _receive(request, max_bytes)
    encoding = request.headers.get(b"content-encoding") if is_packed else None
    if encoding is None or encoding == b"identity":
        return body
    encoding = encoding.lower()
    if encoding == b"gzip" and len(body) <= _SMALL_GZIP:
        return unpack(encoding, body, max_bytes, request.budget)
    return await asyncio.to_thread(unpack, encoding, body, max_bytes, request.budget)


async def _receive(request: Request, max_bytes: int) -> bytes:
    message = await request.receive()
    if message["type"] != "http.request":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body
    parts, length = [body], len(body)
    while message.get("more_body"):
        message = await request.receive()
        if message["type"] != "http.request":
            raise Disconnected
        part = message.get("body", b"")
        length += len(part)
        if length > max_bytes:
            raise too_large(max_bytes)
        request.budget.grow(len(part))
        parts.append(part)
    return join(parts, length, request.budget)
