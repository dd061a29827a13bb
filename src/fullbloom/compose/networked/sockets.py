"""Processing elements that are processes, on one machine or several, connected by TCP."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.errors import ParameterError, ParameterTypeError, PeerError

from .element import RANK_BYTES, Kind, MessageElement, check_message
from .handshake import Acceptor, Identity, read_exactly, time_left

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SocketElement"]

#: A frame: its kind and the length of its payload.
_FRAME = struct.Struct("!BQ")
_PIECE = 1 << 20
_MIN_SECRET = 16
#: Seconds that a failed element waits for its last frames to be read.
_LINGER_SECONDS = 2.0
#: Seconds between two attempts to reach a peer that does not listen yet.
_RETRY_SECONDS = 0.05
_DEFAULT_MAX_MESSAGE = 1 << 30


class _Peer(NamedTuple):
    """A connection: two handles, so that reading and writing have their own timeouts, and frames to write."""

    reader: socket.socket
    writer: socket.socket
    frames: queue.SimpleQueue[bytes | None]
    thread: threading.Thread
    #: Holds the error that ended the writing, if any.
    broken: list[str]


class SocketElement(MessageElement):
    """An element that reaches each of its peers over a TCP connection.

    rank: number of this element. addresses: (host, port) of each element, by rank; an element listens on its
    own address and connects to those of lower ranks. secret: at least 16 bytes, the same in all elements;
    each side of a connection proves that it knows them (HMAC-SHA256 over two nonces), so strangers are
    turned away, and delay nobody. Messages are neither encrypted nor authenticated after that: use a network
    that you trust. listener: a listening socket to use instead of creating one. timeout: seconds that the
    peers may take to connect, to send a whole message, or to read one. max_message: most bytes of a message.

    Construction returns when all connections exist. ``send`` leaves the message to a thread for each peer;
    ``receive`` reads it from the connection, so a peer takes no memory beyond the message that is due. Each
    element is for one thread. Raises ``PeerError`` with the rank of a peer that cannot be reached, dies,
    cuts a message short, sends nothing in time, or sends a frame that is too long or out of place, and for
    each later message of that peer; ``OSError`` if the own address cannot be used.

    A complete program is in docs/networked.md.
    """

    def __init__(
        self,
        rank: int,
        addresses: Sequence[tuple[str, int]],
        *,
        secret: bytes,
        listener: socket.socket | None = None,
        timeout: float = 30.0,
        max_message: int = _DEFAULT_MAX_MESSAGE,
    ) -> None:
        super().__init__(rank, len(addresses))
        if not isinstance(secret, bytes):
            raise ParameterTypeError(f"secret must be bytes, got {type(secret).__name__}")
        if len(secret) < _MIN_SECRET:
            raise ParameterError(f"secret must have at least {_MIN_SECRET} bytes, got {len(secret)}")
        if not timeout > 0:
            raise ParameterError(f"timeout must be greater than 0, got {timeout}")
        if max_message < 1:
            raise ParameterError(f"max_message must be at least 1, got {max_message}")
        self._identity = Identity(rank, self.size, secret)
        self._timeout, self._max_message = timeout, max_message
        self._peers: dict[int, _Peer] = {}
        self._unreadable: set[int] = set()
        deadline = time.monotonic() + timeout
        try:
            with listener or _listen(addresses[rank], self.size) as server:
                for lower in range(rank):
                    self._connect(lower, addresses[lower], deadline)
                self._accept(server, deadline)
        except BaseException:
            self._end(failed=True)
            raise

    def _connect(self, to: int, address: tuple[str, int], deadline: float) -> None:
        """Connect to an element of a lower rank; try again while it does not listen."""
        while True:
            try:
                connection = socket.create_connection(address, timeout=time_left(deadline))
            except OSError as error:
                if time.monotonic() + _RETRY_SECONDS >= deadline:
                    raise PeerError(to, f"cannot be reached: {error}") from error
                time.sleep(_RETRY_SECONDS)
                continue
            try:
                self._identity.greet_server(connection, to, deadline)
            except PeerError:  # before OSError, of which it is one
                connection.close()
                raise
            except (OSError, EOFError) as error:
                connection.close()
                reason = str(error) or (
                    "closed the connection" if isinstance(error, EOFError) else "timed out"
                )
                raise PeerError(to, f"did not complete the handshake: {reason}") from error
            self._register(to, connection)
            return

    def _accept(self, server: socket.socket, deadline: float) -> None:
        """Accept the elements of higher ranks; turn strangers away."""
        missing = set(range(self.rank + 1, self.size))
        with Acceptor(server, self._identity) as acceptor:
            while missing:
                try:
                    source, connection = acceptor.accept(missing, deadline)
                except TimeoutError:
                    others = acceptor.num_refused
                    reason = f"did not connect within {self._timeout:g} s"
                    reason += f"; {others} connections of strangers were refused" if others else ""
                    raise PeerError(min(missing), reason) from None
                missing.discard(source)
                self._register(source, connection)

    def _register(self, rank: int, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(self._timeout)
        writer = connection.dup()
        writer.settimeout(self._timeout)
        frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        broken: list[str] = []
        thread = threading.Thread(target=_write, args=(writer, frames, broken), daemon=True)
        thread.start()
        self._peers[rank] = _Peer(connection, writer, frames, thread, broken)

    def send(self, to: int, message: bytes) -> None:
        """Send ``message`` to the element of rank ``to``; returns before it has arrived.

        Raises ``ParameterError`` for a message of more than ``max_message`` bytes and for a rank that does
        not exist or is this element's own, ``PeerError`` if an earlier message could not be delivered.
        """
        payload = check_message(message)
        if len(payload) > self._max_message:
            raise ParameterError(
                f"a message must have at most {self._max_message} bytes, got {len(payload)}; "
                "send it in pieces or raise max_message in all elements"
            )
        super().send(to, payload)

    def _post(self, to: int, kind: Kind, payload: bytes) -> None:
        peer = self._peers.get(to)
        if peer is None:
            raise ValueError("the element is closed")
        if peer.broken:
            raise self._explain_loss(to, peer)
        peer.frames.put(_FRAME.pack(kind, len(payload)))
        if payload:
            peer.frames.put(payload)

    def _explain_loss(self, source: int, peer: _Peer) -> PeerError:
        """Return the failure that a lost peer reported last, if that is the next frame, or else the loss."""
        report = _FRAME.pack(Kind.FAILURE, RANK_BYTES)
        with contextlib.suppress(OSError):  # includes PeerError
            # A peer that merely does not read may be silent, and a send waits for nobody.
            peer.reader.settimeout(0)
            # Messages that came before it stay unread: they may still be received.
            if peer.reader.recv(len(report), socket.MSG_PEEK) == report:
                return self._describe_failure(source, self._take(source)[1])
        return PeerError(source, f"cannot be reached any more: {peer.broken[0]}")

    def _take(self, source: int) -> tuple[Kind, bytes]:
        peer = self._peers.get(source)
        if peer is None:
            raise ValueError("the element is closed")
        if source in self._unreadable:
            # What follows a part of a frame could be anything, such as a forged frame in a message.
            raise PeerError(source, "sent an incomplete or invalid message before")
        try:
            return self._read_frame(source, peer)
        except PeerError:
            self._unreadable.add(source)
            raise

    def _read_frame(self, source: int, peer: _Peer) -> tuple[Kind, bytes]:
        # One deadline for the whole frame: a peer that sends a byte now and then cannot stretch it.
        deadline = time.monotonic() + self._timeout
        part = "before a message"
        try:
            number, length = _FRAME.unpack(read_exactly(peer.reader, _FRAME.size, deadline))
            kind = self._check_frame(source, number, length)
            part = f"in the middle of a message of {length} bytes"
            return kind, read_exactly(peer.reader, length, deadline)
        except PeerError:  # before OSError, of which it is one
            raise
        except EOFError:
            raise PeerError(source, f"closed the connection {part}") from None
        except TimeoutError:
            raise PeerError(source, f"sent nothing for {self._timeout:g} s, {part}") from None
        except OSError as error:
            raise PeerError(source, f"lost the connection {part}: {error}") from error

    def _check_frame(self, source: int, number: int, length: int) -> Kind:
        """Return the kind of a frame that may be read; raise ``PeerError`` for any other."""
        longest = {Kind.MESSAGE: self._max_message, Kind.BARRIER: 0, Kind.FAILURE: 4}
        if number not in longest:
            raise PeerError(source, f"sent a frame of the unknown kind {number}")
        kind = Kind(number)
        if length > longest[kind]:
            raise PeerError(
                source,
                f"announced a {kind.name.lower()} of {length} bytes, at most {longest[kind]} are allowed",
            )
        return kind

    def _end(self, *, failed: bool) -> None:
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.frames.put(None)
        deadline = time.monotonic() + (_LINGER_SECONDS if failed else self._timeout)
        for peer in peers.values():
            peer.thread.join(time_left(deadline))
        if failed:
            _drain([peer.reader for peer in peers.values()], deadline)
        for peer in peers.values():
            peer.reader.close()
            peer.writer.close()


def _listen(address: tuple[str, int], backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    return socket.create_server(address, family=family, backlog=backlog)


def _write(connection: socket.socket, frames: queue.SimpleQueue[bytes | None], broken: list[str]) -> None:
    """Write frames until None arrives; after an error, discard the rest."""
    while (frame := frames.get()) is not None:
        if broken:
            continue
        try:
            connection.sendall(frame)
        except OSError as error:
            broken.append(str(error) or type(error).__name__)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


def _drain(readers: list[socket.socket], deadline: float) -> None:
    """Read and discard what arrives until the peers close: unread data would reset the connection.

    A reset would also discard frames that the peer has not read yet, such as the report of the failure.
    """
    for reader in readers:
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline:
                reader.settimeout(time_left(deadline))
                if not reader.recv(_PIECE):
                    break
