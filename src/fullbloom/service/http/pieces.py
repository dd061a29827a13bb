"""Files of filters, sent in pieces."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from fastapi import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fullbloom.service.http.wire import Receive, Scope, Send

#: Bytes that are read at a time; a request holds two of them.
PIECE = 1 << 19


class Pieces(Response):
    """An answer with the file of a filter, which is read as the client takes it, and closed at the end."""

    def __init__(self, file: Any, *, headers: Mapping[str, str], media_type: str) -> None:
        """Take an opened dump."""
        super().__init__(headers={**headers, "content-length": str(file.nbytes)}, media_type=media_type)
        self._file = file

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(start)
            for at in range(0, self._file.nbytes, PIECE):
                if gone.done():
                    return
                piece = await asyncio.to_thread(self._file.read, at, PIECE)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.to_thread(self._file.close)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
