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
    from fullbloom.service.http.server import GuardedProtocol

#: Seconds until the next attempt after the system refused to accept a connection.
_RETRY = 0.1


class Handshake:
    """A stranger whose handshake is in progress."""

    def __init__(
        self, one: socket.socket, protocol: GuardedProtocol, context: ssl.SSLContext, seconds: float
    ) -> None:
        """Begin the handshake, which may take so many seconds."""
        self._socket, self._protocol, self._context, self._seconds = one, protocol, context, seconds
        self._task = asyncio.get_running_loop().create_task(self._run())

    def cut(self) -> None:
        """Close at once."""
        self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: self._protocol,
                self._socket,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=self._seconds,
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            self._socket.close()
        finally:
            self._protocol.end_handshake()


class TlsListener:
    """Accepts connections, and closes the longest idle ones at the limit; what uvicorn needs of a server."""

    def __init__(
        self,
        listener: socket.socket,
        open_connections: Connections,
        make_protocol: Callable[[], GuardedProtocol],
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
            protocol = self._make_protocol()
            protocol.handshake = Handshake(one, protocol, self._context, self._seconds)
            self._open.add(protocol.handshake)
