"""A proxy in front of a service that answers some requests itself: with errors, garbage or nothing."""

from __future__ import annotations

import contextlib
import math
import socket
import socketserver
import struct
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    #: Answers a request on its connection, which is closed afterwards.
    Answer = Callable[[socket.socket], None]


def send(data: bytes) -> Answer:
    """Send these bytes, whatever they are."""
    return lambda connection: connection.sendall(data)


def respond(status: str, body: bytes = b"", *headers: str) -> Answer:
    """Send a well-formed response of HTTP."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return send("\r\n".join([*lines, "", ""]).encode() + body)


def reset(connection: socket.socket) -> None:
    """Send nothing and reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_head(connection: socket.socket) -> bytes:
    """Return the lines before the body, and the bytes after them; nothing if the client disconnected."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(1 << 16)
        if not more:
            return b""
        head += more
    return head


class _Handler(socketserver.BaseRequestHandler):
    """One request a connection."""

    server: FaultyProxy

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            head = read_head(self.request)
            path = head.split(b" ", 2)[1].decode() if head else ""
            fault = self.server.fault
            if fault is not None and path.startswith(fault[0]):
                self.server.faults.append(time.monotonic())
                fault[1](self.request)
            elif head:
                self.forward(head)

    def forward(self, head: bytes) -> None:
        with socket.create_connection(self.server.target, timeout=60) as there:
            lines, _, begun = head.partition(b"\r\n\r\n")
            kept = [line for line in lines.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            there.sendall(b"\r\n".join([*kept, b"connection: close", b"", begun]))
            length = [int(line[15:]) for line in kept if line.lower().startswith(b"content-length:")]
            left = (length[0] if length else 0) - len(begun)
            while left > 0 and (more := self.request.recv(1 << 16)):
                there.sendall(more)
                left -= len(more)
            passed = 0
            while more := there.recv(1 << 16):
                self.request.sendall(more)
                passed += len(more)
                if passed >= self.server.most:
                    # Now and then a part: a client gives up where nothing comes.
                    self.server.go_on.wait(5)


class FaultyProxy(socketserver.ThreadingTCPServer):
    """Passes every request on, except those that a fault answers."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target: str) -> None:
        """Stand in front of the service at this address."""
        super().__init__(("127.0.0.1", 0), _Handler)
        host, _, port = target.removeprefix("http://").rpartition(":")
        self.target = (host, int(port))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        #: The beginning of the paths that are answered here, and how; None while everything is passed on.
        self.fault: tuple[str, Answer] | None = None
        #: Bytes of a response that are passed on at once; each part after them waits until all go on.
        self.most = math.inf
        self.go_on = threading.Event()
        #: When each of those requests came.
        self.faults: list[float] = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @contextlib.contextmanager
    def answering(self, answer: Answer, path: str = "/v1/filters") -> Iterator[None]:
        """Answer requests for these paths until the end of the block."""
        self.fault = path, answer
        try:
            yield
        finally:
            self.fault = None

    @contextlib.contextmanager
    def pausing_after(self, most: int) -> Iterator[None]:
        """Hold back what is beyond so many bytes of a response until the end of the block."""
        self.go_on.clear()
        self.most = most
        try:
            yield
        finally:
            self.most = math.inf
            self.go_on.set()

    def stop(self) -> None:
        """Close the port."""
        self.shutdown()
        self.server_close()
