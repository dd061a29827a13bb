"""A bound on the time of a test: one that waits for a cluster fails and ends it, and does not hang."""

from __future__ import annotations

import contextlib
import signal

import pytest

psutil = pytest.importorskip(
    "psutil", reason="psutil is not installed: pip install -r requirements/engines.txt"
)


@contextlib.contextmanager
def bound(seconds, end=lambda: None):
    """Fail the test, and call ``end`` first, if the block takes longer; for the main thread.

    The failure interrupts a read of a socket or a wait for a lock, and no ``except Exception`` catches it.
    """

    def fail(_signal, _frame):
        end()
        pytest.fail(f"it took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def list_tree(process):
    """A process and its descendants; after its end, its orphans are no longer its descendants."""
    try:
        one = psutil.Process(process.pid)
        return [one, *one.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill(processes, seconds=10):
    """Wait until processes have ended, and kill those that have not after ``seconds``."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    for one in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(alive, timeout=10)
