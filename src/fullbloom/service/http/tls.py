"""Connections of the HTTPS port: those whose handshake is not complete yet have places, too."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from fullbloom.service.http.connections import Connections

#: Seconds until the next attempt after the system refused to accept a connection.
_RETRY = 0.1


class Handshake:
    """A stranger whose handshake is in progress."""

    def __init__(
        self,
        one: socket.socket,
        open_connections: Connections,
        make_protocol: Callable[[Handshake], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        seconds: float,
    ) -> None:
        """Begin the handshake, which may take so many seconds."""
        self._socket, self._open, self._make_protocol = one, open_connections, make_protocol
        self._context, self._seconds = context, seconds
        self._task = asyncio.get_running_loop().create_task(self._run())

    def abort(self) -> None:
        """Close at once."""
        self._task.cancel()

    def end(self) -> None:
        """Leave the place to the encrypted connection."""
        self._open.remove(self)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: self._make_protocol(self),
                self._socket,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=self._seconds,
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            self._socket.close()
        finally:
            self.end()


class TlsListener:
    """Accepts connections, and closes the longest idle ones at the limit; what uvicorn needs of a server."""

    def __init__(
        self,
        listener: socket.socket,
        open_connections: Connections,
        make_protocol: Callable[[Handshake], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        seconds: float,
    ) -> None:
        """Accept from now on; a handshake may take so many seconds."""
        self._listener, self._open, self._make_protocol = listener, open_connections, make_protocol
        self._context, self._seconds = context, seconds
        listener.setblocking(False)
        self._task = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more."""
        self._task.cancel()

    async def wait_closed(self) -> None:
        """Wait until it accepts no more."""
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                one, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_RETRY)
                continue
            self._open.add(Handshake(one, self._open, self._make_protocol, self._context, self._seconds))
