"""How long a call keeps the interpreter from other threads."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

MOST = 0.010
#: Where other programs have the processor, the watch may come late: the best of some tries counts.
TRIES = 25


class Watch:
    """
    A thread that acquires the GIL again and again, and records how long its creator worked in between.

    That is processor time, which does not advance while other programs have the processor.
    """

    def __init__(self) -> None:
        #: What its creator worked from each of its turns to the next.
        self._gaps: list[float] = []
        self._watched = time.pthread_getcpuclockid(threading.get_ident())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with suppress(AttributeError, PermissionError):  # wakes at once, where it may
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
        last = time.clock_gettime(self._watched)
        while not self._stop.is_set():
            time.sleep(0.0002)
            now = time.clock_gettime(self._watched)
            self._gaps.append(now - last)
            last = now

    def during(self, call: Callable[[], object]) -> float:
        """The longest wait while ``call`` ran."""
        self._wait_for_turns()
        self._gaps.clear()
        answer = call()
        # A call that never lets go is noted when it has ended, on a busy machine some time later.
        self._wait_for_turns()
        longest = max(self._gaps)
        del answer  # which takes the interpreter its time where it is a large bytes
        return longest

    def _wait_for_turns(self) -> None:
        """Wait for two more gaps: the thread may be in the middle of a turn."""
        known = len(self._gaps)
        while len(self._gaps) < known + 2:
            time.sleep(0.0002)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()


@contextmanager
def watch() -> Iterator[Watch]:
    """A watch, with an interpreter that changes threads at once where Python code runs."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    gc.disable()
    instance = Watch()
    try:
        yield instance
    finally:
        instance.stop()
        gc.enable()
        sys.setswitchinterval(interval)


def least_of_longest(watching: Watch, call: Callable[[], object], enough: float = MOST) -> float:
    """The longest wait during ``call``, in the best of some tries."""
    best = float("inf")
    for _ in range(TRIES):
        best = min(best, watching.during(call))
        if best < enough:
            break
    return best
