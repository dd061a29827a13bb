"""The handshake of two elements, in which each proves that it knows the secret of all."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import selectors
import struct
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.errors import PeerError

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection
    from types import TracebackType
    from typing import Self

__all__ = ["Acceptor", "Identity", "read_exactly", "time_left"]

#: The greeting: magic with a version, rank, size and a nonce; then the authenticator of both greetings.
_GREETING = struct.Struct("!8sII16s")
_MAGIC = b"FBLOOM\x00\x01"
_NONCE_BYTES = 16
_DIGEST = "sha256"
_DIGEST_BYTES = 32
#: Seconds that an accepted connection may take for its part of the handshake.
_GREETING_SECONDS = 2.0
#: Connections whose handshakes go on at once; the oldest of more is closed.
_MOST_PENDING = 64
_PIECE = 1 << 20

#: Yields the number of bytes that it waits for and takes them; returns the rank, None for a stranger.
_Steps = Generator[int, bytes, "int | None"]


class Identity(NamedTuple):
    """What an element proves, and expects of its peers."""

    rank: int
    size: int
    secret: bytes

    def greet_server(self, connection: socket.socket, to: int, deadline: float) -> None:
        """Do the handshake with the element of rank ``to``, to which this one has connected.

        Raises ``PeerError`` if it is another one, ``OSError`` or ``EOFError`` if the connection fails.
        """
        own = self._pack()
        connection.sendall(own)
        theirs = read_exactly(connection, _GREETING.size, deadline)
        proof = read_exactly(connection, _DIGEST_BYTES, deadline)
        magic, rank, size, _ = _GREETING.unpack(theirs)
        if not hmac.compare_digest(proof, self._prove(b"server", own, theirs)):
            raise PeerError(to, "has another secret, or is not an element")
        if (magic, rank, size) != (_MAGIC, to, self.size):
            raise PeerError(to, f"answers as rank {rank} of {size} elements, expected {to} of {self.size}")
        connection.sendall(self._prove(b"client", own, theirs))

    def greet_client(self, connection: socket.socket) -> _Steps:
        """Do the handshake with whoever has connected, in steps; return the rank, None for a stranger."""
        theirs = yield _GREETING.size
        magic, rank, size, _ = _GREETING.unpack(theirs)
        if magic != _MAGIC:
            return None
        own = self._pack()
        # 64 bytes, the first on their connection, so this does not wait.
        connection.sendall(own + self._prove(b"server", theirs, own))
        proof = yield _DIGEST_BYTES
        is_known = hmac.compare_digest(proof, self._prove(b"client", theirs, own))
        return int(rank) if is_known and size == self.size else None

    def _pack(self) -> bytes:
        return _GREETING.pack(_MAGIC, self.rank, self.size, secrets.token_bytes(_NONCE_BYTES))

    def _prove(self, role: bytes, client: bytes, server: bytes) -> bytes:
        return hmac.digest(self.secret, role + client + server, _DIGEST)


class _Pending:
    """A connection whose handshake goes on."""

    def __init__(self, connection: socket.socket, steps: _Steps) -> None:
        connection.setblocking(False)
        self.connection, self._steps = connection, steps
        self._missing, self._pieces = next(steps), bytearray()
        self.until = time.monotonic() + _GREETING_SECONDS

    def read(self) -> None:
        """Read what has arrived.

        Raises ``StopIteration`` with the result at its end, ``OSError`` or ``EOFError`` if the connection
        fails.
        """
        # No byte behind the handshake: messages follow.
        piece = self.connection.recv(self._missing - len(self._pieces))
        if not piece:
            raise EOFError
        self._pieces += piece
        if len(self._pieces) == self._missing:
            data, self._pieces = bytes(self._pieces), bytearray()
            self._missing = self._steps.send(data)


class Acceptor:
    """Accepts elements on a listening socket, all handshakes at once, so that strangers hold up nobody.

    As a context manager, it closes the connections whose handshakes have not ended.
    """

    def __init__(self, server: socket.socket, identity: Identity) -> None:
        self._server, self._identity = server, identity
        self._selector = selectors.DefaultSelector()
        #: Connections by their file descriptors, the oldest first.
        self._pending: dict[int, _Pending] = {}
        #: Connections that proved to be no expected element.
        self.num_refused = 0

    def __enter__(self) -> Self:
        """Listen."""
        self._server.setblocking(False)
        self._selector.register(self._server, selectors.EVENT_READ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close what is not connected yet."""
        for pending in self._pending.values():
            pending.connection.close()
        self._selector.close()

    def accept(self, expected: Collection[int], deadline: float) -> tuple[int, socket.socket]:
        """Return the next of the ``expected`` elements to connect, by rank, and its connection.

        Raises ``TimeoutError`` after the deadline.
        """
        while time.monotonic() < deadline:
            until = min([deadline, *(pending.until for pending in self._pending.values())])
            for key, _ in self._selector.select(time_left(until)):
                if key.fd == self._server.fileno():
                    self._admit()
                elif found := self._advance(key.fd, expected):
                    return found
            self._refuse_late()
        raise TimeoutError

    def _admit(self) -> None:
        # Anything wrong here may be a stranger's doing, so it must not end the exchange.
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            if len(self._pending) == _MOST_PENDING:
                self._refuse(next(iter(self._pending)))
            self._selector.register(connection, selectors.EVENT_READ)
            self._pending[connection.fileno()] = _Pending(connection, self._identity.greet_client(connection))

    def _advance(self, number: int, expected: Collection[int]) -> tuple[int, socket.socket] | None:
        """Continue a handshake; return the element if it has ended with an expected one."""
        pending = self._pending.get(number)
        if pending is None:  # refused a moment ago
            return None
        try:
            pending.read()
        except (BlockingIOError, InterruptedError):
            return None
        except StopIteration as end:
            if end.value in expected:
                self._selector.unregister(pending.connection)
                del self._pending[number]
                return end.value, pending.connection
            self._refuse(number)
        except (OSError, EOFError):
            self._refuse(number)
        return None

    def _refuse_late(self) -> None:
        now = time.monotonic()
        for number in [number for number, pending in self._pending.items() if pending.until <= now]:
            self._refuse(number)

    def _refuse(self, number: int) -> None:
        pending = self._pending.pop(number)
        self._selector.unregister(pending.connection)
        pending.connection.close()
        self.num_refused += 1


def time_left(deadline: float) -> float:
    """Return the seconds until a deadline, more than 0 because sockets take 0 for not waiting."""
    return max(deadline - time.monotonic(), 1e-3)


def read_exactly(connection: socket.socket, length: int, deadline: float) -> bytes:
    """Return ``length`` bytes; raise ``TimeoutError`` after the deadline, ``EOFError`` at the end of data."""
    pieces, missing = bytearray(), length
    while missing:
        if time.monotonic() >= deadline:
            raise TimeoutError
        connection.settimeout(time_left(deadline))
        # The buffer grows with the data received, not with the length that a peer states.
        piece = connection.recv(min(missing, _PIECE))
        if not piece:
            raise EOFError
        pieces += piece
        missing -= len(piece)
    return bytes(pieces)
