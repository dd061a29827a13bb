"""A processing element: one of ``size`` workers that exchange messages.

`ProcessingElement` is the interface that the algorithms of this package need; MPI communicators and the like
fit behind it in a few lines. `MessageElement` implements everything except the transport, and
`CountingElement` counts what passes through another element.
"""

from __future__ import annotations

import abc
import contextlib
import enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fullbloom.errors import ParameterError, ParameterTypeError, PeerError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["CountingElement", "MessageElement", "ProcessingElement"]


@runtime_checkable
class ProcessingElement(Protocol):
    """One of ``size`` elements, numbered by rank from 0, that send messages to each other.

    Messages from one element to another arrive complete and in order. ``send`` does not wait for the
    receiver, so all elements may send first and receive afterwards. ``receive`` and ``barrier`` raise
    ``PeerError`` with the rank of a peer that fails, and never wait forever.
    """

    @property
    def rank(self) -> int:
        """Number of this element, from 0."""

    @property
    def size(self) -> int:
        """Number of all elements."""

    def send(self, to: int, message: bytes) -> None:
        """Send ``message`` to the element of rank ``to``."""

    def receive(self, source: int) -> bytes:
        """Return the next message from the element of rank ``source``."""

    def barrier(self) -> None:
        """Wait until every element has called this method."""


class Kind(enum.IntEnum):
    """What a frame between two elements contains."""

    MESSAGE = 1
    BARRIER = 2
    #: The sender stopped; four bytes hold the rank of the element that failed first.
    FAILURE = 3


RANK_BYTES = 4


def check_message(message: object) -> bytes:
    """Return a message as bytes; raise ``ParameterTypeError`` for anything else, such as a number."""
    if not isinstance(message, (bytes, bytearray, memoryview)):
        raise ParameterTypeError(f"message must be bytes, got {type(message).__name__}")
    return bytes(message)


class MessageElement(abc.ABC):
    """An element over any transport of frames: checks, barriers and the report of failures.

    As a context manager, it closes at the end; if the block raises, it first reports the failure to all
    peers, so that each of them raises `PeerError` with the rank of the element that failed first.
    """

    def __init__(self, rank: int, size: int) -> None:
        for name, value in (("rank", rank), ("size", size)):
            if type(value) is not int:
                raise ParameterTypeError(f"{name} must be an int, got {value!r}")
        if not 0 <= rank < size:
            raise ParameterError(f"rank must be from 0 to size - 1, got rank {rank} of {size}")
        self._rank, self._size = rank, size

    @property
    def rank(self) -> int:
        """Number of this element, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of all elements."""
        return self._size

    def send(self, to: int, message: bytes) -> None:
        """Send ``message`` to the element of rank ``to``; returns before it has arrived.

        Raises ``ParameterError`` for a rank that does not exist and for the own rank, ``PeerError`` if the
        peer failed.
        """
        payload = check_message(message)
        self._check_peer("to", to)
        self._post(to, Kind.MESSAGE, payload)

    def receive(self, source: int) -> bytes:
        """Return the next message from the element of rank ``source``.

        Raises ``PeerError`` with the rank of the failed element if the message does not arrive in time or is
        not valid, ``ParameterError`` as `send` does.
        """
        self._check_peer("source", source)
        return self._expect(source, Kind.MESSAGE)

    def barrier(self) -> None:
        """Wait until every element has called this method: ceil(log2(size)) empty frames per element.

        Raises ``PeerError`` as `receive` does.
        """
        # Dissemination barrier: after round i, an element has heard of the 2^i before it.
        distance = 1
        while distance < self._size:
            self._post((self._rank + distance) % self._size, Kind.BARRIER, b"")
            self._expect((self._rank - distance) % self._size, Kind.BARRIER)
            distance *= 2

    def abort(self, culprit: int | None = None) -> None:
        """Report to all peers that the exchange failed, and close.

        culprit: rank of the element that failed first; this element by default. Raises ``ParameterError`` for
        a rank that does not exist.
        """
        if culprit is not None and not 0 <= culprit < self._size:
            raise ParameterError(f"culprit must be a rank from 0 to {self._size - 1}, got {culprit}")
        payload = (self._rank if culprit is None else culprit).to_bytes(RANK_BYTES, "big")
        for peer in range(self._size):
            if peer != self._rank:
                # A peer that is gone needs no report, and an element that is closed raises ValueError.
                with contextlib.suppress(PeerError, ValueError):
                    self._post(peer, Kind.FAILURE, payload)
        self._end(failed=True)

    def close(self) -> None:
        """Deliver what was sent, then release the transport. Closing twice is harmless."""
        self._end(failed=False)

    def __enter__(self) -> Self:
        """Return the element itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; report a failure first if the block raised."""
        if error is None:
            self.close()
        else:
            self.abort(error.rank if isinstance(error, PeerError) else None)

    def _check_peer(self, name: str, rank: int) -> None:
        if type(rank) is not int:
            raise ParameterTypeError(f"{name} must be an int, got {rank!r}")
        if not 0 <= rank < self._size or rank == self._rank:
            raise ParameterError(
                f"{name} must be the rank of another element, from 0 to {self._size - 1} "
                f"and not {self._rank}, got {rank}"
            )

    def _expect(self, source: int, wanted: Kind) -> bytes:
        """Return the payload of the next frame, which must be of this kind."""
        kind, payload = self._take(source)
        if kind == Kind.FAILURE:
            raise self._describe_failure(source, payload)
        if kind != wanted:
            raise PeerError(source, f"sent a {kind.name.lower()} where a {wanted.name.lower()} was due")
        return payload

    def _describe_failure(self, source: int, payload: bytes) -> PeerError:
        """Return the error for a failure that ``source`` reported."""
        culprit = int.from_bytes(payload, "big")
        if len(payload) != RANK_BYTES or culprit >= self._size:
            return PeerError(source, "sent an invalid report of a failure")
        if culprit in (source, self._rank):
            # A peer that blames this element has failed as far as this element can tell.
            return PeerError(source, "stopped before the end of the exchange")
        return PeerError(culprit, f"failed, as rank {source} reports")

    @abc.abstractmethod
    def _post(self, to: int, kind: Kind, payload: bytes) -> None:
        """Send one frame without waiting for the receiver."""

    @abc.abstractmethod
    def _take(self, source: int) -> tuple[Kind, bytes]:
        """Return the next frame from ``source``, or raise ``PeerError``."""

    @abc.abstractmethod
    def _end(self, *, failed: bool) -> None:
        """Deliver what was sent and release the transport."""


class CountingElement:
    """An element that counts the messages and bytes that pass through another element.

    It counts the contents of messages; what the transport adds (13 bytes of frame per message on a socket),
    barriers and what an element keeps for itself are not counted.

    >>> from fullbloom.compose.networked import run_local
    >>> def exchange(element):
    ...     counter = CountingElement(element)
    ...     counter.send(1 - counter.rank, b"ping")
    ...     counter.receive(1 - counter.rank)
    ...     return counter.messages_sent, counter.bits_sent
    >>> run_local(2, exchange)
    [(1, 32), (1, 32)]
    """

    def __init__(self, element: ProcessingElement) -> None:
        self._element = element
        #: Messages sent so far.
        self.messages_sent = 0
        #: Bytes of their contents.
        self.bytes_sent = 0
        #: Bytes of the messages received so far.
        self.bytes_received = 0

    @property
    def rank(self) -> int:
        """Number of this element, from 0."""
        return self._element.rank

    @property
    def size(self) -> int:
        """Number of all elements."""
        return self._element.size

    @property
    def bits_sent(self) -> int:
        """Bits of the contents of all messages sent."""
        return 8 * self.bytes_sent

    def send(self, to: int, message: bytes) -> None:
        """Send and count ``message``."""
        self._element.send(to, message)
        self.messages_sent += 1
        self.bytes_sent += len(message)

    def receive(self, source: int) -> bytes:
        """Return and count the next message from ``source``."""
        message = self._element.receive(source)
        self.bytes_received += len(message)
        return message

    def barrier(self) -> None:
        """Wait until every element has called this method."""
        self._element.barrier()
