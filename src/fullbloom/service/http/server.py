"""Connections of the HTTP port: caps and deadlines that the server itself has none for."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fullbloom.service.http.wire import App
    from fullbloom.service.settings import Settings

#: Most bytes of a request's first line and headers.
_HEAD = 1 << 16
#: Seconds that a connection may idle between two requests.
_IDLE = 75
_DRAIN = 10
#: Bytes of an answer beyond which its next piece waits for the client.
_UNREAD = 1 << 14


class _Ending:
    """A transport to which something may be written between its end and its telling of it."""

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


class Guarded(HttpToolsProtocol):
    """A connection, closed when a request takes too long to arrive or an answer too long to be taken."""

    #: When the request that is arriving began; None between requests.
    begun: float | None = None
    #: Bytes of its head so far.
    head = 0
    #: Since when the client has not taken what was written.
    stuck: float | None = None

    def connection_made(self, transport: Any) -> None:
        """A client that says nothing has as long as one that says something slowly."""
        super().connection_made(_Ending(transport))  # type: ignore[arg-type]
        # A client that takes nothing leaves little in memory once its answer is written.
        transport.set_write_buffer_limits(high=_UNREAD)
        self.begun = self.loop.time()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self.cut()  # idle ones count: each has a descriptor, and at the limit requests get 503

    def data_received(self, data: bytes) -> None:
        """Note when a request began; one whose head does not end is cut off."""
        if self.begun is None:
            self.begun = self.loop.time()
        self.head += len(data)
        super().data_received(data)
        if self.head > _HEAD:
            self.cut()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong; an answer that is on its way is not wanted any more."""
        self._let_go()
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def cut(self) -> None:
        """Close at once."""
        self._let_go()
        self.transport.abort()

    def cut_late(self, late: float) -> None:
        """Close if what is waited for began before ``late``."""
        if any(since is not None and since < late for since in (self.begun, self.stuck)):
            self.cut()

    def _let_go(self) -> None:
        # The transport tells of its end later; until then an answer would come behind what was said last.
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def on_headers_complete(self) -> None:
        """The head is there."""
        # Far below any cap: what follows is the body, which is held against its own.
        self.head = -(1 << 62)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there."""
        self.begun, self.head = None, 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not take its answer."""
        self.stuck = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does."""
        self.stuck = None
        super().resume_writing()


class Server(uvicorn.Server):
    """Uvicorn, with deadlines, and without its own idea of signals."""

    def __init__(self, app: App, settings: Settings, ready: Callable[[], None]) -> None:
        """Set it up; ``ready`` is called once it listens."""
        self._receive, self._ready = settings.limits.receive, ready
        super().__init__(
            uvicorn.Config(
                app,
                http=Guarded,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                limit_concurrency=settings.limits.connections,
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
        """Listen, and say so. A TLS handshake has as long as a request, whether it has begun or not."""
        loop, config = asyncio.get_running_loop(), self.config

        def protocol() -> asyncio.Protocol:
            return Guarded(config=config, server_state=self.server_state, app_state={})

        named: dict[str, Any] = {"ssl": config.ssl, "backlog": config.backlog}
        if config.ssl is not None:
            named |= {"ssl_handshake_timeout": self._receive, "ssl_shutdown_timeout": self._receive}
        self.servers = [await loop.create_server(protocol, sock=one, **named) for one in sockets]
        self.started = True
        self._ready()

    async def watch(self) -> None:
        """Close connections that are late; goes on until cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._receive / 4))
            late = asyncio.get_running_loop().time() - self._receive
            for connection in list(self.server_state.connections):
                if isinstance(connection, Guarded):
                    connection.cut_late(late)
