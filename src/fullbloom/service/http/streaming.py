"""Responses with the file of a filter, sent in chunks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from fastapi import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fullbloom.service.http.asgi import Receive, Scope, Send

#: Bytes that are read at a time; a request holds two chunks.
CHUNK = 1 << 19


class DumpResponse(Response):
    """A response with a filter's file, which is read as the client takes it, and closed at the end."""

    def __init__(self, file: Any, *, headers: Mapping[str, str], media_type: str) -> None:
        """Respond with an open dump."""
        super().__init__(headers={**headers, "content-length": str(file.nbytes)}, media_type=media_type)
        self._file = file

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; stop as soon as the client disconnects."""
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(start)
            for at in range(0, self._file.nbytes, CHUNK):
                if disconnect.done():
                    return
                chunk = await asyncio.to_thread(self._file.read, at, CHUNK)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            disconnect.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.to_thread(self._file.close)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
