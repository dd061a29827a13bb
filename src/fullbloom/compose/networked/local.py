"""Processing elements in one process: a thread each, with a queue for each ordered pair."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING, TypeVar

from fullbloom.errors import ParameterError, PeerError

from .element import Kind, MessageElement

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LocalElement", "run_local"]

T = TypeVar("T")
_Frames = queue.SimpleQueue[tuple[Kind, bytes]]


class LocalElement(MessageElement):
    """An element of a group within one process; `LocalElement.group` makes all of them.

    Each element may be used by one thread at a time. A message is handed over without a copy and without a
    bound on memory. timeout: seconds that ``receive`` and ``barrier`` wait for a peer.

    >>> first, second = LocalElement.group(2)
    >>> first.send(1, b"hello")
    >>> second.receive(0)
    b'hello'
    """

    def __init__(self, rank: int, queues: dict[tuple[int, int], _Frames], size: int, timeout: float) -> None:
        super().__init__(rank, size)
        self._queues, self._timeout = queues, timeout
        self._closed = False

    @classmethod
    def group(cls, size: int, *, timeout: float = 60.0) -> list[LocalElement]:
        """Return ``size`` elements that reach each other; raise ``ParameterError`` if it is below 1."""
        if size < 1:
            raise ParameterError(f"size must be at least 1, got {size}")
        queues: dict[tuple[int, int], _Frames] = {
            (source, to): queue.SimpleQueue() for source in range(size) for to in range(size) if source != to
        }
        return [cls(rank, queues, size, timeout) for rank in range(size)]

    def _post(self, to: int, kind: Kind, payload: bytes) -> None:
        if self._closed:
            raise ValueError("the element is closed")
        self._queues[self._rank, to].put((kind, payload))

    def _take(self, source: int) -> tuple[Kind, bytes]:
        try:
            return self._queues[source, self._rank].get(timeout=self._timeout)
        except queue.Empty:
            raise PeerError(source, f"sent nothing for {self._timeout:g} s") from None

    def _end(self, *, failed: bool) -> None:
        if not self._closed and not failed:
            # Whoever still waits for this element learns that nothing more will come.
            payload = self._rank.to_bytes(4, "big")
            for peer in range(self._size):
                if peer != self._rank:
                    self._queues[self._rank, peer].put((Kind.FAILURE, payload))
        self._closed = True


def run_local(size: int, job: Callable[[LocalElement], T], *, timeout: float = 60.0) -> list[T]:
    """Run ``job(element)`` in a thread for each of ``size`` elements; return the results by rank.

    If a job raises, its peers raise ``PeerError``, all threads end, and this function raises the error that
    came first. timeout: as for `LocalElement`.

    >>> def rotate(element):
    ...     element.send((element.rank + 1) % element.size, bytes([element.rank]))
    ...     return element.receive((element.rank - 1) % element.size)[0]
    >>> run_local(4, rotate)
    [3, 0, 1, 2]
    """
    elements = LocalElement.group(size, timeout=timeout)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(element: LocalElement) -> None:
        with contextlib.suppress(BaseException), element:  # raised again below, in the caller's thread
            try:
                results[element.rank] = job(element)
            except BaseException as error:
                # Before the element reports it to its peers, whose errors come after this one.
                errors.append(error)
                raise

    threads = [threading.Thread(target=run, args=(element,), daemon=True) for element in elements]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        # The peers' errors only report the first one.
        raise next((error for error in errors if not isinstance(error, PeerError)), errors[0])
    return [results[rank] for rank in range(size)]
