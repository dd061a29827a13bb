"""A fork while other threads work: the child has a sound filter of its own and waits for none of them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support import LONG, Keys, Variant, every_variant

import fullbloom
from fullbloom import _folders
from fullbloom.compose import WithRemovals, folder
from fullbloom.service import data_folder

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning"),
]

FORKS = 120 if LONG else 6
PATIENCE = 60


def fork(work: Callable[[], bool]) -> int:
    """The exit code of a child that runs ``work``: 0 when it is true, -SIGALRM when it hangs."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextmanager
def working(*works: Callable[[], object]) -> Iterator[None]:
    """Runs each of ``works`` again and again on a thread of its own."""
    stop = threading.Event()
    started = threading.Barrier(len(works) + 1)

    def run(work: Callable[[], object]) -> None:
        work()
        started.wait(timeout=PATIENCE)
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    started.wait(timeout=PATIENCE)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("variant", every_variant("keys", "keeps"))
def test_a_child_forked_in_a_batch_uses_the_filter(variant: Variant) -> None:
    stay, come = Keys("random", 1).take(20_000), Keys("random", 2).take(60_000)
    shared = variant.make(200_000, 0.001)
    shared.update(stay)

    def change() -> None:
        shared.update(come)
        if variant.can("remove"):
            shared.discard_many(come)

    def work() -> bool:
        sound = bool(shared.contains_many(stay).all()) and shared.num_added >= 0
        shared.add("alone")
        shared.update(stay[:300], threads=2)
        again = fullbloom.loads(shared.to_bytes())
        return sound and "alone" in shared and again == shared and bool(again.contains_many(stay).all())

    # Where copies of a key take slots and none can be taken out, the table would fill up.
    works = [change] if variant.can("remove") or not variant.row["once"] else []
    with working(*works, lambda: shared.contains_many(come), shared.to_bytes):
        assert [fork(work) for _ in range(FORKS)] == [0] * FORKS


@pytest.mark.parametrize("variant", every_variant("keys", "keeps", "merge"))
def test_a_child_forked_in_a_merge_uses_both(variant: Variant) -> None:
    one, other = variant.make(100_000), variant.make(100_000)
    one.update(range(5000))
    other.update(range(5000, 6000))

    def work() -> bool:
        one.copy().merge(other)
        return all(one.contains_many(range(5000))) and fullbloom.loads(one.to_bytes()) == one

    with working(
        lambda: one.copy().merge(other), lambda: other == one, lambda: other.contains_many(range(3000))
    ):
        assert [fork(work) for _ in range(FORKS)] == [0] * FORKS


def test_a_grandchild_and_its_threads_use_the_filter() -> None:
    shared = fullbloom.CuckooFilter(200_000, 1e-8)
    keys = Keys("random", 3).take(50_000)

    def threads() -> bool:
        with working(lambda: shared.discard_many(keys), lambda: shared.update(keys)):
            pass
        shared.update(["a"])
        return "a" in shared

    def work() -> bool:
        with working(lambda: shared.contains_many(keys)):
            return fork(threads) == 0 and "a" not in shared and threads()

    with working(lambda: shared.update(keys) or shared.discard_many(keys)):
        assert [fork(work) for _ in range(FORKS // 3)] == [0] * (FORKS // 3)


def test_a_child_forked_by_a_signal_handler_in_a_batch_continues() -> None:
    """The thread that works is the one that forks: its own batch goes on in both processes."""
    keys = np.arange(20_000_000)
    shared = fullbloom.BloomFilter(len(keys))
    children: list[int] = []

    def handle(*_: object) -> None:
        children.append(os.fork())

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        shared.update(keys)
    finally:
        signal.signal(signal.SIGALRM, before)
    code = 1
    if children == [0]:
        try:
            code = 0 if shared.contains_many(keys[::97]).all() and shared.add("alone") else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert shared.contains_many(keys[::97]).all()


def test_a_composite_is_usable_in_a_child() -> None:
    """Its two filters change under a lock of Python's, which another thread may hold at the fork."""
    shared = WithRemovals(fullbloom.BloomFilter(100_000), fullbloom.QuotientFilter(100_000, 1e-9))
    keys = list(range(3000))

    def work() -> bool:
        shared.add("alone")
        return "alone" in shared and shared.discard("alone")

    def change() -> None:
        shared.update(keys)
        shared.remove_many(keys)

    with working(change, lambda: shared.contains_many(keys)):
        assert [fork(work) for _ in range(FORKS)] == [0] * FORKS


def test_saving_continues_while_other_threads_fork(tmp_path: Path) -> None:
    shared = fullbloom.BloomFilter(400_000)
    shared.update(range(1000))
    path = tmp_path / "shared.bloom"
    with working(lambda: shared.save(path), lambda: shared.update(range(2000))):
        assert [fork(lambda: shared.add("alone")) for _ in range(FORKS)] == [0] * FORKS
    assert all(fullbloom.open(path, verify="full").contains_many(range(1000)))


def test_a_child_forked_during_a_save_keeps_no_lock_of_the_file(tmp_path: Path) -> None:
    path, children = tmp_path / "f.bloom", []
    try:
        for _ in range(FORKS):
            # The child is forked in a save, which ends while the child lives.
            with working(lambda: fullbloom.BloomFilter(300_000).save(path)):
                child = os.fork()
                if child == 0:
                    signal.pause()
                    os._exit(0)
                children.append(child)
            fullbloom.open(path, mode="r+").close()
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@contextmanager
def lock_data_folder(home: Path) -> Iterator[None]:
    descriptor = data_folder.lock(home)
    try:
        yield
    finally:
        data_folder.unlock(descriptor)


@contextmanager
def lock_file(home: Path) -> Iterator[None]:
    """Lock a file whose name stays, as if its directory had become read-only meanwhile."""
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT)
    _folders.lock(descriptor, wait=False)
    try:
        yield
    finally:
        _folders.release(descriptor, home / "lock" / "elsewhere")


@pytest.mark.parametrize("lock", [folder._lock, lock_data_folder, lock_file])
def test_a_child_forked_under_a_lock_does_not_hold_it_after_its_parent(
    lock: Callable[[Path], contextlib.AbstractContextManager[None]], tmp_path: Path
) -> None:
    with lock(tmp_path):
        child = os.fork()
        if child == 0:
            signal.alarm(2 * PATIENCE)
            signal.pause()
            os._exit(0)
    done = threading.Event()

    def lock_again() -> None:
        with lock(tmp_path):
            done.set()

    thread = threading.Thread(target=lock_again, daemon=True)
    try:
        thread.start()
        assert done.wait(timeout=PATIENCE)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        thread.join(timeout=PATIENCE)


def test_a_child_that_leaves_a_save_does_not_take_the_lock_from_its_parent(tmp_path: Path) -> None:
    with contextlib.ExitStack() as save:
        save.enter_context(folder._lock(tmp_path))
        assert fork(lambda: save.close() is None) == 0
        other = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            _folders.lock(other, wait=False)
        os.close(other)
