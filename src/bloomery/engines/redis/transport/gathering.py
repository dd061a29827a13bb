"""Single questions of many tasks, sent together: what comes while a batch is on its way is the next batch."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

#: Keys that are sent together at most.
MOST = 4096


class Gathering:
    """Hashes that wait for the next batch, each with whom it answers.

    The first ones leave at the end of the event loop's turn. A batch is a task of its own, so that a caller
    that is cancelled takes nothing from the others; its key goes with the batch all the same, if it was
    not taken out before that left.
    """

    def __init__(self, ask: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Take what sends hashes, and returns a byte for each."""
        self._ask = ask
        self._waiting: list[tuple[bytes, asyncio.Future[int]]] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, hash_: bytes) -> asyncio.Future[int]:
        """Return the answer to come."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._waiting.append((hash_, answer))
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._sent())
        return answer

    async def _sent(self) -> None:
        while self._waiting:
            first, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            waiting = [(hash_, answer) for hash_, answer in first if not answer.done()]
            if not waiting:
                continue
            asked = [answer for _, answer in waiting]
            try:
                told = await self._ask(b"".join(hash_ for hash_, _ in waiting))
            except Exception as error:  # noqa: BLE001 - every task gets it
                _settle(asked, [_for_one(error) for _ in asked])
            except BaseException:  # the loop ends
                for answer in [*asked, *(answer for _, answer in self._waiting)]:
                    answer.cancel()
                self._waiting.clear()
                raise
            else:
                _settle(asked, list(told))


def _settle(answers: list[asyncio.Future[int]], told: Sequence[int | Exception]) -> None:
    """Give each its own, unless its task was cancelled."""
    for answer, one in zip(answers, told, strict=True):
        if answer.done():
            continue
        if isinstance(one, Exception):
            answer.set_exception(one)
        else:
            answer.set_result(one)


def _for_one(error: Exception) -> Exception:
    """Return an error of its own for each task, so that tracebacks do not mix."""
    try:
        return copy.copy(error)
    except Exception:  # noqa: BLE001 - a class that cannot be copied
        return error
