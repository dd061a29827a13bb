"""Queue requests for a busy filter on the event loop, not in threads, up to a limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds between two checks of a filter.
_INTERVAL = 0.005
#: Requests that read one filter, and that change it, which may have a thread at a time; there are 40 threads.
_THREADS = 4
#: Of the concurrent requests, one in so many may wait for one filter, and one in so many for all filters.
_PER_FILTER, _FOR_ALL = 4, 2


class Waiters:
    """The requests that wait, by the names of their filters.

    A task over a whole filter (a copy, a merge) may keep changes of that filter waiting for seconds. If each
    waited in a thread, a few dozen of them would leave no thread to requests for other filters.
    """

    def __init__(self, service: Any, max_requests: int) -> None:
        """Serve the native store; ``max_requests`` bounds the concurrent requests."""
        self._service = service
        self._most, self._most_in_all = max(max_requests // _PER_FILTER, 1), max(max_requests // _FOR_ALL, 1)
        self._waiting: Counter[str] = Counter()
        #: Threads of a filter's readers or writers, and the number of requests that have one or wait for one.
        self._threads: dict[tuple[str, bool], asyncio.Semaphore] = {}
        self._users: Counter[tuple[str, bool]] = Counter()

    async def change(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a change in a thread, again and again until it returns something other than None."""
        while (done := await asyncio.to_thread(work)) is None:
            await self.wait_for(name)
        return done

    async def wait_for(self, name: str) -> None:
        """Wait until changes of a filter would not wait; ``Refused`` if too many requests do."""
        waiting = self._service.wait_for_filter(name)
        if waiting is None:
            return
        with self._count(name), waiting:
            while waiting.goes_on():  # noqa: ASYNC110 - the event happens in the native module
                await asyncio.sleep(_INTERVAL)

    async def take(self, name: str, *, reads: bool) -> Callable[[], None]:
        """Wait for one of the few threads of a filter; return what gives it back, called once or more.

        ``Refused`` if too many requests wait. Requests that read the filter do not wait for changes, which
        may wait for the disk.
        """
        key = name, reads
        threads = self._threads.setdefault(key, asyncio.Semaphore(_THREADS))
        self._users[key] += 1
        try:
            with self._count(name) if threads.locked() else contextlib.nullcontext():
                await threads.acquire()
        except BaseException:
            self._leave(key)
            raise

        is_held = True

        def give_back() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                threads.release()
                self._leave(key)

        return give_back

    def _leave(self, key: tuple[str, bool]) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._threads[key]

    @contextlib.contextmanager
    def _count(self, name: str) -> Iterator[None]:
        if self._waiting[name] >= self._most or self._waiting.total() >= self._most_in_all:
            raise Refused("overloaded", "too many requests wait for the filter; try again")
        self._waiting[name] += 1
        try:
            yield
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]
