"""Work on pieces of the input by several threads, with results in the order of the pieces."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

#: Pieces under way for each thread.
_EACH = 2


class _Job(Generic[T, R]):
    """One piece; the first thread that claims it works on it."""

    __slots__ = ("_claim", "_error", "_piece", "_result", "_work", "done")

    def __init__(self, work: Callable[[T], R], piece: T) -> None:
        self._work, self._piece = work, piece
        self._claim = threading.Lock()
        self._result: list[R] = []
        self._error: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> bool:
        """Work, unless another thread does; return whether this one did."""
        if not self._claim.acquire(blocking=False):
            return False
        try:
            self._result.append(self._work(self._piece))
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error
        self.done.set()
        return True

    def result(self) -> R:
        if self._error is not None:
            raise self._error
        return self._result[0]


class Ahead(Generic[T, R]):
    """``work`` on every piece by ``threads`` threads, this one among them; results come in order.

    If ``idle`` returns True, the next piece may take long: then all results so far come first.
    """

    def __init__(self, work: Callable[[T], R], threads: int, idle: Callable[[], bool]) -> None:
        """Start no thread yet."""
        self._work, self._threads, self._idle = work, threads, idle
        self._queue: SimpleQueue[_Job[T, R] | None] = SimpleQueue()
        self._pending: deque[_Job[T, R]] = deque()

    def __call__(self, pieces: Iterable[T]) -> Iterator[R]:
        """Yield the results."""
        if self._threads <= 1:
            yield from map(self._work, pieces)
            return
        workers = 0
        with suppress(RuntimeError):  # the system has no more threads: this one does the rest
            while workers < self._threads - 1:
                threading.Thread(target=self._serve, daemon=True).start()
                workers += 1
        try:
            for piece in pieces:
                job = _Job(self._work, piece)
                self._pending.append(job)
                self._queue.put(job)
                most = 0 if self._idle() else _EACH * self._threads - 1
                while len(self._pending) > most:
                    yield self._oldest()
            while self._pending:
                yield self._oldest()
        finally:
            self._pending.clear()
            for _ in range(workers):
                self._queue.put(None)

    def _oldest(self) -> R:
        """Return the result of the oldest piece; work on waiting pieces meanwhile."""
        job = self._pending.popleft()
        if not job.run():
            while not job.done.is_set() and any(other.run() for other in self._pending):
                pass
            job.done.wait()
        return job.result()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            job.run()
