"""Connections of the HTTP port: limits and deadlines that uvicorn lacks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fullbloom.service.http.connections import Connections
from fullbloom.service.http.tls import Handshake, TlsListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fullbloom.service.http.asgi import App
    from fullbloom.service.settings import Settings

#: Most bytes of a request's first line and headers.
_HEAD = 1 << 16
#: Seconds that a connection may idle between two requests.
_IDLE = 75
_DRAIN = 10
#: Bytes of a response above which its next chunk waits for the client.
_UNREAD = 1 << 14


class _ClosingTransport:
    """A transport that ignores writes after it was closed and before it reports that."""

    __slots__ = ("_transport",)

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        try:
            self._transport.write(data)
        except RuntimeError:
            if not self._transport.is_closing():
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class GuardedProtocol(HttpToolsProtocol):
    """A connection, closed if a request takes too long to arrive or its response too long to be read."""

    #: When the current request began to arrive; None between requests.
    begun: float | None = None
    #: Bytes of its head so far.
    head = 0
    #: Since when the client has not read what was written; None if it reads.
    stuck: float | None = None
    #: Whether a request of this connection was authorized, and whether by a token.
    is_known = has_token = False

    def __init__(
        self, open_connections: Connections, handshake: Handshake | None = None, **named: Any
    ) -> None:
        """Create the protocol of one connection of the port.

        ``handshake`` precedes an encrypted connection, and has its place until the connection is made.
        """
        super().__init__(**named, app_state={"connection": self})
        self._open, self._handshake = open_connections, handshake

    def connection_made(self, transport: Any) -> None:
        """Start the deadline: a silent client has as long as a slow one."""
        super().connection_made(_ClosingTransport(transport))  # type: ignore[arg-type]
        # The unread response of a client that reads nothing takes little memory.
        transport.set_write_buffer_limits(high=_UNREAD)
        self.begun = self.loop.time()
        if self._handshake is not None:
            self._handshake.end()
            self._handshake = None
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the place to another connection."""
        self._open.remove(self)
        super().connection_lost(exc)
        # The last scope refers to the connection: the cycle would wait for the garbage collector.
        scope: Any = self.scope  # None before the first request
        if scope is not None:
            scope["state"].clear()
        self.app_state.clear()

    def data_received(self, data: bytes) -> None:
        """Record when a request began; close the connection if its head is too large."""
        if self.begun is None:
            self.begun = self.loop.time()
        if not self.has_token:
            self._open.note_activity(self)
        self.head += len(data)
        super().data_received(data)
        if self.head > _HEAD:
            self.abort()

    def admit(self, *, has_token: bool) -> None:
        """Record that the current request is authorized: so the client is known."""
        self.is_known, self.has_token = True, has_token
        self._protect()

    def _protect(self) -> None:
        """Keep the connection during an authorized request; without a token, once all of it has arrived."""
        if self.is_known and (self.has_token or self.begun is None):
            self._open.protect(self)

    def _wait(self) -> None:
        """Let a client without a token make room for others while the service waits for it."""
        if self.is_known and not self.has_token:
            self._open.wait_for(self)

    def send_400_response(self, msg: str) -> None:
        """Report a malformed request, and drop a response that is in progress."""
        self._end_cycle()
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def abort(self) -> None:
        """Close at once."""
        self._end_cycle()
        self.transport.abort()

    def abort_late(self, late: float) -> None:
        """Close if the current request or an unread response began before ``late``."""
        if any(since is not None and since < late for since in (self.begun, self.stuck)):
            self.abort()

    def _end_cycle(self) -> None:
        # The transport reports its end later; until then a response would follow the last bytes sent.
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        # Far below the limit: the body that follows has its own.
        self.head = -(1 << 62)
        self.has_token = False  # until this request is authorized, too
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        self.begun, self.head = None, 0
        self._protect()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if not self.pipeline:
            self._wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read its response."""
        self.stuck = self.loop.time()
        self._wait()
        super().pause_writing()

    def resume_writing(self) -> None:
        """End that deadline."""
        self.stuck = None
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._protect()
        super().resume_writing()


class Server(uvicorn.Server):
    """Uvicorn with deadlines, and without its signal handlers."""

    def __init__(self, app: App, settings: Settings, ready: Callable[[], None]) -> None:
        """Configure uvicorn; ``ready`` is called once it listens."""
        self._receive, self._ready = settings.limits.receive, ready
        self._open = Connections(settings.limits.connections)
        super().__init__(
            uvicorn.Config(
                app,
                http=GuardedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                backlog=1024,
                timeout_keep_alive=_IDLE,
                timeout_graceful_shutdown=_DRAIN,
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `fullbloom.service.running`."""
        yield

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and call ``ready``. A TLS handshake has the same deadline as a request."""
        loop, config = asyncio.get_running_loop(), self.config

        def protocol(handshake: Handshake | None = None) -> GuardedProtocol:
            return GuardedProtocol(self._open, handshake, config=config, server_state=self.server_state)

        servers: list[Any] = []
        self.servers = servers
        for one in sockets:
            if config.ssl is None:
                servers.append(await loop.create_server(protocol, sock=one, backlog=config.backlog))
            else:
                servers.append(TlsListener(one, self._open, protocol, config.ssl, self._receive))
        self.started = True
        self._ready()

    async def watch(self) -> None:
        """Close connections past their deadline, until cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._receive / 4))
            late = asyncio.get_running_loop().time() - self._receive
            for connection in list(self.server_state.connections):
                if isinstance(connection, GuardedProtocol):
                    connection.abort_late(late)
